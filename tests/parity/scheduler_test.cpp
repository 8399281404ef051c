#include <cmath>

#include <gtest/gtest.h>

#include "eager/runtime.h"
#include "tests/parity/golden.h"
#include "tools/conform/scheduler_cases.h"

namespace flow::parity {
namespace {

constexpr double kLimit = 1e-14;

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
    const conform::Rates got = conform::run_schedule_case(schedule);
    expect_golden(got.lr, golden.at(id), id);
    if (golden.contains(id + "/momentum")) {
      expect_golden(got.momentum, golden[id + "/momentum"], id + "/momentum");
    } else {
      EXPECT_EQ(got.momentum, std::vector<double>(got.lr.size(), 0.9)) << id;
    }
  }
}

TEST(SchedulerParity, EveryScheduleGoesOnFromItsState) {
  const Json spec = read_json("optim.json");
  for (const Json& schedule : spec["schedulers"]) {
    const conform::Rates whole = conform::run_schedule_case(schedule);
    const conform::Rates resumed = conform::run_schedule_case(schedule, 11);
    EXPECT_EQ(whole.lr, resumed.lr) << schedule["id"];
    EXPECT_EQ(whole.momentum, resumed.momentum) << schedule["id"];
  }
}

}  // namespace
}  // namespace flow::parity
