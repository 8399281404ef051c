// Transfers of compiled steps that run in the background on devices: on the communication stream,
// while the compute stream goes on, with the results of steps without them.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/device/cuda.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/error.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "tests/cuda/compiled_trainings.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/support/cuda_emulator/library_hooks.h"
#include "tests/support/temp_folder.h"
#include "tests/support/training_layouts.h"

namespace flow {

namespace {

class CudaTransfers : public CudaFixture {
 protected:
  void SetUp() override {
    CudaFixture::SetUp();
    if (!reuses_memory()) GTEST_SKIP() << "memory that is freed waits";
  }
};

constexpr nn::OverlapOptions kOff{.enabled = false};

cuda::RankDevice& device() {
  return cuda::rank_device(*thread_state().context);
}

void run_stream(cudaStream_t stream) {
  FLOW_CUDA_CALL(cudaStreamSynchronize(stream));
}

bool is_nccl_missing() {
  const char* const missing = std::getenv("CUDA_EMULATOR_MISSING");
  return missing != nullptr && std::string(missing).find("libnccl") != std::string::npos;
}

// With device 0 for all ranks, and with two devices; without NCCL, the host would wait.
void run_on_devices(int64_t ranks, const std::function<void()>& body) {
  for (const bool share : {true, false}) {
    if (!share && is_nccl_missing()) continue;
    run_ranks(ranks, [&] {
      if (share) cuda::set_device(0);
      body();
    });
  }
}

// Work on the communication stream that notes how far the compute stream is when it runs.
class Observer {
 public:
  Observer() {
    FLOW_CUDA_CALL(cuda_emulator::enqueue(device().communication_stream(),
                                          [this] { num_run_ = cuda_emulator::num_run(compute_); }));
  }

  ~Observer() { cuda::synchronize(); }

  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  bool has_run() const { return num_run_ >= 0; }

  int64_t num_run() const { return num_run_; }

 private:
  cudaStream_t compute_ = device().compute_stream();
  std::atomic<int64_t> num_run_ = -1;
};

int64_t num_computed() {
  return cuda_emulator::num_run(device().compute_stream());
}

int64_t num_in_background(const graph::Program& program) {
  int64_t num = 0;
  for (const graph::Step& step : program.steps)
    num += step.in_background ? 1 : 0;
  return num;
}

// The gradients of the last layer are summed while those of the first one are computed: the sum may
// begin before these kernels and ends after them, and the host waits for neither.
TEST_F(CudaTransfers, RunOnTheCommunicationStreamWhileTheStepComputes) {
  run_on_devices(2, [] {
    const Placement both("cuda", {0, 1});
    manual_seed(6);
    nn::Sequential net(nn::Linear(50, 200), nn::ReLU(), nn::Linear(200, 300));
    net.to("cuda");
    net.to_global(both, sbp::broadcast);
    optim::SGD sgd(net.parameters(), {.lr = 0.01});
    MlpStep graph(net, sgd);
    graph.config().set_overlap({.first_bucket_mb = 0.1});
    const TensorOptions options{.placement = both, .sbp = sbp::split(0)};
    const Tensor x = randn({8, 50}, options), target = randn({8, 300}, options);
    static_cast<void>(graph(x, target));  // connects the ranks
    ASSERT_EQ(num_in_background(graph.compile(x, target).plan().program()), 1) << graph.explain();
    // How much of the step the compute stream has done after `look`, on rank 0.
    const auto run = [&](const std::function<int64_t(const Observer&)>& look) {
      cuda::synchronize();
      comm::barrier();
      const int64_t before = num_computed();
      const Observer observer;
      const Tensor loss = graph(x, target);
      EXPECT_FALSE(observer.has_run()) << "the host has waited for the transfer";
      comm::barrier();
      const int64_t num = env::rank() == 0 ? look(observer) - before : 0;
      comm::barrier();
      return num;
    };

    const int64_t before_transfer = run([](const Observer&) {
      run_stream(device().communication_stream());
      return num_computed();
    });
    const int64_t before_wait = run([](const Observer& observer) {
      run_stream(device().compute_stream());
      EXPECT_TRUE(observer.has_run()) << "the step has not waited for the transfer";
      return observer.num_run();
    });

    if (env::rank() != 0) return;
    EXPECT_GT(before_transfer, 0);
    EXPECT_GT(before_wait, before_transfer + 2);
  });
}

// ---- The results of steps without transfers in the background, and of host memory

struct Classify : nn::Graph<Classify> {
  models::Mlp model;

  Classify(const models::Mlp& m, optim::Optimizer& optimizer) : model(m) {
    add_optimizer(optimizer, {.clip_grad_norm = 1.0});
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    const Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    return loss;
  }

