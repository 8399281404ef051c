// Random models, stages, placements, layouts, schedules and numbers of micro-batches against one
// rank that runs the micro-batches one after another.
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/tensor_meta.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "pipeline/batch_cut.h"
#include "pipeline/micro_batch.h"
#include "tests/support/training_layouts.h"
#include "tests/support/training_run.h"

namespace flow {
namespace {

constexpr int64_t kWidth = 4;
constexpr int kSteps = 2;

enum class Kind : uint8_t { kLinear, kLayerNorm, kBatchNorm, kResidual, kGate, kTied, kMoment };
constexpr int kNumKinds = 7;

struct Layer : nn::Module<Layer> {
  Kind kind = Kind::kLinear;
  nn::Linear linear{kWidth, kWidth};
  nn::LayerNorm layer_norm{{kWidth}};
  nn::BatchNorm1d batch_norm{kWidth};
  Tensor tied;  // the first layer's weight

  explicit Layer(Kind k) : kind(k) {
    if (kind == Kind::kLayerNorm) {
      register_module("norm", layer_norm);
    } else if (kind == Kind::kBatchNorm) {
      register_module("norm", batch_norm);
    } else if (kind != Kind::kTied && kind != Kind::kMoment) {
      register_module("linear", linear);
    }
  }

  Tensor forward(const Tensor& x) {
    switch (kind) {
      case Kind::kLinear:
        return tanh(linear(x));
      case Kind::kLayerNorm:
        return layer_norm(x);
      case Kind::kBatchNorm:
        return batch_norm(x);
      case Kind::kResidual:
        return x + sigmoid(linear(x));
      case Kind::kGate:
        return x * sigmoid(linear(x)) + 0.5;
      case Kind::kTied:
        return tanh(matmul(x, moved_tied(x)));
      case Kind::kMoment:
        return x - mean(x, 1, {.keepdim = true});
    }
    return x;
  }

  Tensor moved_tied(const Tensor& x) const {
    if (!x.is_global()) return tied;
    if (x.placement() == tied.placement()) return tied.to_global({.sbp = kB});
    return tied.to_global({.placement = x.placement(), .sbp = kB});
  }
};

// Draws what a case is.
class Case {
 public:
  explicit Case(uint64_t seed) : random_(seed) {
    const int64_t num_layers = 2 + draw(4);
    layers_.push_back(draw(2) == 0 ? Kind::kLinear : Kind::kResidual);
    for (int64_t i = 1; i < num_layers; ++i)
      layers_.push_back(static_cast<Kind>(draw(kNumKinds)));
    choose_schedule(num_layers);
    ranks_ = 1 + draw(4);
    has_split_data_ = draw(2) == 0;
    for (int64_t s = 0; s < num_stages_; ++s) {
      // Labels are cut where inputs are.
      const bool is_alike = has_split_data_ && s > 0 && s + 1 == num_stages_;
      choose_placement(is_alike ? placements_[0].num_ranks()
                                : 1 + draw(std::min<int64_t>(ranks_, 3)));
    }
    uses_sum_ = draw(3) == 0;
    recomputes_ = draw(3) == 0;
    momentum_ = draw(2) == 0 ? 0.0 : 0.9;
    zero_stage_ = draw(4);
    once_per_step_ = draw(2) == 0;
    // Enough for two samples of each shard in each part.
    batch_ = 2 * 4 * parts_ + draw(4);
  }

  std::string name() const {
    std::string text = "layers";
    for (const Kind kind : layers_)
      text += str(' ', static_cast<int>(kind));
    text += str("; ", num_stages_, " stages, ", parts_, " parts of ", batch_, ", ",
                to_string(schedule_), has_split_data_ ? ", S(0)" : ", B",
                recomputes_ ? ", recompute" : "", uses_sum_ ? ", sum" : "", ", zero ", zero_stage_,
                once_per_step_ ? " once" : "", "; on");
    for (size_t s = 0; s < placements_.size(); ++s)
      text += str(' ', placements_[s], has_split_weights_[s] ? " rows" : "");
    return text;
  }

