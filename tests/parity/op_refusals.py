"""Calls that PyTorch refuses: each op that refuses anything has one at least (coverage_test.cpp)."""

import torch
import torch.nn.functional as F

from op_arguments import form
from op_arrange import listed
from op_case import INF, add, f32, ints, kwargs_named, mask, pos, r, unit


def refuse(op, inputs, call=None, **attrs):
    add(op, inputs, call, error=True, **attrs)


def dtypes():
    for op in ["abs", "ceil", "floor", "round", "trunc", "frac", "relu", "relu6", "hardtanh",
               "softsign"]:
        refuse(op, mask(3))
    refuse("tanhshrink", mask(3), F.tanhshrink)
    for op in ["celu", "elu", "gelu", "hardsigmoid", "hardswish", "leaky_relu", "logsigmoid", "mish",
               "selu", "silu", "softplus", "frac"]:
        refuse(op, ints(9, 3))
    refuse("hardshrink", ints(9, 3), F.hardshrink)
    refuse("rrelu", ints(9, 3), F.rrelu)
    refuse("silu_", ints(9, 3), F.silu)
    refuse("gelu_tanh", ints(9, 3), lambda x: F.gelu(x, approximate="tanh"))
    for op in ["abs_", "neg_", "ceil_", "floor_", "round_", "trunc_", "frac_", "relu_", "square_"]:
        form(op, mask(3), error=True)
    for op in ["exp_", "exp2_", "expm1_", "sin_", "cos_", "tan_", "tanh_", "erf_", "erfc_",
               "sigmoid_", "log_", "log2_", "log10_", "log1p_", "sqrt_", "rsqrt_", "reciprocal_"]:
        form(op, ints(5, 3, low=1), error=True)
    refuse("bitwise_not", r(3))
    refuse("polygamma", r(3), lambda x, n: torch.polygamma(n, x), n=-1)
    for op in ["maximum", "fmod"]:
        refuse(op, [r(2, 3), r(4)])
    form("add_", [ints(9, 3), r(3)], error=True)
    form("mul_", ints(9, 3), other=0.5, error=True)
    form("masked_fill_", {"x": r(2, 3), "m": ints(2, 3)}, value=0.5, error=True)
    form("clamp_", r(3), error=True)
    form("clamp_min_", mask(3), min=0.5, error=True)
    form("clamp_max_", mask(3), max=0.5, error=True)
    refuse("masked_scatter", {"x": r(3, 4), "m": mask(3, 4) | True, "source": r(11)},
           torch.masked_scatter)
    refuse("masked_select", {"x": r(3), "m": ints(2, 3)})
    refuse("histc", r(5), bins=0)
    refuse("histc", r(5), bins=3, min=2.0, max=1.0)
    refuse("histc", f32([0.0, -INF, 1.0]), torch.histc, bins=4)
    refuse("cumsum", r(2), dim=1)
    refuse("isin", [mask(2), mask(2)], differs="membership of bools has a meaning")


def broadcasts():
    for op in ["atan2", "copysign", "fmax", "fmin", "floor_divide", "remainder", "pow", "hypot",
               "logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor", "xlogy",
               "heaviside", "rsub", "isclose"]:
        refuse(op, [r(2, 3), r(4)])
    refuse("trunc_divide", [r(2, 3), r(4)], lambda x, y: torch.div(x, y, rounding_mode="trunc"))
    for op in ["add_", "sub_", "mul_", "div_", "pow_", "fmod_", "remainder_", "floor_divide_",
               "copy_"]:
        form(op, [r(3), r(2, 3)], error=True)
        form(op, [r(2, 3), r(4)], error=True)
    for op in ["addcmul", "addcdiv"]:
        refuse(op, [r(2, 3), r(4), r(2, 1)])
        form(op + "_", [r(3), r(2, 3), r(3)], error=True)
    refuse("lerp", [r(2, 3), r(4)], weight=0.5)
    form("lerp_", [r(3), r(2, 3)], weight=0.5, error=True)
    refuse("where", {"c": mask(2, 3), "x": r(4), "y": r(3)})
    refuse("expand_as", [r(3), r(2, 4)])
    refuse("broadcast_to", r(3), size=[2, 4])
    refuse("view_as", [r(6), r(4, 2)])
    refuse("reshape_as", [r(6), r(4, 2)])


