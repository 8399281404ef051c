// Random models, stages, placements, layouts, schedules, numbers of micro-batches and kinds of
// ranks against one rank that runs the micro-batches one after another. The test cuts the batch
// itself.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute_op.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "tests/support/env_number.h"
#include "tests/support/loopback_ranks.h"
#include "tests/support/ranks_fixture.h"
#include "tests/support/recorded_calls.h"
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
  nn::LayerNorm layer_norm{kWidth};
  nn::BatchNorm1d batch_norm{kWidth};
  Tensor tied;  // the first layer's weight

  // The members that this kind does not use are not registered.
  explicit Layer(Kind k) : kind(k) {
    for (nn::ModuleBase* member :
         std::initializer_list<nn::ModuleBase*>{&linear, &layer_norm, &batch_norm})
      member->requires_grad_(false);
    if (kind == Kind::kLayerNorm) {
      register_module("norm", layer_norm);
    } else if (kind == Kind::kBatchNorm) {
      register_module("norm", batch_norm);
    } else if (kind != Kind::kTied && kind != Kind::kMoment) {
      register_module("linear", linear);
    }
    requires_grad_();
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

// What the ranks of a run did together, by step and rank.
using Recorded = std::array<std::vector<BytesOfCollectives>, kSteps>;

// Draws what a case is.
class Case {
 public:
  explicit Case(uint64_t seed) : random_(seed) {
    const int64_t num_layers = 2 + draw(4);
    layers_.push_back(draw(2) == 0 ? Kind::kLinear : Kind::kResidual);
    for (int64_t i = 1; i < num_layers; ++i)
      layers_.push_back(static_cast<Kind>(draw(kNumKinds)));
    choose_schedule(num_layers);
    ranks_ = draw(16) == 0 ? 1 : 2 + draw(3);
    has_split_data_ = draw(2) == 0;
    for (int64_t s = 0; s < num_stages_; ++s) {
      // Labels are cut where inputs are.
      const bool is_alike = has_split_data_ && s > 0 && s + 1 == num_stages_;
      choose_placement(is_alike ? placements_[0].num_ranks() : 0);
    }
    uses_sum_ = draw(3) == 0;
    recomputes_ = draw(3) == 0;
    momentum_ = draw(2) == 0 ? 0.0 : 0.9;
    zero_stage_ = draw(4);
    once_per_step_ = draw(2) == 0;
    // Enough for two samples of each shard in each part.
    batch_ = 2 * 4 * parts_ + draw(4);
    dtype_ = draw(3) == 0 ? float32 : float64;
    uses_adam_ = draw(2) == 0;
    run_ranks_ = std::array<RunRanks, 4>{run_ranks, run_ranks, run_loopback_ranks,
                                         run_shared_memory_ranks}[static_cast<size_t>(draw(4))];
    receives_early_ = draw(3) > 0;
  }

  std::string name() const {
    std::string text = "layers";
    for (const Kind kind : layers_)
      text += str(' ', static_cast<int>(kind));
    text += str("; ", num_stages_, " stages, ", parts_, " parts of ", batch_, ", ",
                to_string(schedule_), has_split_data_ ? ", S(0)" : ", B",
                recomputes_ ? ", recompute" : "", uses_sum_ ? ", sum" : "", ", zero ", zero_stage_,
                once_per_step_ ? " once" : "", ", ", dtype_, uses_adam_ ? ", Adam" : ", SGD",
                run_ranks_ == run_ranks ? "" : ", processes",
                receives_early_ ? ", early receives" : "", "; on");
    for (size_t s = 0; s < placements_.size(); ++s)
      text += str(' ', placements_[s], has_split_weights_[s] ? " rows" : "");
    return text;
  }

  bool has_several_stages_and_parts() const {
    std::set<std::vector<int64_t>> different;
    for (const Placement& placement : placements_)
      different.insert(placement.ranks());
    return different.size() > 1 && parts_ > 1;
  }

  DType dtype() const { return dtype_; }

  bool uses_adam() const { return uses_adam_; }

  // The shards into which the layouts of the inputs divide the batch.
  int64_t num_given_shards() const { return has_split_data_ ? placements_[0].num_ranks() : 1; }

  // Runs the case on its ranks. Returns what each rank got, and the shards of the input that the
  // step shards finest.
  std::vector<TrainingRun> run(Recorded& recorded, int64_t& num_shards) const;

  // Runs the micro-batches on one rank, one after another. The weights first move by at most 1e-7
  // in a direction that depends on `moved`, unless it is 0.
  TrainingRun train_in_turn(int64_t num_shards, DType dtype, int moved) const;

 private:
  friend struct Step;

  struct Net : nn::Module<Net> {
    nn::ModuleList<Layer> layers;

    Net(const std::vector<Kind>& kinds, DType dtype) {
      for (const Kind kind : kinds)
        layers.push_back(Layer(kind));
      register_module("layers", layers);
      to(dtype);
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
    parts_ = draw(16) == 0 ? 1 : 2 + draw(3);
    num_stages_ = draw(16) == 0 ? 1 : 2 + draw(num_layers - 1);
    switch (draw(6)) {
      case 0:
        schedule_ = pipeline::gpipe();
        break;
      case 1:
        schedule_ = pipeline::zb_h1();
        break;
      case 2:
        if (num_layers < 2) break;
        num_stages_ = num_layers < 4 ? 2 : 2 * (1 + draw(2));
        schedule_ = pipeline::zb_v();
        break;
      case 3:
        num_stages_ = num_layers < 4 ? 2 : 2 * (1 + draw(2));
        parts_ = num_stages_ / 2 * (2 + draw(2));
        schedule_ = pipeline::interleaved(2);
        break;
      case 4: {
        // Another order of micro-batches than theirs.
        pipeline::Schedule schedule = pipeline::make_schedule(
            draw(2) == 0 ? pipeline::gpipe() : pipeline::zb_h1(), num_stages_, parts_);
        std::string text;
        for (const auto& worker : schedule.actions) {
          for (pipeline::Action action : worker) {
            action.micro_batch = (action.micro_batch + 1) % parts_;
            text += to_string(action) + ' ';
          }
          text.back() = '\n';
        }
        schedule_ = pipeline::schedule_table(text);
        break;
      }
      default:
        schedule_ = pipeline::one_f_one_b();
    }
  }

  // Of so many ranks, or of any number if that is 0; in most cases another one than before.
  void choose_placement(int64_t size) {
    std::vector<int64_t> ranks;
    for (int tries = 0; tries < 4; ++tries) {
      const int64_t count = size > 0 ? size : 1 + draw(std::min<int64_t>(ranks_, 3));
      const int64_t first = draw(ranks_ - count + 1);
      ranks.clear();
      for (int64_t r = 0; r < count; ++r)
        ranks.push_back(first + r);
      if (placements_.empty() || placements_.back().ranks() != ranks) break;
    }
    placements_.emplace_back("cpu", ranks);
    has_split_weights_.push_back(draw(3) == 0);
  }

  void lay_out(Net& net) const;
  std::vector<std::vector<int64_t>> rows_of_parts(int64_t num_shards) const;
  std::shared_ptr<optim::Optimizer> make_optimizer(const Net& net) const;
  TrainingRun train(std::vector<BytesOfCollectives>& recorded, int64_t& num_shards) const;

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
  DType dtype_ = float64;
  bool uses_adam_ = false;
  RunRanks run_ranks_ = nullptr;
  bool receives_early_ = true;
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

std::shared_ptr<optim::Optimizer> Case::make_optimizer(const Net& net) const {
  if (!uses_adam_) {
    return std::make_shared<optim::SGD>(net.parameters(),
                                        optim::SGDOptions{.lr = 0.1, .momentum = momentum_});
  }
  // Adam divides a gradient by its size plus eps. With eps = lr a step is no larger than the
  // gradient, so the noise of a gradient that is zero except for rounding stays noise.
  return std::make_shared<optim::Adam>(net.parameters(),
                                       optim::AdamOptions{.lr = 0.01, .eps = 0.01});
}

// Returns `size` elements from `begin` on, divided into `parts` parts: the first ones have one
// element more where the size does not divide evenly.
std::vector<std::vector<int64_t>> divide(int64_t begin, int64_t size, int64_t parts) {
  std::vector<std::vector<int64_t>> all(static_cast<size_t>(parts));
  for (size_t part = 0; part < all.size(); ++part) {
    const bool is_longer = static_cast<int64_t>(part) < size % parts;
    for (int64_t left = size / parts + (is_longer ? 1 : 0); left > 0; --left)
      all[part].push_back(begin++);
  }
  return all;
}

// The rows of each micro-batch by the documented rule: each rank divides its own shard of the input
// that is sharded finest.
std::vector<std::vector<int64_t>> Case::rows_of_parts(int64_t num_shards) const {
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(parts_));
  for (const std::vector<int64_t>& shard : divide(0, batch_, num_shards)) {
    const auto parts = divide(shard.front(), static_cast<int64_t>(shard.size()), parts_);
    for (size_t m = 0; m < parts.size(); ++m)
      rows[m].insert(rows[m].end(), parts[m].begin(), parts[m].end());
  }
  std::vector<int> times(static_cast<size_t>(batch_));
  for (const std::vector<int64_t>& part : rows) {
    for (const int64_t row : part)
      ++times[static_cast<size_t>(row)];
  }
  EXPECT_EQ(times, std::vector<int>(static_cast<size_t>(batch_), 1)) << "a row, other than once";
  return rows;
}

TrainingRun Case::train_in_turn(int64_t num_shards, DType dtype, int moved) const {
  manual_seed(3);
  Net net(layers_, dtype);
  if (moved != 0) {
    const NoGradGuard no_grad;
    for (const Tensor& parameter : net.parameters()) {
      const Tensor step = sin(arange(static_cast<double>(parameter.numel())) + 1.7 * moved);
      parameter.add_(1e-7 * step.reshape(parameter.shape()).to(dtype));
    }
  }
  const std::shared_ptr<optim::Optimizer> optimizer = make_optimizer(net);
  const std::vector<std::vector<int64_t>> rows_of = rows_of_parts(num_shards);
  TrainingRun run;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor x = randn({batch_, kWidth}, {.dtype = dtype_}).to(dtype);
    const Tensor y = randint(0, kWidth, {batch_}, {.dtype = int64});
    std::vector<double> results(static_cast<size_t>(batch_ * kWidth));
    optimizer->zero_grad();
    double total = 0;
    for (const std::vector<int64_t>& rows : rows_of) {
      const Tensor index = tensor(rows, {static_cast<int64_t>(rows.size())}, {.dtype = int64});
      const Tensor out = net(index_select(x, 0, index));
      const Tensor loss = loss_of(out, index_select(y, 0, index));
      loss.backward();
      total += loss.item<double>();
      const std::vector<double> values = out.detach().to(float64).to_vector<double>();
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t row = static_cast<size_t>(rows[i / kWidth]);
        results[row * kWidth + i % kWidth] = values[i];
      }
    }
    nn::utils::clip_grad_norm_(net.parameters(), 0.5);
    optimizer->step();
    run.losses.push_back(total);
    run.weights.emplace_back(str("results of step ", step), results);
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
    config().set_overlap({.receives_early = c.receives_early_});
    if (c.recomputes_) config().enable_recompute();
    config().enable_zero({.stage = c.zero_stage_, .once_per_step = c.once_per_step_});
  }

  std::vector<Tensor> build(const Tensor& x, const Tensor& y) {
    const Tensor out = net(x);
    Tensor loss = task.loss_of(out, y);
    loss.backward();
    return {loss, out.detach()};
  }
};

