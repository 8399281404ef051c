#include <gtest/gtest.h>

#include "nn/flow.h"
#include "tests/parity/golden.h"

namespace flow::parity {
namespace {

using nn::Sequential;

class ReprParity : public testing::Test {
 protected:
  void check(const std::string& name, const nn::ModuleBase& module) {
    ASSERT_TRUE(golden_.contains(name)) << name;
    EXPECT_EQ(module.repr(), golden_[name].get<std::string>()) << name;
  }

 private:
  Json golden_ = read_json("repr_golden.json");
};

TEST_F(ReprParity, Containers) {
  nn::ModuleList<nn::Linear> list;
  for (const int64_t size : {2, 2, 3})
    list.push_back(nn::Linear(2, size));
  nn::ModuleDict<nn::AnyModule> dict;
  dict.insert("a", nn::Tanh());
  dict.insert("b", nn::Softmax(1));

  check("mlp", Sequential(nn::Linear(4, 3), nn::ReLU(), nn::Linear(3, 2, {.bias = false})));
  check("nested", Sequential(Sequential(nn::Flatten(), nn::Dropout(0.25)), nn::Identity()));
  check("list", list);
  check("dict", dict);
  check("empty", nn::ModuleList<nn::Linear>());
}

TEST_F(ReprParity, Layers) {
  check("convolutions",
        Sequential(nn::Conv1d(4, 6, 3, {.stride = 2, .padding = 1, .groups = 2}),
                   nn::Conv2d(1, 2, {3, 2}, {.padding = "same", .dilation = 2, .bias = false}),
                   nn::Conv3d(1, 2, 3, {.padding = {0, 1, 2}, .padding_mode = "circular"}),
                   nn::ConvTranspose2d(
                       4, 6, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2})));
  check("norms",
        Sequential(nn::BatchNorm1d(4),
                   nn::BatchNorm2d(3, {.eps = 1e-3, .momentum = std::nullopt, .affine = false}),
                   nn::BatchNorm3d(2, {.track_running_stats = false}), nn::LayerNorm({3, 4}),
                   nn::LayerNorm({6}, {.eps = 1e-12, .bias = false}), nn::RMSNorm({6}),
                   nn::RMSNorm({6}, {.eps = 1e-6}), nn::GroupNorm(2, 6), nn::InstanceNorm2d(3),
                   nn::LocalResponseNorm(2)));
  check("dropouts", Sequential(nn::Dropout(), nn::Dropout2d(0.1), nn::AlphaDropout(0.3)));
  check("bilinear", nn::Bilinear(3, 4, 5));
}

TEST_F(ReprParity, PoolsAndActivations) {
  check("activations",
        Sequential(nn::LeakyReLU({.negative_slope = 0.2}), nn::ELU({.alpha = 0.7}), nn::CELU(),
                   nn::SELU(), nn::GELU(), nn::GELU({.approximate = "tanh"}), nn::SiLU(),
                   nn::PReLU(), nn::PReLU({.num_parameters = 3}), nn::RReLU(), nn::Softplus(),
                   nn::Hardtanh(), nn::Threshold(0.5, -1), nn::Hardshrink(),
                   nn::Softshrink({.lambd = 0.25}), nn::GLU(), nn::LogSoftmax(1), nn::Softmin(0),
                   nn::Sigmoid(), nn::LogSigmoid(), nn::ReLU6()));
  check("pools", Sequential(nn::MaxPool1d(3, {.stride = 2, .padding = 1, .ceil_mode = true}),
                            nn::MaxPool2d(2), nn::MaxPool2d({3, 2}, {.dilation = 2}),
                            nn::AvgPool1d(3), nn::AvgPool2d(2, {.stride = 1}), nn::AvgPool3d(2),
                            nn::AdaptiveAvgPool2d({1, 2}), nn::AdaptiveMaxPool1d(3),
                            nn::LPPool2d(2, 3), nn::LPPool1d(1, 3, {.stride = 2})));
  check("unpool", nn::MaxUnpool2d(2, {.stride = 2}));
}

// The elements of a list of different types, under the same names.
struct Elements : nn::Module<Elements> {
  template <class... M>
  explicit Elements(const M&... modules) {
    int64_t count = 0;
    (register_module(std::to_string(count++), modules), ...);
  }
};

TEST_F(ReprParity, LayersWithOtherArguments) {
  const auto as_list = [](const Elements& elements) {
    std::string text = elements.repr();
    return text.replace(0, std::string("Elements").size(), "ModuleList");
  };
  const Json golden = read_json("repr_golden.json");

  EXPECT_EQ(as_list(Elements(nn::Embedding(10, 3),
                             nn::Embedding(10, 3, {.padding_idx = 0, .max_norm = 1}),
                             nn::EmbeddingBag(5, 2, {.mode = "sum", .padding_idx = 1}))),
            golden["embeddings"].get<std::string>());
  EXPECT_EQ(
      as_list(Elements(
          nn::LSTM(4, 3),
          nn::LSTM(4, 5, {.num_layers = 2, .dropout = 0.5, .bidirectional = true, .proj_size = 3}),
          nn::GRU(4, 3, {.bias = false, .batch_first = true}),
          nn::RNN(4, 3, {.nonlinearity = "relu"}), nn::LSTMCell(4, 3),
          nn::GRUCell(4, 3, {.bias = false}), nn::RNNCell(4, 3, {.nonlinearity = "relu"}))),
      golden["recurrent"].get<std::string>());
  EXPECT_EQ(as_list(Elements(nn::CrossEntropyLoss(), nn::MSELoss())),
            golden["losses"].get<std::string>());
}

TEST_F(ReprParity, ShapesAndTransformers) {
  check("shapes",
        Sequential(nn::Flatten({.start_dim = 0, .end_dim = 1}), nn::Unflatten(1, {2, 3}),
                   nn::PixelShuffle(2), nn::PixelUnshuffle(3), nn::ChannelShuffle(2),
                   nn::Upsample({.scale_factor = {2}}),
                   nn::Upsample({.size = {7, 5}, .mode = "bilinear"}), nn::ZeroPad2d({1, 2, 0, 1}),
                   nn::ReflectionPad1d(2), nn::ConstantPad1d(1, 2.5)));
  check("weight_norm", nn::utils::parametrizations::weight_norm(nn::Linear(4, 3)));
  check("encoder",
        nn::TransformerEncoder(nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 12}), 2,
                               {.norm = nn::LayerNorm({8})}));
  check("decoder_layer", nn::TransformerDecoderLayer(8, 2, {.dim_feedforward = 12, .dropout = 0}));
}

}  // namespace
}  // namespace flow::parity
