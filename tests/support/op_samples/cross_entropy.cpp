#include "ops/loss/cross_entropy.h"

#include <string_view>

#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

struct Case {
  std::vector<SampleInput> inputs;  // x, target, [weight]
  double label_smoothing;
  std::string reduction;
  const char* label;
};

SampleInput wide(const Shape& shape) {
  SampleInput input = in(shape);
  input.extremes = 0.2;
  return input;
}

Tensor run_cross_entropy(const Case& c, const Inputs& x) {
  return cross_entropy(x[0], x[1],
                       {.weight = x.size() > 2 ? x[2] : Tensor(),
                        .ignore_index = 1,
                        .reduction = c.reduction,
                        .label_smoothing = c.label_smoothing});
}

Tensor run_nll_loss(const Case& c, const Inputs& x) {
  return nll_loss(
      x[0], x[1],
      {.weight = x.size() > 2 ? x[2] : Tensor(), .ignore_index = 1, .reduction = c.reduction});
}

}  // namespace

Samples cross_entropy_samples() {
  Samples samples;
  for (const Case& c : std::vector<Case>{
           {{in({5, 4}), positions({5}, 4)}, 0, "mean", "mean"},
           {{in({5, 4}), positions({5}, 4)}, 0.2, "none", "smoothed"},
           {{in({5, 4}), positions({5}, 4), in({4})}, 0.1, "sum", "weighted"},
           {{in({2, 3, 5}), positions({2, 5}, 3)}, 0, "none", "images"},
           {{in({4}), positions({}, 4)}, 0.1, "mean", "one target"},
           {{in({5, 3}), positions({5}, 3, DType::kInt32), in({3}, 0.5, 2)}, 0, "mean", "int32"},
           {{in({5, 3}), positions({5}, 2), in({3})}, 1, "sum", "all smoothed"},
           {{wide({60, 20}), positions({60}, 20)}, 0.1, "none", "extremes"},
           {{specials({60, 20}), positions({60}, 20)}, 0, "none", "specials"},
           {{in({100, 250}), positions({100}, 250)}, 0, "mean", "many"},
           {{in({100, 250}), positions({100}, 250), in({250}, 0.5, 2)},
            0.1,
            "none",
            "many weighted"},
       }) {
    const auto entropy = [c](const Inputs& x) { return run_cross_entropy(c, x); };
    const auto nll = [c](const Inputs& x) { return run_nll_loss(c, x); };
    const auto add = [&](const char* op, const std::function<void(const Inputs&)>& call) {
      samples.push_back({op, c.inputs, kFloats, call, c.label});
      samples.back().only_kernels = c.inputs[0].shape.numel() > 100;
      samples.back().constant_inputs = 0b11100;  // class weights, saved logsumexp
      // A mean needs weights of one sign; for these, a gradient increases with that of the loss.
      samples.back().is_general = std::string_view(op) != "nll_loss_backward" ||
                                  c.inputs.size() < 3 || c.reduction != "mean";
    };
    add("cross_entropy", entropy);
    add("cross_entropy_backward", backward_of(entropy, 0b100));
    if (c.label_smoothing == 0 || c.inputs.size() > 2) {
      add("nll_loss", nll);
      add("nll_loss_backward", backward_of(nll, 0b100));
    }
    if (c.reduction == "mean") add("target_weight", entropy);
  }
  return samples;
}

}  // namespace flow::contract
