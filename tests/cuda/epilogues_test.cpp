// Work that cuBLASLt does while it multiplies, in compiled steps.
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "eager/runtime.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/support/cuda_emulator/library_hooks.h"
#include "tests/support/largest_difference.h"

namespace flow {

namespace {

using cuda_emulator::library_calls;
using cuda_emulator::LibraryCalls;
using Configure = std::function<void(nn::GraphConfig& config)>;
using Floats = std::vector<float>;

constexpr int kSteps = 3;
constexpr int64_t kVocabulary = 13, kLength = 6, kBatch = 4;

struct GptStep : nn::Graph<GptStep> {
  models::Gpt model;

  GptStep(const models::Gpt& m, optim::Optimizer& optimizer) : model(m) {
    add_optimizer(optimizer);
  }

  Tensor build(const Tensor& tokens, const Tensor& targets) {
    const Tensor loss = cross_entropy(model(tokens).flatten(0, 1), targets.flatten());
    loss.backward();
    return loss;
  }

  using nn::GraphBase::config;
};

// Without a placement: one rank and local tensors.
struct Layout {
  const char* name = "one rank";
  Placement placement = {};
  Sbp data = sbp::broadcast;
  nn::SbpPatterns model = {};
};

const Placement kPair("cuda", {0, 1});

Layout data_parallel() {
  return {"data parallel", kPair, sbp::split(0), {{"*", sbp::broadcast}}};
}

Layout tensor_parallel() {
  return {"tensor parallel",
          kPair,
          sbp::broadcast,
          {{"*.attn.c_[qkv].*", sbp::split(0)},
           {"*.attn.c_proj.weight", sbp::split(1)},
           {"*.mlp.c_fc.*", sbp::split(0)},
           {"*.mlp.c_proj.weight", sbp::split(1)},
           {"*", sbp::broadcast}}};
}

struct Trained {
  Floats losses;
  Floats weights;
  int64_t summed = -1;       // changes of join_bias_gradients; -1: it did not run
  int64_t activated = -1;    // changes of fuse_gelu_products
  int64_t peak_bytes = 0;    // of the plan
  LibraryCalls calls = {};   // of all steps and ranks
  int64_t num_launches = 0;  // of all steps and ranks
};

int64_t changes_of(const std::string& explanation, const std::string& pass) {
  const size_t at = explanation.find(pass + ": ");
  return at == std::string::npos ? -1 : std::stoll(explanation.substr(at + pass.size() + 2));
}

Floats values_of(const Tensor& x) {
  const Tensor whole =
      x.is_global() ? x.to_global(x.placement(), sbp::broadcast).to_local() : x.detach();
  return cast(whole.to("cpu"), float32).flatten().to_vector<float>();
}

Trained train_on_this_rank(const Layout& layout, const Configure& configure, bool is_compiled) {
  manual_seed(7);
  models::Gpt model(
      {.vocab_size = kVocabulary, .block_size = kLength, .n_layer = 2, .n_head = 2, .n_embd = 16});
  model.to("cuda");
  TensorOptions data{.dtype = int64, .device = "cuda"};
  if (layout.placement.defined()) {
    model.to_global(layout.placement, layout.model);
    data = {.dtype = int64, .placement = layout.placement, .sbp = layout.data};
  }
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  GptStep graph(model, sgd);
  configure(graph.config());
  Trained trained;
  Tensor tokens, targets;
  for (int step = 0; step < kSteps; ++step) {
    tokens = randint(0, kVocabulary, {kBatch, kLength}, data);
    targets = randint(0, kVocabulary, {kBatch, kLength}, data);
    Tensor loss;
    if (is_compiled) {
      loss = graph(tokens, targets);
    } else {
      sgd.zero_grad();
      loss = graph.build(tokens, targets);
      sgd.step();
    }
    trained.losses.push_back(values_of(loss).at(0));
  }
  for (const Tensor& parameter : model.parameters()) {
    const Floats own = values_of(parameter);
    trained.weights.insert(trained.weights.end(), own.begin(), own.end());
  }
  if (!is_compiled) return trained;
  const std::string explanation = graph.explain();
  trained.summed = changes_of(explanation, "join_bias_gradients");
  trained.activated = changes_of(explanation, "fuse_gelu_products");
  trained.peak_bytes = graph.compile(tokens, targets).plan().peak_bytes();
  return trained;
}

// On ranks of their own, which have prepared no product before.
Trained train(const Layout& layout, const Configure& configure, bool is_compiled = true) {
  Trained trained;
  const LibraryCalls before = library_calls();
  const int64_t launches = cuda_emulator::num_launches();
  run_ranks(layout.placement.defined() ? 2 : 1, [&] {
    const Trained own = train_on_this_rank(layout, configure, is_compiled);
    if (env::rank() == 0) trained = own;
  });
  trained.num_launches = cuda_emulator::num_launches() - launches;
  trained.calls = library_calls();
  trained.calls.lt_products -= before.lt_products;
  trained.calls.lt_sums -= before.lt_sums;
  trained.calls.lt_gelus -= before.lt_gelus;
  trained.calls.lt_refusals -= before.lt_refusals;
  trained.calls.mistakes -= before.mistakes;
  return trained;
}

// With these of the two passes.
Configure with(bool sums, bool activates, const Configure& more = {}) {
  return [=](nn::GraphConfig& config) {
    config.enable_pass("join_bias_gradients", sums);
    config.enable_pass("fuse_gelu_products", activates);
    if (more) more(config);
  };
}

void expect_near(const Floats& actual, const Floats& expected, float tolerance,
                 const std::string& what) {
  EXPECT_LE(largest_difference(actual, expected), tolerance) << what;
}

// In each of two layers: four products of attention and two of the feed-forward branch; one gelu,
// and its gradient.
constexpr int64_t kBiases = 12, kGelus = 4;

class CudaEpilogues : public CudaFixture {
 protected:
  void TearDown() override {
    cuda_emulator::refuse_algorithms(at_first_);
    cuda_emulator::refuse_epilogues(false);
  }

