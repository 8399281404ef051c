// A run of a graph that throws: every rank learns of it, and the state is that before the call.
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/generator.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"
#include "tests/support/loopback_ranks.h"

namespace flow {
namespace {

const Sbp kB = sbp::broadcast;
const Placement k0("cpu", {0}), k1("cpu", {1}), k01("cpu", {0, 1});

// Token numbers of 10 or more are an error of the first layer, labels of 5 or more one of the loss.
struct Classifier : nn::Module<Classifier> {
  nn::Embedding embedding;
  nn::BatchNorm1d norm;
  nn::Dropout dropout{register_module("dropout", nn::Dropout(0.25))};
  nn::Linear linear;

  explicit Classifier(int64_t width)
      : embedding(register_module("embedding", nn::Embedding(10, width))),
        norm(register_module("norm", nn::BatchNorm1d(width))),
        linear(register_module("linear", nn::Linear(width, 5))) {}

  Tensor forward(const Tensor& tokens) { return linear(dropout(norm(embedding(tokens)))); }
};

struct Training : nn::Graph<Training> {
  Classifier model;

  Training(Classifier m, optim::Optimizer& optimizer, optim::lr_scheduler::LRScheduler& rates,
           int64_t micro_batches = 1,
           const pipeline::ScheduleRule& schedule = pipeline::one_f_one_b())
      : model(m) {
    add_optimizer(optimizer, {.lr_scheduler = &rates});
    config().set_micro_batches(micro_batches).set_schedule(schedule);
  }

  Tensor build(const Tensor& tokens, const Tensor& labels) {
    Tensor loss = cross_entropy(model(tokens), labels);
    loss.backward();
    return loss;
  }
};

// An undefined placement makes a local tensor.
Tensor numbers(const std::vector<int64_t>& values, const Placement& placement) {
  TensorOptions options{.placement = placement};
  if (placement.defined()) options.sbp = kB;
  return tensor(values, {static_cast<int64_t>(values.size())}, options);
}

// The numbers of a state, by name.
using Numbers = std::map<std::string, std::vector<double>>;

void add(Numbers& numbers, const std::string& prefix, const nn::StateDict& state) {
  for (const auto& [name, tensor] : state)
    numbers[prefix + name] = tensor.to(float64).to_vector<double>();
}

// A training whose second call fails if `label` is out of range.
struct Trained {
  Numbers before, after;  // the second call: generator, rates, weights, statistics and moments
  Numbers end;            // after a third call
  std::string error;
};

Trained train(int64_t label, const Placement& placement) {
  manual_seed(3);
  Classifier model(8);
  if (placement.defined()) model.to_global(placement, sbp::broadcast);
  optim::Adam optimizer(model.parameters(), {.lr = 0.1});
  optim::lr_scheduler::StepLR rates(optimizer, {.step_size = 1, .gamma = 0.5});
  Training graph(model, optimizer, rates);
  const Tensor tokens = numbers({1, 2, 3, 4, 5, 6, 7, 8}, placement);
  const Tensor good = numbers({0, 1, 2, 3, 4, 0, 1, 2}, placement);
  const Tensor second = numbers({0, 1, 2, 3, 4, 0, 1, label}, placement);
  const auto state = [&] {
    Numbers found;
    add(found, "model.", model.state_dict());
    add(found, "optimizer.", optimizer.state_dict());
    found["rate"] = rates.last_lr();
    found["epoch"] = {static_cast<double>(rates.last_epoch())};
    found["draws"] = {static_cast<double>(generator_state().next_stream)};
    return found;
  };
  Trained trained;
  graph(tokens, good);
  trained.before = state();
  try {
    graph(tokens, second);
  } catch (const InvalidArgument& error) {
    trained.error = error.what();
  }
  trained.after = state();
  graph(tokens, good);
  trained.end = state();
  return trained;
}

// While it lives, the rank has 16 KiB more than it uses when it is made.
class LittleMemory {
 public:
  LittleMemory() { allocator_.set_limit(allocator_.stats().bytes_in_use + (1 << 14)); }

