// Random models, run in every way that the library offers, against one rank that runs them eagerly:
// equal numbers, or a refusal for a reviewed reason.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "graph/passes/pass.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "tests/support/loopback_ranks.h"
#include "tests/support/random_cases.h"
#include "tests/support/recorded_calls.h"
#include "tests/support/training_layouts.h"
#include "tests/support/training_run.h"

namespace flow {
namespace {

constexpr int64_t kWidth = 6;
constexpr int kSteps = 2;

// Returns `value` in the layout of `x`, which may be on another stage.
Tensor beside(const Tensor& x, const Tensor& value) {
  if (!x.is_global() || value.placement() == x.placement()) return value;
  return value.to_global({.placement = x.placement(), .sbp = NdSbp::broadcast(x.sbp().size())});
}

// What a layer works on besides its input.
struct Around {
  Tensor earlier = {};  // an input of an earlier layer
  Tensor shared = {};   // the weight of the first layer
  nn::Linear linear;
  double dropout = 0;
};

// A function of rows (batch, kWidth) that keeps their shape.
struct Kind {
  std::string_view name;
  Tensor (*run)(const Tensor& x, Around& around);
  bool has_weights = false;
  // A row of the result depends on other rows, which may be in another micro-batch.
  bool mixes_rows = false;
};

// Changes a copy of x in place, because x may be an input of the step.
template <class Write>
Tensor written(const Tensor& x, const Write& write) {
  Tensor copy = x.clone();
  write(copy);
  return copy;
}

const std::vector<Kind>& kinds() {
  using A = Around;
  static const std::vector<Kind> all = {
      {"linear", [](const Tensor& x, A& a) { return tanh(a.linear(x)); }, true},
      {"residual", [](const Tensor& x, A& a) { return x + sigmoid(a.linear(x)); }, true},
      {"transposed weight", [](const Tensor& x, A& a) { return matmul(x, a.linear.weight.t()); },
       true},
      {"shared weight", [](const Tensor& x, A& a) { return tanh(matmul(x, beside(x, a.shared))); }},
      {"shared weight transposed",
       [](const Tensor& x, A& a) { return sin(matmul(x, beside(x, a.shared.t()))); }},
      {"gelu", [](const Tensor& x, A&) { return gelu(x); }},
      {"polynomial", [](const Tensor& x, A&) { return 0.5 * x * x - x + 0.25; }},
      {"where", [](const Tensor& x, A&) { return where(gt(x, 0.1), x * 2, x - 1); }},
      {"clamp", [](const Tensor& x, A&) { return clamp(x, {.min = -1.0, .max = 1.5}) + 0.1 * x; }},
      {"earlier input", [](const Tensor& x, A& a) { return x + 0.5 * beside(x, a.earlier); }},
      {"detached", [](const Tensor& x, A&) { return x * x.detach() + x; }},
      {"dropout", [](const Tensor& x, A& a) { return dropout(x, {.p = a.dropout}); }},
      {"softmax", [](const Tensor& x, A&) { return softmax(x, 1) * 3 - x; }},
      {"centred", [](const Tensor& x, A&) { return x - mean(x, 1, {.keepdim = true}); }},
      {"layer_norm", [](const Tensor& x, A&) { return layer_norm(x, {kWidth}); }},
      {"cumsum", [](const Tensor& x, A&) { return cumsum(x, 1) * 0.5; }},
      {"largest column", [](const Tensor& x, A&) { return x - amax(x, 1, {.keepdim = true}); }},
      {"sorted columns", [](const Tensor& x, A&) { return sort(x, {.dim = 1}).values - 0.5 * x; }},
      {"spread", [](const Tensor& x, A&) { return x / (1 + std(x, 1, {.keepdim = true})); }},
      {"logsumexp", [](const Tensor& x, A&) { return x - logsumexp(x, 1, {.keepdim = true}); }},
      {"bilinear",
       [](const Tensor& x, A& a) { return tanh(a.linear(x)) * sigmoid(a.linear(x)) + x; }, true},
      {"convolved columns",
       [](const Tensor& x, A& a) {
         const Tensor kernel = a.linear.weight.narrow(0, 0, 2).reshape({4, 1, 3});
         const Tensor y = conv1d(x.unsqueeze(1), kernel, a.linear.bias.narrow(0, 0, 4),
                                 {.stride = 1, .padding = 1});
         return tanh(y.sum(1)) - 0.5 * x;
       },
       true},
      {"looked up",
       [](const Tensor& x, A& a) {
         return embedding(argmax(x, 1), a.linear.weight) * x + a.linear.bias;
       },
       true},
      {"einsum",
       [](const Tensor& x, A& a) {
         return tanh(einsum("bi,oi->bo", {x, a.linear.weight}) + a.linear.bias);
       },
       true},
      {"rows times matrices",
       [](const Tensor& x, A& a) {
         const Tensor matrices = x.unsqueeze(2) * a.linear.weight;
         return tanh(bmm(x.unsqueeze(1), matrices).squeeze(1) + a.linear.bias);
       },
       true},
      {"recurrent",
       [](const Tensor& x, A& a) {
         const nn::Linear& l = a.linear;
         const Tensor once = tanh(linear(x, l.weight, l.bias));
         return tanh(linear(once, l.weight, l.bias) + x);
       },
       true},
      {"column weights",
       [](const Tensor& x, A& a) { return x * a.linear.weight[2] + a.linear.bias; }, true},
      {"norm with weights",
       [](const Tensor& x, A& a) {
         return rms_norm(x, {kWidth}, {.weight = a.linear.bias + 1}) + sum(a.linear.weight) * 0.01;
       },
       true},
      {"gathered columns",
       [](const Tensor& x, A&) { return gather(x, 1, argsort(x, {.dim = 1})) + x; }},
      {"masked", [](const Tensor& x, A&) { return masked_fill(x, gt(x, 0.5), 0.25) * x; }},
      {"grouped",
       [](const Tensor& x, A&) {
         return group_norm(x.reshape({x.size(0), 2, 3}), 2).reshape({x.size(0), kWidth});
       }},
      {"norms of columns",
       [](const Tensor& x, A&) {
         return x / (0.5 + linalg::vector_norm(x, {.dim = {1}, .keepdim = true}));
       }},
      {"products of columns of a row",
       [](const Tensor& x, A&) { return x + 0.1 * cumprod(tanh(x), 1); }},
      // views
      {"twice transposed", [](const Tensor& x, A&) { return tanh(x.t()).t() + x; }},
      {"heads",
       [](const Tensor& x, A&) {
         return x.reshape({x.size(0), 2, 3}).permute({0, 2, 1}).reshape({x.size(0), kWidth});
       }},
      {"columns of a view",
       [](const Tensor& x, A&) {
         return cat({x.narrow(1, 2, 4), x.narrow(1, 0, 2) * 2}, 1);
       }},
      {"one column", [](const Tensor& x, A&) { return x + x.select(1, 3).unsqueeze(1); }},
      {"columns rolled", [](const Tensor& x, A&) { return roll(x, {2}, {1}); }},
      {"columns flipped", [](const Tensor& x, A&) { return flip(x, {1}) - 0.5 * x; }},
      // positions of rows
      {"first row", [](const Tensor& x, A&) { return x + x[0]; }, false, true},
      {"last row", [](const Tensor& x, A&) { return x - 0.5 * x[-1]; }, false, true},
      {"rows rolled", [](const Tensor& x, A&) { return roll(x, {1}, {0}) + x; }, false, true},
      {"rows flipped", [](const Tensor& x, A&) { return flip(x, {0}) * 0.5 + x; }, false, true},
      {"rows sliced",
       [](const Tensor& x, A&) {
         const int64_t n = x.size(0);
         return cat({x.narrow(0, n / 2, n - n / 2), x.narrow(0, 0, n / 2)}, 0);
       },
       false, true},
      {"tril", [](const Tensor& x, A&) { return tril(x) + x; }},
      {"mean of rows", [](const Tensor& x, A&) { return x - mean(x, 0, {.keepdim = true}); }, false,
       true},
      {"mean of rows twice",
       [](const Tensor& x, A&) {
         const Tensor m = mean(x, 0, {.keepdim = true});
         return x - m * m;
       },
       false, true},
      {"products of columns",
       [](const Tensor& x, A&) { return x + tanh(0.05 * matmul(x, matmul(x.t(), x))); }, false,
       true},
      {"attention of heads",
       [](const Tensor& x, A&) {
         const Tensor heads = x.reshape({x.size(0), 2, 3}).transpose(0, 1);
         const Tensor y = scaled_dot_product_attention(heads, heads, heads, {.is_causal = true});
         return y.transpose(0, 1).reshape({x.size(0), kWidth}) - 0.5 * x;
       },
       false, true},
      {"rows picked",
       [](const Tensor& x, A&) {
         TensorOptions options{.dtype = int64};
         if (x.is_global()) {
           options.placement = x.placement();
           options.sbp = NdSbp::broadcast(x.sbp().size());
         }
         const Tensor rows = remainder(arange(x.size(0), options) * 3, x.size(0));
         return index_select(x, 0, rows) - x;
       },
       false, true},
      // writes
      {"column written",
       [](const Tensor& x, A&) {
         return written(x, [](Tensor& c) { c.select(1, 2).fill_(0.5); });
       }},
      {"columns scaled",
       [](const Tensor& x, A&) {
         return written(x, [](Tensor& c) { c.index({Slice(), Slice(1, 4)}).mul_(2); });
       }},
      {"view of a view written",
       [](const Tensor& x, A&) {
         return written(x, [](Tensor& c) { c.t().narrow(0, 1, 3).narrow(0, 1, 1).add_(1); });
       }},
      {"row cleared",
       [](const Tensor& x, A&) { return written(x, [](Tensor& c) { c[0].zero_(); }); }, false,
       true},
      {"rows filled",
       [](const Tensor& x, A&) {
         return written(x, [](Tensor& c) { c.index({Slice(1, 3)}).fill_(1); });
       },
       false, true},
      {"row assigned",
       [](const Tensor& x, A&) { return written(x, [](Tensor& c) { c[1] = c[2] * 2; }); }, false,
       true},
      {"column assigned",
       [](const Tensor& x, A&) {
         return written(x, [&](Tensor& c) { c.select(1, 0).copy_(x.select(1, 5)); });
       }},
      {"in place",
       [](const Tensor& x, A&) { return written(x, [](Tensor& c) { c.add_(1).mul_(0.5); }); }},
  };
  return all;
}

struct Layer : nn::Module<Layer> {
  const Kind* kind;
  Around around;