  struct Case {
    Layout layout = {};
    Configure configure = {};
    float tolerance = 1e-5F;
    int64_t micro_batches = 1;
    int64_t gelu_kernels = 0;  // that stay, in each run
  };

  // What the passes change are roundings and the number of kernels.
  void expect_joined(const Case& c, bool sums, bool activates, const std::string& what) const {
    const Trained off = train(c.layout, with(false, false, c.configure));
    const Trained on = train(c.layout, with(sums, activates, c.configure));
    const int64_t ranks = c.layout.placement.defined() ? 2 : 1;
    const int64_t runs = kSteps * ranks * c.micro_batches;
    const int64_t biases = sums ? kBiases : 0, gelus = activates ? kGelus : 0;

    EXPECT_EQ(off.summed, -1) << what;
    EXPECT_EQ(off.activated, -1) << what;
    EXPECT_EQ(off.calls.lt_sums + off.calls.lt_gelus, 0) << what;
    EXPECT_NE(off.losses.front(), off.losses.back()) << what;
    expect_near(on.losses, off.losses, c.tolerance, what);
    expect_near(on.weights, off.weights, c.tolerance, what);
    EXPECT_EQ(on.summed, sums ? kBiases : -1) << what;
    EXPECT_EQ(on.activated, activates ? kGelus : -1) << what;
    EXPECT_EQ(on.calls.mistakes, 0) << what;
    EXPECT_LE(on.peak_bytes, off.peak_bytes) << what;
    if (at_first_ >= 4) return;  // everything is refused
    EXPECT_EQ(on.calls.lt_sums, biases * runs) << what;
    EXPECT_EQ(on.calls.lt_gelus, gelus * runs) << what;
    EXPECT_EQ(on.calls.lt_products, off.calls.lt_products) << what;
    EXPECT_LE(on.num_launches, off.num_launches - (biases + gelus - c.gelu_kernels) * runs) << what;
  }

