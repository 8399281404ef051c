#include <gtest/gtest.h>

#include "nn/flow.h"
#include "tests/parity/golden.h"

namespace flow::parity {
namespace {

constexpr double kLimit = 1e-10;

// The golden tensors of one case: "in.0", "state.weight", …
class Case {
 public:
  Case(const nn::StateDict& all, const std::string& name, double limit = kLimit)
      : name_(name), limit_(limit) {
    for (const auto& [key, tensor] : all) {
      if (key.starts_with(name + "/")) tensors_.emplace(key.substr(name.size() + 1), tensor);
    }
  }

  const std::string& name() const { return name_; }

  bool contains(const std::string& key) const { return tensors_.contains(key); }

  Tensor at(const std::string& key) const {
    const auto found = tensors_.find(key);
    return found == tensors_.end() ? Tensor() : found->second;
  }

  // Tensors whose keys begin with `prefix`, without it.
  nn::StateDict under(const std::string& prefix) const {
    nn::StateDict found;
    for (const auto& [key, tensor] : tensors_) {
      if (key.starts_with(prefix)) found.emplace(key.substr(prefix.size()), tensor);
    }
    return found;
  }

  void expect(const std::string& key, const Tensor& got) const {
    ASSERT_TRUE(contains(key)) << name_ << ' ' << key;
    ASSERT_TRUE(got.defined()) << name_ << ' ' << key;
    EXPECT_EQ(got.shape(), at(key).shape()) << name_ << ' ' << key;
    EXPECT_LE(relative_distance(got.to_vector<double>(), at(key).to_vector<double>()), limit_)
        << name_ << ' ' << key;
  }

 private:
  std::string name_;
  double limit_;
  nn::StateDict tensors_;
};

std::vector<Tensor> outputs(const Tensor& y) {
  return {y};
}

std::vector<Tensor> outputs(const nn::AttentionResult& y) {
  if (!y.weights.defined()) return {y.output};
  return {y.output, y.weights};
}

std::vector<Tensor> outputs(const nn::LstmResult& y) {
  return {y.output, y.h, y.c};
}

std::vector<Tensor> outputs(const LstmState& y) {
  return {y.hidden, y.cell};
}

std::vector<Tensor> outputs(const nn::GruResult& y) {
  return {y.output, y.h};
}

class LayerParity : public testing::Test {
 protected:
  nn::StateDict golden_ = read_tensors("layers_golden.safetensors");

  // Runs `call(inputs)` of a module with the case's state; compares results, gradients and buffers.
  template <class M, class Call>
  void check_call(const std::string& name, M module, const Call& call, double limit = kLimit) {
    const Case golden(golden_, name, limit);
    ASSERT_TRUE(golden.contains("out.0")) << name;
    module.to(float64);
    module.load_state_dict(golden.under("state."));
    std::vector<Tensor> inputs;
    while (golden.contains(str("in.", inputs.size()))) {
      inputs.push_back(golden.at(str("in.", inputs.size())).clone().requires_grad_());
    }
    const std::vector<Tensor> ys = outputs(call(module, inputs));
    std::vector<Tensor> gradients;
    for (size_t i = 0; i < ys.size(); ++i) {
      golden.expect(str("out.", i), ys[i]);
      gradients.push_back(golden.at(str("gout.", i)));
    }
    ASSERT_FALSE(golden.contains(str("out.", ys.size()))) << name;
    backward(ys, gradients);
    for (const auto& [i, unused] : golden.under("gin."))
      golden.expect("gin." + i, inputs[std::stoul(i)].grad());
    const nn::StateDict grads = golden.under("grad.");
    EXPECT_EQ(grads.size(), module.named_parameters().size()) << name;
    for (const auto& [parameter, tensor] : module.named_parameters())
      golden.expect("grad." + parameter, tensor.grad());
    for (const auto& [buffer, tensor] : module.named_buffers())
      golden.expect("after." + buffer, tensor);
  }