  Layer(const Kind& k, double dropout)
      : kind(&k), around{.linear = nn::Linear(kWidth, kWidth), .dropout = dropout} {
    if (k.has_weights) {
      register_module("linear", around.linear);
    } else {
      around.linear.requires_grad_(false);  // a member that is not used
    }
  }

  Tensor forward(const Tensor& x, const Tensor& earlier) {
    around.earlier = earlier;
    Tensor y = kind->run(x, around);
    around.earlier = {};
    return y;
  }
};

enum class Loss : uint8_t { kSquares, kClasses, kDistances, kTwo };
enum class Rule : uint8_t { kSgd, kMomentum, kAdam, kAdamW, kRmsProp };

// The model and its training.
struct Model {
  std::vector<const Kind*> layers;
  double dropout = 0;
  Loss loss = Loss::kSquares;
  Rule rule = Rule::kSgd;
  bool has_two_optimizers = false;
  bool clips = false;
  bool has_schedule = false;
  int64_t batch = 1;
};

// A way to run it.
struct Way {
  bool is_compiled = true;
  bool is_exact = false;
  int64_t micro_batches = 1;
  pipeline::ScheduleRule schedule = pipeline::one_f_one_b();
  std::vector<Placement> stages = {};  // none: local tensors
  std::vector<NdSbp> weights = {};     // by stage
  NdSbp data = kB;
  int64_t zero_stage = 0;
  bool resumes = false;  // after the first step, in new objects
  bool recomputes = false;
  bool overlaps_all = false;
  bool receives_early = true;
  std::vector<std::string> disabled_passes = {};
  int transport = 0;  // threads, messages, shared memory

