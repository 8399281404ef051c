"""Cases of make_golden.py: transformers, parametrized and packed layers, and modules as text."""

import torch


def transformer_cases():
    nn = torch.nn
    src, tgt = torch.randn(5, 2, 8), torch.randn(4, 2, 8)
    causal = nn.Transformer.generate_square_subsequent_mask
    bias = torch.randn(4, 5)
    src_padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    tgt_padding = torch.tensor([[False] * 3 + [True], [False] * 4])
    yield ("encoder_stack", nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 12, 0.0, bias=False), 2, nn.LayerNorm(8)), [src],
        {"mask": causal(5), "src_key_padding_mask": src_padding.double() * -1e9})
    yield ("decoder_layer", nn.TransformerDecoderLayer(8, 2, 12, 0.0), [tgt, src],
           {"memory_mask": bias, "memory_key_padding_mask": src_padding.double() * -1e9})
    yield ("decoder_stack", nn.TransformerDecoder(
        nn.TransformerDecoderLayer(8, 4, 12, 0.0, "gelu", batch_first=True, norm_first=True), 2),
        [tgt.transpose(0, 1).contiguous(), src.transpose(0, 1).contiguous()],
        {"tgt_mask": causal(4), "tgt_is_causal": True})
    yield ("transformer", nn.Transformer(8, 2, 1, 2, 12, 0.0), [src, tgt],
           {"src_mask": torch.zeros(5, 5, dtype=torch.bool).fill_diagonal_(True),
            "tgt_mask": causal(4) == -torch.inf, "src_key_padding_mask": src_padding,
            "tgt_key_padding_mask": tgt_padding, "memory_key_padding_mask": src_padding})


def parametrized_cases():
    nn, norms = torch.nn, torch.nn.utils.parametrizations
    x, images = torch.randn(5, 4), torch.randn(2, 2, 4, 3)
    yield "weight_norm", norms.weight_norm(nn.Linear(4, 3)), [x], {}
    yield "weight_norm_whole", norms.weight_norm(nn.Linear(4, 3), dim=None), [x], {}
    yield "weight_norm_conv", norms.weight_norm(nn.Conv2d(2, 3, 2), dim=1), [images], {}
    yield ("spectral_norm", norms.spectral_norm(nn.Conv2d(2, 3, 2), n_power_iterations=2),
           [images], {})
    yield ("spectral_norm_transposed", norms.spectral_norm(nn.ConvTranspose2d(2, 3, 2)), [images],
           {})
    yield "spectral_norm_eval", norms.spectral_norm(nn.Linear(4, 3)).eval(), [x], {}
    yield "spectral_norm_bias", norms.spectral_norm(nn.Linear(4, 3), "bias"), [x], {}


