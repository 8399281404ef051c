#include "ops/cast.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

// Every pair of dtypes. Between the two 16-bit floats, neither of which holds the other's values,
// only kernels are compared.
Samples cast_samples() {
  Samples samples;
  for (int from = 0; from < kNumDTypes; ++from) {
    for (int to = 0; to < kNumDTypes; ++to) {
      if (from == to) continue;
      const auto source = static_cast<DType>(from);
      const auto target = static_cast<DType>(to);
      const auto call = [target](const Inputs& x) { cast(x[0], target); };
      for (const Shape& shape : {Shape{5, 2}, Shape{3, 7000}}) {
        samples.push_back({"cast",
                           {in(shape, -0.9, 4)},
                           only(source),
                           call,
                           str(source, " to ", target, ' ', shape)});
        samples.back().only_kernels =
            shape.numel() > 100 || (dtype_size(source) == 2 && dtype_size(target) == 2);
      }
    }
  }
  return samples;
}

}  // namespace flow::contract
