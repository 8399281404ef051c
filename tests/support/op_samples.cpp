#include "tests/support/op_samples.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "autograd/engine.h"
#include "core/grad_mode.h"
#include "tests/support/op_samples/families.h"
#include "tests/support/values.h"

namespace flow::contract {

namespace {

double uniform(std::mt19937_64& random, double low, double high) {
  return low + (high - low) * (static_cast<double>(random() >> 11) * 0x1p-53);
}

int64_t integer(std::mt19937_64& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

bool is_allowed(const SampleInput& input, double value, double gap) {
  return std::all_of(input.avoid.begin(), input.avoid.end(),
                     [&](double point) { return std::abs(value - point) > gap; });
}

double away_from_kinks(std::mt19937_64& random, const SampleInput& input) {
  for (;;) {
    const double value = uniform(random, input.low, input.high);
    if (is_allowed(input, value, input.gap)) return value;
  }
}

Values float_values(std::mt19937_64& random, const SampleInput& input, size_t count) {
  Values values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = input.distinct ? (static_cast<double>(i) - static_cast<double>(count) / 2) * 0.0625
                               : away_from_kinks(random, input);
  }
  if (input.distinct) std::shuffle(values.begin(), values.end(), random);
  if (input.has_specials && count > 0) {
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double special : {std::nan(""), infinity, -infinity})
      values[random() % count] = special;
  }
  return values;
}

Values integer_values(std::mt19937_64& random, const SampleInput& input, DType dtype,
                      size_t count) {
  int64_t low = input.low > 0 ? 1 : input.low == 0 || dtype == DType::kUInt8 ? 0 : -9;
  int64_t high = 9;
  if (input.dtype.has_value()) {
    low = static_cast<int64_t>(input.low);
    high = static_cast<int64_t>(input.high);
  }
  Values values(count);
  if (input.dtype.has_value() && input.distinct) {
    values.resize(std::max(count, static_cast<size_t>(high - low + 1)));
    std::iota(values.begin(), values.end(), static_cast<double>(low));
    std::shuffle(values.begin(), values.end(), random);
    values.resize(count);
    return values;
  }
  for (double& value : values) {
    do {
      value = static_cast<double>(integer(random, low, high));
    } while (!is_allowed(input, value, 0));
  }
  return values;
}

// Different values give a different seed.
uint64_t seed_of(const Inputs& x) {
  uint64_t seed = 0;
  for (const Tensor& input : x) {
    for (const double value : read_values(input))
      seed = seed * 31 + std::hash<double>()(value);
  }
  return seed;
}

}  // namespace

std::function<void(const Inputs& x)> backward_of(std::function<Tensor(const Inputs& x)> function,
                                                 uint32_t constant_inputs) {
  return [function = std::move(function), constant_inputs](const Inputs& x) {
    const EnableGradGuard enable;
    Inputs sources;
    for (size_t i = 0; i < x.size(); ++i) {
      const bool is_constant = (constant_inputs >> i & 1U) != 0;
      if (is_floating(x[i].dtype()) && !is_constant) sources.push_back(x[i].requires_grad_());
    }
    const Tensor y = function(x);
    Values weights;
    std::mt19937_64 random(seed_of(x));
    for (int64_t i = 0; i < y.numel(); ++i)
      weights.push_back(uniform(random, -2, 2));
    const Tensor dy = make_guarded(local_meta(y.shape(), y.dtype(), DeviceType::kCpu), weights);
    grad({y}, sources, {.grad_outputs = {dy}, .allow_unused = true});
  };
}

const Samples& all_samples() {
  static const Samples samples = [] {
    Samples all;
    for (const auto& family : kFamilies) {
      Samples list = family();
      std::move(list.begin(), list.end(), std::back_inserter(all));
    }
    return all;
  }();
  return samples;
}

std::vector<const OpSample*> samples_of(const std::string& op) {
  std::vector<const OpSample*> result;
  for (const OpSample& sample : all_samples()) {
    if (sample.op == op) result.push_back(&sample);
  }
  return result;
}

std::string describe(const OpSample& sample) {
  return sample.label.empty() ? sample.op : sample.op + ": " + sample.label;
}

Inputs make_inputs(const OpSample& sample, DType dtype, uint64_t seed) {
  std::mt19937_64 random(seed * 2 + 1);
  Inputs inputs;
  for (const SampleInput& input : sample.inputs) {
    const DType own = input.dtype.value_or(dtype);
    const auto count = static_cast<size_t>(input.shape.numel());
    Values values;
    if (is_floating(own)) {
      values = float_values(random, input, count);
    } else if (own == DType::kBool) {
      for (size_t i = 0; i < count; ++i)
        values.push_back(
            static_cast<double>(integer(random, input.low > 0 || !input.avoid.empty() ? 1 : 0, 1)));
    } else {
      values = integer_values(random, input, own, count);
    }
    for (double& value : values) {
      if (uniform(random, 0, 1) < input.zeros) value = 0;
      if (is_floating(own) && uniform(random, 0, 1) < input.extremes)
        value = value < 0 ? -1e3 : 1e3;
    }
    inputs.push_back(make_guarded(local_meta(input.shape, own, DeviceType::kCpu), values));
  }
  return inputs;
}

std::vector<DType> dtypes_of(const OpSample& sample) {
  std::vector<DType> dtypes;
  for (int i = 0; i < kNumDTypes; ++i) {
    if ((sample.dtypes & only(static_cast<DType>(i))) != 0) dtypes.push_back(static_cast<DType>(i));
  }
  if (dtypes.empty()) dtypes.push_back(DType::kFloat32);
  return dtypes;
}

DType widest_dtype(const OpSample& sample) {
  const std::vector<DType> dtypes = dtypes_of(sample);
  for (const DType dtype : {DType::kFloat64, DType::kInt64}) {
    if (std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end()) return dtype;
  }
  return dtypes.front();
}

std::vector<DType> widest_and_float32(const OpSample& sample) {
  const DType widest = widest_dtype(sample);
  if (widest == DType::kFloat32 || (sample.dtypes & only(DType::kFloat32)) == 0) return {widest};
  return {widest, DType::kFloat32};
}

}  // namespace flow::contract
