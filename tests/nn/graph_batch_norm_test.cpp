// Batch norm in training under micro-batches: a compiled step gives what the micro-batches give one
// after another, weights and running statistics.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/dispatch.h"
#include "core/tensor_meta.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "ops/norm/batch_norm_op.h"
#include "tests/support/training_layouts.h"
#include "tests/support/training_run.h"

namespace flow {
namespace {

const Placement k0("cpu", {0}), k1("cpu", {1}), k2("cpu", {2}), k3("cpu", {3});
const Placement k01("cpu", {0, 1}), k23("cpu", {2, 3});

struct How {
  int64_t parts = 1;
  pipeline::ScheduleRule schedule = pipeline::one_f_one_b();
  bool recomputes = false;
  bool is_exact = false;
};

template <class Model>
struct Task {
  std::function<Model()> make_model;
  Shape inputs;
  int64_t classes;
};

template <class Model>
struct Layout {
  std::string name = "one rank";
  int ranks = 1;
  std::function<void(Model& model)> lay_out = [](Model&) {};
  Placement first = {}, last = {};  // of inputs and of labels
  NdSbp data = {};
  int64_t shards = 1;  // of the batch
};

template <class Model>
struct Training : nn::Graph<Training<Model>> {
  Model model;

  Training(Model m, optim::Optimizer& optimizer, const How& how) : model(m) {
    this->add_optimizer(optimizer, {.clip_grad_norm = 0.5});
    this->config().set_micro_batches(how.parts).set_schedule(how.schedule);
    if (how.recomputes) this->config().enable_recompute();
    this->config().require_exact(how.is_exact);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    return loss;
  }
};

constexpr int kSteps = 3;

// The samples of a micro-batch: its part of each shard.
Tensor samples_of(int64_t batch, int64_t shards, int64_t parts, int64_t m) {
  std::vector<int64_t> rows;
  for (int64_t s = 0; s < shards; ++s) {
    const Range shard = balanced_part(batch, shards, s);
    const Range part = balanced_part(shard.size, parts, m);
    for (int64_t i = 0; i < part.size; ++i)
      rows.push_back(shard.begin + part.begin + i);
  }
  return tensor(rows, {static_cast<int64_t>(rows.size())}, {.dtype = int64});
}

// On one rank, or eagerly on all that share the batch.
template <class Model>
TrainingRun train_in_turn(const Task<Model>& task, int64_t shards, int64_t parts,
                          const Placement& placement = {}) {
  manual_seed(11);
  Model model = task.make_model();
  model.to(float64);
  TensorOptions whole{.dtype = float64};
  if (placement.defined()) {
    model.to_global(placement, kB);
    whole = {.dtype = float64, .placement = placement, .sbp = kB};
  }
  const auto part_of = [&](const Tensor& batch, int64_t m) {
    Tensor rows = samples_of(task.inputs[0], shards, parts, m);
    if (!placement.defined()) return index_select(batch, 0, rows);
    rows = rows.to_global({.placement = placement, .sbp = kB});
    return index_select(batch, 0, rows).to_global({.sbp = kS0});
  };
  optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  TrainingRun run;
  const int64_t batch = task.inputs[0];
  for (int step = 0; step < kSteps; ++step) {
    TensorOptions labels = whole;
    labels.dtype = int64;
    const Tensor x = randn(task.inputs, whole);
    const Tensor y = randint(0, task.classes, {batch}, labels);
    optimizer.zero_grad();
    double total = 0;
    for (int64_t m = 0; m < parts; ++m) {
      const Tensor loss = cross_entropy(model(part_of(x, m)), part_of(y, m), {.reduction = "sum"}) /
                          static_cast<double>(batch);
      loss.backward();
      total += loss.item<double>();
    }
    nn::utils::clip_grad_norm_(model.parameters(), 0.5);
    optimizer.step();
    run.losses.push_back(total);
  }
  run.read_weights(model);
  return run;
}

template <class Model>
TrainingRun train(const Task<Model>& task, const Layout<Model>& layout, const How& how) {
  manual_seed(11);
  Model model = task.make_model();
  model.to(float64);
  layout.lay_out(model);
  optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  Training<Model> graph(model, optimizer, how);
  TrainingRun run;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor x =
        randn(task.inputs, {.dtype = float64, .placement = layout.first, .sbp = layout.data});
    const Tensor y = randint(0, task.classes, {task.inputs[0]},
                             {.dtype = int64, .placement = layout.last, .sbp = layout.data});
    run.losses.push_back(graph(x, y).template item<double>());
  }
  run.read_weights(model);
  return run;
}

template <class Model>
void expect_in_turn(const Task<Model>& task, const Layout<Model>& layout,
                    const std::vector<How>& ways) {
  for (const How& how : ways) {
    const std::string what = str(layout.name, ", ", how.parts, " micro-batches, ",
                                 to_string(how.schedule), how.recomputes ? ", recompute" : "");
    const TrainingRun want = train_in_turn(task, layout.shards, how.parts);
    run_ranks(layout.ranks, [&] { expect_near(train(task, layout, how), want, what); });
  }
}

// ---- layers with a norm each

struct Block : nn::Module<Block> {
  nn::Linear linear{6, 6};
  nn::BatchNorm1d norm;

