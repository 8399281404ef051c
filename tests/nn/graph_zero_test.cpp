// ZeRO in graphs: stages cut state, gradients and parameters over ranks, results stay those of one
// rank, and memory falls as predicted.
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/storage.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "tests/support/stage_list.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

using MakeOptimizer =
    std::function<std::shared_ptr<optim::Optimizer>(const std::vector<Tensor>& parameters)>;

std::shared_ptr<optim::Optimizer> adamw(const std::vector<Tensor>& parameters) {
  return std::make_shared<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 0.01});
}

struct How {
  nn::ZeroOptions zero = {.stage = 0};
  int64_t parts = 1;
  pipeline::ScheduleRule schedule = pipeline::one_f_one_b();
  bool recomputes = false;
  bool exact = false;
  std::optional<double> clip = 0.5;
  MakeOptimizer make_optimizer = adamw;
};

template <class Model>
struct Training : nn::Graph<Training<Model>> {
  Model model;
  nn::CrossEntropyLoss loss_fn;

  Training(Model m, optim::Optimizer& optimizer, const How& how) : model(m) {
    this->add_optimizer(optimizer, {.clip_grad_norm = how.clip});
    this->config().enable_zero(how.zero);
    this->config().set_micro_batches(how.parts).set_schedule(how.schedule);
    if (how.recomputes) this->config().enable_recompute();
    if (how.exact) this->config().set_passes(nn::exact);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    const Tensor out = model(x);
    Tensor loss = loss_fn(out.reshape({-1, out.size(-1)}), y.flatten());
    loss.backward();
    return loss;
  }
};

template <class Model>
struct Task {
  std::function<Model()> make_model;
  std::function<Tensor(const TensorOptions& options)> make_input;
  Shape labels;
  int64_t classes;
};

// Where a model lies.
template <class Model>
struct Layout {
  const char* name = "one rank";
  int64_t ranks = 1;
  Placement placement = {};
  NdSbp data = {};
  std::function<void(Model&)> lay_out = [](Model&) {};
  bool runs_eagerly = true;
};

struct Run {
  std::vector<double> losses;
  std::vector<std::pair<std::string, std::vector<double>>> values;
  std::optional<double> after = {};  // the loss that an eager evaluation gives at the end
};

template <class Model>
Run train(const Task<Model>& task, const Layout<Model>& layout, const How& how) {
  manual_seed(11);
  Model model = task.make_model();
  model.to(float64);
  layout.lay_out(model);
  const std::shared_ptr<optim::Optimizer> optimizer = how.make_optimizer(model.parameters());
  Training<Model> graph(model, *optimizer, how);
  const auto batch = [&] {
    const TensorOptions options{.placement = layout.placement, .sbp = layout.data};
    TensorOptions inputs = options, labels = options;
    inputs.dtype = float64;
    labels.dtype = int64;
    const Tensor x = task.make_input(inputs);
    return std::pair(x, randint(0, task.classes, task.labels, labels));
  };
  Run run;
  for (int step = 0; step < 3; ++step) {
    const auto [x, y] = batch();
    run.losses.push_back(graph(x, y).template item<double>());
  }
  for (const auto& [name, tensor] : model.state_dict())
    run.values.emplace_back(name, tensor.template to_vector<double>());
  for (const auto& [name, tensor] : optimizer->state_dict())
    run.values.emplace_back(name, tensor.template to_vector<double>());
  if (!layout.runs_eagerly) return run;
  model.eval();
  const NoGradGuard no_grad;
  const auto [x, y] = batch();
  const Tensor out = model(x);
  run.after = cross_entropy(out.reshape({-1, out.size(-1)}), y.flatten()).template item<double>();
  return run;
}

