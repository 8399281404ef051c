// Fusion in compiled steps: the steps give the bits of eager steps with every pass on and off, in
// any layout, with plans from files, and take no more memory than without fusion.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/storage.h"
#include "graph/passes/pass.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "tests/support/temp_folder.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

struct GraphFusion : testing::Test {
  void SetUp() override { setenv("FLOW_FUSE_LEAST_ELEMENTS", "1", 1); }

  void TearDown() override { unsetenv("FLOW_FUSE_LEAST_ELEMENTS"); }
};

constexpr int kSteps = 4;
constexpr int64_t kWidth = 24;

// A gated layer of single ops, with a mask and a row that repeats.
struct Gated : nn::Module<Gated> {
  nn::Linear up{kWidth, kWidth}, gate{kWidth, kWidth};
  Tensor scale = ones({kWidth});

  Gated() {
    register_module("up", up);
    register_module("gate", gate);
    register_parameter("scale", scale);
  }

  Tensor forward(const Tensor& x) {
    const Tensor g = gate(x);
    const Tensor open = 0.5 * g * (1 + tanh(0.8 * g * (1 + 0.04 * g * g)));
    const Tensor y = up(x) * open * scale;
    return x + where(gt(y, -1.0), y, y * 0.1 - 0.9);
  }
};

struct Net : nn::Module<Net> {
  Gated first, second;
  nn::Linear head{kWidth, 4};

  Net() {
    register_module("first", first);
    register_module("second", second);
    register_module("head", head);
  }

  Tensor forward(const Tensor& x) { return head(second(first(x))); }
};

struct Training : nn::Graph<Training> {
  Net net;

  Training(Net n, optim::Optimizer& optimizer) : net(n) {
    add_optimizer(optimizer);
    config().set_passes(nn::exact);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    return loss;
  }

  using nn::GraphBase::config;
};

using Configure = std::function<void(nn::GraphConfig& config)>;

struct Trained {
  std::vector<float> losses;
  std::vector<float> weights;
  int64_t peak_bytes = 0;
  std::string summary;
};

// Trains eagerly if `configure` is empty.
Trained train(const TrainingLayout& layout, const Configure& configure) {
  manual_seed(3);
  Net net;
  if (layout.placement.defined()) net.to_global(layout.placement, layout.model);
  optim::AdamW optimizer(net.parameters(), {.lr = 0.01});
  Training graph(net, optimizer);
  if (configure) configure(graph.config());
  Trained run;
  for (int step = 0; step < kSteps; ++step) {
    const TensorOptions options{.placement = layout.placement, .sbp = layout.data};
    TensorOptions classes = options;
    classes.dtype = int64;
    const Tensor x = randn({12, kWidth}, options), y = randint(0, 4, {12}, classes);
    if (configure) {
      run.losses.push_back(graph(x, y).item<float>());
      run.peak_bytes = graph.compile(x, y).plan().peak_bytes();
      run.summary = graph.compile(x, y).summary();
      continue;
    }
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    optimizer.step();
    run.losses.push_back(loss.item<float>());
  }
  for (const Tensor& parameter : net.parameters()) {
    const std::vector<float> values = parameter.to_vector<float>();
    run.weights.insert(run.weights.end(), values.begin(), values.end());
  }
  return run;
}

const std::vector<TrainingLayout>& layouts() {
  static const std::vector<TrainingLayout> all{
      {},
      {"dp2", kPair, kS0, {{"*", kB}}},
      {"tp2", kPair, kB, {{"*.up.*", kS0}, {"*.gate.*", kS0}, {"*.scale", kS0}, {"*", kB}}},
  };
  return all;
}

// Whether the summary says that the pass has removed nodes.
bool is_fused(const Trained& trained) {
  const std::string pass = "fuse_elementwise ";
  const size_t at = trained.summary.find(pass);
  return at != std::string::npos && trained.summary[at + pass.size()] != '0';
}

TEST_F(GraphFusion, AStepHasFusedNodes) {
  const Trained on = train({}, [](nn::GraphConfig&) {});
  const Trained off =
      train({}, [](nn::GraphConfig& config) { config.enable_pass("fuse_elementwise", false); });

  EXPECT_TRUE(is_fused(on)) << on.summary;
  EXPECT_FALSE(is_fused(off)) << off.summary;
  EXPECT_EQ(on.weights, off.weights);
}

