// A recurrent layer over a whole sequence is one node of the graph. Packed sequences of equal
// lengths take one step at a time, so they give the same results and derivatives of both orders.
#include "nn/layers/recurrent.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nn/flow.h"
#include "tests/support/largest_difference.h"

namespace flow::nn {
namespace {

using Tensors = std::vector<Tensor>;

constexpr int64_t kBatch = 3, kInput = 4, kHidden = 5;

// The results of a layer for x (T, N, I) and the first states, of which GRU and RNN take h alone.
struct Layer {
  std::function<Tensors(const Tensor&x, const Tensor&h, const Tensor&c)> whole, by_steps;
  Tensors parameters;
  Shape h, c;
};

utils::rnn::PackedSequence packed(const Tensor& x) {
  return {x.flatten(0, 1), std::vector<int64_t>(static_cast<size_t>(x.size(0)), kBatch), {}, {}};
}

Layer lstm_layer(const RecurrentOptions& options) {
  LSTM lstm(kInput, kHidden, options);
  lstm.to(float64);
  const int64_t directions = options.num_layers * (options.bidirectional ? 2 : 1);
  const int64_t state = options.proj_size > 0 ? options.proj_size : kHidden;
  return {[=](const Tensor& x, const Tensor& h, const Tensor& c) mutable -> Tensors {
            const LstmResult y = lstm(x, LstmState{h, c});
            return {y.output, y.h, y.c};
          },
          [=](const Tensor& x, const Tensor& h, const Tensor& c) mutable -> Tensors {
            const PackedLstmResult y = lstm(packed(x), LstmState{h, c});
            return {y.output.data.reshape({x.size(0), kBatch, -1}), y.h, y.c};
          },
          lstm.parameters(),
          {directions, kBatch, state},
          {directions, kBatch, kHidden}};
}

template <class Module>
Layer layer_of(Module module, int64_t directions) {
  module.to(float64);
  return {[=](const Tensor& x, const Tensor& h, const Tensor& /*c*/) mutable -> Tensors {
            const auto y = module(x, h);
            return {y.output, y.h};
          },
          [=](const Tensor& x, const Tensor& h, const Tensor& /*c*/) mutable -> Tensors {
            const auto y = module(packed(x), h);
            return {y.output.data.reshape({x.size(0), kBatch, -1}), y.h};
          },
          module.parameters(),
          {directions, kBatch, kHidden},
          {}};
}

struct NamedLayer {
  std::string name;
  Layer layer;
};

std::vector<NamedLayer> layers() {
  return {{"lstm", lstm_layer({})},
          {"lstm with two layers, two directions and a projection",
           lstm_layer({.num_layers = 2, .bidirectional = true, .proj_size = 2})},
          {"lstm without biases", lstm_layer({.bias = false})},
          {"gru", layer_of(GRU(kInput, kHidden), 1)},
          {"gru of two directions", layer_of(GRU(kInput, kHidden, {.bidirectional = true}), 2)},
          {"rnn of two directions",
           layer_of(RNN(kInput, kHidden, RnnOptions{.bidirectional = true}), 2)},
          {"rnn with relu", layer_of(RNN(kInput, kHidden, RnnOptions{.nonlinearity = "relu"}), 1)}};
}

// A number that depends on every element of the tensors that are defined.
Tensor weighted_sum(const Tensors& tensors, uint64_t seed) {
  manual_seed(seed);
  Tensor total = zeros({}, {.dtype = float64});
  for (const Tensor& tensor : tensors) {
    if (tensor.defined()) total = total + sum(tensor * randn(tensor.shape(), {.dtype = float64}));
  }
  return total;
}

void expect_close(const Tensors& got, const Tensors& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].defined(), want[i].defined()) << what << ' ' << i;
    if (!got[i].defined()) continue;
    const auto expected = want[i].to_vector<double>();
    double largest = 1;
    for (const double value : expected)
      largest = std::max(largest, std::abs(value));
    EXPECT_LE(largest_difference(got[i].to_vector<double>(), expected), 1e-12 * largest)
        << what << ' ' << i;
  }
}

// Leaves for x and the states, and the parameters.
Tensors leaves_of(const Layer& layer, int64_t length) {
  manual_seed(5);
  Tensors leaves = {randn({length, kBatch, kInput}, {.dtype = float64})};
  leaves.push_back(randn(layer.h, {.dtype = float64}));
  leaves.push_back(layer.c.empty() ? Tensor() : randn(layer.c, {.dtype = float64}));
  for (const Tensor& leaf : leaves) {
    if (leaf.defined()) leaf.requires_grad_();
  }
  leaves.insert(leaves.end(), layer.parameters.begin(), layer.parameters.end());
  std::erase_if(leaves, [](const Tensor& leaf) { return !leaf.defined(); });
  return leaves;
}