  int ranks() const { return static_cast<int>(ranks_); }

  // By the samples that micro-batches have.
  TrainingRun train_in_turn(const pipeline::BatchCut& cut) const;
  TrainingRun train(pipeline::BatchCut& cut) const;

 private:
  friend struct Step;

  struct Net : nn::Module<Net> {
    nn::ModuleList<Layer> layers;

    explicit Net(const std::vector<Kind>& kinds) {
      for (const Kind kind : kinds)
        layers.push_back(Layer(kind));
      register_module("layers", layers);
      to(float64);
      for (Layer& layer : layers)
        layer.tied = layers[0].linear.weight;
    }

    Tensor forward(Tensor x) {
      for (Layer& layer : layers)
        x = layer(x);
      return x;
    }
  };

  int64_t draw(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
  }

  void choose_schedule(int64_t num_layers) {
    using namespace pipeline;
    parts_ = 1 + draw(4);
    num_stages_ = 1 + draw(num_layers);
    switch (draw(6)) {
      case 0:
        schedule_ = gpipe();
        break;
      case 1:
        schedule_ = zb_h1();
        break;
      case 2:
        if (num_layers < 2) break;
        num_stages_ = num_layers < 4 ? 2 : 2 * (1 + draw(2));
        schedule_ = zb_v();
        break;
      case 3:
        num_stages_ = num_layers < 4 ? 2 : 2 * (1 + draw(2));
        parts_ = num_stages_ / 2 * (1 + draw(2));
        schedule_ = interleaved(2);
        break;
      case 4: {
        // Another order of micro-batches than theirs.
        Schedule schedule = make_schedule(draw(2) == 0 ? gpipe() : zb_h1(), num_stages_, parts_);
        std::string text;
        for (const auto& worker : schedule.actions) {
          for (Action action : worker) {
            action.micro_batch = (action.micro_batch + 1) % parts_;
            text += to_string(action) + ' ';
          }
          text.back() = '\n';
        }
        schedule_ = schedule_table(text);
        break;
      }
      default:
        schedule_ = one_f_one_b();
    }
  }

  void choose_placement(int64_t size) {
    const int64_t first = draw(ranks_ - size + 1);
    std::vector<int64_t> ranks;
    for (int64_t r = 0; r < size; ++r)
      ranks.push_back(first + r);
    placements_.emplace_back("cpu", ranks);
    has_split_weights_.push_back(draw(3) == 0);
  }

  void lay_out(Net& net) const;

  int64_t stage_of(int64_t layer) const {
    return layer * num_stages_ / static_cast<int64_t>(layers_.size());
  }

  Tensor loss_of(const Tensor& out, const Tensor& y) const {
    const Tensor loss = cross_entropy(out, y, {.reduction = "sum"});
    return uses_sum_ ? loss * 0.1 : loss / static_cast<double>(batch_);
  }