def dims():
    refuse("all", mask(2, 3), dim=2)
    refuse("any", mask(2, 3), dim=-3)
    for op in ["sort", "argsort", "count_nonzero", "mode", "nansum", "vector_norm", "unbind",
               "squeeze"]:
        refuse(op, r(2, 3), dim=2)
    for op in ["cummax", "cummin", "logcumsumexp"]:
        refuse(op, r(2, 3), dim=-3)
    refuse("logcumsumexp", ints(3, 4), dim=0)
    refuse("normalize", r(2, 3), dim=2)
    refuse("cosine_similarity", [r(2, 3), r(2, 3)], dim=2)
    refuse("cosine_similarity", [r(2, 3), r(2, 4)])
    refuse("pairwise_distance", [r(2, 3), r(2, 4)])
    refuse("softmin", r(2, 3), F.softmin, dim=2)
    form("squeeze_", r(2, 1), dim=2, error=True)
    form("unsqueeze_", r(2, 1), dim=3, error=True)
    form("transpose_", r(2, 3), dim0=0, dim1=2, error=True)
    form("t_", r(2, 3, 4), error=True)
    refuse("transpose", r(2, 3), dim0=0, dim1=-3)
    refuse("movedim", r(2, 3, 4), source=[0, 0], destination=[1, 2])
    refuse("movedim", r(2, 3, 4), source=[0, 1], destination=[1])
    refuse("diagonal", r(2, 3), dim1=0, dim2=-2)
    refuse("diag_embed", r(2, 3), dim1=1, dim2=1)
    refuse("diag", r(2, 3, 4))
    refuse("tril", r(3))
    form("tril_", r(3), error=True)
    form("triu_", r(3), error=True)
    refuse("flipud", r())
    refuse("chunk", r(4), chunks=0)
    refuse("chunk", r(4), chunks=2, dim=1)
    refuse("roll", r(2, 3), shifts=[1, 2], dims=[0])
    refuse("tile", r(2, 3), dims=[2, -1])
    refuse("repeat_interleave", r(2, 3), repeats=-1, dim=0)
    refuse("unfold_dim", r(4), lambda x, dimension, size, step: x.unfold(dimension, size, step),
           dimension=0, size=5, step=1)
    refuse("unfold_dim", r(4), lambda x, dimension, size, step: x.unfold(dimension, size, step),
           dimension=0, size=2, step=0)
    refuse("unique", ints(3, 4), dim=1)
    refuse("unique_consecutive", ints(3, 4), dim=1)
    for op in ["hstack", "dstack", "column_stack"]:
        refuse(op, [r(2, 3, 2), r(3, 4, 2)], listed(getattr(torch, op)))
    refuse("block_diag", [r(2, 3, 2)], listed(lambda tensors: torch.block_diag(*tensors)))
    refuse("cartesian_prod", [r(2, 3)], torch.cartesian_prod)
    refuse("meshgrid", [r(2, 3)], torch.meshgrid, indexing="ij")
    refuse("meshgrid", [r(2), r(3)], torch.meshgrid, indexing="ji")
    refuse("combinations", r(2, 3))
    refuse("combinations", r(3), lambda x, r: torch.combinations(x, r), r=-1)
    refuse("vander", r(2, 3))
    refuse("trapezoid", [r(2, 3), r(4)], torch.trapezoid)
    refuse("renorm", r(3), p=2.0, dim=0, maxnorm=1.0)
    refuse("renorm", r(3, 2), p=-1.0, dim=0, maxnorm=1.0)


