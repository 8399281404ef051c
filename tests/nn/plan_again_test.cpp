// Every plan that flow saves is one that it reads: a second run of the same program compiles
// nothing and computes the same bits.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "tests/support/loopback_ranks.h"
#include "tests/support/stage_list.h"
#include "tests/support/temp_folder.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

struct Step : nn::Graph<Step> {
  std::function<Tensor(const Tensor& x)> body;

  explicit Step(std::function<Tensor(const Tensor& x)> b) : body(std::move(b)) {}

  Tensor build(const Tensor& x) { return body(x); }

  using nn::GraphBase::add_optimizer;
  using nn::GraphBase::config;
};

// A training on one rank: what it computed, and where its plan came from.
struct Trained {
  std::string folder;  // of the plan cache; empty: none
  std::vector<std::vector<float>> results = {};
  bool is_from_cache = false;
  std::string why_not = {};

  void steps(Step& step, const Tensor& x, const std::vector<Tensor>& state = {}) {
    if (!folder.empty()) step.config().set_plan_cache(folder);
    for (int i = 0; i < 3; ++i)
      keep(step(x));
    for (const Tensor& tensor : state)
      keep(tensor);
    const graph::CompiledArtifact& compiled = step.compile(x).plan().step();
    is_from_cache = compiled.from_cache;
    why_not = compiled.cache_miss_reason;
  }

 private:
  void keep(const Tensor& tensor) { results.push_back(tensor.to(float32).to_vector<float>()); }
};

using Training = std::function<void(Trained& run)>;
using RunRanks = void (*)(int64_t ranks, const std::function<void()>& body);

class PlanAgain : public testing::Test {
 protected:
  // Trains with new objects and without a cache, with an empty one, and again.
  void expect_read_again(int64_t ranks, const std::string& what, const Training& training,
                         RunRanks run_on = run_ranks) {
    const auto train = [&](const std::string& folder) {
      std::vector<Trained> by_rank(static_cast<size_t>(ranks), Trained{folder});
      run_on(ranks, [&] {
        manual_seed(7);
        training(by_rank[static_cast<size_t>(env::rank())]);
      });
      return by_rank;
    };
    const std::vector<Trained> without = train(""), first = train(folder_), second = train(folder_);
    // A process may find the plan that another one, with equal parts, has saved just before.
    EXPECT_FALSE(std::all_of(first.begin(), first.end(), [](const Trained& run) {
      return run.is_from_cache;
    })) << what;
    for (size_t rank = 0; rank < second.size(); ++rank) {
      const std::string of = str(what, ", rank ", rank);
      EXPECT_TRUE(second[rank].is_from_cache) << of << ": " << second[rank].why_not;
      EXPECT_EQ(first[rank].results, without[rank].results) << of;
      EXPECT_EQ(second[rank].results, without[rank].results) << of;
    }
  }

  const TempFolder temp_;
  const std::filesystem::path folder_ = temp_.file("plans");
};

// What a step does with the activations h: (8, 6).
struct Use {
  const char* name;
  Tensor (*of)(const Tensor& h);
};

Tensor heads(const Tensor& h) {
  return h.view({8, 2, 3}).transpose(1, 2);
}

