// The peak that is stated before a plan runs is what the allocator hands out when it runs, at every
// step and under every option.
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/storage.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "tests/support/loopback_ranks.h"
#include "tests/support/ranks_fixture.h"
#include "tests/support/stage_list.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

// What several threads take depends on when they meet.
class GraphMemory : public testing::Test {
 protected:
  void SetUp() override { setenv("FLOW_NUM_THREADS", "1", 1); }

  void TearDown() override { unsetenv("FLOW_NUM_THREADS"); }
};

struct How {
  nn::ZeroOptions zero = {.stage = 0};
  std::optional<DType> amp = {};
  int64_t parts = 1;
  pipeline::ScheduleRule schedule = pipeline::one_f_one_b();
  bool recomputes = false;
  nn::OverlapOptions overlap = {};
  bool has_masters = false;  // of parameters in bfloat16
};

std::string describe(const How& how) {
  return str("stage ", how.zero.stage, how.zero.once_per_step ? " once" : "", ", ",
             how.amp ? str(*how.amp) : "no autocast", ", ", how.parts, " parts, ",
             to_string(how.schedule), how.recomputes ? ", recompute" : "",
             how.overlap == kOverlapsAll ? ", all overlaps" : "",
             how.has_masters ? ", masters" : "");
}

template <class Model>
struct Train : nn::Graph<Train<Model>> {
  Model model;

  Train(const Model& m, optim::Optimizer& optimizer, const How& how) : model(m) {
    this->add_optimizer(optimizer, {.clip_grad_norm = 1.0});
    this->config().enable_zero(how.zero).set_overlap(how.overlap);
    this->config().set_micro_batches(how.parts).set_schedule(how.schedule);
    if (how.amp) this->config().enable_amp(*how.amp);
    if (how.recomputes) this->config().enable_recompute();
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    const Tensor out = model(x);
    Tensor loss = cross_entropy(out.reshape({-1, out.size(-1)}), y.flatten());
    loss.backward();
    return loss;
  }
};

// Trains for three steps, of which the first allocates the arena, and compares the peak of each
// with the stated one. Afterwards the rank keeps the arena and nothing else.
template <class Model>
void expect_stated(Model model, const Tensor& x, const Tensor& y, const How& how) {
  optim::Adam optimizer(model.parameters(), {.lr = 0.01, .master_weights = how.has_masters});
  Train<Model> graph(model, optimizer, how);
  const nn::CompiledGraph& compiled = graph.compile(x, y);
  const graph::CompiledStep& plan = compiled.plan();
  const int64_t before = memory_stats().bytes_in_use;
  for (int step = 0; step < 3; ++step) {
    reset_peak_memory_stats();
    graph(x, y);
    EXPECT_EQ(memory_stats().peak_bytes_in_use - before, plan.peak_bytes())
        << "rank " << env::rank() << ", step " << step << ", " << describe(how) << '\n'
        << compiled.summary();
    EXPECT_EQ(memory_stats().bytes_in_use - before, Storage::block_bytes(plan.arena_bytes()))
        << "rank " << env::rank() << ", step " << step << ", " << describe(how);
  }
}

TensorOptions with_dtype(TensorOptions options, DType dtype) {
  options.dtype = dtype;
  return options;
}

// A model and its batch.
template <class Model>
struct Task {
  std::function<Model()> make_model;
  std::function<Tensor(const TensorOptions&)> make_input;
  Shape labels;
  int64_t classes;
};

// Locally on one rank, and cut by rows on two.
template <class Model>
void expect_stated(const Task<Model>& task, const How& how = {}) {
  for (const int64_t ranks : {1, 2}) {
    run_ranks(ranks, [&] {
      TensorOptions layout;
      if (ranks > 1) {
        layout.placement = kPair;
        layout.sbp = kS0;
      }
      Model model = task.make_model();
      if (how.has_masters) model.to(bfloat16);
      if (ranks > 1) model.to_global(kPair, kB);
      expect_stated(model, task.make_input(layout),
                    randint(0, task.classes, task.labels, with_dtype(layout, int64)), how);
    });
  }
}