def products():
    refuse("mv", [r(3, 4), r(3)])
    refuse("baddbmm", {"c": r(2, 3, 2), "x": r(2, 3, 4), "y": r(2, 3, 2)})
    refuse("tensordot", [r(2, 3), r(4, 2)], dims=1)
    refuse("tensordot", [r(2, 3), r(3, 2)], dims=[[1], [1]])
    refuse("bilinear", {"x": r(2, 3), "y": r(2, 4), "weight": r(5, 4, 3)}, F.bilinear)
    refuse("cov", r(2, 3, 4))
    refuse("cov", {"x": r(3), "fweights": -ints(3, 3, low=1)}, kwargs_named("fweights")(torch.cov, 1),
           differs="it would read the weights on the host, and wait for the device")
    refuse("cov", {"x": r(3), "aweights": pos(4)}, kwargs_named("aweights")(torch.cov, 1))
    refuse("corrcoef", r(2, 3, 4))
    refuse("pdist", r(3), F.pdist)
    refuse("pdist", r(3, 2), F.pdist, p=-1.0)
    refuse("cdist", [r(3, 2), r(4, 2)], p=-1.0)
    cell = {"x": r(2, 3), "h": r(2, 2), "wi": r(2, 3), "wh": r(2, 3)}
    for op in ["rnn_tanh_cell", "rnn_relu_cell"]:
        refuse(op, cell)
    refuse("gru_cell", cell | {"wi": r(6, 3), "wh": r(6, 3)})
    refuse("lstm_cell", {"x": r(2, 3), "h": r(2, 2), "c": r(2, 2), "wi": r(8, 4), "wh": r(8, 2)},
           lambda x, h, c, *rest: torch.lstm_cell(x, (h, c), *rest))


def places():
    refuse("index", {"x": r(4, 3), "i": torch.tensor([0, 4])}, lambda x, i: x[i])
    refuse("index", {"x": r(4, 3), "i": ints(4, 2), "j": ints(3, 3)}, lambda x, i, j: x[i, j])
    put = lambda x, *rest, **attrs: x.index_put(rest[:-1], rest[-1], **attrs)
    refuse("index_put", {"x": r(4, 3), "i": torch.tensor([0, 4]), "values": r(3)}, put)
    refuse("index_put", {"x": r(4, 3), "i": torch.tensor([0, 1]), "values": r(3, 3)}, put)
    fill = lambda x, i, dim, value: x.index_fill(dim, i, value)
    refuse("index_fill", {"x": r(3, 4), "i": torch.tensor([3])}, fill, dim=0, value=1.0)
    refuse("index_fill", {"x": r(3, 4), "i": torch.tensor([0])}, fill, dim=2, value=1.0)
    scatter = lambda x, i, *src, dim, value=None, **attrs: x.scatter(dim, i, src[0] if src else value,
                                                                     **attrs)
    refuse("scatter", {"x": r(4, 3), "i": torch.tensor([[4]])}, scatter, dim=0, value=1.0)
    refuse("scatter", {"x": r(4, 3), "i": ints(4, 2, 3), "src": r(1, 3)}, scatter, dim=0)
    refuse("scatter", {"x": r(4, 3), "i": ints(4, 2, 3)}, scatter, dim=0, value=1.0, reduce="mean")
    refuse("scatter_add", {"x": r(4, 3), "i": torch.tensor([[-1]]), "src": r(1, 1)},
           lambda x, i, src, dim: x.scatter_add(dim, i, src), dim=0)
    refuse("scatter_reduce", {"x": r(4, 3), "i": ints(4, 2, 3), "src": r(2, 3)},
           lambda x, i, src, dim, reduce: x.scatter_reduce(dim, i, src, reduce), dim=0,
           reduce="add")
    refuse("take_along_dim", {"x": r(3, 2), "i": torch.tensor([3])}, torch.take_along_dim, dim=0)
    refuse("take_along_dim", {"x": r(3, 2), "i": r(3, 2)}, torch.take_along_dim, dim=0)
    refuse("bucketize", [r(2), r(2, 3)])
    for more in [{"start": 0.0, "end": 1.0, "steps": -1}]:
        refuse("linspace", [], **more)
    refuse("eye", [], n=-1)
    for op, value in [("new_zeros", {}), ("new_ones", {}), ("new_full", {"fill_value": 1.0}),
                      ("full", {"fill_value": 1.0})]:
        refuse(op, [] if op == "full" else r(2), size=[2, -1], **value)