  int64_t ranks() const {
    int64_t most = 0;
    for (const Placement& stage : stages)
      most = std::max(most, *std::max_element(stage.ranks().begin(), stage.ranks().end()));
    return most + 1;
  }
};

struct Net : nn::Module<Net> {
  nn::ModuleList<Layer> layers;

  explicit Net(const Model& model) {
    for (const Kind* kind : model.layers)
      layers.push_back(Layer(*kind, model.dropout));
    register_module("layers", layers);
    to(float64);
    share();
  }

  void share() {
    for (Layer& layer : layers)
      layer.around.shared = layers[0].around.linear.weight;
  }

  // Returns the result and what the layer in the middle got.
  std::array<Tensor, 2> forward(Tensor x) {
    Tensor earlier = x, middle;
    for (int64_t i = 0; i < layers.size(); ++i) {
      const Tensor input = x;
      if (i == layers.size() / 2) middle = x;
      x = layers[i](x, earlier);
      if (i % 2 == 0) earlier = input;
    }
    return {x, middle};
  }
};

Tensor loss_of(const Model& model, const std::array<Tensor, 2>& out, const Tensor& y,
               const Tensor& labels) {
  switch (model.loss) {
    case Loss::kSquares:
      return mse_loss(out[0], y);
    case Loss::kClasses:
      return cross_entropy(out[0], labels);
    case Loss::kDistances:
      return l1_loss(out[0], y, {.reduction = "sum"}) * 0.01;
    case Loss::kTwo:
      return smooth_l1_loss(out[0], y) + 0.1 * beside(out[0], mean(out[1] * out[1]));
  }
  return {};
}

std::shared_ptr<optim::Optimizer> optimizer_of(Rule rule, const std::vector<Tensor>& parameters) {
  switch (rule) {
    case Rule::kSgd:
      return std::make_shared<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.05});
    case Rule::kMomentum:
      return std::make_shared<optim::SGD>(parameters,
                                          optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
    case Rule::kAdam:
      return std::make_shared<optim::Adam>(parameters, optim::AdamOptions{.lr = 0.01});
    case Rule::kAdamW:
      return std::make_shared<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 0.01});
    case Rule::kRmsProp:
      return std::make_shared<optim::RMSprop>(parameters, optim::RMSpropOptions{.lr = 0.01});
  }
  return {};
}