void expect_near(const Run& got, const Run& want, const std::string& what) {
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], 1e-9) << what << ", step " << i;
  ASSERT_EQ(got.values.size(), want.values.size()) << what;
  for (size_t i = 0; i < want.values.size(); ++i) {
    double distance = 0, norm = 0;
    ASSERT_EQ(got.values[i].first, want.values[i].first);
    for (size_t j = 0; j < want.values[i].second.size(); ++j) {
      const double w = want.values[i].second[j];
      distance += std::pow(got.values[i].second[j] - w, 2);
      norm += w * w;
    }
    // Gradients of zero, of keys' biases, are noise.
    EXPECT_LE(std::sqrt(distance), 1e-9 * std::sqrt(norm) + 1e-15)
        << what << ", " << want.values[i].first;
  }
  if (got.after) {
    EXPECT_NEAR(*got.after, *want.after, 1e-9) << what;
  }
}

std::string describe(const How& how) {
  return str("stage ", how.zero.stage, how.zero.once_per_step ? " once" : "", ", ", how.parts,
             " micro-batches, ", to_string(how.schedule), how.recomputes ? ", recompute" : "");
}

template <class Model>
void expect_equals_one_rank(const Task<Model>& task, const Layout<Model>& layout,
                            const std::vector<How>& ways) {
  for (const How& how : ways) {
    How plain = how;
    plain.zero.stage = 0;
    plain.parts = 1;
    plain.recomputes = false;
    const Run alone = train(task, {}, plain);
    EXPECT_NE(alone.losses.front(), alone.losses.back());
    run_ranks(static_cast<int>(layout.ranks), [&] {
      expect_near(train(task, layout, how), alone, str(layout.name, ", ", describe(how)));
    });
  }
}

// Both stages beyond the first, with the way changed by each of `changes`.
std::vector<How> ways(const std::vector<std::function<void(How&)>>& changes) {
  std::vector<How> all;
  for (const int64_t stage : {2, 3}) {
    for (const auto& change : changes) {
      How how{.zero = {.stage = stage}};
      change(how);
      all.push_back(how);
    }
  }
  return all;
}

void plain(How&) {}

Task<models::Mlp> mlp_task() {
  return {[] {
            return models::Mlp({7, 10, 9, 4});
          },
          [](const TensorOptions& o) {
            return randn({12, 7}, o);
          },
          {12},
          4};
}

Task<models::Gpt> gpt_task(double dropout = 0) {
  return {[=] {
            return models::Gpt({.vocab_size = 13,
                                .block_size = 6,
                                .n_layer = 2,
                                .n_head = 2,
                                .n_embd = 16,
                                .dropout = dropout});
          },
          [](TensorOptions o) {
            o.dtype = int64;
            return randint(0, 13, {12, 6}, o);
          },
          {12, 6},
          13};
}

template <class Model>
Layout<Model> data_parallel(const char* name, const Placement& placement) {
  return {name, placement.num_ranks(), placement, kS0, [=](Model& model) {
            model.to_global(Placement("cpu", {0}), kB);  // ranks have drawn weights of their own
            model.to_global(placement, kB);
          }};
}

const Placement kFour("cpu", {0, 1, 2, 3});

TEST(Zero, MlpOnTwoRanksEqualsOneRank) {
  expect_equals_one_rank(
      mlp_task(), data_parallel<models::Mlp>("dp2", kPair),
      ways({plain, [](How& how) { how.clip.reset(); },
            [](How& how) { how.zero.once_per_step = true; }, [](How& how) { how.exact = true; }}));
}

TEST(Zero, UnevenPartsEqualOneRank) {
  expect_equals_one_rank(mlp_task(), data_parallel<models::Mlp>("dp3", kThree), ways({plain}));
}

TEST(Zero, GptOnFourRanksEqualsOneRank) {
  expect_equals_one_rank(gpt_task(), data_parallel<models::Gpt>("dp4", kFour), ways({plain}));
}

TEST(Zero, GptWithDropoutAndRecomputationEqualsOneRank) {
  expect_equals_one_rank(gpt_task(0.1), data_parallel<models::Gpt>("dp2", kPair),
                         ways({[](How& how) { how.recomputes = true; }}));
}