  template <class M>
  void check(const std::string& name, M module, double limit = kLimit) {
    const auto call = [](M& m, const std::vector<Tensor>& in) { return m(in[0]); };
    check_call(name, std::move(module), call, limit);
  }
};

template <class M>
M in_evaluation(M module) {
  module.eval();
  return module;
}

TEST_F(LayerParity, Convolutions) {
  check("conv1d", nn::Conv1d(4, 6, 3, {.stride = 2, .padding = 1, .groups = 2}));
  check("conv2d", nn::Conv2d(4, 6, {3, 2}, {.padding = "same", .dilation = 2, .bias = false}));
  check("conv3d", nn::Conv3d(2, 3, 2, {.stride = {1, 2, 1}, .padding = 1}));
  check(
      "conv_transpose2d",
      nn::ConvTranspose2d(4, 6, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2}));
}

TEST_F(LayerParity, TransposedConvolutions) {
  check("conv_transpose1d",
        nn::ConvTranspose1d(4, 6, 3, {.stride = 3, .padding = 1, .output_padding = 2}));
  check("conv_transpose3d",
        nn::ConvTranspose3d(
            2, 4, {2, 1, 3},
            {.stride = 2, .padding = {0, 0, 1}, .groups = 2, .bias = false, .dilation = 2}));
}

TEST_F(LayerParity, PaddingModesOfConvolutions) {
  check("conv1d_circular", nn::Conv1d(2, 3, 4, {.padding = 3, .padding_mode = "circular"}));
  check("conv1d_same", nn::Conv1d(2, 3, 4, {.padding = "same", .padding_mode = "replicate"}));
  check("conv2d_reflect",
        nn::Conv2d(2, 4, {3, 2},
                   {.stride = 2, .padding = {2, 1}, .groups = 2, .padding_mode = "reflect"}));
  check("conv2d_same",
        nn::Conv2d(2, 3, {2, 3},
                   {.padding = "same", .dilation = {3, 1}, .padding_mode = "circular"}));
  check("conv2d_valid", nn::Conv2d(2, 3, 2, {.padding = "valid", .padding_mode = "reflect"}));
  check("conv3d_replicate",
        nn::Conv3d(2, 3, 2, {.padding = {1, 0, 2}, .padding_mode = "replicate"}));
  EXPECT_THROW(nn::Conv2d(1, 1, 3, {.padding = 1, .padding_mode = "mirror"}), InvalidArgument);
  EXPECT_THROW(nn::Conv2d(1, 1, 3, {.padding = {1, 2, 3}, .padding_mode = "reflect"}),
               InvalidArgument);
}

TEST_F(LayerParity, Normalisation) {
  check("batch_norm1d", nn::BatchNorm1d(4));
  check("batch_norm1d_l", nn::BatchNorm1d(4, {.momentum = std::nullopt}));
  check("batch_norm2d", nn::BatchNorm2d(3, {.eps = 1e-3, .momentum = 0.3}));
  check("batch_norm2d_eval", in_evaluation(nn::BatchNorm2d(3)));
  check("batch_norm2d_plain",
        in_evaluation(nn::BatchNorm2d(3, {.affine = false, .track_running_stats = false})));
  check("batch_norm3d", nn::BatchNorm3d(2));
  check("layer_norm", nn::LayerNorm({3, 4}, {.bias = false}));
  check("rms_norm", nn::RMSNorm({6}));
  check("group_norm", nn::GroupNorm(2, 6));
  check("instance_norm1d", nn::InstanceNorm1d(3, {.affine = true}));
  check("instance_norm2d", nn::InstanceNorm2d(3));
  check("instance_norm2d_tracked", nn::InstanceNorm2d(3, {.track_running_stats = true}));
  check("instance_norm3d", nn::InstanceNorm3d(2, {.affine = true}));
}

TEST_F(LayerParity, Padding) {
  check("reflection_pad1d", nn::ReflectionPad1d({2, 1}));
  check("replication_pad2d", nn::ReplicationPad2d(1));
  check("circular_pad2d", nn::CircularPad2d({1, 2, 0, 1}));
  check("constant_pad3d", nn::ConstantPad3d({1, 0, 0, 2, 1, 1}, 2.5));
  check("zero_pad2d", nn::ZeroPad2d({1, -1, 2, 0}));
  EXPECT_THROW(nn::ZeroPad2d({1, 2}), InvalidArgument);
  EXPECT_THROW(nn::ZeroPad2d(1)(zeros({3})), InvalidArgument);
}

TEST_F(LayerParity, Pooling) {
  check("max_pool1d", nn::MaxPool1d(3, {.stride = 2, .padding = 1, .ceil_mode = true}));
  check("avg_pool1d", nn::AvgPool1d(3, {.padding = 1, .count_include_pad = false}));
  check("avg_pool2d", nn::AvgPool2d({2, 3}, {.stride = 1, .divisor_override = 5}));
  check("adaptive_avg_pool1d", nn::AdaptiveAvgPool1d(3));
  check("adaptive_avg_pool2d", nn::AdaptiveAvgPool2d({3, 2}));
  check("max_pool3d",
        nn::MaxPool3d({2, 3, 1}, {.stride = 2, .padding = {1, 1, 0}, .ceil_mode = true}));
  check("avg_pool3d", nn::AvgPool3d(2, {.stride = 1, .padding = 1, .count_include_pad = false}));
  check("adaptive_avg_pool3d", nn::AdaptiveAvgPool3d({2, 3, 1}));
  check("adaptive_max_pool1d", nn::AdaptiveMaxPool1d(3));
  check("adaptive_max_pool2d", nn::AdaptiveMaxPool2d({3, 2}));
  check("adaptive_max_pool3d", nn::AdaptiveMaxPool3d({2, 1, 3}));
}

TEST_F(LayerParity, Rearranging) {
  check("fold", nn::Fold({4, 5}, {2, 3}, {.padding = 1, .stride = 2}));
  check("unfold", nn::Unfold({2, 3}, {.dilation = {1, 2}, .padding = 1, .stride = 2}));
  check("pixel_shuffle", nn::PixelShuffle(2));
  check("pixel_unshuffle", nn::PixelUnshuffle(3));
  check("unflatten", nn::Unflatten(-2, {2, -1}));
  EXPECT_THROW(nn::Unflatten(0, {2, 2})(zeros({6})), InvalidArgument);
  EXPECT_THROW(nn::Unflatten(0, {4, -1})(zeros({6})), InvalidArgument);
}

TEST_F(LayerParity, Activations) {
  check("ReLU", nn::ReLU());
  check("Tanh", nn::Tanh());
  check("Sigmoid", nn::Sigmoid());
  check("GELU", nn::GELU());
  check("GELUTanh", nn::GELU({.approximate = "tanh"}));
  check("SiLU", nn::SiLU());
  check("LeakyReLU", nn::LeakyReLU({.negative_slope = 0.2}));
  check("ELU", nn::ELU({.alpha = 0.7}));
  check("Softplus", nn::Softplus());
  check("Softmax", nn::Softmax(1));
  check("LogSoftmax", nn::LogSoftmax(1));
  check("ReLU6", nn::ReLU6());
}

TEST_F(LayerParity, ActivationVariants) {
  // PyTorch's gradients of these two take a constant in float32 (1.3 and 1 / 6), for float64 too.
  constexpr double kFloatConstant = 2e-8;
  check("CELU", nn::CELU({.alpha = 1.3}), kFloatConstant);
  check("Hardsigmoid", nn::Hardsigmoid(), kFloatConstant);
  check("SELU", nn::SELU());
  check("Mish", nn::Mish());
  check("Hardswish", nn::Hardswish());
  check("Hardtanh", nn::Hardtanh({.min_val = -2, .max_val = 3}));
  check("Hardshrink", nn::Hardshrink());
  check("Softshrink", nn::Softshrink());
  check("Tanhshrink", nn::Tanhshrink());
  check("Softsign", nn::Softsign());
  check("LogSigmoid", nn::LogSigmoid());
  check("GLU", nn::GLU());
  check("PReLU", nn::PReLU());
  check("PReLUChannels", nn::PReLU({.num_parameters = 8}));
  check("Threshold", nn::Threshold(0.5, -1));
  check("RReLU", in_evaluation(nn::RReLU()));
}

TEST_F(LayerParity, Attention) {
  const Case masked(golden_, "attention"), fast(golden_, "attention_fast");
  using In = std::vector<Tensor>;
  check_call(
      "attention", nn::MultiheadAttention(8, 2), [&](nn::MultiheadAttention& m, const In& in) {
        return m(in[0], in[1], in[2],
                 nn::AttentionCallOptions{.key_padding_mask = masked.at("call.key_padding_mask"),
                                          .attn_mask = masked.at("call.attn_mask")});
      });
  check_call("attention_fast", nn::MultiheadAttention(8, 4, {.bias = false}),
             [&](nn::MultiheadAttention& m, const In& in) {
               return m(
                   in[0], in[1], in[2],
                   nn::AttentionCallOptions{.key_padding_mask = fast.at("call.key_padding_mask"),
                                            .need_weights = false});
             });
  check_call(
      "attention_extra",
      nn::MultiheadAttention(
          8, 2,
          {.add_bias_kv = true, .add_zero_attn = true, .kdim = 5, .vdim = 3, .batch_first = true}),
      [](nn::MultiheadAttention& m, const In& in) {
        return m(in[0], in[1], in[2], nn::AttentionCallOptions{.average_attn_weights = false});
      });
  const Case single(golden_, "attention_single"), blind(golden_, "attention_blind");
  check_call("attention_single", nn::MultiheadAttention(8, 2),
             [&](nn::MultiheadAttention& m, const In& in) {
               return m(
                   in[0], in[1], in[2],
                   nn::AttentionCallOptions{.key_padding_mask = single.at("call.key_padding_mask"),
                                            .attn_mask = single.at("call.attn_mask")});
             });
  // Of one sequence every key is left out.
  check_call("attention_blind", nn::MultiheadAttention(8, 2),
             [&](nn::MultiheadAttention& m, const In& in) {
               return m(
                   in[0], in[1], in[2],
                   nn::AttentionCallOptions{.key_padding_mask = blind.at("call.key_padding_mask"),
                                            .need_weights = false});
             });
  check("encoder_layer", nn::TransformerEncoderLayer(
                             8, 2, {.dim_feedforward = 12, .dropout = 0, .batch_first = true}));
  check("encoder_layer_pre",
        nn::TransformerEncoderLayer(
            8, 2, {.dim_feedforward = 12, .dropout = 0, .activation = "gelu", .norm_first = true}));
}

TEST_F(LayerParity, Recurrent) {
  check("lstm", nn::LSTM(4, 3));
  check_call("lstm_deep",
             nn::LSTM(4, 3, {.num_layers = 2, .batch_first = true, .bidirectional = true}),
             [](nn::LSTM& m, const std::vector<Tensor>& in) {
               return m(in[0], LstmState{in[1], in[2]});
             });
  check_call("lstm_proj", nn::LSTM(4, 5, {.num_layers = 2, .bidirectional = true, .proj_size = 3}),
             [](nn::LSTM& m, const std::vector<Tensor>& in) {
               return m(in[0], LstmState{in[1], in[2]});
             });
  check("gru", nn::GRU(4, 3, {.bias = false}));
  check_call("gru_deep", nn::GRU(4, 3, {.num_layers = 2, .bidirectional = true}),
             [](nn::GRU& m, const std::vector<Tensor>& in) { return m(in[0], in[1]); });
  check("lstm_single", nn::LSTM(4, 3, {.batch_first = true}));
  check_call("gru_single", nn::GRU(4, 3),
             [](nn::GRU& m, const std::vector<Tensor>& in) { return m(in[0], in[1]); });
}

TEST_F(LayerParity, ElmanNetworks) {
  using In = std::vector<Tensor>;
  check("rnn", nn::RNN(4, 3));
  check_call(
      "rnn_deep",
      nn::RNN(
          4, 3,
          {.num_layers = 2, .nonlinearity = "relu", .batch_first = true, .bidirectional = true}),
      [](nn::RNN& m, const In& in) { return m(in[0], in[1]); });
  check("rnn_single", nn::RNN(4, 3, {.bias = false}));
  EXPECT_THROW(nn::RNN(4, 3, {.nonlinearity = "sigmoid"}), InvalidArgument);
}

// Runs a recurrent layer on three sequences of 2, 4 and 1 steps. The layer is a member, as in the
// golden data.
template <class Layer>
struct Packed : nn::Module<Packed<Layer>> {
  Layer layer;