  using nn::GraphBase::config;
};

struct How {
  nn::OverlapOptions overlap = kOff;
  int64_t zero_stage = 0;
  int64_t micro_batches = 1;
  bool uses_cuda_graphs = false;
  bool communicates_first = false;  // the device does, once a step is queued
};

struct Trained {
  std::vector<double> losses;
  std::vector<double> weights;
  friend bool operator==(const Trained&, const Trained&) = default;
};

struct Training {
  Trained trained;
  int64_t num_in_background = 0;  // steps of the program
  std::string explanation;
};

Placement on(const Placement& placement, const char* where) {
  return {parse_device_type(where), placement.shape(), placement.ranks()};
}

Training train(const TrainingLayout& layout, const char* where, const How& how) {
  manual_seed(4);
  models::Mlp model({24, 40, 32, 5});
  model.to(where);
  const Placement placement = on(layout.placement, where);
  model.to_global(placement, layout.model);
  optim::AdamW adam(model.parameters(), {.lr = 0.01});
  Classify graph(model, adam);
  graph.config().set_overlap(how.overlap).enable_zero({.stage = how.zero_stage});
  graph.config().set_micro_batches(how.micro_batches).set_cuda_graphs(how.uses_cuda_graphs);
  const TensorOptions options{.placement = placement, .sbp = layout.data};
  TensorOptions classes = options;
  classes.dtype = int64;
  Training training;
  for (int step = 0; step < 5; ++step) {
    const Tensor x = randn({12, 24}, options), y = randint(0, 5, {12}, classes);
    const Tensor loss = graph(x, y);
    if (how.communicates_first) run_stream(device().communication_stream());
    training.trained.losses.push_back(loss.item<double>());
    if (step == 0)
      training.num_in_background = num_in_background(graph.compile(x, y).plan().program());
  }
  for (const Tensor& weight : model.parameters()) {
    const std::vector<double> all =
        cast(weight.detach().full().to("cpu"), float64).to_vector<double>();
    training.trained.weights.insert(training.trained.weights.end(), all.begin(), all.end());
  }
  training.explanation = graph.explain();
  return training;
}

const std::vector<TrainingLayout> kLayouts = {
    {"data parallel", kPair, kS0, {{"*", kB}}},
    {"tensor parallel", kPair, kB, {{"fc1.*", kS0}, {"fc2.weight", kS1}, {"*", kB}}},
    {"2 x 2", kGrid, {kS0, kB}, {{"fc1.*", {kB, kS0}}, {"fc2.weight", {kB, kS1}}, {"*", {kB, kB}}}},
};

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], 1e-4 + 1e-4 * std::abs(expected[i])) << i;
}

TEST_F(CudaTransfers, LeaveResultsAsTheyAreBitForBit) {
  for (const TrainingLayout& layout : kLayouts) {
    run_on_devices(layout.ranks(), [&] {
      for (const int64_t zero_stage : {0, 2, 3}) {
        for (const int64_t micro_batches : {1, 2}) {
          SCOPED_TRACE(str(layout.name, ", ZeRO ", zero_stage, ", ", micro_batches));
          How how{.zero_stage = zero_stage, .micro_batches = micro_batches};
          const Training plain = train(layout, "cuda", how);
          EXPECT_EQ(plain.num_in_background, 0);
          if (zero_stage == 0)
            expect_near(plain.trained.losses, train(layout, "cpu", how).trained.losses);
          how.overlap = kOverlapsAll;
          for (const bool communicates_first : {false, true}) {
            how.communicates_first = communicates_first;
            const Training overlapped = train(layout, "cuda", how);
            EXPECT_GE(overlapped.num_in_background, 2);
            EXPECT_EQ(overlapped.trained, plain.trained);
          }
        }
      }
    });
  }
}

TEST_F(CudaTransfers, AreBetweenTheCudaGraphsOfAStep) {
  for (const TrainingLayout& layout : kLayouts) {
    run_on_devices(layout.ranks(), [&] {
      SCOPED_TRACE(layout.name);
      How how{.overlap = kOverlapsAll};
      const Training plain = train(layout, "cuda", how);
      how.uses_cuda_graphs = true;
      for (const bool communicates_first : {false, true}) {
        how.communicates_first = communicates_first;
        const Training replayed = train(layout, "cuda", how);
        EXPECT_EQ(replayed.trained, plain.trained);
        EXPECT_EQ(replayed.explanation.find("CUDA graphs: 0"), std::string::npos)
            << replayed.explanation;
        EXPECT_NE(replayed.explanation.find("it runs in the background"), std::string::npos)
            << replayed.explanation;
      }
    });
  }
}

struct AverageGradients : nn::Graph<AverageGradients> {
  nn::parallel::DistributedDataParallel<models::Mlp> ddp;