  explicit Block(const nn::BatchNormOptions& options) : norm(6, options) {
    register_module("linear", linear);
    register_module("norm", norm);
  }

  Tensor forward(const Tensor& x) { return tanh(norm(linear(x))); }
};

struct Blocks : nn::Module<Blocks> {
  nn::ModuleList<Block> blocks;

  explicit Blocks(int64_t count, const nn::BatchNormOptions& options = {}) {
    for (int64_t i = 0; i < count; ++i)
      blocks.push_back(Block(options));
    register_module("blocks", blocks);
  }

  Tensor forward(Tensor x) {
    for (Block& block : blocks)
      x = block(x);
    return x;
  }
};

Task<Blocks> blocks_task(int64_t count, int64_t batch = 10) {
  return {[=] { return Blocks(count); }, {batch, 6}, 6};
}

Layout<Blocks> stages_on(const std::string& name, int ranks, std::vector<Placement> placements,
                         const NdSbp& data = kB, int64_t shards = 1) {
  return {name,
          ranks,
          [=](Blocks& model) {
            model.to_global(k0, kB);  // ranks have drawn weights of their own
            for (int64_t i = 0; i < model.blocks.size(); ++i) {
              const Placement& placement = placements[static_cast<size_t>(i)];
              model.blocks[i].to_global(placement, kB);
              nn::graph_module(model.blocks[i]).set_stage(i, placement);
            }
          },
          placements.front(),
          placements.back(),
          data,
          shards};
}

Layout<Blocks> all_on(const std::string& name, const Placement& placement, const NdSbp& data,
                      int64_t shards) {
  return {
      name,
      static_cast<int>(placement.num_ranks()),
      [=](Blocks& model) { model.to_global(placement, NdSbp::broadcast(placement.num_axes())); },
      placement,
      placement,
      data,
      shards};
}

TEST(BatchNormInParts, OneRankTrainsAsPartAfterPart) {
  expect_in_turn(blocks_task(2), {},
                 {{2}, {3}, {4}, {5}, {3, pipeline::gpipe()}, {3, pipeline::one_f_one_b(), true}});
}

TEST(BatchNormInParts, DataParallelRanksTakeTheStatisticsOfAllTheirParts) {
  expect_in_turn(blocks_task(2, 12), all_on("dp2", k01, kS0, 2), {{1}, {2}, {3}, {5}});
  expect_in_turn(blocks_task(2, 14), all_on("dp3 of 14", kThree, kS0, 3), {{2}, {3}});
  expect_in_turn(blocks_task(2, 12), all_on("dp2 x B", kGrid, {kS0, kB}, 2), {{3}});
  expect_in_turn(blocks_task(2), all_on("whole on both", k01, kB, 1), {{3}});
}

TEST(BatchNormInParts, StagesTrainAsPartAfterPartUnderEverySchedule) {
  for (const auto& schedule : {pipeline::gpipe(), pipeline::one_f_one_b(), pipeline::zb_h1()})
    expect_in_turn(blocks_task(2), stages_on("pp2", 2, {k0, k1}), {{3, schedule}, {1, schedule}});
  expect_in_turn(blocks_task(4, 12), stages_on("pp2 x 2", 2, {k0, k1, k0, k1}),
                 {{4, pipeline::interleaved(2)}});
  expect_in_turn(blocks_task(4, 12), stages_on("pp2 v", 2, {k0, k1, k1, k0}),
                 {{4, pipeline::zb_v()}, {3, pipeline::zb_v()}, {1, pipeline::zb_v()}});
  expect_in_turn(
      blocks_task(2), stages_on("pp2", 2, {k0, k1}),
      {{2, pipeline::schedule_table("0F1 0F0 0B1 0B0 0W0 0W1\n1F1 1B1 1F0 1W1 1B0 1W0\n")}});
}

TEST(BatchNormInParts, DataParallelStagesTrainAsPartAfterPart) {
  expect_in_turn(blocks_task(2, 14), stages_on("pp2 x dp2", 4, {k01, k23}, kS0, 2),
                 {{3}, {2, pipeline::zb_h1()}, {3, pipeline::one_f_one_b(), true}});
}

// ---- statistics of single ranks

TEST(BatchNormInParts, LocalStatisticsAreThoseOfEachRanksSamples) {
  run_ranks(2, [] {
    manual_seed(1);
    const TensorOptions split{.dtype = float64, .placement = k01, .sbp = kS0};
    nn::BatchNorm1d norm(3, {.stats = nn::local});
    norm.to(float64);
    norm.to_global(k01, kB);
    Tensor x = randn({6, 3}, split);
    x.requires_grad_();
    const Tensor weights = randn({6, 3}, split);
    (norm(x) * weights).sum().backward();

    const Tensor rows = x.detach().full(), by = weights.full();
    Tensor mean_of_ranks = zeros({3}, {.dtype = float64}), var_of_ranks = mean_of_ranks;
    Tensor dweight = mean_of_ranks;
    std::vector<Tensor> dx;
    for (const int64_t begin : {0, 3}) {
      nn::BatchNorm1d own(3);
      own.to(float64);
      Tensor part = slice(rows, 0, begin, begin + 3).clone();
      part.requires_grad_();
      (own(part) * slice(by, 0, begin, begin + 3)).sum().backward();
      mean_of_ranks = mean_of_ranks + own.running_mean / 2.0;
      var_of_ranks = var_of_ranks + own.running_var / 2.0;
      dweight = dweight + own.weight.grad();
      dx.push_back(part.grad());
    }
    const CloseOptions near{.rtol = 1e-12, .atol = 1e-12};
    EXPECT_TRUE(allclose(norm.running_mean.full(), mean_of_ranks, near));
    EXPECT_TRUE(allclose(norm.running_var.full(), var_of_ranks, near));
    EXPECT_TRUE(allclose(norm.weight.grad().full(), dweight, near));
    EXPECT_TRUE(allclose(x.grad().full(), cat(dx, 0), near));
  });
}

// A rank that has all samples finds the same.
TEST(BatchNormInParts, PartsOnOneRankAreNormalisedEachByTheirOwn) {
  const TensorOptions wide{.dtype = float64};
  const Tensor x = randn({5, 3, 2}, wide), dy = randn({5, 3, 2}, wide), none;
  const Tensor weight = rand({3}, wide);
  const ops::BatchNormAttrs attrs{1e-5, 2, 5};
  const auto whole = dispatch_multi<2>(ops::kBatchNorm, {&x, &weight, &none}, attrs, Site::here());
  const auto back = dispatch_multi<3>(ops::kBatchNormBackward, {&dy, &x, &whole[1], &weight}, attrs,
                                      Site::here());
  std::vector<Tensor> y, moments, dx;
  Tensor dweight = zeros({3}, wide), dbias = dweight;
  for (const auto& [begin, end] : {std::pair{0, 3}, std::pair{3, 5}}) {
    const Tensor part = slice(x, 0, begin, end).clone(), part_dy = slice(dy, 0, begin, end).clone();
    const auto own = dispatch_multi<2>(ops::kBatchNorm, {&part, &weight, &none},
                                       ops::BatchNormAttrs{1e-5}, Site::here());
    const auto own_back =
        dispatch_multi<3>(ops::kBatchNormBackward, {&part_dy, &part, &own[1], &weight},
                          ops::BatchNormAttrs{1e-5}, Site::here());
    y.push_back(own[0]);
    moments.push_back(own[1]);
    dx.push_back(own_back[0]);
    dweight = dweight + own_back[1];
    dbias = dbias + own_back[2];
  }
  const CloseOptions near{.rtol = 1e-12, .atol = 1e-12};
  EXPECT_TRUE(allclose(whole[0], cat(y, 0), near));
  EXPECT_TRUE(allclose(whole[1], cat(moments, 0), near));
  EXPECT_TRUE(allclose(back[0], cat(dx, 0), near));
  EXPECT_TRUE(allclose(back[1], dweight, near));
  EXPECT_TRUE(allclose(back[2], dbias, near));
}

TEST(BatchNormInParts, LocalStatisticsTrainAsPartAfterPart) {
  Task<Blocks> task = blocks_task(2, 12);
  task.make_model = [] { return Blocks(2, {.stats = nn::local}); };
  const Layout<Blocks> layout = all_on("dp2, local statistics", k01, kS0, 2);
  run_ranks(2, [&] {
    const TrainingRun logical = train_in_turn(blocks_task(2, 12), 2, 2, k01);
    for (const How& how : std::vector<How>{{1}, {2}, {3}, {2, pipeline::gpipe(), true}}) {
      const TrainingRun want = train_in_turn(task, 2, how.parts, k01);
      EXPECT_NE(want.losses, logical.losses);
      expect_near(train(task, layout, how), want, str("local, ", how.parts, " parts"));
    }
  });
  const TrainingRun two = [&] {
    TrainingRun run;
    run_ranks(2, [&] {
      const TrainingRun own = train_in_turn(task, 2, 2, k01);
      if (env::rank() == 0) run = own;
    });
    return run;
  }();
  const Layout<Blocks> stages = stages_on("pp2 x dp2, local", 4, {k01, k23}, kS0, 2);
  for (const auto& schedule : {pipeline::one_f_one_b(), pipeline::zb_h1()})
    run_ranks(4, [&] { expect_near(train(task, stages, {2, schedule}), two, "stages"); });
}

// ---- a norm that is called twice, and one of single images

struct Twice : nn::Module<Twice> {
  nn::Linear linear{6, 6};
  nn::BatchNorm1d norm{6};

