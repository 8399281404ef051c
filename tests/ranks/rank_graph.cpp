// Trains small models on four ranks of a job under data, tensor and pipeline parallelism, ZeRO and
// DistributedDataParallel, and compares each step with what was known before it: the bytes that
// this rank takes from its allocator, and its communications. Rank 0 prints "N steps on 4 ranks".
// The exit status is 1 after a difference, which gtest prints.
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/storage.h"
#include "eager/runtime.h"  // makes processes ranks
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "tests/support/recorded_calls.h"
#include "tests/support/training_layouts.h"

namespace {

using namespace flow;  // NOLINT(google-build-using-namespace): the program's own

const Placement kFour("cpu", {0, 1, 2, 3}), kFirst("cpu", {0, 1}), kLast("cpu", {2, 3});

struct Way {
  std::string name;
  Placement first, last;  // of the two halves of the model
  NdSbp data;
  nn::SbpPatterns weights;
  nn::ZeroOptions zero = {.stage = 0};
  int64_t parts = 1;
  bool receives_early = true;
};

struct Train : nn::Graph<Train> {
  models::Mlp front, back;

  Train(const models::Mlp& a, const models::Mlp& b, optim::Optimizer& optimizer, const Way& way)
      : front(a), back(b) {
    add_optimizer(optimizer, {.clip_grad_norm = 1.0});
    config().set_micro_batches(way.parts).enable_zero(way.zero);
    config().set_overlap({.receives_early = way.receives_early});
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(back(front(x)), y);
    loss.backward();
    return loss;
  }
};

constexpr int kSteps = 3;

// Runs steps and compares each with what the plan states. Returns their losses.
template <class Graph>
std::vector<float> compare_steps(Graph& graph, const Tensor& x, const Tensor& y,
                                 const std::string& name) {
  const graph::CompiledStep& plan = graph.compile(x, y).plan();
  const int64_t before = memory_stats().bytes_in_use;
  std::vector<float> losses;
  for (int step = 0; step < kSteps; ++step) {
    const std::string what = str(name, ", rank ", env::rank(), ", step ", step);
    reset_peak_memory_stats();
    take_recorded_calls();
    Tensor loss = graph(x, y);
    expect_as_certified(plan, take_recorded_calls(), what);
    EXPECT_EQ(memory_stats().peak_bytes_in_use - before, plan.peak_bytes()) << what;
    losses.push_back(loss.item<float>());
    loss = Tensor();
    EXPECT_EQ(memory_stats().bytes_in_use - before, Storage::block_bytes(plan.arena_bytes()))
        << what;
  }
  return losses;
}

// Returns the losses of the steps, each of which was compared.
std::vector<float> train(const Way& way) {
  manual_seed(3);
  models::Mlp front({24, 48, 40}), back({40, 32, 10});
  front.to_global(way.first, way.weights);
  back.to_global(way.last, way.weights);
  if (way.first != way.last) {
    nn::graph_module(front).set_stage(0, way.first);
    nn::graph_module(back).set_stage(1, way.last);
  }
  std::vector<Tensor> parameters = front.parameters();
  for (const Tensor& parameter : back.parameters())
    parameters.push_back(parameter);
  optim::Adam optimizer(parameters, {.lr = 0.01});
  Train graph(front, back, optimizer, way);
  const Tensor x = randn({30, 24}, {.placement = way.first, .sbp = way.data});
  const Tensor y = randint(0, 10, {30}, {.dtype = int64, .placement = way.last, .sbp = way.data});
  return compare_steps(graph, x, y, way.name);
}

struct TrainReplicas : nn::Graph<TrainReplicas> {
  nn::parallel::DistributedDataParallel<models::Mlp> ddp;

  TrainReplicas(const nn::parallel::DistributedDataParallel<models::Mlp>& d,
                optim::Optimizer& optimizer)
      : ddp(d) {
    add_optimizer(optimizer, {.clip_grad_norm = 1.0});
    config().set_passes(nn::exact);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(ddp(x), y);
    loss.backward();
    return loss;
  }
};

std::vector<std::vector<float>> weights_of(const nn::ModuleBase& model) {
  std::vector<std::vector<float>> weights;
  for (const Tensor& parameter : model.parameters())
    weights.push_back(parameter.to_vector<float>());
  return weights;
}

// Under DistributedDataParallel, with other rows on each rank, in compiled steps and in eager ones.
int train_replicas() {
  const Tensor x = randn({5 + env::rank(), 24}), y = randint(0, 10, {5 + env::rank()});
  const nn::parallel::DistributedDataParallel compiled{models::Mlp({24, 48, 10})};
  nn::parallel::DistributedDataParallel eager{models::Mlp({24, 48, 10})};
  eager.load_state_dict(compiled.state_dict());
  optim::Adam optimizer(compiled.parameters(), {.lr = 0.01});
  TrainReplicas graph(compiled, optimizer);
  const auto num_steps = static_cast<int>(compare_steps(graph, x, y, "replicas").size());
  optim::Adam eager_optimizer(eager.parameters(), {.lr = 0.01});
  for (int step = 0; step < num_steps; ++step) {
    cross_entropy(eager(x), y).backward();
    nn::utils::clip_grad_norm_(eager.parameters(), 1.0);
    eager_optimizer.step();
    eager_optimizer.zero_grad();
  }
  EXPECT_EQ(weights_of(compiled), weights_of(eager)) << "rank " << env::rank();
  return num_steps;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  record_calls();
  const nn::SbpPatterns whole{{"*", kB}};
  const nn::SbpPatterns in_parts{{"fc1.*", {kB, kS0}}, {"fc2.weight", {kB, kS1}}, {"*", {kB, kB}}};
  const Placement grid("cpu", {{0, 1}, {2, 3}});
  int num_steps = 0;
  for (Way way :
       std::vector<Way>{{"data parallel", kFour, kFour, kS0, whole},
                        {"2 x 2", grid, grid, {kS0, kB}, in_parts},
                        {"ZeRO 2 in parts", kFour, kFour, kS0, whole, {.stage = 2}, 2},
                        {"ZeRO 3", grid, grid, {kS0, kB}, in_parts, {.stage = 3}},
                        {"pipeline", kFirst, kLast, kS0, whole, {.stage = 0}, 4},
                        {"pipeline, ZeRO 2", kFirst, kLast, kS0, whole, {.stage = 2}, 3}}) {
    const std::vector<float> losses = train(way);
    num_steps += kSteps;
    if (way.first == way.last) continue;
    way.receives_early = false;
    EXPECT_EQ(train(way), losses) << way.name << " with late receives";
    num_steps += kSteps;
  }
  num_steps += train_replicas();
  if (env::rank() == 0) std::printf("%d steps on %d ranks\n", num_steps, 4);
  return testing::Test::HasFailure() ? 1 : 0;
}