def repr_cases():
    """Modules, whose text the test compares with that of flow's."""
    nn = torch.nn
    yield "mlp", nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2, bias=False))
    yield "nested", nn.Sequential(nn.Sequential(nn.Flatten(), nn.Dropout(0.25)), nn.Identity())
    yield "list", nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 3)])
    yield "dict", nn.ModuleDict({"a": nn.Tanh(), "b": nn.Softmax(1)})
    yield "empty", nn.ModuleList()
    yield "convolutions", nn.Sequential(
        nn.Conv1d(4, 6, 3, 2, 1, groups=2),
        nn.Conv2d(1, 2, (3, 2), padding="same", dilation=2, bias=False),
        nn.Conv3d(1, 2, 3, padding=(0, 1, 2), padding_mode="circular"),
        nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2))
    yield "norms", nn.Sequential(
        nn.BatchNorm1d(4), nn.BatchNorm2d(3, eps=1e-3, momentum=None, affine=False),
        nn.BatchNorm3d(2, track_running_stats=False), nn.LayerNorm((3, 4)),
        nn.LayerNorm(6, eps=1e-12, bias=False), nn.RMSNorm(6), nn.RMSNorm(6, eps=1e-6),
        nn.GroupNorm(2, 6), nn.InstanceNorm2d(3), nn.LocalResponseNorm(2))
    yield "pools", nn.Sequential(
        nn.MaxPool1d(3, stride=2, padding=1, ceil_mode=True), nn.MaxPool2d(2),
        nn.MaxPool2d((3, 2), dilation=2), nn.AvgPool1d(3), nn.AvgPool2d(2, 1), nn.AvgPool3d(2),
        nn.AdaptiveAvgPool2d((1, 2)), nn.AdaptiveMaxPool1d(3), nn.LPPool2d(2.0, 3),
        nn.LPPool1d(1.0, 3, stride=2))
    yield "unpool", nn.MaxUnpool2d(2, stride=2)
    yield "activations", nn.Sequential(
        nn.LeakyReLU(0.2), nn.ELU(0.7), nn.CELU(), nn.SELU(), nn.GELU(), nn.GELU("tanh"),
        nn.SiLU(), nn.PReLU(), nn.PReLU(3), nn.RReLU(), nn.Softplus(), nn.Hardtanh(),
        nn.Threshold(0.5, -1.0), nn.Hardshrink(), nn.Softshrink(0.25), nn.GLU(), nn.LogSoftmax(1),
        nn.Softmin(0), nn.Sigmoid(), nn.LogSigmoid(), nn.ReLU6())
    yield "dropouts", nn.Sequential(nn.Dropout(), nn.Dropout2d(0.1), nn.AlphaDropout(0.3))
    yield "embeddings", nn.ModuleList([
        nn.Embedding(10, 3), nn.Embedding(10, 3, padding_idx=0, max_norm=1.0),
        nn.EmbeddingBag(5, 2, mode="sum", padding_idx=1)])
    yield "recurrent", nn.ModuleList([
        nn.LSTM(4, 3), nn.LSTM(4, 5, 2, dropout=0.5, bidirectional=True, proj_size=3),
        nn.GRU(4, 3, bias=False, batch_first=True), nn.RNN(4, 3, nonlinearity="relu"),
        nn.LSTMCell(4, 3), nn.GRUCell(4, 3, bias=False), nn.RNNCell(4, 3, nonlinearity="relu")])
    yield "shapes", nn.Sequential(
        nn.Flatten(0, 1), nn.Unflatten(1, (2, 3)), nn.PixelShuffle(2), nn.PixelUnshuffle(3),
        nn.ChannelShuffle(2), nn.Upsample(scale_factor=2.0, mode="nearest"),
        nn.Upsample(size=(7, 5), mode="bilinear"), nn.ZeroPad2d((1, 2, 0, 1)),
        nn.ReflectionPad1d(2), nn.ConstantPad1d(1, 2.5))
    yield "bilinear", nn.Bilinear(3, 4, 5)
    yield "losses", nn.ModuleList([nn.CrossEntropyLoss(), nn.MSELoss()])
    yield "weight_norm", nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))


# Names of classes that are PyTorch's own affair.
RENAMED = {"NonDynamicallyQuantizableLinear": "Linear", "_WeightNorm": "WeightNorm"}


class Packed(torch.nn.Module):
    """A recurrent layer on three sequences of 2, 4 and 1 steps."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, *state):
        rnn = torch.nn.utils.rnn
        packed = rnn.pack_padded_sequence(x, torch.tensor([2, 4, 1]), enforce_sorted=False)
        first = [state[0] if len(state) == 1 else state] if state else []
        output, last = self.layer(packed, *first)
        return rnn.pad_packed_sequence(output, total_length=5)[0], last


def module_texts():
    """repr() of the modules, by name."""
    texts = {}
    layer = torch.nn.TransformerEncoderLayer(8, 2, 12)
    cases = [*repr_cases(), ("encoder", torch.nn.TransformerEncoder(layer, 2, torch.nn.LayerNorm(8))),
             ("decoder_layer", torch.nn.TransformerDecoderLayer(8, 2, 12, 0.0))]
    for name, module in cases:
        text = repr(module)
        for theirs, ours in RENAMED.items():
            text = text.replace(theirs, ours)
        texts[name] = text
    return texts
