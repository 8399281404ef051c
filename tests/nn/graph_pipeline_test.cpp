// Pipelines: stages × schedules × micro-batches give what one rank gives.
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "tests/support/loopback_ranks.h"
#include "tests/support/ranks_fixture.h"
#include "tests/support/stage_list.h"
#include "tests/support/training_run.h"

namespace flow {
namespace {

const Sbp kS0 = sbp::split(0);
const Sbp kB = sbp::broadcast;
const Placement k0("cpu", {0}), k1("cpu", {1}), k2("cpu", {2}), k3("cpu", {3});
const Placement k01("cpu", {0, 1}), k12("cpu", {1, 2}), k23("cpu", {2, 3});

// What a layout does to a model: stages, placements and layouts of parameters.
template <class Model>
struct Layout {
  std::string name = "one rank";
  int ranks = 1;
  std::function<void(Model& model)> lay_out = [](Model&) {};
  Placement first = {}, last = {};  // of inputs and of labels
  NdSbp data = {};
};

struct How {
  int64_t parts = 1;
  pipeline::ScheduleRule schedule = pipeline::one_f_one_b();
  bool recomputes = false;
  bool zero = false;
  bool amp = false;
  nn::OverlapOptions overlap = {};
};

template <class Model>
struct Training : nn::Graph<Training<Model>> {
  Model model;
  nn::CrossEntropyLoss loss_fn;

