#include <gtest/gtest.h>

#include "core/error.h"
#include "core/grad_mode.h"
#include "eager/runtime.h"
#include "nn/clip_grad.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "tests/parity/golden.h"
#include "tools/flow_conform/optimizer_spec.h"

namespace flow::parity {
namespace {

using conform::make_optimizer;

constexpr double kLimit = 1e-12;

struct Trajectories {
  std::map<std::string, std::vector<Tensor>> params;
  std::vector<Tensor> total_norms;
};

std::vector<Tensor> clip(const Json& spec, const std::vector<Tensor>& params) {
  const Json& clip = spec["clip"];
  if (clip["kind"] == "value") {
    nn::utils::clip_grad_value_(params, clip["clip_value"]);
    return {};
  }
  double norm_type = 2;
  if (clip.contains("norm_type")) {
    norm_type = clip["norm_type"] == "inf" ? std::numeric_limits<double>::infinity()
                                           : clip["norm_type"].get<double>();
  }
  return {nn::utils::clip_grad_norm_(params, clip["max_norm"], {.norm_type = norm_type})};
}

// Runs a case; after step `resume_at` another optimizer goes on from the state of the first.
Trajectories run(const Json& spec, int64_t steps, const nn::StateDict& inputs,
                 int64_t resume_at = -1) {
  std::map<std::string, Tensor> params;
  for (const auto& [name, value] : inputs) {
    if (name.starts_with("param.")) params[name.substr(6)] = value.clone().requires_grad_();
  }
  auto optimizer = make_optimizer(spec, params);
  Trajectories out;
  for (int64_t step = 0; step < steps; ++step) {
    for (const auto& [name, param] : params)
      param.set_grad(inputs.at("grads." + name).select(0, step).clone());
    if (spec.contains("clip")) {
      for (const Tensor& norm : clip(spec, optimizer->parameters()))
        out.total_norms.push_back(norm);
    }
    optimizer->step();
    for (const auto& [name, param] : params)
      out.params[name].push_back(param.detach().clone());
    if (step == resume_at) {
      auto next = make_optimizer(spec, params);
      next->load_state_dict(optimizer->state_dict());
      optimizer = std::move(next);
    }
  }
  return out;
}

void expect_golden(const Tensor& got, const nn::StateDict& golden, const std::string& name) {
  ASSERT_TRUE(golden.contains(name)) << name;
  EXPECT_LE(relative_distance(got.to_vector<double>(), golden.at(name).to_vector<double>()), kLimit)
      << name;
}

class OptimParity : public testing::Test {
 protected:
  Json spec_ = read_json("optim.json");
  int64_t steps_ = spec_["steps"];
  nn::StateDict inputs_ = read_tensors(spec_["inputs"]);
  nn::StateDict golden_ = read_tensors("optim_golden.safetensors");

  void check(const Json& list) {
    for (const Json& spec : list) {
      const std::string id = spec["id"];
      const Trajectories got = run(spec, steps_, inputs_);
      for (const auto& [name, values] : got.params)
        expect_golden(stack(values), golden_, id + "/traj." + name);
      if (!got.total_norms.empty()) {
        expect_golden(stack(got.total_norms), golden_, id + "/total_norm");
      }
    }
  }
};

TEST_F(OptimParity, TrajectoriesAreThoseOfPyTorch) {
  ASSERT_GE(spec_["optimizers"].size(), 30U);
  check(spec_["optimizers"]);
}

// Products in bfloat16 differ in the last digit, which the iteration makes larger.
TEST_F(OptimParity, MuonFollowsPyTorchOnMatrices) {
  constexpr double kHalfLimit = 4e-3;
  nn::StateDict matrix = inputs_;
  matrix.erase("param.bias");
  ASSERT_EQ(spec_["matrix_optimizers"].size(), 3U);
  for (const Json& spec : spec_["matrix_optimizers"]) {
    const std::string id = spec["id"];
    const Tensor got = stack(run(spec, steps_, matrix).params.at("weight"));
    EXPECT_LE(relative_distance(got.to_vector<double>(),
                                golden_.at(id + "/traj.weight").to_vector<double>()),
              kHalfLimit)
        << id;
    EXPECT_THROW(run(spec, 1, inputs_), InvalidArgument) << "a bias is no matrix";
  }
}

TEST_F(OptimParity, ClippedTrajectoriesAndNormsAreThoseOfPyTorch) {
  check(spec_["clip"]);
}

TEST_F(OptimParity, EveryOptimizerGoesOnFromItsState) {
  for (const Json& spec : spec_["optimizers"]) {
    const Trajectories whole = run(spec, steps_, inputs_);
    const Trajectories resumed = run(spec, steps_, inputs_, 3);
    for (const auto& [name, values] : whole.params) {
      EXPECT_EQ(values.back().to_vector<double>(),
                resumed.params.at(name).back().to_vector<double>())
          << spec["id"];
    }
  }
}

}  // namespace
}  // namespace flow::parity