TEST(Recurrent, SequencesHaveTheDerivativesOfTheirSteps) {
  for (const auto& [name, layer] : layers()) {
    for (const int64_t length : {1, 2, 6}) {
      const Tensors leaves = leaves_of(layer, length);
      const Tensor c = layer.c.empty() ? Tensor() : leaves[2];

      struct Derivatives {
        Tensors results, first, fast, second;
      };

      const auto derivatives = [&](const auto& call) {
        Derivatives found;
        found.results = call(leaves[0], leaves[1], c);
        const Tensor loss = weighted_sum(found.results, 7);
        found.fast = grad({loss}, leaves, {.retain_graph = true});
        found.first = grad({loss}, leaves, {.create_graph = true});
        found.second = grad({weighted_sum(found.first, 9)}, leaves, {.allow_unused = true});
        return found;
      };
      const Derivatives whole = derivatives(layer.whole), steps = derivatives(layer.by_steps);
      const std::string what = str(name, " of length ", length, ": ");
      expect_close(whole.results, steps.results, what + "result");
      expect_close(whole.fast, steps.fast, what + "gradient");
      expect_close(whole.first, steps.fast, what + "recorded gradient");
      expect_close(whole.second, steps.second, what + "second derivative");
    }
  }
}

TEST(Recurrent, SequencesPassTheGradientOfOneResult) {
  for (const auto& [name, layer] : layers()) {
    const Tensors leaves = leaves_of(layer, 4);
    const Tensor c = layer.c.empty() ? Tensor() : leaves[2];
    const size_t num_results = layer.c.empty() ? 2 : 3;
    for (size_t i = 0; i < num_results; ++i) {
      const auto gradients = [&](const auto& call) {
        return grad({weighted_sum({call(leaves[0], leaves[1], c)[i]}, 3)}, leaves,
                    {.allow_unused = true});
      };
      const std::string what = str(name, ", result ", i, ": ");
      const Tensors got = gradients(layer.whole), want = gradients(layer.by_steps);
      expect_close(got, want, what + "gradient");
    }
  }
}

TEST(Recurrent, FrozenTensorsGetNoGradient) {
  LSTM lstm(kInput, kHidden);
  lstm.directions[0].weight_hh.requires_grad_(false);
  lstm.directions[0].bias_hh.requires_grad_(false);
  const Tensor x = randn({6, kBatch, kInput});
  lstm(x).output.sum().backward();

  EXPECT_FALSE(lstm.directions[0].weight_hh.grad().defined());
  EXPECT_FALSE(lstm.directions[0].bias_hh.grad().defined());
  EXPECT_TRUE(lstm.directions[0].weight_ih.grad().defined());

  const NoGradGuard no_grad;
  EXPECT_FALSE(lstm(x).output.requires_grad());
}

TEST(Recurrent, SequencesAreCastByAutocast) {
  LSTM lstm(kInput, kHidden);
  const Tensor x = randn({6, kBatch, kInput});
  const Tensor exact = lstm(x).output;
  const AutocastGuard autocast(bfloat16);
  const LstmResult y = lstm(x);

  y.output.sum().backward();
  EXPECT_EQ(lstm.directions[0].weight_hh.grad().dtype(), float32);
  const double difference =
      largest_difference(y.output.to(float32).to_vector<float>(), exact.to_vector<float>());
  EXPECT_GT(difference, 0);
  EXPECT_LT(difference, 0.02);
}

TEST(Recurrent, ResultsMayBeWrittenInPlace) {
  for (const auto& [name, layer] : layers()) {
    const Tensors leaves = leaves_of(layer, 4);
    const Tensor c = layer.c.empty() ? Tensor() : leaves[2];
    Tensors scaled = layer.whole(leaves[0], leaves[1], c);
    const Tensors written = layer.whole(leaves[0], leaves[1], c);
    for (size_t i = 0; i < written.size(); ++i) {
      scaled[i] = scaled[i] * 2;
      written[i].mul_(2);
    }
    expect_close(grad({weighted_sum(written, 3)}, leaves), grad({weighted_sum(scaled, 3)}, leaves),
                 name);
  }
}

TEST(Recurrent, ASecondBackwardNeedsTheGraph) {
  LSTM lstm(kInput, kHidden);
  const Tensor loss = lstm(randn({3, kBatch, kInput})).output.sum();
  loss.backward();
  EXPECT_THROW(loss.backward(), InvalidArgument);
}

}  // namespace
}  // namespace flow::nn