// An optimizer and its schedule, or none.
struct Updates {
  std::shared_ptr<optim::Optimizer> optimizer;
  std::shared_ptr<optim::lr_scheduler::LRScheduler> schedule = {};
};

struct Step : nn::Graph<Step> {
  const Model& model;
  Net net;

  Step(const Model& m, Net n, const std::vector<Updates>& updates, const Way& way)
      : model(m), net(register_module("net", n)) {
    for (const Updates& update : updates) {
      nn::GraphOptimizerOptions options{.lr_scheduler = update.schedule.get()};
      if (m.clips) options.clip_grad_norm = 0.5;
      add_optimizer(*update.optimizer, options);
    }
    config().set_micro_batches(way.micro_batches).set_schedule(way.schedule);
    config().enable_zero({.stage = way.zero_stage});
    if (way.recomputes) config().enable_recompute();
    nn::OverlapOptions overlap = way.overlaps_all ? kOverlapsAll : nn::OverlapOptions();
    overlap.receives_early = way.receives_early;
    config().set_overlap(overlap);
    if (way.is_exact) config().set_passes(nn::exact);
    for (const std::string& pass : way.disabled_passes)
      config().enable_pass(pass, false);
  }

  Tensor build(const Tensor& x, const Tensor& y, const Tensor& labels) {
    Tensor loss = loss_of(model, net(x), y, labels);
    loss.backward();
    return loss;
  }
};

// The layout of weights, and of biases, which have no second dim to split.
nn::SbpPatterns patterns_of(const NdSbp& weights) {
  NdSbp biases = weights;
  for (int64_t axis = 0; axis < biases.size(); ++axis) {
    if (biases[axis] == kS1) biases = biases.with(axis, kB);
  }
  return {{"*weight", weights}, {"*", biases}};
}

void lay_out(Net& net, const Way& way) {
  net.to_global(Placement("cpu", {0}), kB);  // ranks have drawn weights of their own
  for (int64_t i = 0; i < net.layers.size(); ++i) {
    const auto stage =
        static_cast<size_t>(i * static_cast<int64_t>(way.stages.size()) / net.layers.size());
    if (net.layers[i].kind->has_weights) {
      net.layers[i].to_global(way.stages[stage], patterns_of(way.weights[stage]));
    }
    if (way.stages.size() > 1) {
      nn::graph_module(net.layers[i]).set_stage(static_cast<int64_t>(stage), way.stages[stage]);
    }
  }
  net.share();
}

// The objects of a training.
struct Training {
  const Model& model;
  const Way& way;
  Net net;
  std::vector<Updates> updates;
  std::unique_ptr<Step> graph;