  Twice() {
    register_module("linear", linear);
    register_module("norm", norm);
  }

  Tensor forward(const Tensor& x) { return norm(linear(tanh(norm(x)))); }
};

TEST(BatchNormInParts, ANormThatIsCalledTwiceUpdatesInTheOrderOfCalls) {
  const Task<Twice> task{[] { return Twice(); }, {9, 6}, 6};
  expect_in_turn(task, {}, {{2}, {3}, {3, pipeline::one_f_one_b(), true}});
}

struct Images : nn::Module<Images> {
  nn::Conv2d conv{2, 4, 3, {.padding = 1}};
  nn::BatchNorm2d norm{4};
  nn::BatchNorm2d plain{4, {.affine = false, .track_running_stats = false}};
  nn::Linear out{4 * 5 * 5, 3};

  Images() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("plain", plain);
    register_module("out", out);
  }

  Tensor forward(const Tensor& x) { return out(plain(relu(norm(conv(x)))).flatten(1)); }
};

TEST(BatchNormInParts, ImagesTrainAsPartAfterPart) {
  const Task<Images> task{[] { return Images(); }, {6, 2, 5, 5}, 3};
  expect_in_turn(task, {}, {{2}, {4}, {6}});
  Layout<Images> both{"dp2", 2, [](Images& m) { m.to_global(k01, kB); }, k01, k01, kS0, 2};
  expect_in_turn(task, both, {{2}, {3}});
}