const Task<models::Mlp> kMlp{[] {
                               return models::Mlp({784, 512, 512, 10});
                             },
                             [](const TensorOptions& o) {
                               return randn({64, 784}, o);
                             },
                             {64},
                             10};
const Task<models::Gpt> kGpt{
    [] {
      return models::Gpt(
          {.vocab_size = 64, .block_size = 64, .n_layer = 2, .n_head = 4, .n_embd = 64});
    },
    [](const TensorOptions& o) {
      return randint(0, 64, {8, 64}, with_dtype(o, int64));
    },
    {8, 64},
    64};

TEST_F(GraphMemory, OfAnMlpIsKnown) {
  expect_stated(kMlp);
}

// Three layers of 1024 x 1024 activations in float64, of 8 MiB each.
nn::Sequential wide_model() {
  manual_seed(4);
  nn::Sequential model;
  for (int layer = 0; layer < 3; ++layer) {
    model.push_back(nn::Linear(layer == 0 ? 16 : 1024, 1024));
    model.push_back(nn::GELU());
  }
  model.push_back(nn::Linear(1024, 4));
  model.to(float64);
  return model;
}

struct ExactTrain : nn::Graph<ExactTrain> {
  nn::Sequential model;

  ExactTrain(const nn::Sequential& m, optim::Optimizer& optimizer, int64_t parts) : model(m) {
    add_optimizer(optimizer);
    config().set_micro_batches(parts).set_passes(nn::exact);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    return loss;
  }
};

TEST_F(GraphMemory, LargeActivationsAreComputedAgain) {
  const Tensor x = randn({1024, 16}, {.dtype = float64}), y = randint(0, 4, {1024});
  nn::Sequential eager = wide_model();
  optim::SGD eager_optimizer(eager.parameters(), {.lr = 0.1});
  std::vector<double> losses;
  for (int step = 0; step < 2; ++step) {
    Tensor loss = cross_entropy(eager(x), y);
    loss.backward();
    eager_optimizer.step();
    eager_optimizer.zero_grad();
    losses.push_back(loss.item<double>());
  }
  for (const int64_t parts : {1, 2}) {
    nn::Sequential model = wide_model();
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    ExactTrain graph(model, optimizer, parts);
    const graph::CompiledStep& plan = graph.compile(x, y).plan();
    for (const double loss : losses) {
      const double own = graph(x, y).item<double>();
      EXPECT_NEAR(own, loss, parts == 1 ? 0 : 1e-12 * loss) << parts << " parts";
    }
    // At the peak there are three inputs of gelu, one result, and two gradients. If the results
    // were kept, there would be seven when backward begins.
    constexpr int64_t kActivation = int64_t{8} << 20;
    EXPECT_LT(plan.arena_bytes(), 13 * kActivation / 2) << parts << " parts";
  }
}

TEST_F(GraphMemory, OfALenetIsKnown) {
  expect_stated(Task<models::Lenet>{[] { return models::Lenet(); },
                                    [](const TensorOptions& o) {
                                      return randn({16, 1, 28, 28}, o);
                                    },
                                    {16},
                                    10});
}

// The gradient of its weight and bias, for which bfloat16 is converted, is the peak of this step.
struct Convolution : nn::Module<Convolution> {
  nn::Conv2d conv{3, 32, 3};
  bool has_relu;  // without it, the gradient of the result is strided

  explicit Convolution(bool r) : has_relu(r) { register_module("conv", conv); }

  Tensor forward(const Tensor& x) {
    const Tensor y = conv(x);
    return mean(has_relu ? relu(y) : y, {2, 3});
  }
};

TEST_F(GraphMemory, OfAConvolutionInBfloat16IsKnown) {
  for (const bool has_relu : {true, false}) {
    expect_stated(Task<Convolution>{[&] { return Convolution(has_relu); },
                                    [](const TensorOptions& o) {
                                      return randn({8, 3, 32, 32}, o);
                                    },
                                    {8},
                                    32},
                  {.amp = bfloat16});
  }
}