  std::mt19937_64 random_;
  std::vector<Kind> layers_;
  int64_t num_stages_ = 1, parts_ = 1, ranks_ = 1, batch_ = 1;
  pipeline::ScheduleRule schedule_;
  std::vector<Placement> placements_;
  std::vector<bool> has_split_weights_;
  bool has_split_data_ = false, uses_sum_ = false, recomputes_ = false;
  double momentum_ = 0;
  int64_t zero_stage_ = 0;
  bool once_per_step_ = false;
};

void Case::lay_out(Net& net) const {
  net.to_global(Placement("cpu", {0}), kB);  // ranks have drawn weights of their own
  for (int64_t i = 0; i < net.layers.size(); ++i) {
    const auto stage = static_cast<size_t>(stage_of(i));
    const Kind kind = net.layers[i].kind;
    const bool is_split =
        has_split_weights_[stage] && kind != Kind::kBatchNorm && kind != Kind::kLayerNorm;
    net.layers[i].to_global(placements_[stage], is_split ? kS0 : kB);
    nn::graph_module(net.layers[i]).set_stage(static_cast<int64_t>(stage), placements_[stage]);
  }
  for (Layer& layer : net.layers)
    layer.tied = net.layers[0].linear.weight;
}

Tensor rows_in(const std::vector<Range>& ranges) {
  std::vector<int64_t> rows;
  for (const Range& range : ranges) {
    for (int64_t i = 0; i < range.size; ++i)
      rows.push_back(range.begin + i);
  }
  return tensor(rows, {static_cast<int64_t>(rows.size())}, {.dtype = int64});
}

TrainingRun Case::train_in_turn(const pipeline::BatchCut& cut) const {
  manual_seed(3);
  Net net(layers_);
  optim::SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = momentum_});
  TrainingRun run;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor x = randn({batch_, kWidth}, {.dtype = float64});
    const Tensor y = randint(0, kWidth, {batch_}, {.dtype = int64});
    optimizer.zero_grad();
    double total = 0;
    for (int64_t m = 0; m < parts_; ++m) {
      const Tensor rows = rows_in(cut.samples_of(m));
      const Tensor loss = loss_of(net(index_select(x, 0, rows)), index_select(y, 0, rows));
      loss.backward();
      total += loss.item<double>();
    }
    nn::utils::clip_grad_norm_(net.parameters(), 0.5);
    optimizer.step();
    run.losses.push_back(total);
  }
  run.read_weights(net);
  return run;
}

struct Step : nn::Graph<Step> {
  const Case& task;
  Case::Net net;

  Step(const Case& c, Case::Net n, optim::Optimizer& optimizer) : task(c), net(n) {
    add_optimizer(optimizer, {.clip_grad_norm = 0.5});
    config().set_micro_batches(c.parts_).set_schedule(c.schedule_);
    if (c.recomputes_) config().enable_recompute();
    config().enable_zero({.stage = c.zero_stage_, .once_per_step = c.once_per_step_});
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = task.loss_of(net(x), y);
    loss.backward();
    return loss;
  }
};

TrainingRun Case::train(pipeline::BatchCut& cut) const {
  manual_seed(3);
  Net net(layers_);
  lay_out(net);
  optim::SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = momentum_});
  Step graph(*this, net, optimizer);
  TrainingRun run;
  const NdSbp data = has_split_data_ ? kS0 : kB;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor x =
        randn({batch_, kWidth}, {.dtype = float64, .placement = placements_.front(), .sbp = data});
    const Tensor y =
        randint(0, kWidth, {batch_}, {.dtype = int64, .placement = placements_.back(), .sbp = kB});
    run.losses.push_back(graph(x, y).item<double>());
    const graph::Graph& traced = graph.compile(x, y).plan().graph();
    cut = pipeline::plan_micro_batches(traced, parts_, traced.inputs.size() - 2).batch;
  }
  run.read_weights(net);
  return run;
}

TEST(PipelineFuzz, RandomPipelinesTrainAsOneRankDoes) {
  const char* seed = std::getenv("FLOW_TEST_SEED");
  const char* cases = std::getenv("FLOW_TEST_CASES");
  const uint64_t first = seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10) * 100000;
  const int count = cases == nullptr ? 40 : std::atoi(cases);
  for (int i = 0; i < count; ++i) {
    const Case task(first + static_cast<uint64_t>(i));
    const std::string what = str("case ", first + static_cast<uint64_t>(i), ": ", task.name());
    try {
      pipeline::BatchCut cut;
      std::vector<TrainingRun> runs(static_cast<size_t>(task.ranks()));
      run_ranks(task.ranks(), [&] {
        const int64_t rank = env::rank();
        pipeline::BatchCut own;
        runs[static_cast<size_t>(rank)] = task.train(own);
        if (rank == 0) cut = own;
      });
      const TrainingRun want = task.train_in_turn(cut);
      for (const TrainingRun& run : runs)
        expect_near(run, want, what);
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << " raised " << error.what();
    }
  }
}

}  // namespace
}  // namespace flow