TEST_F(GraphFusion, EveryExactPassMayBeOff) {
  for (const TrainingLayout& layout : layouts()) {
    run_ranks(layout.ranks(), [&] {
      const Trained eager = train(layout, {});
      const auto expect_equal = [&](const std::string& off) {
        const Trained graph = train(layout, [&](nn::GraphConfig& config) {
          if (!off.empty()) config.enable_pass(off, false);
        });
        EXPECT_EQ(graph.losses, eager.losses) << layout.name << " without " << off;
        EXPECT_EQ(graph.weights, eager.weights) << layout.name << " without " << off;
      };
      expect_equal("");
      for (const graph::Pass& pass : graph::optimizing_passes(graph::PassSet::kExact))
        expect_equal(pass.name);
    });
  }
}

TEST_F(GraphFusion, MicroBatchesAreFusedToo) {
  const auto parts = [](bool fuses) {
    return [fuses](nn::GraphConfig& config) {
      config.set_micro_batches(3).enable_pass("fuse_elementwise", fuses);
    };
  };
  for (const TrainingLayout& layout : layouts()) {
    run_ranks(layout.ranks(), [&] {
      const Trained on = train(layout, parts(true)), off = train(layout, parts(false));

      EXPECT_TRUE(is_fused(on)) << layout.name << on.summary;
      EXPECT_EQ(on.losses, off.losses) << layout.name;
      EXPECT_EQ(on.weights, off.weights) << layout.name;
      EXPECT_LE(on.peak_bytes, off.peak_bytes) << layout.name;
    });
  }
}

// Single nodes may write over more inputs than a fused one, so results have memory of their own
// here.
TEST_F(GraphFusion, RecomputedNodesAreFusedToo) {
  const auto recompute = [](bool fuses) {
    return [fuses](nn::GraphConfig& config) {
      config.enable_recompute().enable_pass("overwrite_inputs", false);
      config.enable_pass("fuse_elementwise", fuses);
    };
  };
  const Trained on = train({}, recompute(true)), off = train({}, recompute(false));

  EXPECT_EQ(on.weights, off.weights);
  EXPECT_LE(on.peak_bytes, off.peak_bytes);
}

TEST_F(GraphFusion, AutocastIsFused) {
  const auto amp = [](bool fuses) {
    return [fuses](nn::GraphConfig& config) {
      config.enable_amp(bfloat16).enable_pass("fuse_elementwise", fuses);
    };
  };
  const Trained on = train({}, amp(true)), off = train({}, amp(false));

  EXPECT_TRUE(is_fused(on));
  EXPECT_EQ(on.losses, off.losses);
  EXPECT_EQ(on.weights, off.weights);
}

TEST_F(GraphFusion, PlansOfFilesAreFused) {
  const TempFolder folder;
  const auto cached = [&](nn::GraphConfig& config) { config.set_plan_cache(folder.path()); };
  const Trained first = train({}, cached), second = train({}, cached);

  EXPECT_TRUE(is_fused(second));
  EXPECT_NE(second.summary.find("read from the plan"), std::string::npos) << second.summary;
  EXPECT_EQ(second.weights, first.weights);
}

// ---- activations whose derivative is kept

// A feed-forward network with each activation whose derivative may be kept.
struct Activated : nn::Module<Activated> {
  nn::Linear first{kWidth, 2 * kWidth}, second{2 * kWidth, kWidth}, third{kWidth, kWidth},
      head{kWidth, 4};

  Activated() {
    register_module("first", first);
    register_module("second", second);
    register_module("third", third);
    register_module("head", head);
  }

  Tensor forward(const Tensor& x) {
    const Tensor y = second(gelu(first(x)));
    return head(silu(third(gelu(y, {.approximate = "tanh"}))));
  }
};

struct ActivatedTraining : nn::Graph<ActivatedTraining> {
  Activated net;

  ActivatedTraining(Activated n, optim::Optimizer& optimizer) : net(n) { add_optimizer(optimizer); }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    return loss;
  }

  using nn::GraphBase::config;
};

using MakeOptimizer =
    std::function<std::shared_ptr<optim::Optimizer>(const std::vector<Tensor>& parameters)>;

std::shared_ptr<optim::Optimizer> make_adamw(const std::vector<Tensor>& parameters) {
  return std::make_shared<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 0.01});
}