  ~LittleMemory() { allocator_.set_limit(std::numeric_limits<int64_t>::max()); }

  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;

 private:
  Allocator& allocator_ = thread_state().context->allocator();
};

// The input is where the parts of a batch are read, and then there is no memory for the strided
// form of the image.
TEST(GraphFailures, OfTooLittleMemoryLeaveNoTraceOfEarlierInputs) {
  struct Weighted : nn::Graph<Weighted> {
    Tensor image;

    explicit Weighted(const Tensor& i) : image(i) { config().set_micro_batches(2); }

    Tensor build(const Tensor& x) { return x.sum({1}) * image.mean(); }
  };

  const NoGradGuard no_grad;
  const auto make_image = [] {
    return conv2d(ones({1, 16, 64, 64}), ones({16, 16, 3, 3}), {.padding = 1});
  };
  const Tensor image = make_image(), same = image.detach(), other = make_image();
  if (image.meta().blocked == nullptr) GTEST_SKIP() << "no blocked layouts on this machine";
  Weighted graph(image);
  const Tensor first = ones({3, 4}), second = full({3, 4}, 2.0);
  const std::vector<float> wanted = (second.sum({1}) * image.mean()).to_vector<float>();
  graph(first);
  image.set_data(other);
  {
    const LittleMemory little;
    EXPECT_THROW(graph(second), OutOfMemory);
  }
  image.set_data(same);
  EXPECT_EQ(graph(second).to_vector<float>(), wanted);
}

// Of two optimizers, the second cannot begin its step.
TEST(GraphFailures, OfAnOptimizerLeaveTheCountsOfTheOthers) {
  struct Failing : optim::SGD {
    using SGD::SGD;
    bool fails = false;

   private:
    void write_rates(size_t number, const ParamState& state,
                     std::span<double> rates) const override {
      if (fails) throw InvalidArgument("the rate is out of range");
      SGD::write_rates(number, state, rates);
    }
  };

  struct Two : nn::Graph<Two> {
    nn::Linear first, second;

    Two(const nn::Linear& a, const nn::Linear& b, optim::Optimizer& of_a, optim::Optimizer& of_b)
        : first(a), second(b) {
      add_optimizer(of_a);
      add_optimizer(of_b);
    }

    Tensor build(const Tensor& x) {
      Tensor loss = second(first(x)).square().mean();
      loss.backward();
      return loss;
    }
  };

  nn::Linear first(3, 3), second(3, 3);
  optim::Adam of_first(first.parameters());
  Failing of_second(second.parameters(), {.lr = 0.1});
  Two graph(first, second, of_first, of_second);
  graph(ones({2, 3}));
  of_second.fails = true;

  EXPECT_THROW(graph(ones({2, 3})), InvalidArgument);

  EXPECT_EQ(of_first.state_dict().at("0.step").item<double>(), 1);
}

TEST(GraphFailures, LeaveCountsRatesDrawsAndStatisticsOfOneRank) {
  const Trained failed = train(5, Placement()), passed = train(3, Placement());

  EXPECT_NE(failed.error.find("cross_entropy"), std::string::npos) << failed.error;
  EXPECT_EQ(failed.before, failed.after);
  EXPECT_NE(passed.before, passed.after);
  // The third call is then what the second one was.
  EXPECT_EQ(failed.end.at("draws"), passed.after.at("draws"));
  EXPECT_EQ(failed.end.at("optimizer.0.step"), passed.after.at("optimizer.0.step"));
}

TEST(GraphFailures, ThatAllRanksHaveLeaveThemRunning) {
  run_ranks(2, [] {
    const Trained failed = train(5, k01);

    EXPECT_FALSE(failed.error.empty());
    EXPECT_EQ(failed.before, failed.after);
    EXPECT_NE(failed.end, failed.after);
  });
}

// Before a run, the strided form of a statistic is made and kept.
TEST(GraphFailures, OfTooLittleMemoryForStatisticsReachTheOthers) {
  struct Fading : nn::Module<Fading> {
    Tensor mean;

    explicit Fading(const Tensor& m) : mean(register_buffer("mean", m)) {}

    Tensor forward(const Tensor& x) {
      mean.mul_(0.5);
      return x.sum();
    }
  };

  struct Forward : nn::Graph<Forward> {
    Fading model;

    explicit Forward(const Tensor& mean) : model(mean) {}

    Tensor build(const Tensor& x) { return model(x); }
  };

  std::vector<std::string> errors(2);
  run_ranks(2, [&] {
    const NoGradGuard no_grad;
    const PlacementGuard created_on(k01, kB);
    const auto make_mean = [] {
      return conv2d(ones({1, 16, 64, 64}), ones({16, 16, 3, 3}), {.padding = 1});
    };
    const Tensor mean = make_mean(), other = make_mean();
    if (mean.meta().blocked == nullptr) GTEST_SKIP() << "no blocked layouts on this machine";
    Forward graph(mean);
    const Tensor x = ones({4}, {.placement = k01, .sbp = sbp::split(0)});
    graph(x);
    mean.set_data(other);
    std::optional<LittleMemory> little;
    if (env::rank() == 1) little.emplace();
    errors[static_cast<size_t>(env::rank())] = error_of<Error>([&] { graph(x); });
  });
  if (IsSkipped()) return;
  EXPECT_NE(errors[0].find("rank 1 failed"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("memory limit"), std::string::npos) << errors[1];
}

// The sum is made on all ranks, also on one that has no memory for its part of the other result.
TEST(GraphFailures, OfTooLittleMemoryForResultsReachTheOthers) {
  struct Forward : nn::Graph<Forward> {
    std::pair<Tensor, Tensor> build(const Tensor& x) {
      const Tensor y = exp(x);
      return {y, y.sum()};
    }
  };

  std::vector<std::string> errors(2);
  run_ranks(2, [&] {
    Forward graph;
    const Tensor x = ones({2, 1 << 16}, {.placement = k01, .sbp = sbp::split(0)});
    graph(x);
    std::optional<LittleMemory> little;
    if (env::rank() == 1) little.emplace();
    errors[static_cast<size_t>(env::rank())] = error_of<Error>([&] { graph(x); });
  });
  EXPECT_NE(errors[0].find("rank 1 failed"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("memory limit"), std::string::npos) << errors[1];
}

// What a rank sees when the second call of a pipeline fails.
struct Seen {
  std::string error;
  bool is_unchanged = false;
};

// Four micro-batches on two stages, whose edges carry more than a message buffers.
Seen fail_in_a_pipeline(const pipeline::ScheduleRule& schedule, int64_t token, int64_t label) {
  manual_seed(3);
  Classifier model(16384);
  model.to_global(k0, kB);
  nn::graph_module(model.embedding).set_stage(0, k0);
  for (nn::ModuleBase* last :
       std::initializer_list<nn::ModuleBase*>{&model.norm, &model.dropout, &model.linear}) {
    last->to_global(k1, kB);
    nn::graph_module(*last).set_stage(1, k1);
  }
  optim::Adam optimizer(model.parameters(), {.lr = 0.1});
  optim::lr_scheduler::StepLR rates(optimizer, {.step_size = 1, .gamma = 0.5});
  Training graph(model, optimizer, rates, 4, schedule);
  const auto state = [&] {
    Numbers found{{"rate", rates.last_lr()},
                  {"draws", {static_cast<double>(generator_state().next_stream)}},
                  {"steps", optimizer.state_dict().at("0.step").to(float64).to_vector<double>()}};
    const Tensor mean = model.norm.named_buffers().front().second.to_local();
    if (env::rank() == 1) found["mean"] = mean.to_vector<double>();
    return found;
  };
  const std::vector<int64_t> tokens{1, 2, 3, 4, 5, 6, 7, 8}, labels{0, 1, 2, 3, 4, 0, 1, 2};
  graph(numbers(tokens, k0), numbers(labels, k1));
  std::vector<int64_t> wrong_tokens = tokens, wrong_labels = labels;
  wrong_tokens[5] = token;
  wrong_labels[5] = label;
  const Tensor x = numbers(wrong_tokens, k0), y = numbers(wrong_labels, k1);
  const Numbers before = state();
  Seen seen;
  try {
    graph(x, y);
  } catch (const Error& error) {
    seen.error = error.what();
  }
  seen.is_unchanged = state() == before;
  return seen;
}

TEST(GraphFailures, OfOneStageReachTheOthersAndLeaveTheirState) {
  using Runner = void (*)(int64_t, const std::function<void()>&);
  const Runner threads = [](int64_t ranks, const std::function<void()>& body) {
    run_ranks(ranks, body);
  };
  for (const Runner run : {threads, Runner(run_loopback_ranks), Runner(run_shared_memory_ranks)}) {
    for (const auto& schedule : {pipeline::gpipe(), pipeline::one_f_one_b(), pipeline::zb_h1()}) {
      for (const int64_t failing : {0, 1}) {
        SCOPED_TRACE("stage " + std::to_string(failing) + " of " + to_string(schedule));
        std::vector<Seen> seen(2);
        run(2, [&] {
          seen[static_cast<size_t>(env::rank())] =
              fail_in_a_pipeline(schedule, failing == 0 ? 10 : 6, failing == 1 ? 5 : 0);
        });
        const std::string name = failing == 0 ? "embedding" : "cross_entropy";
        for (const Seen& rank : seen) {
          EXPECT_NE(rank.error.find(name), std::string::npos) << rank.error;
          EXPECT_TRUE(rank.is_unchanged);
        }
        const Seen& other = seen[static_cast<size_t>(1 - failing)];
        EXPECT_NE(other.error.find("rank " + std::to_string(failing) + " failed"),
                  std::string::npos)
            << other.error;
      }
    }
  }
}

// A trace has no values, so the checks of draws that eager calls make belong to the compiled step.
struct Draw : nn::Graph<Draw> {
  std::function<Tensor(const Tensor&)> draw;

  explicit Draw(std::function<Tensor(const Tensor&)> d) : draw(std::move(d)) {}

  Tensor build(const Tensor& parameters) { return draw(parameters); }
};

TEST(GraphFailures, ParametersOfDrawsAreCheckedAtEachCall) {
  struct Case {
    std::string op;
    std::function<Tensor(const Tensor&)> draw;
    std::vector<double> valid;
    std::vector<std::vector<double>> invalid;
  };

  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<double>> no_weights = {{1, -0.5}, {1, nan}, {1, infinity}, {0, 0}};
  const std::vector<Case> cases = {
      {"multinomial", [](const Tensor& p) { return multinomial(p, 1); }, {0, 2}, no_weights},
      {"multinomial",
       [](const Tensor& p) { return multinomial(p, 3, {.replacement = true}); },
       {0, 2},
       no_weights},
      {"normal", [](const Tensor& std) { return normal(0, std); }, {0, 1}, {{1, -1}, {nan, 1}}},
      {"normal",
       [](const Tensor& std) { return normal(zeros_like(std), std); },
       {0, 1},
       {{1, -1}, {nan, 1}}}};
  for (const Case& one : cases) {
    for (const DType dtype : {float32, float64, bfloat16}) {
      Draw graph(one.draw);
      const auto call = [&](const std::vector<double>& parameters) {
        return graph(tensor(parameters, {2}).to(dtype));
      };
      EXPECT_EQ(call(one.valid).to(float64).to_vector<double>()[0], one.op == "normal" ? 0 : 1);
      for (const std::vector<double>& invalid : one.invalid) {
        try {
          call(invalid);
          ADD_FAILURE() << one.op << " took " << invalid[0] << ", " << invalid[1];
        } catch (const InvalidArgument& error) {
          EXPECT_NE(std::string(error.what()).find("[" + one.op + "]"), std::string::npos)
              << error.what();
        }
      }
      call(one.valid);
    }
  }
}

}  // namespace
}  // namespace flow