TEST_F(GraphMemory, OfAGptIsKnown) {
  expect_stated(kGpt);
}

TEST_F(GraphMemory, OfAMobileNetIsKnown) {
  expect_stated(Task<models::MobileNetV2>{[] { return models::mobilenet_v2({.num_classes = 10}); },
                                          [](const TensorOptions& o) {
                                            return randn({4, 3, 32, 32}, o);
                                          },
                                          {4},
                                          10});
}

// ---- options and layouts

// Weights of more and of less than 64 KiB, from which on processes send data piece by piece.
const Task<models::Mlp> kSmallMlp{[] {
                                    return models::Mlp({160, 128, 72, 10});
                                  },
                                  [](const TensorOptions& o) {
                                    return randn({33, 160}, o);
                                  },
                                  {33},
                                  10};
const Task<models::Gpt> kSmallGpt{
    [] {
      return models::Gpt(
          {.vocab_size = 64, .block_size = 16, .n_layer = 2, .n_head = 4, .n_embd = 64});
    },
    [](const TensorOptions& o) {
      return randint(0, 64, {8, 16}, with_dtype(o, int64));
    },
    {8, 16},
    64};

template <class Model>
void expect_stated_on(const TrainingLayout& layout, const Task<Model>& task,
                      const std::vector<How>& hows, RunRanks run = run_ranks) {
  run(layout.ranks(), [&] {
    for (const How& how : hows) {
      SCOPED_TRACE(layout.name);
      Model model = task.make_model();
      model.to_global(layout.placement, layout.model);
      const TensorOptions options{.placement = layout.placement, .sbp = layout.data};
      expect_stated(model, task.make_input(options),
                    randint(0, task.classes, task.labels, with_dtype(options, int64)), how);
    }
  });
}

const TrainingLayout kDataParallel{"data parallel", kPair, kS0, {{"*", kB}}};
const TrainingLayout kUneven{"data parallel on 3", kThree, kS0, {{"*", kB}}};
const TrainingLayout kTensorParallel{
    "tensor parallel", kPair, kB, {{"fc1.*", kS0}, {"fc2.weight", kS1}, {"*", kB}}};
const TrainingLayout kBoth{
    "2 x 2", kGrid, {kS0, kB}, {{"fc1.*", {kB, kS0}}, {"fc2.weight", {kB, kS1}}, {"*", {kB, kB}}}};
const TrainingLayout kGptBoth{
    "2 x 2", kGrid, {kS0, kB}, gpt_layout({kB, kS0}, {kB, kS1}, {kB, kB})};

const std::vector<How> kZero = {{.zero = {.stage = 1}},
                                {.zero = {.stage = 2}},
                                {.zero = {.stage = 3}},
                                {.zero = {.stage = 2}, .parts = 2},
                                {.zero = {.stage = 3}, .parts = 3},
                                {.zero = {.stage = 2, .once_per_step = true}, .parts = 2},
                                {.zero = {.stage = 3, .once_per_step = true}, .parts = 2},
                                {.zero = {.stage = 1}, .overlap = kOverlapsAll},
                                {.zero = {.stage = 2}, .overlap = kOverlapsAll},
                                {.zero = {.stage = 3}, .overlap = kOverlapsAll},
                                {.zero = {.stage = 3}, .parts = 2, .overlap = kOverlapsAll}};
const std::vector<How> kOptions = {{},
                                   {.parts = 3},
                                   {.recomputes = true},
                                   {.amp = bfloat16},
                                   {.amp = float16},
                                   {.zero = {.stage = 2}, .amp = float16, .parts = 2},
                                   {.zero = {.stage = 3}, .amp = bfloat16, .recomputes = true},
                                   {.overlap = kOverlapsAll},
                                   {.parts = 3, .overlap = kOverlapsAll}};