// ---- MobileNetV2

const Task<models::MobileNetV2> kMobileNet{
    [] {
      return models::MobileNetV2({.num_classes = 4,
                                  .inverted_residual_setting = {{1, 8, 1, 1}, {6, 8, 2, 2}},
                                  .dropout = 0,
                                  .input_channel = 8,
                                  .last_channel = 16});
    },
    {8, 3, 8, 8},
    4};

TEST(BatchNormInParts, MobileNetInAPipelineTrainsAsPartAfterPart) {
  const auto on = [](const Placement& first, const Placement& last) {
    return [=](models::MobileNetV2& model) {
      model.to_global(k0, kB);
      model.to_global(first, kB);
      for (const char* path : {"features.0", "features.1"})
        nn::graph_module(model.get_submodule(path)).set_stage(0, first);
      for (const char* path : {"features.2", "features.3", "features.4", "classifier"}) {
        nn::ModuleBase module = model.get_submodule(path);
        module.to_global(last, kB);
        nn::graph_module(module).set_stage(1, last);
      }
    };
  };
  expect_in_turn(kMobileNet, {"pp2", 2, on(k0, k1), k0, k1, kB, 1},
                 {{3}, {4, pipeline::zb_h1()}, {2, pipeline::gpipe(), true}});
  expect_in_turn(kMobileNet, {"pp2 x dp2", 4, on(k01, k23), k01, k23, kS0, 2},
                 {{2}, {2, pipeline::zb_h1()}});
}