  Training(Model m, optim::Optimizer& optimizer, const How& how) : model(m) {
    this->add_optimizer(optimizer, {.clip_grad_norm = 0.5});
    this->config().set_micro_batches(how.parts).set_schedule(how.schedule);
    if (how.recomputes) this->config().enable_recompute();
    if (how.zero) this->config().enable_zero({.stage = 1});
    if (how.amp) this->config().enable_amp(bfloat16);
    this->config().set_overlap(how.overlap);
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

template <class Model>
TrainingRun train(const Task<Model>& task, const Layout<Model>& layout, const How& how,
                  DType dtype = float64) {
  manual_seed(11);
  Model model = task.make_model();
  model.to(dtype);
  layout.lay_out(model);
  optim::AdamW optimizer(model.parameters(), {.lr = 0.01});
  Training<Model> graph(model, optimizer, how);
  TrainingRun run;
  for (int step = 0; step < 3; ++step) {
    const Tensor x =
        task.make_input({.dtype = dtype, .placement = layout.first, .sbp = layout.data});
    const Tensor y = randint(0, task.classes, task.labels,
                             {.dtype = int64, .placement = layout.last, .sbp = layout.data});
    run.losses.push_back(graph(x, y).to(float64).template item<double>());
  }
  run.read_weights(model);
  return run;
}

template <class Model>
void expect_pipeline_equals_one_rank(const Task<Model>& task, const Layout<Model>& layout,
                                     const std::vector<How>& ways) {
  const TrainingRun alone = train(task, {}, {});
  EXPECT_NE(alone.losses.front(), alone.losses.back());
  for (const How& how : ways) {
    const std::string what = str(layout.name, ", ", how.parts, " micro-batches, ",
                                 to_string(how.schedule), how.recomputes ? ", recompute" : "");
    run_ranks(layout.ranks, [&] { expect_near(train(task, layout, how), alone, what); });
  }
}

std::vector<How> ways(const std::vector<pipeline::ScheduleRule>& schedules) {
  std::vector<How> all;
  for (const pipeline::ScheduleRule& schedule : schedules) {
    for (const int64_t parts : {1, 3, 4})
      all.push_back({parts, schedule});
  }
  return all;
}

// ---- a network of as many stages as layers

struct Layers : nn::Module<Layers> {
  nn::ModuleList<nn::Linear> layers;

  explicit Layers(int64_t count) : layers(register_module("layers", make(count))) {}

  Tensor forward(Tensor x) {
    for (int64_t i = 0; i < layers.size(); ++i)
      x = i + 1 < layers.size() ? tanh(layers[i](x)) : layers[i](x);
    return x;
  }

  static nn::ModuleList<nn::Linear> make(int64_t count) {
    nn::ModuleList<nn::Linear> list;
    for (int64_t i = 0; i < count; ++i)
      list.push_back(nn::Linear(6, 6));
    return list;
  }
};

Task<Layers> layers_task(int64_t count) {
  return {[=] { return Layers(count); },
          [](const TensorOptions& o) {
            return randn({8, 6}, o);
          },
          {8},
          6};
}

// Stage i on the i-th of these placements.
Layout<Layers> stages_on(const std::string& name, int ranks, std::vector<Placement> placements,
                         const NdSbp& data, const NdSbp& weights = kB) {
  return {name,
          ranks,
          [=](Layers& model) {
            for (int64_t i = 0; i < model.layers.size(); ++i) {
              const Placement& placement = placements[static_cast<size_t>(i)];
              model.layers[i].to_global(placement, weights);
              nn::graph_module(model.layers[i]).set_stage(i, placement);
            }
          },
          placements.front(),
          placements.back(),
          data};
}

TEST(Pipeline, TwoStagesEqualOneRank) {
  expect_pipeline_equals_one_rank(
      layers_task(2), stages_on("pp2", 2, {k0, k1}, kB),
      ways({pipeline::gpipe(), pipeline::one_f_one_b(), pipeline::zb_h1()}));
}

TEST(Pipeline, FourStagesEqualOneRank) {
  expect_pipeline_equals_one_rank(
      layers_task(4), stages_on("pp4", 4, {k0, k1, k2, k3}, kB),
      ways({pipeline::gpipe(), pipeline::one_f_one_b(), pipeline::zb_h1()}));
}

TEST(Pipeline, SeveralStagesOfAWorkerEqualOneRank) {
  expect_pipeline_equals_one_rank(layers_task(4), stages_on("pp2 x 2", 2, {k0, k1, k0, k1}, kB),
                                  {{4, pipeline::interleaved(2)}, {8, pipeline::interleaved(2)}});
  expect_pipeline_equals_one_rank(layers_task(4), stages_on("pp2 v", 2, {k0, k1, k1, k0}, kB),
                                  ways({pipeline::zb_v()}));
}

TEST(Pipeline, ATableOfTheUsersEqualsOneRank) {
  expect_pipeline_equals_one_rank(
      layers_task(2), stages_on("pp2", 2, {k0, k1}, kB),
      {{2, pipeline::schedule_table("0F1 0F0 0B1 0B0 0W0 0W1\n1F1 1B1 1F0 1W1 1B0 1W0\n")}});
}

TEST(Pipeline, DataParallelStagesEqualOneRank) {
  expect_pipeline_equals_one_rank(
      layers_task(2), stages_on("pp2 x dp2", 4, {k01, k23}, kS0),
      ways({pipeline::gpipe(), pipeline::one_f_one_b(), pipeline::zb_h1()}));
}

TEST(Pipeline, TensorParallelStagesEqualOneRank) {
  expect_pipeline_equals_one_rank(layers_task(2), stages_on("pp2 x tp2", 4, {k01, k23}, kB, kS0),
                                  {{3}, {4, pipeline::zb_h1()}});
}

TEST(Pipeline, StagesOfOtherWidthsEqualOneRank) {
  expect_pipeline_equals_one_rank(layers_task(2), stages_on("dp2 then one", 3, {k01, k2}, kS0),
                                  {{1}, {3}, {4}});
  expect_pipeline_equals_one_rank(layers_task(2), stages_on("one then tp2", 3, {k0, k12}, kB, kS0),
                                  {{1}, {3}, {4}});
}

TEST(Pipeline, StagesThatShareRanksEqualOneRank) {
  expect_pipeline_equals_one_rank(layers_task(3), stages_on("overlapping", 3, {k01, k12, k0}, kB),
                                  {{3}, {4}});
}

TEST(Pipeline, RecomputedStagesEqualOneRank) {
  expect_pipeline_equals_one_rank(layers_task(2), stages_on("pp2", 2, {k0, k1}, kB),
                                  {{1, pipeline::one_f_one_b(), true},
                                   {3, pipeline::one_f_one_b(), true},
                                   {4, pipeline::zb_h1(), true}});
}

TEST(Pipeline, StagesOnOneRankEqualThePlainStep) {
  Layout<Layers> local;
  local.lay_out = [](Layers& model) {
    for (int64_t i = 0; i < model.layers.size(); ++i)
      nn::graph_module(model.layers[i]).set_stage(i);
  };
  expect_pipeline_equals_one_rank(layers_task(3), local,
                                  ways({pipeline::gpipe(), pipeline::zb_h1()}));
}

// ---- values that arrive partial, that mix samples, that are moved after the last stage

struct TwoLayers : nn::Module<TwoLayers> {
  nn::Linear first{6, 6, {.bias = false}};
  nn::Linear second{6, 6, {.bias = false}};
  std::function<Tensor(const Tensor& hidden)> between;

  TwoLayers() {
    register_module("first", first);
    register_module("second", second);
  }

  Tensor forward(const Tensor& x) { return second(between(first(x))); }
};

Task<TwoLayers> two_layers(const std::function<Tensor(const Tensor& hidden)>& between) {
  return {[=] {
            TwoLayers model;
            model.between = between;
            return model;
          },
          [](const TensorOptions& o) {
            return randn({8, 6}, o);
          },
          {8},
          6};
}

Layout<TwoLayers> two_stages(const std::string& name, int ranks, const Placement& first,
                             const Placement& last) {
  return {name,
          ranks,
          [=](TwoLayers& model) {
            model.first.to_global(first, kB);
            model.second.to_global(last, kB);
            nn::graph_module(model.first).set_stage(0, first);
            nn::graph_module(model.second).set_stage(1, last);
          },
          first,
          last,
          kB};
}

TEST(Pipeline, ValuesThatArrivePartialEqualOneRank) {
  const auto task = two_layers([](const Tensor& hidden) {
    if (!hidden.is_global()) return hidden;
    return hidden.to_global({.placement = k12, .sbp = sbp::partial_sum});
  });
  expect_pipeline_equals_one_rank(task, two_stages("one to P on two", 3, k0, k12),
                                  {{1}, {3}, {4, pipeline::zb_h1()}});
  expect_pipeline_equals_one_rank(task, two_stages("two to P on two", 3, k01, k12), {{1}, {3}});
}

// The gradient of the table, which zero-bubble schedules postpone, comes before that of the linear
// layer's input in the step.
struct TableAndLinear : nn::Module<TableAndLinear> {
  nn::Embedding table{register_module("table", nn::Embedding(10, 6))};
  nn::Linear first{register_module("first", nn::Linear(6, 6))};
  nn::Linear second{register_module("second", nn::Linear(6, 5))};

  Tensor forward(const Tensor& tokens) {
    const Tensor hidden = table(tokens) + first(table(tokens));
    const Tensor& weight = second.weight;
    if (!weight.is_global()) return second(relu(hidden));
    return second(relu(hidden.to_global({.placement = weight.placement(), .sbp = kB})));
  }
};

TEST(Pipeline, TablesNextToLinearLayersEqualOneRank) {
  const Task<TableAndLinear> task{[] { return TableAndLinear(); },
                                  [](TensorOptions o) {
                                    o.dtype = int64;
                                    return randint(0, 10, {12}, o);
                                  },
                                  {12},
                                  5};
  const Layout<TableAndLinear> layout{"pp2",
                                      2,
                                      [](TableAndLinear& model) {
                                        model.to_global(k0, kB);
                                        model.second.to_global(k1, kB);
                                        nn::graph_module(model.table).set_stage(0, k0);
                                        nn::graph_module(model.first).set_stage(0, k0);
                                        nn::graph_module(model.second).set_stage(1, k1);
                                      },
                                      k0,
                                      k1,
                                      kB};
  expect_pipeline_equals_one_rank(
      task, layout, {{3}, {3, pipeline::gpipe()}, {3, pipeline::zb_h1()}, {3, pipeline::zb_v()}});
}

// The second stage's gradient of a weight that the first stage computes goes back to the first one.
struct ComputedWeight : nn::Module<ComputedWeight> {
  struct Front : nn::Module<Front> {
    nn::Linear layer{register_module("layer", nn::Linear(6, 6))};

    std::pair<Tensor, Tensor> forward(const Tensor& x) {
      return {tanh(layer(x)), matmul(layer.weight, layer.weight)};
    }
  };

  Front front{register_module("front", Front())};
  nn::Linear back{register_module("back", nn::Linear(6, 6))};

  Tensor forward(const Tensor& x) {
    const auto [hidden, weight] = front(x);
    return linear(back(moved_to(back, hidden, kB)), moved_to(back, weight, kB));
  }
};

TEST(Pipeline, AWeightThatAnEarlierStageComputesEqualsOneRank) {
  const Task<ComputedWeight> task{[] { return ComputedWeight(); },
                                  [](const TensorOptions& o) {
                                    return randn({8, 6}, o);
                                  },
                                  {8},
                                  6};
  for (const Placement& last : {k1, k0}) {
    const auto lay_out = [=](ComputedWeight& model) {
      model.front.to_global(k0, kB);
      model.back.to_global(last, kB);
      nn::graph_module(model.front).set_stage(0, k0);
      nn::graph_module(model.back).set_stage(1, last);
    };
    expect_pipeline_equals_one_rank(task, {"two stages", 2, lay_out, k0, last, kB},
                                    {{3}, {3, pipeline::zb_h1()}, {3, pipeline::zb_v()}});
  }
}

TEST(Pipeline, LossesOfAnEarlierStageEqualOneRank) {
  const auto with_loss = [](TwoLayers& model, const Tensor& x) {
    const Tensor hidden = model.first(x);
    const Tensor out = model.second(model.between(hidden));
    const Tensor loss = mean(hidden * hidden, 1, {.keepdim = true});
    if (!out.is_global()) return out * loss;
    return out * loss.to_global({.placement = out.placement(), .sbp = out.sbp()});
  };

  struct WithLoss : nn::Module<WithLoss> {
    TwoLayers layers{register_module("layers", TwoLayers())};
    std::function<Tensor(TwoLayers&, const Tensor&)> forward_of;

    Tensor forward(const Tensor& x) { return forward_of(layers, x); }
  };

  const auto plain = two_layers([](const Tensor& hidden) { return hidden; });
  const Task<WithLoss> task{[=] {
                              WithLoss model;
                              model.layers.between = [](const Tensor& hidden) { return hidden; };
                              model.forward_of = with_loss;
                              return model;
                            },
                            plain.make_input, plain.labels, plain.classes};
  for (const Placement& last : {k1, k0}) {
    const Layout<TwoLayers> stages = two_stages("two stages", 2, k0, last);
    const Layout<WithLoss> layout{
        "two stages", 2, [=](WithLoss& model) { stages.lay_out(model.layers); }, k0, last, kB};
    expect_pipeline_equals_one_rank(task, layout,
                                    {{1}, {3}, {3, pipeline::gpipe()}, {3, pipeline::zb_h1()}});
  }

  // The first stage sums `hidden` over two ranks for itself and for the second stage, to which one
  // of the two sends it.
  const Placement first("cpu", {{0, 1}, {2, 3}}), last("cpu", {{4, 5}, {6, 7}});
  const auto lay_out = [=](WithLoss& model) {
    model.layers.first.to_global(first, {sbp::split(1), kB});
    model.layers.second.to_global(last, {kB, kB});
    nn::graph_module(model.layers.first).set_stage(0, first);
    nn::graph_module(model.layers.second).set_stage(1, last);
  };
  expect_pipeline_equals_one_rank(task, {"two grids", 8, lay_out, first, last, {kB, kS0}},
                                  {{1}, {3}, {3, pipeline::zb_h1()}});
}

TEST(Pipeline, WritesInPlaceEqualOneRank) {
  const auto task = two_layers([](const Tensor& hidden) {
    const Tensor copy = hidden.clone();
    copy.select(1, 2).fill_(0.5);
    copy.index({Slice(), Slice(3, 5)}).mul_(2);
    return copy;
  });
  expect_pipeline_equals_one_rank(task, two_stages("pp2", 2, k0, k1),
                                  {{1}, {3}, {3, pipeline::gpipe()}, {3, pipeline::zb_h1()}});
}

TEST(Pipeline, OneMicroBatchTakesAnyOp) {
  const auto task = two_layers([](const Tensor& hidden) {
    const Tensor centred = hidden - mean(hidden, 0);
    return softmax(centred, 0) + centred / (abs(hidden).sum() + 1.0);
  });
  for (const auto& schedule : {pipeline::gpipe(), pipeline::one_f_one_b(), pipeline::zb_h1()}) {
    expect_pipeline_equals_one_rank(task, two_stages("pp2", 2, k0, k1), {{1, schedule}});
    expect_pipeline_equals_one_rank(task, two_stages("dp2, dp2", 4, k01, k23), {{1, schedule}});
  }
}

struct Moved : nn::Graph<Moved> {
  TwoLayers model;

  explicit Moved(TwoLayers m) : model(m) { config().set_micro_batches(3); }

  Tensor build(const Tensor& x) {
    const Tensor out = model(x);
    if (!out.is_global()) return out;
    return out.to_global({.placement = k0, .sbp = kB})
        .to_global({.placement = k23, .sbp = kS0})
        .to_global({.placement = k1, .sbp = kB});
  }
};

TEST(Pipeline, ResultsMayBeMovedAfterTheLastStage) {
  const auto run = [](bool is_global) {
    manual_seed(5);
    TwoLayers model;
    model.between = [](const Tensor& hidden) { return tanh(hidden); };
    if (is_global) two_stages("pp2", 4, k0, k1).lay_out(model);
    const TensorOptions options{.placement = is_global ? k0 : Placement(),
                                .sbp = is_global ? NdSbp(kB) : NdSbp()};
    return Moved(model)(randn({7, 6}, options)).to_vector<float>();
  };
  const std::vector<float> want = run(false);
  run_ranks(4, [&] {
    const std::vector<float> got = run(true);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 1e-6) << i;
  });
}

// ---- models

// Sub-modules by name with their stage.
template <class Model>
Layout<Model> named_stages(const std::string& name, int ranks, std::vector<Placement> placements,
                           std::vector<std::pair<std::string, int64_t>> stages,
                           const NdSbp& data = kB) {
  return {name,
          ranks,
          [=](Model& model) {
            for (const auto& [path, stage] : stages) {
              const Placement& placement = placements[static_cast<size_t>(stage)];
              nn::ModuleBase module = model.get_submodule(path);
              module.to_global(placement, kB);
              nn::graph_module(module).set_stage(stage, placement);
            }
          },
          placements.front(),
          placements.back(),
          data};
}

TEST(Pipeline, MlpEqualsOneRank) {
  const Task<models::Mlp> task{[] {
                                 return models::Mlp({7, 10, 9, 4});
                               },
                               [](const TensorOptions& o) {
                                 return randn({8, 7}, o);
                               },
                               {8},
                               4};
  expect_pipeline_equals_one_rank(
      task, named_stages<models::Mlp>("pp3", 3, {k0, k1, k2}, {{"fc1", 0}, {"fc2", 1}, {"fc3", 2}}),
      ways({pipeline::gpipe(), pipeline::one_f_one_b(), pipeline::zb_h1()}));
}

TEST(Pipeline, LenetWithDropoutEqualsOneRank) {
  const Task<models::Lenet> task{[] { return models::Lenet({.dropout = 0.5}); },
                                 [](const TensorOptions& o) {
                                   return randn({8, 1, 28, 28}, o);
                                 },
                                 {8},
                                 4};
  expect_pipeline_equals_one_rank(
      task,
      named_stages<models::Lenet>("pp2", 2, {k0, k1},
                                  {{"conv1", 0}, {"conv2", 0}, {"hidden", 1}, {"outlayer", 1}}),
      {{3}, {4, pipeline::zb_h1()}});
}

constexpr int64_t kVocabulary = 16, kLength = 8;

const Task<models::Gpt> kGpt{[] {
                               return models::Gpt({.vocab_size = kVocabulary,
                                                   .block_size = kLength,
                                                   .n_layer = 2,
                                                   .n_head = 2,
                                                   .n_embd = 16,
                                                   .dropout = 0.1});
                             },
                             [](TensorOptions o) {
                               o.dtype = int64;
                               return randint(0, kVocabulary, {8, kLength}, o);
                             },
                             {8, kLength},
                             kVocabulary};

// The output layer's weights are the embedding's, which lie on the first stage.
Layout<models::Gpt> gpt_stages(const std::string& name, int ranks, const Placement& first,
                               const Placement& last, const NdSbp& data) {
  Layout<models::Gpt> layout{name, ranks, {}, first, first, data};  // labels follow the loss
  layout.lay_out = [=](models::Gpt& model) {
    model.to_global(k0, kB);
    model.to_global(first, kB);
    model.blocks[1].to_global(last, kB);
    model.ln_f.to_global(last, kB);
    nn::graph_module(model.blocks[0]).set_stage(0, first);
    nn::graph_module(model.blocks[1]).set_stage(1, last);
  };
  return layout;
}

TEST(Pipeline, GptWithTiedWeightsEqualsOneRank) {
  expect_pipeline_equals_one_rank(
      kGpt, gpt_stages("pp2", 2, k0, k1, kB),
      ways({pipeline::gpipe(), pipeline::one_f_one_b(), pipeline::zb_h1()}));
  expect_pipeline_equals_one_rank(kGpt, gpt_stages("pp2 x dp2", 4, k01, k23, kS0),
                                  {{3}, {4, pipeline::zb_h1()}});
  expect_pipeline_equals_one_rank(kGpt, gpt_stages("pp2", 2, k0, k1, kB),
                                  {{4, pipeline::one_f_one_b(), true}});
}

// First and last stage lie on one worker, which has the tied weights.
TEST(Pipeline, GptWithTiedWeightsOnAVEqualsOneRank) {
  Task<models::Gpt> task = kGpt;
  task.make_model = [] {
    return models::Gpt({.vocab_size = kVocabulary,
                        .block_size = kLength,
                        .n_layer = 4,
                        .n_head = 2,
                        .n_embd = 16,
                        .dropout = 0.1});
  };
  const auto v_on = [](const std::string& name, int ranks, const Placement& outer,
                       const Placement& inner, const NdSbp& data) {
    Layout<models::Gpt> layout{name, ranks, {}, outer, outer, data};
    layout.lay_out = [=](models::Gpt& model) {
      model.to_global(k0, kB);
      model.to_global(outer, kB);
      for (int64_t i = 0; i < 4; ++i) {
        const Placement& placement = i == 1 || i == 2 ? inner : outer;
        model.blocks[i].to_global(placement, kB);
        nn::graph_module(model.blocks[i]).set_stage(i, placement);
      }
    };
    return layout;
  };
  expect_pipeline_equals_one_rank(task, v_on("pp2 v", 2, k0, k1, kB), ways({pipeline::zb_v()}));
  expect_pipeline_equals_one_rank(task, v_on("pp2 v x dp2", 4, k01, k23, kS0),
                                  {{3, pipeline::zb_v()}, {4, pipeline::zb_v(), true}});
}

TEST(Pipeline, AllOptionsTogetherEqualOneRank) {
  const Layout<models::Gpt> stages = gpt_stages("pp2 x dp2", 4, k01, k23, kS0);
  How how{.parts = 4, .recomputes = true, .zero = true};
  expect_pipeline_equals_one_rank(kGpt, stages, {how});
  how.amp = true;
  const auto alone = train(kGpt, {}, How{.amp = true}, float32);
  run_ranks(stages.ranks, [&] {
    const auto got = train(kGpt, stages, how, float32);
    for (size_t i = 0; i < alone.losses.size(); ++i)
      EXPECT_NEAR(got.losses[i], alone.losses[i], 2e-3) << "products in bfloat16, step " << i;
  });
}

TEST(Pipeline, RanksThatAreProcessesEqualOneRank) {
  const auto alone = train(kGpt, {}, {});
  for (const auto run : {run_loopback_ranks, run_shared_memory_ranks}) {
    run(4, [&] {
      const Layout<models::Gpt> stages = gpt_stages("pp2 x dp2", 4, k01, k23, kS0);
      expect_near(train(kGpt, stages, {4}), alone, "1f1b");
      expect_near(train(kGpt, stages, {3, pipeline::zb_h1()}), alone, "zb-h1");
    });
  }
}

// ---- receives that start early

void expect_same_bits(const TrainingRun& run, const TrainingRun& want, const std::string& what) {
  EXPECT_EQ(run.losses, want.losses) << what;
  EXPECT_EQ(run.weights, want.weights) << what;
}

class EarlyReceives : public RanksFixture {};

INSTANTIATE_TEST_SUITE_P(Ranks, EarlyReceives,
                         testing::Values(run_ranks, run_loopback_ranks, run_shared_memory_ranks));

TEST_P(EarlyReceives, LeaveResultsAsTheyAreBitForBit) {
  const std::vector<pipeline::ScheduleRule> one_each = {
      pipeline::gpipe(), pipeline::one_f_one_b(), pipeline::zb_h1(),
      pipeline::schedule_table("0F0 0F1 0B0 0B1\n1F0 1F1 1B1 1B0\n2F0 2B0 2F1 2B1\n"
                               "3F0 3B0 3F1 3B1\n")};
  const auto compare = [&](const Layout<Layers>& layout, const How& how) {
    const std::string what = str(layout.name, ", ", how.parts, " micro-batches, ",
                                 to_string(how.schedule), ' ', how.schedule.table);
    How late = how;
    late.overlap.receives_early = false;
    run_on_ranks(layout.ranks, [&] {
      const TrainingRun early = train(layers_task(4), layout, how);
      expect_same_bits(early, train(layers_task(4), layout, late), what);
    });
  };
  const Layout<Layers> alone = stages_on("pp4", 4, {k0, k1, k2, k3}, kB);
  const Layout<Layers> pairs = stages_on("pp2 x dp2", 4, {k01, k01, k23, k23}, kS0);
  for (const pipeline::ScheduleRule& schedule : one_each) {
    for (const int64_t parts : {1, 2, 3}) {
      if (schedule.table.empty() || parts == 2) compare(alone, {parts, schedule});
    }
  }
  compare(pairs, {4, pipeline::one_f_one_b(), true});
  compare(stages_on("interleaved", 4, {k01, k23, k01, k23}, kS0), {4, pipeline::interleaved(2)});
  compare(stages_on("v", 2, {k0, k1, k1, k0}, kB), {4, pipeline::zb_v()});
}

// ---- what is known before a run

struct Known {
  std::vector<int64_t> peak_bytes;  // by rank
  std::string summary;
  int64_t num_early = 0;  // receives of rank 0 that start before other work
};

int64_t count_early_receives(const graph::Program& program) {
  int64_t count = 0;
  const graph::Step* last = nullptr;
  for (const graph::BlockRun& run : program.runs) {
    const graph::Step& first = program.steps[program.block(run.block).first_step];
    if (last != nullptr && last->as<graph::ReceiveStep>() != nullptr)
      count += first.as<graph::WaitStep>() == nullptr ? 1 : 0;
    last = &first;
  }
  return count;
}

template <class Model>
Known known_of(const Task<Model>& task, const Layout<Model>& layout, const How& how) {
  Known known;
  run_ranks(layout.ranks, [&] {
    Model model = task.make_model();
    layout.lay_out(model);
    optim::SGD optimizer(model.parameters(), {.lr = 0.01});
    Training<Model> graph(model, optimizer, how);
    const nn::CompiledGraph& compiled =
        graph.compile(task.make_input({.placement = layout.first, .sbp = layout.data}),
                      randint(0, task.classes, task.labels,
                              {.dtype = int64, .placement = layout.last, .sbp = layout.data}));
    if (env::rank() != 0) return;
    known.summary = compiled.summary();
    known.num_early = count_early_receives(compiled.plan().program());
    for (const graph::RankCertificate& rank : compiled.plan().certificate().ranks)
      known.peak_bytes.push_back(rank.peak_bytes);
  });
  return known;
}

// A stage whose activations outweigh its weights: layers of 16 on 64 rows a micro-batch.
nn::Sequential deep_stage() {
  return nn::Sequential(nn::Linear(16, 16), nn::Tanh(), nn::Linear(16, 16), nn::Tanh(),
                        nn::Linear(16, 16), nn::Tanh(), nn::Linear(16, 16));
}

const Task<StageList> kDeep{[] { return StageList(4, deep_stage); },
                            [](const TensorOptions& o) {
                              return randn({512, 16}, o);
                            },
                            {512},
                            16};

const Layout<StageList> kFourStages{
    "pp4", 4, [](StageList& model) {
                                      model.place({k0, k1, k2, k3}); }, k0, k3, kB};

TEST(Pipeline, MemoryFollowsTheSchedule) {
  const Known gpipe = known_of(kDeep, kFourStages, {8, pipeline::gpipe()});
  const Known in_turn = known_of(kDeep, kFourStages, {8, pipeline::one_f_one_b()});
  const Known recomputed = known_of(kDeep, kFourStages, {8, pipeline::gpipe(), true});
  ASSERT_EQ(in_turn.peak_bytes.size(), 4U);
  // Eight micro-batches against four, three, two, one.
  EXPECT_LT(in_turn.peak_bytes[0], 0.65 * static_cast<double>(gpipe.peak_bytes[0]));
  EXPECT_LT(in_turn.peak_bytes[3], 0.35 * static_cast<double>(gpipe.peak_bytes[3]));
  EXPECT_LT(recomputed.peak_bytes[0], 0.5 * static_cast<double>(gpipe.peak_bytes[0]));
}

// A receive that starts an action early takes the memory of its message during that action.
TEST(Pipeline, EarlyReceivesTakeTheMemoryOfOneMessage) {
  constexpr int64_t kMessage = 64 * 16 * 4;
  for (const pipeline::ScheduleRule& schedule : {pipeline::gpipe(), pipeline::one_f_one_b()}) {
    const Known early = known_of(kDeep, kFourStages, {8, schedule});
    const Known late =
        known_of(kDeep, kFourStages,
                 {.parts = 8, .schedule = schedule, .overlap = {.receives_early = false}});
    const Known off = known_of(kDeep, kFourStages,
                               {.parts = 8, .schedule = schedule, .overlap = {.enabled = false}});
    EXPECT_GE(early.num_early, 7) << to_string(schedule);
    EXPECT_EQ(late.num_early, 0);
    EXPECT_EQ(off.num_early, 0);
    for (size_t rank = 0; rank < 4; ++rank) {
      EXPECT_GE(early.peak_bytes[rank], late.peak_bytes[rank]) << rank;
      EXPECT_LE(early.peak_bytes[rank], late.peak_bytes[rank] + kMessage) << rank;
    }
  }
}

TEST(Pipeline, SummaryTellsBubbleMemoryAndEdges) {
  const std::string text = known_of(kDeep, kFourStages, {8, pipeline::one_f_one_b()}).summary;
  for (const char* part :
       {"in 4 stages", "certificate: 4 ranks", "micro-batches: 8 of 512 samples, 4 stages",
        "schedule 1f1b on 4 workers: predicted bubble ", "micro-batches kept 4 3 2 1",
        "from 0F to 1F: (512, 16) float32 from B on cpu:(0) to B on cpu:(1), 4096 bytes",
        "from 3B to 2B", "stage_list.h:"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

// ---- what is refused

TEST(Pipeline, StagesAgainstTheWayOfDataAreRefusedWithTheirLine) {
  Layout<Layers> backwards;
  backwards.lay_out = [](Layers& model) {
    for (int64_t i = 0; i < 3; ++i)
      nn::graph_module(model.layers[i]).set_stage(2 - i);
  };
  try {
    train(layers_task(3), backwards, {2});
    FAIL() << "no error";
  } catch (const Unsupported& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("graph_pipeline_test.cpp:"), std::string::npos) << message;
    EXPECT_NE(message.find("in action 1F needs a value of 2F"), std::string::npos) << message;
  }
}

TEST(Pipeline, ClippedGradientsOfRowsAreRefusedWithAWayOut) {
  struct Rows : nn::Module<Rows> {
    Tensor offset{register_parameter("offset", ones({8, 6}))};

    Tensor forward(const Tensor& x) { return x + offset; }
  };

  struct TwoRows : nn::Module<TwoRows> {
    Rows first{register_module("first", Rows())}, second{register_module("second", Rows())};

    Tensor forward(const Tensor& x) { return second(first(x)); }
  };

  const auto make_input = [](const TensorOptions& o) { return randn({8, 6}, o); };
  Layout<TwoRows> stages;
  stages.lay_out = [](TwoRows& model) {
    nn::graph_module(model.first).set_stage(0);
    nn::graph_module(model.second).set_stage(1);
  };
  try {
    train(Task<TwoRows>{[] { return TwoRows(); }, make_input, {8}, 6}, stages, {1});
    FAIL() << "no error";
  } catch (const Unsupported& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("in action 1B needs a value of 0B"), std::string::npos) << message;
    EXPECT_NE(message.find("give no parameter a row for each sample"), std::string::npos)
        << message;
  }
}

TEST(Pipeline, ATableOfOtherNumbersIsRefused) {
  EXPECT_THROW(train(layers_task(2), {}, {3, pipeline::schedule_table("0F0 0B0\n")}),
               InvalidArgument);
  EXPECT_THROW(train(layers_task(2), {}, {9}), InvalidArgument);  // of 8 samples
}

}  // namespace
}  // namespace flow
