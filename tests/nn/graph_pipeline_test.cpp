// Pipelines: stages × schedules × micro-batches give what one rank gives.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"

namespace flow {
namespace {

const Sbp kS0 = sbp::split(0);
const Sbp kS1 = sbp::split(1);
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

template <class Model>
struct Training : nn::Graph<Training<Model>> {
  Model model;

  Training(Model m, optim::Optimizer& optimizer, int64_t parts,
           const pipeline::ScheduleRule& schedule, bool recomputes)
      : model(m) {
    this->add_optimizer(optimizer, {.clip_grad_norm = 0.5});
    this->config().set_micro_batches(parts).set_schedule(schedule);
    (void)recomputes;
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    const Tensor out = model(x);
    Tensor loss = cross_entropy(out.reshape({-1, out.size(-1)}), y.flatten());
    loss.backward();
    return loss;
  }
};

struct How {
  int64_t parts = 1;
  pipeline::ScheduleRule schedule = pipeline::one_f_one_b();
  bool recomputes = false;
};

struct Run {
  std::vector<double> losses;
  std::vector<std::pair<std::string, std::vector<double>>> weights;
  std::string summary;
};

template <class Model>
struct Task {
  std::function<Model()> make_model;
  std::function<Tensor(const TensorOptions& options)> make_input;
  Shape labels;
  int64_t classes;
};

template <class Model>
Run train(const Task<Model>& task, const Layout<Model>& layout, const How& how) {
  manual_seed(11);
  Model model = task.make_model();
  model.to(float64);
  layout.lay_out(model);
  optim::AdamW optimizer(model.parameters(), {.lr = 0.01});
  Training<Model> graph(model, optimizer, how.parts, how.schedule, how.recomputes);
  Run run;
  for (int step = 0; step < 3; ++step) {
    const Tensor x =
        task.make_input({.dtype = float64, .placement = layout.first, .sbp = layout.data});
    const Tensor y = randint(0, task.classes, task.labels,
                             {.dtype = int64, .placement = layout.last, .sbp = layout.data});
    run.losses.push_back(graph(x, y).template item<double>());
    if (step == 0) run.summary = graph.compile(x, y).summary();
  }
  for (const auto& [name, tensor] : model.state_dict())
    run.weights.emplace_back(name, tensor.template to_vector<double>());
  return run;
}

void expect_near(const Run& got, const Run& want, const std::string& what) {
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], 1e-9) << what << ", step " << i;
  for (size_t i = 0; i < want.weights.size(); ++i) {
    double distance = 0, norm = 0;
    for (size_t j = 0; j < want.weights[i].second.size(); ++j) {
      const double w = want.weights[i].second[j];
      distance += std::pow(got.weights[i].second[j] - w, 2);
      norm += w * w;
    }
    EXPECT_LE(std::sqrt(distance), 1e-9 * std::sqrt(norm)) << what << ", " << want.weights[i].first;
  }
}

template <class Model>
void expect_pipeline_equals_one_rank(const Task<Model>& task, const Layout<Model>& layout,
                                     const std::vector<How>& ways) {
  const Run alone = train(task, {}, {});
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
            model.to_global(k0, kB);  // ranks have drawn weights of their own
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

TEST(Pipeline, StagesOnOneRankEqualThePlainStep) {
  Layout<Layers> local;
  local.lay_out = [](Layers& model) {
    for (int64_t i = 0; i < model.layers.size(); ++i)
      nn::graph_module(model.layers[i]).set_stage(i);
  };
  expect_pipeline_equals_one_rank(layers_task(3), local,
                                  ways({pipeline::gpipe(), pipeline::zb_h1()}));
}

}  // namespace
}  // namespace flow