TEST(Zero, MicroBatchesEqualOneRank) {
  const auto in_parts = [](How& how) { how.parts = 3; };
  const auto once = [](How& how) {
    how.parts = 3;
    how.zero.once_per_step = true;
  };
  const auto recomputed = [](How& how) {
    how.parts = 3;
    how.recomputes = true;
  };
  expect_equals_one_rank(mlp_task(), data_parallel<models::Mlp>("dp3", kThree),
                         ways({in_parts, once}));
  expect_equals_one_rank(gpt_task(0.1), data_parallel<models::Gpt>("dp2", kPair),
                         ways({in_parts, once, recomputed}));
}

// Products are cut over the second axis.
TEST(Zero, TensorParallelOnAnotherAxisEqualsOneRank) {
  const Layout<models::Gpt> grid{
      "dp2 x tp2", 4, kGrid, {kS0, kB}, [](models::Gpt& model) {
        model.to_global(Placement("cpu", {0}), kB);
        model.to_global(kGrid, gpt_layout({kB, kS0}, {kB, kS1}, {kB, kB}));
      }};
  expect_equals_one_rank(gpt_task(), grid, ways({plain, [](How& how) { how.parts = 3; }}));
}

TEST(Zero, EveryOptimizerEqualsOneRank) {
  const auto with = []<class O>(auto options) {
    return [options](How& how) {
      how.make_optimizer = [options](const std::vector<Tensor>& parameters) {
        return std::make_shared<O>(parameters, options);
      };
    };
  };
  expect_equals_one_rank(
      mlp_task(), data_parallel<models::Mlp>("dp3", kThree),
      ways({with.operator()<optim::SGD>(optim::SGDOptions{.lr = 0.1}),
            with.operator()<optim::SGD>(optim::SGDOptions{
                .lr = 0.1, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.01}),
            with.operator()<optim::Adam>(optim::AdamOptions{.amsgrad = true}),
            with.operator()<optim::NAdam>(optim::NAdamOptions{}),
            with.operator()<optim::RAdam>(optim::RAdamOptions{.lr = 0.1}),
            with.operator()<optim::Adamax>(optim::AdamaxOptions{}),
            with.operator()<optim::Adagrad>(optim::AdagradOptions{}),
            with.operator()<optim::Adadelta>(optim::AdadeltaOptions{}),
            with.operator()<optim::RMSprop>(
                optim::RMSpropOptions{.momentum = 0.5, .centered = true}),
            with.operator()<optim::LAMB>(optim::LAMBOptions{}),
            with.operator()<optim::ASGD>(optim::ASGDOptions{.lr = 0.1, .t0 = 1}),
            with.operator()<optim::Rprop>(optim::RpropOptions{}),
            with.operator()<optim::Adafactor>(optim::AdafactorOptions{.lr = 0.1})}));
}

// ---- pipelines

Layout<models::Gpt> gpt_stages() {
  const Placement first = kPair, last("cpu", {2, 3});
  return {"pp2 x dp2",
          4,
          first,
          kS0,
          [=](models::Gpt& model) {
            model.to_global(Placement("cpu", {0}), kB);
            model.to_global(first, kB);
            model.blocks[1].to_global(last, kB);
            model.ln_f.to_global(last, kB);
            nn::graph_module(model.blocks[0]).set_stage(0, first);
            nn::graph_module(model.blocks[1]).set_stage(1, last);
          },
          false};
}

TEST(Zero, PipelinesEqualOneRank) {
  for (const How& how :
       ways({[](How& h) { h.schedule = pipeline::gpipe(); }, [](How& h) { h.recomputes = true; },
             [](How& h) { h.schedule = pipeline::zb_h1(); },
             [](How& h) { h.zero.once_per_step = true; }, plain})) {
    How cut = how;
    if (how.schedule != pipeline::one_f_one_b() || how.recomputes || how.zero.once_per_step) {
      cut.parts = 3;
    }
    expect_equals_one_rank(gpt_task(0.1), gpt_stages(), {cut});
  }
}

// Each stage reads a weight of the other one.
struct Crossed : nn::Module<Crossed> {
  nn::Linear first{register_module("first", nn::Linear(6, 6))};
  nn::Linear last{register_module("last", nn::Linear(6, 6))};