// The shards of the input that the step shards finest: of one of the first two inputs, as it is
// passed or as the step redistributes it.
int64_t shards_in(const graph::Graph& graph) {
  int64_t most = 1;
  const auto consider = [&](graph::ValueId id) {
    const graph::Value& value = graph.value(id);
    if (value.nd_sbp == NdSbp(kS0)) most = std::max(most, value.placement.num_ranks());
  };
  for (size_t i = 0; i < 2; ++i) {
    consider(graph.inputs[i]);
    for (const graph::Node& node : graph.nodes) {
      const bool moves_it = node.op == &boxing::kRedistribute && node.inputs[0] == graph.inputs[i];
      if (moves_it) consider(node.outputs[0]);
    }
  }
  return most;
}

TrainingRun Case::train(std::vector<BytesOfCollectives>& recorded, int64_t& num_shards) const {
  record_calls();
  manual_seed(3);
  Net net(layers_, dtype_);
  lay_out(net);
  const std::shared_ptr<optim::Optimizer> optimizer = make_optimizer(net);
  Step graph(*this, net, *optimizer);
  TrainingRun run;
  const NdSbp data = has_split_data_ ? kS0 : kB;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor x =
        randn({batch_, kWidth}, {.dtype = dtype_, .placement = placements_.front(), .sbp = data});
    const Tensor y =
        randint(0, kWidth, {batch_}, {.dtype = int64, .placement = placements_.back(), .sbp = kB});
    const graph::CompiledStep& plan = graph.compile(x, y).plan();
    num_shards = shards_in(plan.graph());
    take_recorded_calls();
    const std::vector<Tensor> results = graph(x, y);
    recorded.push_back(expect_as_certified(plan, take_recorded_calls(), name()));
    run.losses.push_back(results[0].item<double>());
    run.weights.emplace_back(str("results of step ", step),
                             results[1].to(float64).to_vector<double>());
  }
  run.read_weights(net);
  return run;
}