  int at_first_ = cuda_emulator::refused_algorithms();
};

TEST_F(CudaEpilogues, ProductsSumBiasGradientsAndComputeGelu) {
  expect_joined({}, true, false, "sums");
  expect_joined({}, false, true, "gelu");
  expect_joined({}, true, true, "both");
}

TEST_F(CudaEpilogues, SoDoThoseOfEveryLayoutAndType) {
  const Configure mixed = [](nn::GraphConfig& config) { config.enable_amp(bfloat16); };
  constexpr float kTolerance16 = 0.02F;
  for (const Layout& layout : {data_parallel(), tensor_parallel()}) {
    expect_joined({.layout = layout}, true, true, layout.name);
    expect_joined({.layout = layout, .configure = mixed, .tolerance = kTolerance16}, true, true,
                  str(layout.name, ", bfloat16"));
  }
  expect_joined({.configure = mixed, .tolerance = kTolerance16}, true, true, "bfloat16");
}

TEST_F(CudaEpilogues, SoDoThoseOfMicroBatches) {
  const Configure parts = [](nn::GraphConfig& config) { config.set_micro_batches(2); };
  for (const Layout& layout : {Layout(), data_parallel()}) {
    expect_joined({.layout = layout, .configure = parts, .micro_batches = 2}, true, true,
                  str("micro-batches, ", layout.name));
  }
}

// A gelu that backward computes again reads what the product has kept. Without the pass, its kernel
// computes the gradient too.
TEST_F(CudaEpilogues, RecomputedActivationsReadWhatProductsKeep) {
  setenv("FLOW_RECOMPUTE_LEAST_BYTES", "1", 1);
  expect_joined({.gelu_kernels = kGelus / 2}, true, true, "recomputed activations");
  unsetenv("FLOW_RECOMPUTE_LEAST_BYTES");
}

// Whatever refuses, the steps have the bits of steps without the passes.
TEST_F(CudaEpilogues, WithoutEpiloguesOtherKernelsDoTheWork) {
  const auto expect_plain = [](const Trained& on, const Trained& off) {
    EXPECT_EQ(on.summed, kBiases);
    EXPECT_EQ(on.activated, kGelus);
    EXPECT_EQ(on.calls.lt_sums + on.calls.lt_gelus, 0);
    EXPECT_EQ(on.losses, off.losses);
    EXPECT_EQ(on.weights, off.weights);
  };
  cuda_emulator::refuse_epilogues(true);
  expect_plain(train(Layout(), with(true, true)), train(Layout(), with(false, false)));
  cuda_emulator::refuse_epilogues(false);
  cuda_emulator::refuse_algorithms(100);
  expect_plain(train(Layout(), with(true, true)), train(Layout(), with(false, false)));
}

TEST_F(CudaEpilogues, TheNextAlgorithmIsTriedWhereOneRefuses) {
  cuda_emulator::refuse_algorithms(1);
  const Trained on = train(Layout(), with(true, true));
  EXPECT_EQ(on.calls.lt_sums, kBiases * kSteps);
  EXPECT_EQ(on.calls.lt_gelus, kGelus * kSteps);
  EXPECT_GT(on.calls.lt_refusals, 0);
  cuda_emulator::refuse_algorithms(0);
  expect_near(on.weights, train(Layout(), with(true, true)).weights, 1e-5F, "algorithms");
}

// The third step captures.
TEST_F(CudaEpilogues, CapturedStepsHaveTheSameBits) {
  const Configure captures = [](nn::GraphConfig& config) { config.set_cuda_graphs(); };
  const Trained plain = train(Layout(), with(true, true));
  const int64_t launches = cuda_emulator::num_graph_launches();
  const Trained captured = train(Layout(), with(true, true, captures));
  EXPECT_GT(cuda_emulator::num_graph_launches(), launches);
  EXPECT_EQ(captured.losses, plain.losses);
  EXPECT_EQ(captured.weights, plain.weights);
}

TEST_F(CudaEpilogues, ExactStepsStayAsTheyAre) {
  const Configure exact = [](nn::GraphConfig& config) { config.set_passes(nn::exact); };
  for (const Layout& layout : {Layout(), tensor_parallel()}) {
    const Trained eager = train(layout, exact, false), compiled = train(layout, exact);
    EXPECT_EQ(compiled.summed, -1) << layout.name;
    EXPECT_EQ(compiled.activated, -1) << layout.name;
    EXPECT_EQ(compiled.calls.lt_sums + compiled.calls.lt_gelus, 0) << layout.name;
    EXPECT_EQ(compiled.losses, eager.losses) << layout.name;
    EXPECT_EQ(compiled.weights, eager.weights) << layout.name;
  }
}

// A weight (in, out), whose gradient has dy as the second operand.
struct TransposedStep : nn::Graph<TransposedStep> {
  nn::ParameterList parameters;

  TransposedStep(nn::ParameterList p, optim::Optimizer& optimizer) : parameters(p) {
    add_optimizer(optimizer);
  }

  Tensor build(const Tensor& x) {
    const Tensor loss = square(matmul(x, parameters[0]) + parameters[1]).sum();
    loss.backward();
    return loss;
  }

  using nn::GraphBase::config;
};

TEST_F(CudaEpilogues, EitherOperandMayBeSummed) {
  const auto bias_after_step = [](bool is_on) {
    manual_seed(3);
    const TensorOptions there{.device = "cuda"};
    nn::ParameterList parameters({randn({8, 12}, there), randn({12}, there)});
    optim::SGD sgd(parameters.parameters(), {.lr = 0.01});
    TransposedStep graph(parameters, sgd);
    graph.config().enable_pass("join_bias_gradients", is_on);
    const int64_t sums = library_calls().lt_sums;
    graph(randn({5, 3, 8}, there));
    EXPECT_EQ(changes_of(graph.explain(), "join_bias_gradients"), is_on ? 1 : -1);
    EXPECT_EQ(library_calls().lt_sums - sums,
              is_on && cuda_emulator::refused_algorithms() < 4 ? 1 : 0);
    return values_of(parameters.parameters()[1]);
  };
  expect_near(bias_after_step(true), bias_after_step(false), 1e-5F, "bias");
}

}  // namespace

}  // namespace flow