  Tensor forward(const Tensor& x) {
    const Tensor hidden = relu(first(matmul(x, moved_to(first, last.weight.t(), kB))));
    const Tensor mixed = matmul(moved_to(last, hidden, kS0), moved_to(last, first.weight, kB));
    return last(mixed * moved_to(last, first.bias * 2, kB));
  }
};

// Two stages, `first` and the rest on ranks 0 and 1, `last` on ranks 2 and 3.
template <class Model>
Layout<Model> two_stages() {
  const Placement first = kPair, last("cpu", {2, 3});
  return {"pp2 x dp2",
          4,
          first,
          kS0,
          [=](Model& model) {
            model.to_global(Placement("cpu", {0}), kB);
            model.to_global(first, kB);
            model.last.to_global(last, kB);
            nn::graph_module(model.first).set_stage(0, first);
            nn::graph_module(model.last).set_stage(1, last);
          },
          false};
}

TEST(Zero, WeightsOfOtherStagesEqualOneRank) {
  const Task<Crossed> task{[] { return Crossed(); },
                           [](const TensorOptions& o) {
                             return randn({12, 6}, o);
                           },
                           {12},
                           6};
  std::vector<How> all;
  for (const auto& schedule : {pipeline::gpipe(), pipeline::one_f_one_b(), pipeline::zb_h1()}) {
    for (const int64_t parts : {1, 3}) {
      for (const bool once : {false, true}) {
        for (const How& how : ways({plain})) {
          all.push_back(how);
          all.back().schedule = schedule;
          all.back().parts = parts;
          all.back().zero.once_per_step = once;
        }
      }
    }
  }
  expect_equals_one_rank(task, two_stages<Crossed>(), all);
}

// The first stage holds a weight that only the last one reads.
struct Lent : nn::Module<Lent> {
  nn::Linear first{register_module("first", nn::Linear(6, 6))};
  Tensor lent{register_parameter("lent", randn({6, 6}))};
  nn::Linear last{register_module("last", nn::Linear(6, 6))};

  Tensor forward(const Tensor& x) {
    return last(matmul(moved_to(last, relu(first(x)), kS0), moved_to(last, lent, kB)));
  }
};

TEST(Zero, WeightsThatOnlyAnotherStageReadsEqualOneRank) {
  const Task<Lent> task{[] { return Lent(); },
                        [](const TensorOptions& o) {
                          return randn({12, 6}, o);
                        },
                        {12},
                        6};
  expect_equals_one_rank(
      task, two_stages<Lent>(),
      ways({plain, [](How& h) { h.parts = 3; }, [](How& h) { h.schedule = pipeline::zb_h1(); }}));
}

// ---- plans follow each other

TEST(Zero, OtherBatchesGraphsStagesAndEagerStepsGoOnWithTheSameParameters) {
  const auto run = [](bool is_cut) {
    manual_seed(3);
    models::Mlp model({5, 8, 4});
    model.to(float64);
    model.to_global(Placement("cpu", {0}), kB);
    model.to_global(kPair, kB);
    optim::Adam optimizer(model.parameters(), {.lr = 0.1});
    How how{.zero = {.stage = is_cut ? 3 : 0}};

    struct Configured : Training<models::Mlp> {
      using Training::Training;
      using nn::GraphBase::config;
    };

    Configured graph(model, optimizer, how), other(model, optimizer, how);
    for (int step = 0; step < 6; ++step) {
      const int64_t rows = step % 2 == 0 ? 6 : 4;
      const Tensor x = randn({rows, 5}, {.dtype = float64, .placement = kPair, .sbp = kS0});
      const Tensor y = randint(0, 4, {rows}, {.dtype = int64, .placement = kPair, .sbp = kS0});
      if (step == 5 && is_cut) graph.config().enable_zero({.stage = 2});
      if (step != 2) {
        (step == 1 ? other : graph)(x, y);
        EXPECT_EQ(model.parameters()[0].sbp(), NdSbp(is_cut && step < 5 ? kS0 : kB)) << step;
        continue;
      }
      optimizer.zero_grad();
      cross_entropy(model(x), y).backward();
      nn::utils::clip_grad_norm_(model.parameters(), 0.5);
      optimizer.step();
      optimizer.zero_grad();
    }
    return model.parameters()[0].to_vector<double>();
  };
  run_ranks(2, [&] {
    const std::vector<double> got = run(true), want = run(false);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 1e-12);
  });
}