std::vector<TrainingRun> Case::run(Recorded& recorded, int64_t& num_shards) const {
  const auto ranks = static_cast<size_t>(ranks_);
  std::vector<TrainingRun> runs(ranks);
  std::vector<std::vector<BytesOfCollectives>> of_ranks(ranks);
  run_ranks_(ranks_, [&] {
    const auto rank = static_cast<size_t>(env::rank());
    int64_t shards = 1;
    runs[rank] = train(of_ranks[rank], shards);
    if (rank == 0) num_shards = shards;
  });
  for (size_t step = 0; step < kSteps; ++step) {
    for (const std::vector<BytesOfCollectives>& of_rank : of_ranks)
      recorded[step].push_back(of_rank[step]);
  }
  return runs;
}

// How far other runs may be from what one rank gets in float64.
RunLimits limits_of(const Case& task, int64_t num_shards, const TrainingRun& want,
                    const std::string& what) {
  if (task.dtype() == float64) return close_to(want);
  std::vector<TrainingRun> others;
  for (int moved = 0; moved <= 6; ++moved)
    others.push_back(task.train_in_turn(num_shards, float32, moved));
  RunLimits limits = spread_of(want, others);
  for (size_t i = 0; i < limits.losses.size(); ++i)
    EXPECT_LT(limits.losses[i], 1e-3 * std::abs(want.losses[i])) << what << ": says nothing";
  return limits;
}