  Training(const Model& m, const Way& w) : model(m), way(w), net(m) {
    if (!way.stages.empty()) lay_out(net, way);
    const std::vector<Tensor> parameters = net.parameters();
    const auto middle =
        parameters.begin() +
        static_cast<std::ptrdiff_t>(model.has_two_optimizers ? parameters.size() / 2 : 0);
    if (middle != parameters.begin()) {
      updates.push_back({optimizer_of(Rule::kSgd, {parameters.begin(), middle})});
    }
    updates.push_back({optimizer_of(model.rule, {middle, parameters.end()})});
    if (model.has_schedule) {
      optim::Optimizer& optimizer = *updates.back().optimizer;
      updates.back().schedule = std::make_shared<optim::lr_scheduler::StepLR>(
          optimizer, optim::lr_scheduler::StepLROptions{.step_size = 1, .gamma = 0.5});
    }
    if (way.is_compiled) graph = std::make_unique<Step>(model, net, updates, way);
  }

  // One eager step.
  double step(const Tensor& x, const Tensor& y, const Tensor& labels) {
    for (const Updates& update : updates)
      update.optimizer->zero_grad();
    const Tensor loss = loss_of(model, net(x), y, labels);
    loss.backward();
    for (const Updates& update : updates) {
      if (model.clips) nn::utils::clip_grad_norm_(update.optimizer->parameters(), 0.5);
      update.optimizer->step();
      if (update.schedule != nullptr) update.schedule->step();
    }
    return loss.item<double>();
  }

  // A training that goes on where this one is.
  std::unique_ptr<Training> resumed() const {
    const Generator::State generator = generator_state();
    auto next = std::make_unique<Training>(model, way);
    set_generator_state(generator);
    if (graph != nullptr) {
      next->graph->load_state_dict(graph->state_dict());
      return next;
    }
    next->net.load_state_dict(net.state_dict());
    for (size_t i = 0; i < updates.size(); ++i) {
      next->updates[i].optimizer->load_state_dict(updates[i].optimizer->state_dict());
      if (updates[i].schedule != nullptr) {
        next->updates[i].schedule->load_state_dict(updates[i].schedule->state_dict());
      }
    }
    return next;
  }
};

// Adds what the rank does together with others in the runs of a graph to `recorded`, if it is not
// null.
TrainingRun train(const Model& model, const Way& way,
                  std::vector<BytesOfCollectives>* recorded = nullptr) {
  manual_seed(5);
  auto training = std::make_unique<Training>(model, way);
  TensorOptions first{.dtype = float64}, last = first;
  if (!way.stages.empty()) {
    first.placement = way.stages.front();
    last.placement = way.stages.back();
    first.sbp = last.sbp = way.data;
  }
  TensorOptions classes = last;
  classes.dtype = int64;
  TrainingRun run;
  for (int step = 0; step < kSteps; ++step) {
    if (way.resumes && step == 1) training = training->resumed();
    const Tensor x = randn({model.batch, kWidth}, first), y = randn({model.batch, kWidth}, last);
    const Tensor labels = randint(0, kWidth, {model.batch}, classes);
    if (!way.is_compiled) {
      run.losses.push_back(training->step(x, y, labels));
      continue;
    }
    Step& graph = *training->graph;
    if (recorded == nullptr) {
      run.losses.push_back(graph(x, y, labels).item<double>());
      continue;
    }
    const graph::CompiledStep& plan = graph.compile(x, y, labels).plan();
    take_recorded_calls();
    const Tensor loss = graph(x, y, labels);
    recorded->push_back(expect_as_certified(plan, take_recorded_calls(), "graph"));
    run.losses.push_back(loss.item<double>());
  }
  run.read_weights(training->net);
  return run;
}