TEST(Zero, ParametersOnOneRankStayAsTheyAre) {
  const How how{.zero = {.stage = 3}};
  expect_near(train(mlp_task(), {}, how), train(mlp_task(), {}, {}), "stage 3 of local tensors");
}

TEST(Zero, CheckpointsOfCutParametersLoadAnywhere) {
  run_ranks(2, [] {
    manual_seed(3);
    models::Mlp model({5, 8, 4}), other({5, 8, 4});
    model.to_global(kPair, kB);
    optim::Adam optimizer(model.parameters());
    Training<models::Mlp> graph(model, optimizer, How{.zero = {.stage = 3}});
    graph(randn({6, 5}, {.placement = kPair, .sbp = kS0}),
          randint(0, 4, {6}, {.dtype = int64, .placement = kPair, .sbp = kS0}));
    other.to_global(kPair, kB);
    other.load_state_dict(model.state_dict());
    EXPECT_EQ(other.parameters()[0].sbp(), NdSbp(kB));
    EXPECT_EQ(other.parameters()[0].to_local().to_vector<float>(),
              model.parameters()[0].full().to_vector<float>());
  });
}

// Eagerly the same layouts are a matter of to_global: parameters that are split keep gradients and
// state split, and ops gather them for as long as they need them.
TEST(Zero, SplitParametersEqualOneRankEagerly) {
  const auto run = [](bool is_cut) {
    manual_seed(3);
    models::Mlp model({5, 8, 4});
    model.to(float64);
    if (is_cut) {
      model.to_global(Placement("cpu", {0}), kB);
      model.to_global(kThree, kS0);
    }
    optim::AdamW optimizer(model.parameters(), {.lr = 0.1});
    for (int step = 0; step < 3; ++step) {
      TensorOptions options{.dtype = float64};
      if (is_cut) options = {.dtype = float64, .placement = kThree, .sbp = kS0};
      const Tensor x = randn({6, 5}, options);
      options.dtype = int64;
      optimizer.zero_grad();
      cross_entropy(model(x), randint(0, 4, {6}, options)).backward();
      nn::utils::clip_grad_norm_(model.parameters(), 0.5);
      if (is_cut) {
        EXPECT_EQ(model.parameters()[0].grad().sbp(), NdSbp(kS0));
      }
      optimizer.step();
    }
    return model.parameters()[0].to_vector<double>();
  };
  const std::vector<double> want = run(false);
  run_ranks(3, [&] {
    const std::vector<double> got = run(true);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 1e-12);
  });
}

// ---- memory

