#include <gtest/gtest.h>

#include "eager/runtime.h"
#include "tests/parity/golden.h"
#include "tools/conform/optim_cases.h"

namespace flow::parity {
namespace {

constexpr double kLimit = 1e-12;

class OptimParity : public testing::Test {
 protected:
  Json spec_ = read_json("optim.json");
  int64_t steps_ = spec_["steps"];
  nn::StateDict inputs_ = read_tensors(spec_["inputs"]);
  nn::StateDict golden_ = read_tensors("optim_golden.safetensors");

  void check(const Json& list) {
    for (const Json& spec : list) {
      const std::string id = spec["id"];
      for (const auto& [name, got] : conform::run_optim_case(spec, steps_, inputs_)) {
        const std::string key = id + "/" + name;
        ASSERT_TRUE(golden_.contains(key)) << key;
        EXPECT_LE(relative_distance(got.to_vector<double>(), golden_.at(key).to_vector<double>()),
                  kLimit)
            << key;
      }
    }
  }
};

TEST_F(OptimParity, TrajectoriesAreThoseOfPyTorch) {
  ASSERT_GE(spec_["optimizers"].size(), 30U);
  check(spec_["optimizers"]);
}

TEST_F(OptimParity, ClippedTrajectoriesAndNormsAreThoseOfPyTorch) {
  check(spec_["clip"]);
}

TEST_F(OptimParity, EveryOptimizerGoesOnFromItsState) {
  for (const Json& spec : spec_["optimizers"]) {
    const nn::StateDict whole = conform::run_optim_case(spec, steps_, inputs_);
    const nn::StateDict resumed = conform::run_optim_case(spec, steps_, inputs_, 3);
    for (const auto& [name, values] : whole) {
      EXPECT_EQ(values.to_vector<double>(), resumed.at(name).to_vector<double>())
          << spec["id"] << ' ' << name;
    }
  }
}

}  // namespace
}  // namespace flow::parity