TEST(PipelineFuzz, RandomPipelinesTrainAsOneRankDoes) {
  const uint64_t seed = env_number("FLOW_TEST_SEED", 0);
  const uint64_t first = seed == 0 ? 1 : seed * 100000;
  const auto count = static_cast<int>(env_number("FLOW_TEST_CASES", 120));
  int num_with_stages = 0, num_float32 = 0, num_adam = 0, num_known = 0;
  int num_chosen = 0;  // the compiler shards an input finer than the user
  for (int i = 0; i < count; ++i) {
    const Case task(first + static_cast<uint64_t>(i));
    num_with_stages += task.has_several_stages_and_parts() ? 1 : 0;
    num_float32 += task.dtype() == float32 ? 1 : 0;
    num_adam += task.uses_adam() ? 1 : 0;
    const std::string what = str("case ", first + static_cast<uint64_t>(i), ": ", task.name());
    try {
      Recorded recorded;
      int64_t num_shards = 1;
      const std::vector<TrainingRun> runs = task.run(recorded, num_shards);
      num_chosen += num_shards == task.num_given_shards() ? 0 : 1;
      const TrainingRun want = task.train_in_turn(num_shards, float64, 0);
      const RunLimits limits = limits_of(task, num_shards, want, what);
      for (const TrainingRun& run : runs)
        expect_within(run, want, limits, what);
      for (const std::vector<BytesOfCollectives>& ranks : recorded)
        num_known += expect_stated_bytes(ranks, what);
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << " raised " << error.what();
    }
  }
  std::cout << num_with_stages << " of " << count << " have several placements and micro-batches, "
            << num_float32 << " are in float32, " << num_adam << " train with Adam, " << num_chosen
            << " shard an input by choice of the compiler; the bytes of " << num_known
            << " collectives were compared\n";
  if (count < 40) return;
  EXPECT_GE(num_with_stages, count * 6 / 10);
  EXPECT_GE(num_float32, count / 5);
  EXPECT_GE(num_adam, count / 3);
  EXPECT_GE(num_known, count);
  EXPECT_LE(num_chosen, count / 10);
}

}  // namespace
}  // namespace flow