TEST_F(GraphMemory, OfMastersIsKnown) {
  for (const int64_t stage : {0, 1, 2, 3})
    expect_stated(kSmallGpt, {.zero = {.stage = stage}, .has_masters = true});
}

TEST_F(GraphMemory, UnderDataParallelIsKnown) {
  expect_stated_on(kDataParallel, kSmallMlp, kOptions);
  expect_stated_on(kDataParallel, kSmallGpt, kOptions);
  expect_stated_on(kUneven, kSmallMlp, kOptions);
}

TEST_F(GraphMemory, UnderTensorParallelIsKnown) {
  expect_stated_on(kTensorParallel, kSmallMlp, kOptions);
  expect_stated_on(kBoth, kSmallMlp, kOptions);
  expect_stated_on(kGptBoth, kSmallGpt, kOptions);
}

TEST_F(GraphMemory, UnderZeroIsKnown) {
  expect_stated_on(kDataParallel, kSmallMlp, kZero);
  expect_stated_on(kUneven, kSmallMlp, kZero);
  expect_stated_on(kDataParallel, kSmallGpt, kZero);
  expect_stated_on(kBoth, kSmallMlp, kZero);
  expect_stated_on(kGptBoth, kSmallGpt, kZero);
}

TEST_F(GraphMemory, OfRanksThatAreProcessesIsKnown) {
  for (const RunRanks run : {run_loopback_ranks, run_shared_memory_ranks}) {
    expect_stated_on(kDataParallel, kSmallMlp, kOptions, run);
    expect_stated_on(kUneven, kSmallMlp, kZero, run);
    expect_stated_on(kBoth, kSmallMlp, kOptions, run);
    expect_stated_on(kGptBoth, kSmallGpt, kZero, run);
  }
}

// Under DistributedDataParallel each rank has its own rows.
template <class Model>
void expect_stated_of_replicas(const Task<Model>& task, const std::vector<How>& hows,
                               RunRanks run = run_ranks) {
  run(3, [&] {
    for (const How& how : hows) {
      nn::parallel::DistributedDataParallel<Model> ddp(task.make_model());
      const int64_t rows = task.labels[0] - me();
      const Tensor x = task.make_input({}).narrow(0, 0, rows).clone();
      const Tensor y = randint(0, task.classes, task.labels).narrow(0, 0, rows).clone();
      expect_stated(ddp, x, y, how);
    }
  });
}

const Task<nn::Sequential> kNormed{[] {
                                     return nn::Sequential(nn::Conv2d(1, 8, 3, {.padding = 1}),
                                                           nn::BatchNorm2d(8), nn::ReLU(),
                                                           nn::Flatten(), nn::Linear(1152, 10));
                                   },
                                   [](const TensorOptions& o) {
                                     return randn({9, 1, 12, 12}, o);
                                   },
                                   {9},
                                   10};

TEST_F(GraphMemory, OfReplicasIsKnown) {
  const std::vector<How> options = {
      {}, {.parts = 3}, {.recomputes = true}, {.amp = bfloat16}, {.amp = float16, .parts = 2}};
  for (const RunRanks run : {run_ranks, run_loopback_ranks, run_shared_memory_ranks}) {
    expect_stated_of_replicas(kSmallMlp, options, run);
    expect_stated_of_replicas(kSmallGpt, options, run);
    expect_stated_of_replicas(kNormed, {{}}, run);
  }
}

// ---- pipelines

nn::Sequential linear_stage() {
  return nn::Sequential(nn::Linear(48, 48), nn::Tanh(), nn::LayerNorm({48}), nn::Linear(48, 48));
}

// Stage i is on on[i].
void expect_stated_on_stages(const std::vector<Placement>& on, const NdSbp& data,
                             const std::vector<How>& hows, RunRanks run = run_ranks) {
  run(4, [&] {
    for (const How& how : hows) {
      StageList model(4, linear_stage);
      model.place(on);
      const Tensor x = randn({50, 48}, {.placement = on.front(), .sbp = data});
      const Tensor y = randint(0, 48, {50}, {.dtype = int64, .placement = on.back(), .sbp = data});
      SCOPED_TRACE(str(on[0], ' ', on[1], ' ', on[2], ' ', on[3]));
      expect_stated(model, x, y, how);
    }
  });
}