// Draws models and ways.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  Model model() {
    Model model;
    model.layers.push_back(&kinds()[static_cast<size_t>(below(2))]);  // has a weight to share
    // Many micro-batches of models that mix rows are refused.
    const bool may_mix = one_in(2);
    const auto left = static_cast<size_t>(4 + below(3));
    while (model.layers.size() < left) {
      const Kind& kind = pick(kinds());
      if (may_mix || !kind.mixes_rows) model.layers.push_back(&kind);
    }
    model.dropout = 0.25;
    model.loss = static_cast<Loss>(below(4));
    model.rule = static_cast<Rule>(below(5));
    model.has_two_optimizers = one_in(4);
    model.clips = one_in(2);
    model.has_schedule = one_in(3);
    model.batch = 10 + below(7);
    return model;
  }

  // Eager on several ranks, a graph on one, in micro-batches, on several, and two pipelines.
  std::vector<Way> ways() {
    std::vector<Way> ways;
    ways.push_back({.is_compiled = false});
    lay_out_on_one_stage(ways.back());
    ways.push_back({.is_exact = true});
    ways.push_back({.micro_batches = some_parts(), .recomputes = one_in(3)});
    ways.push_back({.micro_batches = one_in(2) ? 1 : some_parts(), .recomputes = one_in(4)});
    lay_out_on_one_stage(ways.back());
    ways.back().zero_stage = below(4);
    for (int i = 0; i < 2; ++i) {
      ways.push_back({.recomputes = one_in(3)});
      lay_out_on_stages(ways.back());
    }
    for (Way& way : ways) {
      if (one_in(2)) disable_passes(way);
      way.transport = one_in(3) ? static_cast<int>(1 + below(2)) : 0;
      way.overlaps_all = one_in(2);
    }
    for (Way& way : ways) {
      way.receives_early = one_in(2);
      way.resumes = one_in(3);
    }
    return ways;
  }

 private:
  int64_t below(int64_t limit) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit));
  }

  bool one_in(int64_t n) { return below(n) == 0; }

  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(below(static_cast<int64_t>(from.size())))];
  }

  int64_t some_parts() { return pick(std::vector<int64_t>{2, 3, 5}); }

  void disable_passes(Way& way) {
    for (const graph::Pass& pass : graph::optimizing_passes()) {
      if (one_in(3)) way.disabled_passes.push_back(pass.name);
    }
  }

  // Data parallel or tensor parallel along each axis of the placement.
  void draw_layouts(Way& way, int64_t axes) {
    std::vector<Sbp> data, weights;
    for (int64_t axis = 0; axis < axes; ++axis) {
      data.push_back(one_in(2) ? kS0 : kB);
      weights.push_back(data.back() == kS0 ? kB : pick(std::vector<Sbp>{kB, kS0, kS1}));
    }
    way.data = NdSbp(data);
    way.weights.assign(way.stages.size(), NdSbp(weights));
  }

  void lay_out_on_one_stage(Way& way) {
    way.stages = {pick(std::vector<Placement>{kPair, kThree, kGrid})};
    draw_layouts(way, way.stages[0].num_axes());
  }

  void lay_out_on_stages(Way& way) {
    const bool has_grids = one_in(5);
    const int64_t num_workers = has_grids ? 2 : 2 + below(2), width = has_grids ? 4 : 1 + below(2);
    std::vector<Placement> workers;
    for (int64_t worker = 0; worker < num_workers; ++worker) {
      std::vector<int64_t> ranks;
      for (int64_t i = 0; i < width; ++i)
        ranks.push_back(worker * width + i);
      workers.emplace_back("cpu", ranks);
      if (has_grids) {
        workers.back() = Placement("cpu", {{ranks[0], ranks[1]}, {ranks[2], ranks[3]}});
      }
    }
    way.stages = workers;
    way.micro_batches = pick(std::vector<int64_t>{1, 2, 3, 5});
    switch (below(5)) {
      case 0:
        way.schedule = pipeline::gpipe();
        break;
      case 1:
        way.schedule = pipeline::zb_h1();
        break;
      case 2:  // each of two workers has two stages
        way.stages = {workers[0], workers[1], workers[0], workers[1]};
        way.schedule = pipeline::interleaved(2);
        way.micro_batches = 2 * (1 + below(2));
        break;
      case 3:
        way.stages = {workers[0], workers[1], workers[1], workers[0]};
        way.schedule = pipeline::zb_v();
        break;
      default:
        way.schedule = pipeline::one_f_one_b();
    }
    if (width == 1) {
      way.weights.assign(way.stages.size(), kB);
    } else {
      draw_layouts(way, workers[0].num_axes());
    }
    way.zero_stage = below(4);
  }

  std::mt19937_64 random_;
};