def windows():
    for dims in [1, 2, 3]:
        size = [5, 4, 4][:dims]
        refuse(f"conv_transpose{dims}d", {"x": r(1, 3, *size), "weight": r(2, 2, *[2] * dims)})
        refuse(f"max_pool{dims}d", r(1, 2, *size), kernel_size=2, padding=2)
        refuse(f"max_pool{dims}d", r(1, 2, *size), kernel_size=7)
        refuse(f"avg_pool{dims}d", r(1, 2, *size), kernel_size=2, padding=2)
        refuse(f"avg_pool{dims}d", r(1, 2, *size), kernel_size=2, stride=0)
        if dims > 1:
            refuse(f"avg_pool{dims}d", r(1, 2, *size), kernel_size=2, divisor_override=0)
        refuse(f"adaptive_avg_pool{dims}d", r(1, 2, *size), output_size=-1)
        refuse(f"adaptive_max_pool{dims}d", r(1, 2, *size), getattr(F, f"adaptive_max_pool{dims}d"),
               output_size=-1)
        refuse(f"lp_pool{dims}d", pos(1, 2, *size), getattr(F, f"lp_pool{dims}d"), norm_type=2.0,
               kernel_size=9)
    refuse("max_unpool3d", {"x": r(1, 1, 1, 2), "indices": ints(1, 1, 1, 1, 2) + 99},
           kernel_size=2)
    refuse("unfold", r(1, 2, 5, 4), F.unfold, kernel_size=6)
    refuse("unfold", r(5, 4), F.unfold, kernel_size=2)
    refuse("fold", r(1, 8, 11), output_size=[5, 4], kernel_size=2)
    refuse("fold", r(1, 7, 12), output_size=[5, 4], kernel_size=2)
    refuse("pixel_shuffle", r(1, 6, 2, 2), upscale_factor=2)
    refuse("pixel_unshuffle", r(1, 2, 3, 4), downscale_factor=2)
    refuse("affine_grid", r(1, 3, 3), F.affine_grid, size=[1, 1, 2, 2], align_corners=False)
    refuse("affine_grid", r(1, 2, 3), F.affine_grid, size=[1, 1, 0, 2], align_corners=False)
    refuse("rms_norm", r(2, 3), normalized_shape=[4])


def losses():
    refuse("bce_with_logits", [r(3), unit(2)], F.binary_cross_entropy_with_logits)
    refuse("kl_div", [r(2, 3), unit(2, 4)])
    refuse("kl_div", [r(2, 3), unit(2, 3)], reduction="average")
    refuse("hinge_embedding_loss", [r(3), ("target", f32([1.0, -1.0]))])
    refuse("cosine_embedding_loss", [r(2, 3), r(2, 4), ("target", f32([1.0, -1.0]))])
    refuse("soft_margin_loss", [r(3), ("target", f32([1.0, -1.0]))])
    refuse("multilabel_margin_loss", {"x": r(2, 3), "target": ints(3, 2, 4)},
           F.multilabel_margin_loss)
    refuse("multilabel_soft_margin_loss", {"x": r(2, 3), "target": mask(2, 4).float()},
           F.multilabel_soft_margin_loss)
    refuse("poisson_nll_loss", [r(3), ("target", pos(2))])
    refuse("gaussian_nll_loss", {"x": r(2, 3), "target": r(2, 3), "var": -pos(2, 3)},
           F.gaussian_nll_loss,
           differs="it would read the variances on the host, and wait for the device")
    for smoothing in [-0.1, -2.0]:
        add("cross_entropy", {"x": r(2, 3), "target": ints(3, 2)}, label_smoothing=smoothing,
            differs="the documented range begins at 0; PyTorch takes a negative number for 0")
    refuse("triplet_margin_loss", [r(2, 3), r(2, 3), r(3)], F.triplet_margin_loss)
    refuse("triplet_margin_loss", [r(2, 3), r(2, 3), r(2, 3)], F.triplet_margin_loss, margin=-1.0)


def refusals():
    for family in [dtypes, broadcasts, dims, products, places, windows, losses]:
        family()