  AverageGradients(const nn::parallel::DistributedDataParallel<models::Mlp>& d,
                   optim::Optimizer& optimizer, const nn::OverlapOptions& overlap)
      : ddp(d) {
    add_optimizer(optimizer);
    config().set_overlap(overlap);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    const Tensor loss = cross_entropy(ddp(x), y);
    loss.backward();
    return loss;
  }
};

// Local replicas, whose gradients are averaged in buckets.
TEST_F(CudaTransfers, AverageGradientsOfReplicas) {
  run_on_devices(2, [] {
    const auto train_replicas = [](const nn::OverlapOptions& overlap) {
      manual_seed(4);
      models::Mlp model({24, 40, 32, 5});
      model.to("cuda");
      nn::parallel::DistributedDataParallel<models::Mlp> ddp(model);
      optim::AdamW adam(model.parameters(), {.lr = 0.01});
      AverageGradients graph(ddp, adam, overlap);
      Training training;
      for (int step = 0; step < 4; ++step) {
        const Tensor x = (randn({6, 24}) + static_cast<double>(env::rank())).to("cuda");
        const Tensor y = randint(0, 5, {6}, {.dtype = int64}).to("cuda");
        training.trained.losses.push_back(graph(x, y).item<double>());
        if (step == 0)
          training.num_in_background = num_in_background(graph.compile(x, y).plan().program());
      }
      for (const Tensor& weight : model.parameters()) {
        const auto all = cast(weight.detach().to("cpu"), float64).to_vector<double>();
        training.trained.weights.insert(training.trained.weights.end(), all.begin(), all.end());
      }
      return training;
    };

    const Training overlapped = train_replicas(kOverlapsAll);

    EXPECT_GE(overlapped.num_in_background, 2);
    EXPECT_EQ(overlapped.trained, train_replicas(kOff).trained);
  });
}

// Besides the arena, in which they move, so that the stated peak holds.
TEST_F(CudaTransfers, TakeNoMemoryBetweenRanksOfADevice) {
  for (const TrainingLayout& layout : kLayouts) {
    run_ranks(layout.ranks(), [&] {
      cuda::set_device(0);
      const auto num_bytes = [] {
        const cuda::OnCommunicationStream scope;
        return device().allocator().stats().peak_bytes_in_use;
      };
      cuda::reset_peak_memory_stats();
      EXPECT_GE(train(layout, "cuda", {.overlap = kOverlapsAll}).num_in_background, 2);
      EXPECT_EQ(num_bytes(), 0) << layout.name;
    });
  }
}

// A plan that is not valid would be compiled and written again.
TEST_F(CudaTransfers, AreSavedInPlans) {
  namespace fs = std::filesystem;
  const TempFolder folder;
  setenv("FLOW_PLAN_CACHE", folder.path().c_str(), 1);
  std::vector<Training> runs(2);
  std::vector<fs::file_time_type> written;
  for (Training& run : runs) {
    run_ranks(2, [&] {
      cuda::set_device(0);
      Training own = train(kLayouts[0], "cuda", {.overlap = kOverlapsAll});
      if (env::rank() == 0) run = std::move(own);
    });
    for (const auto& file : fs::directory_iterator(folder.path()))
      written.push_back(fs::last_write_time(file));
  }
  unsetenv("FLOW_PLAN_CACHE");
  EXPECT_GE(runs[0].num_in_background, 2);
  EXPECT_EQ(runs[1].trained, runs[0].trained);
  ASSERT_EQ(written.size(), 2U);
  EXPECT_EQ(written[1], written[0]);
}

// NCCL fails on rank 1 in a transfer; rank 0 would wait forever.
TEST_F(CudaTransfers, FailOnAllRanks) {
  if (is_nccl_missing()) GTEST_SKIP() << "ranks of one device do not use it";
  std::vector<std::string> errors(2);
  run_ranks(2, [&] {
    const Placement both("cuda", {0, 1});
    models::Mlp model({24, 40, 32, 5});
    model.to("cuda");
    model.to_global(both, kB);
    optim::AdamW adam(model.parameters(), {.lr = 0.01});
    Classify graph(model, adam);
    graph.config().set_overlap(kOverlapsAll);
    const TensorOptions options{.placement = both, .sbp = kS0};
    TensorOptions classes = options;
    classes.dtype = int64;
    const Tensor x = randn({12, 24}, options), y = randint(0, 5, {12}, classes);
    static_cast<void>(graph(x, y).item());
    comm::barrier();
    cuda_emulator::fail_nccl_of(1);
    comm::barrier();
    try {
      static_cast<void>(graph(x, y).item());
    } catch (const Error& error) {
      errors[static_cast<size_t>(env::rank())] = error.what();
    }
  });
  cuda_emulator::fail_nccl_of(-1);
  for (const std::string& error : errors)
    EXPECT_NE(error.find("NCCL failed: system error"), std::string::npos) << error;
}

}  // namespace

}  // namespace flow
