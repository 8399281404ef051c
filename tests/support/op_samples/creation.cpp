#include "ops/creation/creation.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

void add(Samples& samples, const char* op, DType dtype, std::function<void()> call) {
  samples.push_back({op, {}, kNoDType, [call](const Inputs& /*x*/) { call(); }, str(dtype)});
}

}  // namespace

// Only the requested dtype varies.
Samples creation_samples() {
  Samples samples;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    add(samples, "empty", dtype, [dtype] { empty({5, 2}, {.dtype = dtype}); });
    samples.back().has_values = false;
    add(samples, "full", dtype, [dtype] { full({5, 2}, 3, {.dtype = dtype}); });
    add(samples, "eye", dtype, [dtype] { eye(5, 3, {.dtype = dtype}); });
    if (dtype == DType::kBool) continue;
    add(samples, "arange", dtype, [dtype] { arange(2, 9, 3, {.dtype = dtype}); });
    if (!is_floating(dtype)) continue;
    add(samples, "arange", dtype, [dtype] { arange(2.5, -4, -0.75, {.dtype = dtype}); });
    add(samples, "linspace", dtype, [dtype] { linspace(-1, 2.5, 5, {.dtype = dtype}); });
  }
  return samples;
}

}  // namespace flow::contract
