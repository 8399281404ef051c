#include <cmath>

#include <gtest/gtest.h>

#include "eager/runtime.h"
#include "nn/optim/sgd.h"
#include "ops/creation/creation.h"
#include "tests/parity/golden.h"
#include "tools/flow_conform/scheduler_spec.h"

namespace flow::parity {
namespace {

using conform::make_schedule;
using conform::ScheduleCase;

constexpr double kLimit = 1e-14;
constexpr size_t kEpochs = 50;

struct Rates {
  std::vector<double> lr, momentum;
};

// Runs a case; from epoch `resume_at` on with objects made anew from the state of the first.
Rates run(const Json& spec, size_t resume_at = kEpochs) {
  const Tensor p = zeros({1}, {.requires_grad = true});
  const auto make = [&] {
    return std::make_unique<optim::SGD>(std::vector<Tensor>{p},
                                        optim::SGDOptions{.lr = spec["base_lr"], .momentum = 0.9});
  };
  auto optimizer = make();
  ScheduleCase schedule = make_schedule(spec, *optimizer);
  Rates rates;
  for (size_t epoch = 0; epoch < kEpochs; ++epoch) {
    if (epoch == resume_at) {
      auto next = make();
      ScheduleCase next_schedule = make_schedule(spec, *next);
      next->load_state_dict(optimizer->state_dict());
      next_schedule.load_state_dict(schedule.state_dict());
      optimizer = std::move(next);
      schedule = std::move(next_schedule);
    }
    rates.lr.push_back(optimizer->lr());
    rates.momentum.push_back(optimizer->momentum().value());
    schedule.step(spec.contains("metrics") ? spec["metrics"][epoch].get<double>() : 0);
  }
  return rates;
}

void expect_golden(const std::vector<double>& got, const Json& golden, const std::string& id) {
  ASSERT_EQ(got.size(), golden.size()) << id;
  for (size_t epoch = 0; epoch < got.size(); ++epoch) {
    const double want = golden[epoch];
    EXPECT_LE(std::abs(got[epoch] - want), kLimit * std::abs(want)) << id << " epoch " << epoch;
  }
}

TEST(SchedulerParity, RatesAndMomentaAreThoseOfPyTorch) {
  const Json spec = read_json("optim.json"), golden = read_json("scheduler_golden.json");
  ASSERT_GE(spec["schedulers"].size(), 29U);
  for (const Json& schedule : spec["schedulers"]) {
    const std::string id = schedule["id"];
    const Rates got = run(schedule);
    expect_golden(got.lr, golden.at(id), id);
    if (golden.contains(id + "/momentum")) {
      expect_golden(got.momentum, golden[id + "/momentum"], id + "/momentum");
    } else {
      EXPECT_EQ(got.momentum, std::vector<double>(kEpochs, 0.9)) << id;
    }
  }
}

TEST(SchedulerParity, EveryScheduleGoesOnFromItsState) {
  const Json spec = read_json("optim.json");
  for (const Json& schedule : spec["schedulers"]) {
    const Rates whole = run(schedule), resumed = run(schedule, 11);
    EXPECT_EQ(whole.lr, resumed.lr) << schedule["id"];
    EXPECT_EQ(whole.momentum, resumed.momentum) << schedule["id"];
  }
}

}  // namespace
}  // namespace flow::parity
