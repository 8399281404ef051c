#include "ops/conv/conv.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

struct Case {
  std::vector<SampleInput> inputs;  // x, weight, [bias]
  ConvOptions options;
  const char* label;
};

Tensor run(const Case& c, const Inputs& x) {
  const Tensor bias = x.size() > 2 ? x[2] : Tensor();
  if (x[1].dim() == 3) return conv1d(x[0], x[1], bias, c.options);
  if (x[1].dim() == 4) return conv2d(x[0], x[1], bias, c.options);
  return conv3d(x[0], x[1], bias, c.options);
}

}  // namespace

Samples conv_samples() {
  Samples samples;
  for (const Case& c : std::vector<Case>{
           {{in({2, 2, 4, 3}), in({3, 2, 2, 2}), in({3})}, {.padding = 1}, "padded"},
           {{in({2, 2, 7}), in({5, 2, 3})}, {.stride = 2, .dilation = 2}, "strided, dilated"},
           {{in({2, 4, 5}), in({6, 2, 2})}, {.groups = 2}, "groups"},
           {{in({2, 3, 5}), in({3, 1, 2}), in({3})}, {.groups = 3}, "each channel alone"},
           {{in({2, 2, 4}), in({3, 2, 2})}, {.stride = 2}, "windows that do not overlap"},
           {{in({2, 2, 3, 2}), in({3, 2, 3, 1})}, {}, "one window over a dim"},
           {{in({1, 2, 3, 2, 2}), in({2, 2, 2, 1, 2})}, {}, "three dims"},
           {{in({2, 2, 5}), in({3, 2, 4}), in({3})}, {.padding = "same"}, "same"},
           {{in({1, 4, 5, 4}), in({2, 2, 2, 3})},
            {.stride = {2, 1}, .padding = {0, 2}, .dilation = {1, 2}, .groups = 2},
            "everything"},
           {{in({2, 3, 5}), in({2, 3, 1}), in({2})}, {}, "one tap"},
           {{in({2, 5}), in({2, 2, 2})}, {}, "no batch"},
           {{in({4, 16, 20, 18}), in({32, 16, 3, 3}), in({32})}, {.padding = 1}, "many"},
           {{in({4, 32, 20, 18}), in({32, 1, 3, 3})}, {.padding = 1, .groups = 32}, "many alone"},
           {{in({4, 32, 20, 18}), in({16, 32, 1, 1})}, {}, "many of one tap"},
           {{in({3, 32, 1, 1}), in({48, 32, 1, 1}), in({48})}, {}, "one pixel"},
           {{in({3, 32, 1, 1}), in({48, 32, 1, 1})}, {}, "one pixel without bias"},
       }) {
    const auto call = [c](const Inputs& x) { return run(c, x); };
    const auto add = [&](const char* op, const std::function<void(const Inputs& x)>& function) {
      const DTypeSet dtypes = op == std::string("conv") ? kNumbers : kFloats;
      samples.push_back({op, c.inputs, dtypes, function, c.label});
      samples.back().only_kernels = c.inputs[0].shape.numel() > 1000;
    };
    add("conv", call);
    add("conv_backward_input", backward_of(call));
    add(c.inputs.size() > 2 ? "conv_backward_weight_bias" : "conv_backward_weight",
        backward_of(call));
  }
  const auto transposed = [](const Inputs& x) {
    return conv_transpose2d(x[0], x[1], {.stride = 2, .padding = 1, .output_padding = 1});
  };
  samples.push_back({"conv_backward_input",
                     {in({2, 2, 3, 3}), in({2, 3, 2, 3})},
                     kFloats,
                     transposed,
                     "transposed"});
  samples.push_back({"conv",
                     {in({2, 2, 3, 3}), in({2, 3, 2, 3})},
                     kFloats,
                     backward_of(transposed),
                     "transposed, backwards"});
  return samples;
}

}  // namespace flow::contract