// ---- recompute, outside of graphs too

TEST(BatchNormInParts, RecomputeUpdatesRunningStatisticsOnce) {
  nn::BatchNorm1d norm(3);
  nn::InstanceNorm1d instance(3, {.track_running_stats = true});
  Tensor x = randn({4, 3, 5}, {.requires_grad = true});
  recompute([&](const std::vector<Tensor>& in) { return instance(norm(in[0])); }, {x})
      .sum()
      .backward();

  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 1);
  const Tensor expected = mean(x.detach(), {0, 2}) * 0.1;
  EXPECT_TRUE(allclose(norm.running_mean, expected, {.rtol = 1e-5, .atol = 1e-6}));
  EXPECT_TRUE(allclose(instance.running_mean, zeros({3}), {.atol = 1e-6}));
}

// ---- what is said, and refused

template <class Model>
std::string summary_of(const Task<Model>& task, const How& how) {
  Model model = task.make_model();
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  Training<Model> graph(model, optimizer, how);
  const Tensor y = randint(0, task.classes, {task.inputs[0]}, {.dtype = int64});
  return graph.compile(randn(task.inputs), y).summary();
}

TEST(BatchNormInParts, SummaryNamesModulesAndLines) {
  const std::string text = summary_of(blocks_task(2), {2});
  for (const char* part : {"batch_norm in module 'blocks.0.norm' at ",
                           "batch_norm in module 'blocks.1.norm' at ", "graph_batch_norm_test.cpp:",
                           " takes the statistics of each micro-batch, not of the batch"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(summary_of(blocks_task(2), {1}).find("takes the statistics"), std::string::npos);
}

TEST(BatchNormInParts, ExactStepsRefuseIt) {
  EXPECT_NO_THROW(summary_of(blocks_task(2), {.parts = 1, .is_exact = true}));
  try {
    summary_of(blocks_task(2), {.parts = 2, .is_exact = true});
    FAIL() << "no error";
  } catch (const Unsupported& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("[graph] require_exact: batch_norm in module 'blocks.0.norm' at "),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("graph_batch_norm_test.cpp:"), std::string::npos) << message;
  }
}

TEST(BatchNormInParts, PartsOfOneValueAChannelAreRefused) {
  try {
    summary_of(blocks_task(1, 5), {4});
    FAIL() << "no error";
  } catch (const InvalidArgument& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("batch_norm in module 'blocks.0.norm'"), std::string::npos) << message;
    EXPECT_NE(message.find("micro-batch 1 of 4 has 1"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace flow