const Use kUses[] = {
    {"entries", [](const Tensor& h) { return gather(h, 1, argsort(h.detach(), {.dim = 1})); }},
    {"maximum", [](const Tensor& h) { return max(h, 1).values; }},
    {"order", [](const Tensor& h) { return sort(h, {.dim = 1}).values; }},
    {"median", [](const Tensor& h) { return median(h, 1).values; }},
    {"running product", [](const Tensor& h) { return cumprod(h, 1); }},
    {"columns by index",
     [](const Tensor& h) {
       return h.index({Slice(), tensor(std::vector<int64_t>{3, 0, 3})});
     }},
    {"rows by number", [](const Tensor& h) { return h[-1] + h[2]; }},
    {"every other row", [](const Tensor& h) { return h.slice(0, 1, 7, 2); }},
    {"columns of a slice", [](const Tensor& h) { return h.slice(1, 1, 6, 2); }},
    {"sum to a column", [](const Tensor& h) { return h * sigmoid(h.narrow(1, 2, 1)); }},
    {"means",
     [](const Tensor& h) {
       return h * h.mean(1, {.keepdim = true}).expand({8, 6});
     }},
    {"repeated",
     [](const Tensor& h) {
       return h.repeat({1, 2}).square();
     }},
    {"windows", [](const Tensor& h) { return h.unfold(1, 3, 2).square(); }},
    {"heads",
     [](const Tensor& h) {
       return heads(h * h).reshape({8, 6});
     }},
    {"other order", [](const Tensor& h) { return flip(h, {1}) * roll(h, 1, 1); }},
    {"joined",
     [](const Tensor& h) {
       return cat({h, h.square()}, 1);
     }},
    {"one of two", [](const Tensor& h) { return where(gt(h, 0.1), h, h * 0.5); }},
    {"one hot", [](const Tensor& h) { return one_hot(argmax(h, 1), 6).to(float32) * h; }},
    {"padded",
     [](const Tensor& h) {
       return pad(h, {1, 2});
     }},
    {"diagonal", [](const Tensor& h) { return heads(h).diagonal(0, 1, 2); }},
    {"convolution",
     [](const Tensor& h) {
       return conv1d(h.unsqueeze(1), ones({2, 1, 3}));
     }},
    {"pooled", [](const Tensor& h) { return max_pool1d(h.unsqueeze(1), {2}); }},
    {"scattered",
     [](const Tensor& h) { return scatter_add(h, 1, argsort(h.detach(), {.dim = 1}), h); }},
    {"created",
     [](const Tensor& h) {
       return h * full({8, 1}, 0.5) + arange(6.0);
     }},
    {"drawn",
     [](const Tensor& h) {
       return dropout(h * rand({8, 6}), {.p = 0.3});
     }},
};

TEST_F(PlanAgain, WhatMicroBatchesDoWithTheirRows) {
  for (const Use& use : kUses) {
    for (const int64_t micro_batches : {2, 3}) {
      for (const Placement& placement : {Placement(), kPair}) {
        const bool is_split = placement.defined();
        const auto training = [&](Trained& run) {
          nn::Linear layer(5, 6);
          if (is_split) layer.to_global(placement, kB);
          optim::AdamW optimizer(layer.parameters());
          Step step([&](const Tensor& x) {
            std::optional<PlacementGuard> created_on;
            if (is_split) created_on.emplace(placement, kB);
            Tensor loss = use.of(layer(x)).square().mean();
            loss.backward();
            return loss;
          });
          step.add_optimizer(optimizer, {.clip_grad_norm = 1.0});
          step.config().set_micro_batches(micro_batches);
          const NdSbp data = is_split ? NdSbp(kS0) : NdSbp();
          run.steps(step, randn({8, 5}, {.placement = placement, .sbp = data}), layer.parameters());
        };
        expect_read_again(
            is_split ? 2 : 1,
            str(use.name, ", ", micro_batches, " micro-batches", is_split ? ", split" : ""),
            training);
      }
    }
  }
}

// ---- ways to train one model

struct How {
  const char* name;
  std::vector<Placement> stages = {};  // none: one rank with local tensors
  NdSbp data = {};
  int64_t micro_batches = 1;
  pipeline::ScheduleRule schedule = pipeline::one_f_one_b();
  int64_t zero = 0;
  bool recomputes = false;
  std::optional<DType> amp = {};
};

nn::Sequential make_stage() {
  return nn::Sequential(nn::Linear(6, 6), nn::BatchNorm1d(6), nn::ReLU(), nn::Dropout(0.2));
}