// Trains on one thread, eagerly if `configure` is empty; a compiled step takes the memory that its
// plan states.
Trained train_activated(const MakeOptimizer& make_optimizer, DType dtype,
                        const Configure& configure) {
  const int64_t num_threads = get_num_threads();
  set_num_threads(1);  // several take what depends on when they meet
  manual_seed(4);
  Activated net;
  net.to(dtype);
  const auto optimizer = make_optimizer(net.parameters());
  ActivatedTraining graph(net, *optimizer);
  if (configure) configure(graph.config());
  Trained run;
  int64_t held_bytes = 0;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor x = randn({12, kWidth}, {.dtype = dtype}), y = randint(0, 4, {12});
    Tensor loss;
    if (configure) {
      const nn::CompiledGraph& compiled = graph.compile(x, y);
      run.peak_bytes = compiled.plan().peak_bytes();
      run.summary = compiled.summary();
      if (step == 0) held_bytes = memory_stats().bytes_in_use;
      reset_peak_memory_stats();
      loss = graph(x, y);
      EXPECT_EQ(memory_stats().peak_bytes_in_use - held_bytes, run.peak_bytes) << run.summary;
    } else {
      optimizer->zero_grad();
      loss = graph.build(x, y);
      optimizer->step();
    }
    run.losses.push_back(static_cast<float>(loss.to(float64).item<double>()));
  }
  for (const Tensor& parameter : net.parameters()) {
    const std::vector<float> values = parameter.to(float32).to_vector<float>();
    run.weights.insert(run.weights.end(), values.begin(), values.end());
  }
  set_num_threads(num_threads);
  return run;
}

int64_t changes_of(const Trained& trained, const std::string& pass) {
  const size_t at = trained.summary.find(pass + ' ');
  return at == std::string::npos ? 0 : std::stoll(trained.summary.substr(at + pass.size() + 1));
}

Configure exactly(const std::string& pass, bool is_on) {
  return [=](nn::GraphConfig& config) { config.set_passes(nn::exact).enable_pass(pass, is_on); };
}

TEST_F(GraphFusion, DerivativesThatAreKeptGiveTheBitsOfGradients) {
  for (const DType dtype : {float32, float64}) {
    const Trained eager = train_activated(make_adamw, dtype, {});
    const Trained on = train_activated(make_adamw, dtype, exactly("save_slopes", true));
    const Trained off = train_activated(make_adamw, dtype, exactly("save_slopes", false));

    EXPECT_EQ(changes_of(on, "save_slopes"), 3) << on.summary;
    EXPECT_EQ(changes_of(off, "save_slopes"), 0) << off.summary;
    EXPECT_EQ(on.losses, eager.losses);
    EXPECT_EQ(on.weights, eager.weights);
    EXPECT_LE(on.peak_bytes, off.peak_bytes);
  }
}

TEST_F(GraphFusion, DerivativesAreKeptInRecomputedBlocks) {
  const auto recompute = [](bool is_on) {
    return [is_on](nn::GraphConfig& config) {
      config.set_passes(nn::exact).enable_recompute().enable_pass("save_slopes", is_on);
    };
  };
  const Trained on = train_activated(make_adamw, float32, recompute(true));
  const Trained off = train_activated(make_adamw, float32, recompute(false));

  EXPECT_EQ(on.weights, off.weights);
  EXPECT_LE(on.peak_bytes, off.peak_bytes);
}

TEST_F(GraphFusion, ResultsOverInputsGiveTheSameBits) {
  const Trained eager = train_activated(make_adamw, float32, {});
  const Trained on = train_activated(make_adamw, float32, exactly("overwrite_inputs", true));
  const Trained off = train_activated(make_adamw, float32, exactly("overwrite_inputs", false));

  EXPECT_GT(changes_of(on, "overwrite_inputs"), 0) << on.summary;
  EXPECT_EQ(changes_of(off, "overwrite_inputs"), 0) << off.summary;
  EXPECT_EQ(on.losses, eager.losses);
  EXPECT_EQ(on.weights, eager.weights);
  EXPECT_LE(on.peak_bytes, off.peak_bytes);
}

TEST_F(GraphFusion, ThePeakOfMemoryDoesNotRise) {
  const auto fuse = [](bool fuses) {
    return [fuses](nn::GraphConfig& config) {
      config.enable_pass("overwrite_inputs", false).enable_pass("fuse_elementwise", fuses);
    };
  };
  const Trained on = train({}, fuse(true)), off = train({}, fuse(false));
  const Trained over = train({}, [](nn::GraphConfig&) {});

  EXPECT_LE(over.peak_bytes, on.peak_bytes);
  EXPECT_LE(on.peak_bytes, off.peak_bytes);
}

}  // namespace
}  // namespace flow
