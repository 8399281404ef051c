#include "ops/norm/softmax.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

using Function = Tensor (*)(const TensorArg& x, int64_t dim, const SoftmaxOptions& options);

void add(Samples& samples, const std::string& op, Function function) {
  struct Case {
    Shape shape;
    int64_t dim;
  };

  for (const auto& [shape, dim] : std::vector<Case>{{{5, 2}, -1},
                                                    {{2, 5, 3}, 1},
                                                    {{90, 300}, 1},
                                                    {{300, 90}, 0},
                                                    {{40, 1100}, 0},
                                                    {{20, 5000}, 1}}) {
    const auto call = [function, dim = dim](const Inputs& x) { return function(x[0], dim, {}); };
    const std::string label = str(shape, " along ", dim);
    samples.push_back({op, {in(shape, -4, 4)}, kFloats, call, label});
    samples.back().only_kernels = shape.numel() > 100;
    samples.push_back({op + "_backward", {in(shape)}, kFloats, backward_of(call), label});
    samples.back().only_kernels = shape.numel() > 100;
  }
  for (const int64_t dim : {-1, 0}) {
    const auto call = [function, dim](const Inputs& x) { function(x[0], dim, {}); };
    samples.push_back({op, {specials({40, 30})}, kFloats, call, str("specials along ", dim)});
    samples.back().only_kernels = true;
    SampleInput wide = in({40, 30});
    wide.extremes = 0.2;
    samples.push_back({op, {wide}, kFloats, call, str("extremes along ", dim)});
    samples.back().only_kernels = true;
  }
}

}  // namespace

Samples softmax_samples() {
  Samples samples;
  add(samples, "softmax", softmax);
  add(samples, "log_softmax", log_softmax);
  return samples;
}

}  // namespace flow::contract