  explicit Packed(Layer l) : layer(this->register_module("layer", std::move(l))) {}

  template <class... State>
  auto forward(const Tensor& x, const State&... first) {
    namespace rnn = nn::utils::rnn;
    auto done =
        layer(rnn::pack_padded_sequence(x, tensor({2, 4, 1}), {.enforce_sorted = false}), first...);
    const rnn::PaddedSequence padded = rnn::pad_packed_sequence(done.output, {.total_length = 5});
    EXPECT_EQ(padded.lengths.to_vector<int64_t>(), (std::vector<int64_t>{2, 4, 1}));
    if constexpr (requires { done.c; }) {
      return nn::LstmResult{padded.output, done.h, done.c};
    } else {
      return nn::GruResult{padded.output, done.h};
    }
  }
};

TEST_F(LayerParity, PackedSequences) {
  using In = std::vector<Tensor>;
  check_call("lstm_packed",
             Packed(nn::LSTM(5, 3, {.num_layers = 2, .bidirectional = true, .proj_size = 2})),
             [](auto& m, const In& in) {
               return m(in[0], LstmState{in[1], in[2]});
             });
  check_call("gru_packed", Packed(nn::GRU(5, 3, {.bidirectional = true})),
             [](auto& m, const In& in) { return m(in[0]); });
  check_call("rnn_packed", Packed(nn::RNN(5, 3)),
             [](auto& m, const In& in) { return m(in[0], in[1]); });
}

TEST_F(LayerParity, RecurrentCells) {
  const auto two = [](auto& m, const std::vector<Tensor>& in) { return m(in[0], in[1]); };
  check("rnn_cell", nn::RNNCell(4, 3));
  check_call("rnn_cell_relu", nn::RNNCell(4, 3, {.bias = false, .nonlinearity = "relu"}), two);
  check_call("gru_cell", nn::GRUCell(4, 3), two);
  check_call("lstm_cell", nn::LSTMCell(4, 3), [](nn::LSTMCell& m, const std::vector<Tensor>& in) {
    return m(in[0], LstmState{in[1], in[2]});
  });
  EXPECT_THROW(nn::GRUCell(4, 3)(zeros({2, 5})), InvalidArgument);
  EXPECT_THROW(nn::GRUCell(4, 3)(zeros({2, 4}), zeros({2, 4})), InvalidArgument);
  EXPECT_THROW(nn::RNNCell(4, 3, {.nonlinearity = "sigmoid"}), InvalidArgument);
}

TEST_F(LayerParity, Transformers) {
  using In = std::vector<Tensor>;
  const Case stack(golden_, "encoder_stack"), layer(golden_, "decoder_layer"),
      decoder(golden_, "decoder_stack"), whole(golden_, "transformer");
  check_call("encoder_stack",
             nn::TransformerEncoder(nn::TransformerEncoderLayer(
                                        8, 2, {.dim_feedforward = 12, .dropout = 0, .bias = false}),
                                    2, {.norm = nn::LayerNorm({8})}),
             [&](nn::TransformerEncoder& m, const In& in) {
               return m(in[0], nn::EncoderStackCallOptions{
                                   .mask = stack.at("call.mask"),
                                   .src_key_padding_mask = stack.at("call.src_key_padding_mask")});
             });
  check_call("decoder_layer",
             nn::TransformerDecoderLayer(8, 2, {.dim_feedforward = 12, .dropout = 0}),
             [&](nn::TransformerDecoderLayer& m, const In& in) {
               return m(in[0], in[1],
                        nn::DecoderCallOptions{
                            .memory_mask = layer.at("call.memory_mask"),
                            .memory_key_padding_mask = layer.at("call.memory_key_padding_mask")});
             });
  const auto pre_norm = [] {
    return nn::TransformerDecoder(nn::TransformerDecoderLayer(8, 4,
                                                              {.dim_feedforward = 12,
                                                               .dropout = 0,
                                                               .activation = "gelu",
                                                               .batch_first = true,
                                                               .norm_first = true}),
                                  2);
  };
  check_call("decoder_stack", pre_norm(), [&](nn::TransformerDecoder& m, const In& in) {
    return m(in[0], in[1], nn::DecoderCallOptions{.tgt_mask = decoder.at("call.tgt_mask")});
  });
  check_call("decoder_stack", pre_norm(), [](nn::TransformerDecoder& m, const In& in) {
    return m(in[0], in[1], nn::DecoderCallOptions{.tgt_is_causal = true});
  });
  check_call("transformer",
             nn::Transformer({.d_model = 8,
                              .nhead = 2,
                              .num_encoder_layers = 1,
                              .num_decoder_layers = 2,
                              .dim_feedforward = 12,
                              .dropout = 0}),
             [&](nn::Transformer& m, const In& in) {
               return m(in[0], in[1],
                        nn::TransformerCallOptions{
                            .src_mask = whole.at("call.src_mask"),
                            .tgt_mask = whole.at("call.tgt_mask"),
                            .src_key_padding_mask = whole.at("call.src_key_padding_mask"),
                            .tgt_key_padding_mask = whole.at("call.tgt_key_padding_mask"),
                            .memory_key_padding_mask = whole.at("call.memory_key_padding_mask")});
             });
  EXPECT_THROW(nn::TransformerDecoderLayer(8, 2, {.activation = "tanh"}), InvalidArgument);
  EXPECT_THROW(nn::Transformer({.d_model = 8, .nhead = 2})(zeros({5, 2, 8}), zeros({4, 3, 8})),
               InvalidArgument);
}

TEST_F(LayerParity, ParametrizedWeights) {
  using nn::utils::parametrizations::spectral_norm;
  using nn::utils::parametrizations::weight_norm;
  check("weight_norm", weight_norm(nn::Linear(4, 3)));
  check("weight_norm_whole", weight_norm(nn::Linear(4, 3), {.dim = std::nullopt}));
  check("weight_norm_conv", weight_norm(nn::Conv2d(2, 3, 2), {.dim = 1}));
  check("spectral_norm", spectral_norm(nn::Conv2d(2, 3, 2), {.n_power_iterations = 2}));
  check("spectral_norm_transposed", spectral_norm(nn::ConvTranspose2d(2, 3, 2)));
  check("spectral_norm_eval", in_evaluation(spectral_norm(nn::Linear(4, 3))));
  check("spectral_norm_bias", spectral_norm(nn::Linear(4, 3), {.name = "bias"}));
}

TEST_F(LayerParity, ResizingAndDistances) {
  const auto two = [](auto& m, const std::vector<Tensor>& in) { return m(in[0], in[1]); };
  check("upsample", nn::Upsample({.size = {7, 5}, .mode = "bilinear", .align_corners = true}));
  check("upsample_nearest", nn::Upsample({.scale_factor = {2}}));
  check_call("cosine_similarity", nn::CosineSimilarity({.dim = 2}), two);
  check_call("pairwise_distance", nn::PairwiseDistance({.p = 3}), two);
}

TEST_F(LayerParity, Losses) {
  check_call("margin_ranking", nn::MarginRankingLoss({.margin = 0.3}),
             [](nn::MarginRankingLoss& m, const std::vector<Tensor>& in) {
               return m(in[0], in[1], in[2]);
             });
  const auto three = [](nn::TripletMarginLoss& m, const std::vector<Tensor>& in) {
    return m(in[0], in[1], in[2]);
  };
  check_call("triplet", nn::TripletMarginLoss({.margin = 0.7}), three);
  check_call("triplet_swap",
             nn::TripletMarginLoss(
                 {.margin = 1.5, .p = 3, .eps = 1e-3, .swap = true, .reduction = "none"}),
             three);
  const Tensor labels = tensor({2, 0, 5, 2});
  const auto labelled = [&](nn::CombinedMarginLoss& m, const std::vector<Tensor>& in) {
    return m(in[0], labels);
  };
  check_call("combined_margin", nn::CombinedMarginLoss({.m1 = 0.9, .m2 = 0.4, .m3 = 0.1}),
             labelled);
  check_call("combined_margin_plain", nn::CombinedMarginLoss({.m3 = 0.35}), labelled);
}

}  // namespace
}  // namespace flow::parity
