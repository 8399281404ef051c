#include "tests/parity/golden_training.h"

#include <cmath>

#include "nn/flow.h"

namespace flow::parity {

namespace {

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

models::Gpt make_gpt(const Json& m) {
  return models::Gpt({.vocab_size = m["vocab"],
                      .block_size = m["T"],
                      .n_layer = m["layers"],
                      .n_head = m["heads"],
                      .n_embd = m["d"],
                      .tied = m["tied"],
                      .gelu = m["gelu"]});
}

models::MobileNetV2 make_mobilenet(const Json& m) {
  return models::MobileNetV2({.num_classes = m["classes"],
                              .inverted_residual_setting = m["settings"],
                              .dropout = m["dropout"],
                              .input_channel = m["stem"],
                              .last_channel = m["last"]});
}

nn::AnyModule make_model(const Json& m) {
  const std::string kind = m["kind"];
  if (kind == "mlp") return models::Mlp(m["sizes"], m["activations"]);
  if (kind == "lenet") return models::Lenet({.dropout = 0});
  if (kind == "gpt") return make_gpt(m);
  return make_mobilenet(m);
}

}  // namespace

Json training_spec(const std::string& id) {
  for (const Json& spec : read_json("training.json")) {
    if (spec["id"] == id) return spec;
  }
  throw std::invalid_argument("no training " + id);
}

nn::AnyModule make_trained_model(const Json& spec) {
  nn::AnyModule model = make_model(spec["model"]);
  fill(model);
  return model;
}

TrainingData make_training_data(const Json& spec) {
  const bool is_gpt = spec["model"]["kind"] == "gpt";
  const auto shape = spec["x"].get<std::vector<int64_t>>();
  const int64_t batches = spec["batches"];
  std::vector<int64_t> all_shape{batches};
  all_shape.insert(all_shape.end(), shape.begin(), shape.end());
  const Shape xs(all_shape);
  const double classes = spec["classes"];
  const int64_t num_targets = is_gpt ? xs.numel() : batches * shape[0];
  const Shape ys = is_gpt ? xs : Shape{batches, shape[0]};
  return {is_gpt ? tensor(bucketed(xs.numel(), 1000, classes), xs, {.dtype = int64})
                 : tensor(hashed(xs.numel(), 1000), xs, {.dtype = float64}),
          tensor(bucketed(num_targets, 1001, classes), ys, {.dtype = int64})};
}

bool is_golden(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::abs(b);
}

}  // namespace flow::parity