void train(const How& how, Trained& run) {
  const bool is_pipeline = how.stages.size() > 1;
  StageList model(is_pipeline ? static_cast<int64_t>(how.stages.size()) : 2, make_stage);
  if (is_pipeline) {
    model.place(how.stages);
  } else if (!how.stages.empty()) {
    model.to_global(how.stages[0], kB);
  }
  optim::AdamW optimizer(model.parameters());
  Step step([&](const Tensor& x) {
    Tensor loss = model(x).square().mean();
    loss.backward();
    return loss;
  });
  step.add_optimizer(optimizer, {.clip_grad_norm = 0.1});
  step.config().set_micro_batches(how.micro_batches).set_schedule(how.schedule);
  step.config().enable_zero({.stage = how.zero});
  if (how.recomputes) step.config().enable_recompute();
  if (how.amp) step.config().enable_amp(*how.amp);
  TensorOptions options;
  if (!how.stages.empty()) options = {.placement = how.stages[0], .sbp = how.data};
  const Tensor x = randn({8, 6}, options);
  std::vector<Tensor> state = model.parameters();
  for (const auto& [name, buffer] : model.named_buffers())
    state.push_back(buffer);
  run.steps(step, x, state);
}

TEST_F(PlanAgain, WaysToTrainAModel) {
  const Placement k0("cpu", {0}), k1("cpu", {1});
  const std::vector<Placement> two = {k0, k1}, turns = {k0, k1, k0, k1}, back = {k0, k1, k1, k0};
  const How ways[] = {
      {.name = "scaled", .amp = float16},
      {.name = "recomputed", .micro_batches = 3, .recomputes = true},
      {.name = "data parallel", .stages = {kPair}, .data = kS0, .micro_batches = 3},
      {.name = "ZeRO 1", .stages = {kPair}, .data = kS0, .zero = 1, .amp = float16},
      {.name = "ZeRO 2", .stages = {kPair}, .data = kS0, .micro_batches = 2, .zero = 2},
      {.name = "ZeRO 3", .stages = {kPair}, .data = kS0, .zero = 3, .recomputes = true},
      {.name = "two stages", .stages = two, .data = kB},
      {.name = "gpipe",
       .stages = two,
       .data = kB,
       .micro_batches = 3,
       .schedule = pipeline::gpipe()},
      {.name = "1f1b", .stages = two, .data = kB, .micro_batches = 4, .amp = float16},
      {.name = "zb_h1",
       .stages = two,
       .data = kB,
       .micro_batches = 3,
       .schedule = pipeline::zb_h1(),
       .recomputes = true},
      {.name = "interleaved",
       .stages = turns,
       .data = kB,
       .micro_batches = 4,
       .schedule = pipeline::interleaved(2)},
      {.name = "zb_v",
       .stages = back,
       .data = kB,
       .micro_batches = 4,
       .schedule = pipeline::zb_v()},
  };
  for (const How& how : ways) {
    const int64_t ranks = how.stages.empty() ? 1 : 2;
    expect_read_again(ranks, how.name, [&](Trained& run) { train(how, run); });
  }
}

// ---- local parts of global tensors, whose shapes differ between ranks

void train_on_parts(Trained& run, const Placement& placement) {
  Tensor w = ones({1}, {.placement = placement, .sbp = kB}).requires_grad_();
  optim::SGD optimizer({w}, {.lr = 0.1});
  Step step([&](const Tensor& x) {
    const Tensor part = (x * w).to_local();
    Tensor loss = (part * part).to_global({.placement = placement, .sbp = kS0}).mean();
    loss.backward();
    return loss;
  });
  step.add_optimizer(optimizer);
  run.steps(step, randn({5}, {.placement = placement, .sbp = kS0}), {w});
}

// Rank 0 gives three rows and rank 1 two.
void join_parts(Trained& run) {
  Step step([](const Tensor& x) {
    return (x * 2.0).to_global({.placement = kPair, .sbp = kS0}).square().sum();
  });
  run.steps(step, randn({env::rank() == 0 ? 3 : 2, 4}));
}

TEST_F(PlanAgain, LocalPartsOfGlobalTensors) {
  const std::pair<const char*, RunRanks> kinds[] = {{"threads", run_ranks},
                                                    {"processes", run_loopback_ranks}};
  for (const auto& [kind, run_on] : kinds) {
    for (const Placement& placement :
         {kThree, Placement("cpu", {2, 0}), Placement("cpu", {1, 2})}) {
      expect_read_again(
          3, str(kind, ", ", placement), [&](Trained& run) { train_on_parts(run, placement); },
          run_on);
    }
    expect_read_again(2, kind, join_parts, run_on);
    std::filesystem::remove_all(folder_);
  }
}

}  // namespace
}  // namespace flow