std::string describe(const Model& model, const Way& way) {
  std::string text;
  for (const Kind* kind : model.layers)
    text += str(text.empty() ? "" : ", ", kind->name);
  text +=
      str("; loss ", static_cast<int>(model.loss), ", rule ", static_cast<int>(model.rule),
          model.has_two_optimizers ? ", two optimizers" : "", model.clips ? ", clips" : "",
          model.has_schedule ? ", a schedule" : "", "; ", model.batch, " rows; ",
          way.is_compiled ? "graph" : "eager", way.is_exact ? " exact" : "", ", ",
          way.micro_batches, " micro-batches, ", to_string(way.schedule), ", zero ", way.zero_stage,
          way.recomputes ? ", recompute" : "", way.resumes ? ", resumes" : "",
          way.overlaps_all ? ", all overlaps" : "", way.receives_early ? ", early receives" : "",
          ", transport ", way.transport, "; data ", way.data);
  for (size_t i = 0; i < way.stages.size(); ++i)
    text += str(i == 0 ? " on " : ", ", way.stages[i], ' ', way.weights[i]);
  for (const std::string& pass : way.disabled_passes)
    text += str(", without ", pass);
  return text;
}

// Why micro-batches of a model that mixes rows may be refused.
constexpr std::array<std::string_view, 2> kReasons = {
    "needs a sum over all micro-batches while they run, and that depends on more than inputs",
    "has no rule for inputs split into micro-batches",
};

bool may_be_refused(const Model& model, const Way& way, const std::string& refusal) {
  const bool mixes_rows = std::any_of(model.layers.begin(), model.layers.end(),
                                      [](const Kind* kind) { return kind->mixes_rows; });
  return mixes_rows && way.micro_batches > 1 &&
         std::any_of(kReasons.begin(), kReasons.end(), [&](std::string_view reason) {
           return refusal.find(reason) != std::string::npos;
         });
}

void run_on(const Way& way, const std::function<void()>& body) {
  if (way.transport == 1) return run_loopback_ranks(way.ranks(), body);
  if (way.transport == 2) return run_shared_memory_ranks(way.ranks(), body);
  run_ranks(static_cast<int>(way.ranks()), body);
}

// Returns the refusal, or nothing if the way gives what one rank gives. Adds the collectives whose
// bytes were compared with the certificate's.
std::string check(const Model& model, const Way& way, const TrainingRun& want,
                  const std::string& what, int& num_compared) {
  try {
    const auto ranks = static_cast<size_t>(way.ranks());
    std::vector<TrainingRun> runs(ranks);
    std::vector<std::vector<BytesOfCollectives>> recorded(ranks);
    run_on(way, [&] {
      const auto rank = static_cast<size_t>(env::rank());
      record_calls();
      runs[rank] = train(model, way, way.stages.empty() ? nullptr : &recorded[rank]);
    });
    for (const TrainingRun& run : runs)
      expect_near(run, want, what);
    for (size_t step = 0; step < recorded[0].size(); ++step) {
      std::vector<BytesOfCollectives> of_step;
      for (const std::vector<BytesOfCollectives>& rank : recorded)
        of_step.push_back(rank[step]);
      num_compared += expect_stated_bytes(of_step, what);
    }
  } catch (const Unsupported& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << " raised " << error.what();
  }
  return "";
}

// Models are small, so that many can run; their tensors are fused nevertheless.
struct ModelFuzz : testing::Test {
  void SetUp() override { setenv("FLOW_FUSE_LEAST_ELEMENTS", "1", 1); }

  void TearDown() override { unsetenv("FLOW_FUSE_LEAST_ELEMENTS"); }
};

TEST_F(ModelFuzz, EveryWayToRunARandomModelEqualsOneRankOrSaysWhyNot) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kCases = 60;  // each takes ten times as long
#else
  constexpr int kCases = 300;
#endif
  const int count = num_cases(kCases);
  const uint64_t first = first_case();
  print_cases();
  int num_ways = 0, num_refused = 0, num_compared = 0;
  for (uint64_t number = first; number < first + static_cast<uint64_t>(count); ++number) {
    Draw draw(number);
    const Model model = draw.model();
    const TrainingRun want = train(model, {.is_compiled = false});
    for (const Way& way : draw.ways()) {
      const std::string what = str("case ", number, ": ", describe(model, way));
      const std::string refusal = check(model, way, want, what, num_compared);
      ++num_ways;
      if (refusal.empty()) continue;
      ++num_refused;
      EXPECT_TRUE(may_be_refused(model, way, refusal)) << what << " was refused: " << refusal;
    }
  }
  std::cout << num_refused << " of " << num_ways << " ways were refused; the bytes of "
            << num_compared << " collectives were compared\n";
  if (count >= 40) {
    EXPECT_GE(num_compared, count);
  }
}

}  // namespace
}  // namespace flow
