// Twenty steps of training, from weights and data that the script computes by the same formula.
#include <cmath>

#include <gtest/gtest.h>

#include "eager/runtime.h"
#include "ops/creation.h"
#include "tests/parity/golden.h"
#include "tools/conform/train_cases.h"

namespace flow::parity {
namespace {

constexpr double kLimit = 1e-9;

// Numbers in [-1, 1): 32 bits of each index, mixed.
std::vector<double> hashed(int64_t count, uint32_t stream) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t h = static_cast<uint32_t>(i) * 0x9E3779B1U + stream * 0x85EBCA6BU;
    h ^= h >> 16;
    h *= 0x7FEB352DU;
    h ^= h >> 15;
    h *= 0x846CA68BU;
    h ^= h >> 16;
    values.push_back(h / 2147483648.0 - 1.0);
  }
  return values;
}

std::vector<double> bucketed(int64_t count, uint32_t stream, double buckets) {
  std::vector<double> values = hashed(count, stream);
  for (double& value : values)
    value = std::floor((value + 1.0) / 2.0 * buckets);
  return values;
}

void fill(nn::ModuleBase& model) {
  model.to(float64);
  nn::StateDict state = model.state_dict();
  uint32_t stream = 0;
  for (auto& [name, value] : state) {
    const uint32_t own = stream++;
    if (name.find("running") != std::string::npos || name.find("num_batches") != std::string::npos)
      continue;
    std::vector<double> numbers = hashed(value.numel(), own);
    const double fan_in = static_cast<double>(value.numel()) / static_cast<double>(value.size(0));
    for (double& number : numbers) {
      number = value.dim() >= 2 ? number / std::sqrt(fan_in)
                                : number * 0.1 + (name.ends_with("weight") ? 1.0 : 0.0);
    }
    value = tensor(numbers, value.shape(), {.dtype = float64});
  }
  model.load_state_dict(state);
}

Json spec_of(const std::string& id) {
  for (const Json& spec : read_json("training.json")) {
    if (spec["id"] == id) return spec;
  }
  throw std::invalid_argument("no training " + id);
}

void train(const std::string& id) {
  const Json spec = spec_of(id);
  nn::AnyModule model = conform::make_model(spec["model"]);
  fill(model);
  const bool is_gpt = spec["model"]["kind"] == "gpt";
  auto shape = spec["x"].get<std::vector<int64_t>>();
  const int64_t batches = spec["batches"], batch = shape[0];
  shape.insert(shape.begin(), batches);
  const Shape xs(shape);
  const int64_t count = xs.numel();
  const double classes = spec["classes"];
  const Tensor x = is_gpt ? tensor(bucketed(count, 1000, classes), xs, {.dtype = int64})
                          : tensor(hashed(count, 1000), xs, {.dtype = float64});
  const int64_t num_targets = is_gpt ? count : batches * batch;
  const Tensor y = tensor(bucketed(num_targets, 1001, classes), {batches, num_targets / batches},
                          {.dtype = int64});
  const Json rule{{"optimizer", spec["optimizer"]}, {"optimizer_args", spec["args"]}};
  const auto records = conform::run_training(model, rule, x, y, spec["steps"], nullptr);
  ASSERT_EQ(records.size(), spec["losses"].size());
  for (size_t step = 0; step < records.size(); ++step) {
    const double loss = spec["losses"][step], norm = spec["grad_norms"][step];
    EXPECT_LE(std::abs(records[step].loss - loss), kLimit * loss) << id << ' ' << step;
    EXPECT_LE(std::abs(records[step].grad_norm - norm), kLimit * norm) << id << ' ' << step;
  }
}

TEST(TrainingParity, MlpFollowsPyTorchForTwentySteps) {
  train("mlp");
}

TEST(TrainingParity, LenetFollowsPyTorchForTwentySteps) {
  train("lenet");
}

TEST(TrainingParity, GptFollowsPyTorchForTwentySteps) {
  train("gpt");
  train("gpt_tied");
}

TEST(TrainingParity, MobileNetV2FollowsPyTorchForTwentySteps) {
  train("mobilenet_v2");
}

}  // namespace
}  // namespace flow::parity