// What rank 0 needs for the tensors of model and optimizer and for the arena of the plan, by stage,
// in units of the bytes of all parameters. Two steps run on each rank. What the allocator hands out
// must agree: the blocks of these tensors, with at most 64 bytes more for each, and then exactly
// the peak that the plan states.
template <class Model>
std::vector<double> memory_by_stage(const Task<Model>& task, const How& how) {
  setenv("FLOW_NUM_THREADS", "1", 1);  // what several threads take depends on when they meet
  std::vector<double> memory;
  run_ranks(4, [&] {
    for (const int64_t stage : {0, 1, 2, 3}) {
      How of_stage = how;
      of_stage.zero.stage = stage;
      const PlacementGuard guard(kFour, kB);
      const Tensor x = task.make_input({.sbp = kS0});
      const Tensor y = randint(0, task.classes, task.labels, {.dtype = int64, .sbp = kS0});
      const int64_t before = memory_stats().bytes_in_use;
      Model model = task.make_model();
      const std::shared_ptr<optim::Optimizer> optimizer = how.make_optimizer(model.parameters());
      Training<Model> graph(model, *optimizer, of_stage);
      const graph::CompiledStep& plan = graph.compile(x, y).plan();
      int64_t parameters = 0, bytes = plan.arena_bytes(), blocks = 0;
      for (const Tensor& parameter : model.parameters())
        parameters += parameter.numel() * static_cast<int64_t>(sizeof(float));
      for (const Tensor& capture : plan.captures()) {
        const auto held = static_cast<int64_t>(capture.meta().local_bytes());
        bytes += held;
        blocks += Storage::block_bytes(held);
      }
      const std::string where = str("rank ", env::rank(), ", stage ", stage);
      const int64_t kept = memory_stats().bytes_in_use;
      EXPECT_GE(kept - before, blocks) << where;
      EXPECT_LE(kept - before, blocks + 64 * std::ssize(plan.captures())) << where;
      reset_peak_memory_stats();
      graph(x, y);
      graph(x, y);
      EXPECT_EQ(memory_stats().peak_bytes_in_use - kept, plan.peak_bytes()) << where;
      if (env::rank() == 0) {
        memory.push_back(static_cast<double>(bytes) / static_cast<double>(parameters));
      }
    }
  });
  unsetenv("FLOW_NUM_THREADS");
  return memory;
}

const Task<models::Mlp> kLargeMlp{[] {
                                    return models::Mlp({256, 256, 256, 256, 256, 256, 10});
                                  },
                                  [](const TensorOptions& o) {
                                    return randn({16, 256}, o);
                                  },
                                  {16},
                                  10};
const Task<models::Gpt> kLargeGpt{
    [] {
      return models::Gpt(
          {.vocab_size = 64, .block_size = 8, .n_layer = 4, .n_head = 2, .n_embd = 64});
    },
    [](TensorOptions o) {
      o.dtype = int64;
      return randint(0, 64, {8, 8}, o);
    },
    {8, 8},
    64};

// Parameters, gradients and the two tensors of Adam's state on four ranks; activations and the
// parameters that are whole for the moment are what comes on top.
constexpr std::array<double, 4> kPredicted{4, 2 + 2.0 / 4, 1 + 3.0 / 4, 4.0 / 4};

TEST(ZeroMemory, FallsByStageAsPredicted) {
  const std::array<double, 4> of_mlp{4.20, 2.72, 1.95, 1.20}, of_gpt{4.08, 2.59, 1.95, 1.20};
  const std::vector<double> mlp = memory_by_stage(kLargeMlp, {});
  const std::vector<double> gpt = memory_by_stage(kLargeGpt, {});
  for (size_t stage = 0; stage < 4; ++stage) {
    // The numbers of docs/graph.md.
    EXPECT_NEAR(mlp[stage], of_mlp[stage], 0.005) << "stage " << stage;
    EXPECT_NEAR(gpt[stage], of_gpt[stage], 0.005) << "stage " << stage;
    for (const double got : {mlp[stage], gpt[stage]}) {
      EXPECT_GE(got, kPredicted[stage]) << "stage " << stage;
      EXPECT_LE(got, kPredicted[stage] + 0.3) << "stage " << stage;
    }
  }
}

TEST(ZeroMemory, MicroBatchesKeepPartsOnlyUnlessItIsOncePerStep) {
  const How in_parts{.parts = 2}, once{.zero = {.once_per_step = true}, .parts = 2};
  const std::vector<double> each = memory_by_stage(kLargeMlp, in_parts);
  const std::vector<double> kept = memory_by_stage(kLargeMlp, once);
  EXPECT_LT(each[2], each[1] - 0.5) << "whole gradients are not kept";
  EXPECT_LT(each[3], each[2] - 0.7) << "nor are parameters";
  EXPECT_GT(kept[2], each[2] + 0.5);
  EXPECT_GT(kept[3], each[3] + 1.2);
}

}  // namespace
}  // namespace flow