const Placement k0("cpu", {0}), k1("cpu", {1}), k2("cpu", {2}), k3("cpu", {3});
const Placement k01("cpu", {0, 1}), k23("cpu", {2, 3});
const std::vector<How> kPipelines = {
    {.parts = 4},
    {.parts = 5, .schedule = pipeline::gpipe()},
    {.parts = 4, .schedule = pipeline::zb_h1(), .recomputes = true},
    {.amp = bfloat16, .parts = 3},
    {.amp = float16, .parts = 4},
    {.zero = {.stage = 1}, .parts = 4},
    {.zero = {.stage = 2}, .amp = float16, .parts = 4},
    {.zero = {.stage = 3}, .parts = 3, .recomputes = true}};
const std::vector<How> kTwoStagesEach = {
    {.parts = 4, .schedule = pipeline::interleaved(2)},
    {.zero = {.stage = 2}, .parts = 4, .schedule = pipeline::interleaved(2)}};

TEST_F(GraphMemory, OfPipelinesIsKnown) {
  expect_stated_on_stages({k0, k1, k2, k3}, kB, kPipelines);
  expect_stated_on_stages({k01, k01, k23, k23}, kS0, kPipelines);
  expect_stated_on_stages({k01, k23, k01, k23}, kS0, kTwoStagesEach);
  expect_stated_on_stages({k01, k23, k23, k01}, kB, {{.parts = 4, .schedule = pipeline::zb_v()}});
}

TEST_F(GraphMemory, OfPipelinesOfProcessesIsKnown) {
  for (const RunRanks run : {run_loopback_ranks, run_shared_memory_ranks}) {
    expect_stated_on_stages({k0, k1, k2, k3}, kB, kPipelines, run);
    expect_stated_on_stages({k01, k01, k23, k23}, kS0, kPipelines, run);
    expect_stated_on_stages({k01, k23, k01, k23}, kS0, kTwoStagesEach, run);
  }
}

struct ConvStage : nn::Module<ConvStage> {
  nn::Conv2d conv;

  ConvStage(int64_t in, int64_t out)
      : conv(register_module("conv", nn::Conv2d(in, out, 3, {.padding = 1}))) {}

  Tensor forward(const Tensor& x) { return relu(conv(x)); }
};

struct TwoConvs : nn::Graph<TwoConvs> {
  ConvStage first{3, 16}, second{16, 16};
  optim::SGD optimizer;

  TwoConvs(const Placement& p0, const Placement& p1)
      : optimizer((first.to_global(p0, sbp::broadcast), second.to_global(p1, sbp::broadcast),
                   std::vector{first.conv.weight, second.conv.weight}),
                  {.lr = 0.1}) {
    first.to<nn::GraphModule>().set_stage(0, p0);
    second.to<nn::GraphModule>().set_stage(1, p1);
    add_optimizer(optimizer);
    config().set_micro_batches(4);
  }

  Tensor build(const Tensor& x) {
    Tensor loss = second(first(x)).square().mean();
    loss.backward();
    return loss;
  }
};

TEST_F(GraphMemory, OfStagesOfConvolutionsIsKnown) {
  run_ranks(2, [] {
    const Placement p0("cpu", {0}), p1("cpu", {1});
    TwoConvs graph(p0, p1);
    const Tensor x = randn({8, 3, 16, 16}, {.placement = p0, .sbp = sbp::broadcast});
    const nn::CompiledGraph& compiled = graph.compile(x);
    const int64_t before = memory_stats().bytes_in_use;
    reset_peak_memory_stats();
    graph(x);
    EXPECT_EQ(memory_stats().peak_bytes_in_use - before, compiled.plan().peak_bytes())
        << compiled.summary();
  });
}

}  // namespace
}  // namespace flow
