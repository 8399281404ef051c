// Twenty steps of training, from weights and data that the script computes by the same formula.
#include <cmath>

#include <gtest/gtest.h>

#include "nn/flow.h"
#include "tests/parity/golden.h"
#include "tools/flow_conform/optimizer_spec.h"

namespace flow::parity {
namespace {

using conform::make_optimizer;

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

template <class Model>
void train(Model model, const Json& spec) {
  const std::string id = spec["id"];
  fill(model);
  const bool is_gpt = spec["model"]["kind"] == "gpt";
  const auto shape = spec["x"].get<std::vector<int64_t>>();
  const int64_t batches = spec["batches"];
  std::vector<int64_t> all_shape{batches};
  all_shape.insert(all_shape.end(), shape.begin(), shape.end());
  const Shape xs(all_shape);
  int64_t count = batches;
  for (const int64_t size : shape)
    count *= size;
  const double classes = spec["classes"];
  const Tensor x = is_gpt ? tensor(bucketed(count, 1000, classes), xs, {.dtype = int64})
                          : tensor(hashed(count, 1000), xs, {.dtype = float64});
  const int64_t num_targets = is_gpt ? count : batches * shape[0];
  const Tensor y = tensor(bucketed(num_targets, 1001, classes), {batches, num_targets / batches},
                          {.dtype = int64});
  std::map<std::string, Tensor> params;
  for (const auto& [name, param] : model.named_parameters())
    params.emplace(name, param);
  const auto optimizer = make_optimizer(spec, params);
  nn::CrossEntropyLoss loss_fn;
  const int64_t steps = spec["steps"];
  for (int64_t step = 0; step < steps; ++step) {
    optimizer->zero_grad();
    const Tensor logits = model(x.select(0, step % batches));
    const Tensor loss = loss_fn(logits.reshape({-1, logits.size(-1)}), y.select(0, step % batches));
    loss.backward();
    const double norm =
        nn::utils::clip_grad_norm_(model.parameters(), INFINITY).template item<double>();
    optimizer->step();
    const double loss_wanted = spec["losses"][static_cast<size_t>(step)];
    const double norm_wanted = spec["grad_norms"][static_cast<size_t>(step)];
    EXPECT_LE(std::abs(loss.item<double>() - loss_wanted), kLimit * loss_wanted)
        << id << ' ' << step;
    EXPECT_LE(std::abs(norm - norm_wanted), kLimit * norm_wanted) << id << ' ' << step;
  }
}

Json spec_of(const std::string& id) {
  for (const Json& spec : read_json("training.json")) {
    if (spec["id"] == id) return spec;
  }
  throw std::invalid_argument("no training " + id);
}

models::Gpt make_gpt(const Json& m) {
  return models::Gpt({.vocab_size = m["vocab"],
                      .block_size = m["T"],
                      .n_layer = m["layers"],
                      .n_head = m["heads"],
                      .n_embd = m["d"],
                      .tied = m["tied"],
                      .gelu = m["gelu"]});
}

TEST(TrainingParity, MlpFollowsPyTorchForTwentySteps) {
  const Json spec = spec_of("mlp");
  train(models::Mlp(spec["model"]["sizes"], spec["model"]["activations"]), spec);
}

TEST(TrainingParity, LenetFollowsPyTorchForTwentySteps) {
  train(models::Lenet({.dropout = 0}), spec_of("lenet"));
}

TEST(TrainingParity, GptFollowsPyTorchForTwentySteps) {
  for (const char* id : {"gpt", "gpt_tied"}) {
    const Json spec = spec_of(id);
    train(make_gpt(spec["model"]), spec);
  }
}

TEST(TrainingParity, MobileNetV2FollowsPyTorchForTwentySteps) {
  const Json spec = spec_of("mobilenet_v2");
  const Json& m = spec["model"];
  train(models::MobileNetV2({.num_classes = m["classes"],
                             .inverted_residual_setting = m["settings"],
                             .dropout = m["dropout"],
                             .input_channel = m["stem"],
                             .last_channel = m["last"]}),
        spec);
}

}  // namespace
}  // namespace flow::parity
