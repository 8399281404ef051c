#include "ops/elementwise/unary.h"

#include <array>

#include "core/dispatch.h"
#include "ops/elementwise/activation_and_grad_op.h"
#include "ops/elementwise/unary_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

// A fused gradient (dy, x or y), with x away from points where the function is not smooth.
struct GradRow {
  const OpDef* op;
  SampleInput input;
};

template <class Attrs>
void add_grad(Samples& samples, const OpDef& op, const SampleInput& input, const Attrs& attrs) {
  samples.push_back({op.name, {in(input.shape), input}, kFloats, [&op, attrs](const Inputs& x) {
                       dispatch(op, {&x[0], &x[1]}, attrs, Site::here());
                     }});
  SampleInput many = input;
  many.shape = {3, 7000};
  samples.push_back(samples.back());
  samples.back().inputs = {in(many.shape), many};
  samples.back().label = "many";
  samples.back().only_kernels = true;
}

// An activation with its gradient, (dy, x), or with its derivative, (x, y).
void add_pair(Samples& samples, const OpDef& op, const char* label, const Shape& shape) {
  const SampleInput x = in(shape, -3, 3);
  samples.push_back({op.name,
                     {in(shape), x},
                     kFloats,
                     [&op](const Inputs& t) {
                       const std::array<const Tensor*, 2> inputs{&t[0], &t[1]};
                       std::array<Tensor, 2> outputs;
                       Call call{op, inputs, nullptr, Site::here()};
                       dispatch(call, outputs.data());
                     },
                     label});
  samples.back().only_kernels = shape.numel() > 100;
}

}  // namespace

Samples unary_samples() {
  Samples samples;
  for (const OpDef* op : {&ops::kGeluAndGrad, &ops::kGeluTanhAndGrad, &ops::kSiluAndGrad,
                          &ops::kGeluAndSlope, &ops::kGeluTanhAndSlope, &ops::kSiluAndSlope}) {
    add_pair(samples, *op, "few", {5, 2});
    add_pair(samples, *op, "many", {3, 7000});
  }
  const SampleInput kinked_at_zero = kinked({5, 2}, {0});
  add_function(samples, "leaky_relu", kinked_at_zero, kFloats,
               [](const Inputs& x) { leaky_relu(x[0]); });
  add_function(samples, "elu", kinked_at_zero, kFloats, [](const Inputs& x) { elu(x[0]); });
  add_function(samples, "softplus", in({5, 2}, -3, 3), kFloats,
               [](const Inputs& x) { softplus(x[0]); });
  samples.push_back({"leaky_relu",
                     {kinked({5, 2}, {0})},
                     kFloats,
                     [](const Inputs& x) { leaky_relu(x[0], {.negative_slope = -0.5}); },
                     "negative slope"});
  samples.push_back({"elu",
                     {kinked({5, 2}, {0})},
                     kFloats,
                     [](const Inputs& x) { elu(x[0], {.alpha = -0.5}); },
                     "negative alpha"});
  samples.push_back({"softplus",
                     {kinked({5, 2}, {0.5})},
                     kFloats,
                     [](const Inputs& x) { softplus(x[0], {.beta = 2, .threshold = 1}); },
                     "threshold"});
  samples.back().is_general = false;  // decreases slightly at the threshold, which few values show
  for (const auto& [op, input] : std::vector<GradRow>{
           {&ops::kReluGrad, kinked({5, 2}, {0})},
           {&ops::kTanhGrad, in({5, 2}, -1.5, 1.5)},
           {&ops::kSigmoidGrad, in({5, 2}, -0.5, 1.5)},
           {&ops::kGeluGrad, in({5, 2}, -3, 3)},
           {&ops::kGeluTanhGrad, in({5, 2}, -3, 3)},
           {&ops::kSiluGrad, in({5, 2}, -3, 3)},
       }) {
    samples.push_back({op->name, {in(input.shape), input}, kFloats, [own = op](const Inputs& x) {
                         dispatch(*own, {&x[0], &x[1]}, Site::here());
                       }});
    if (op == &ops::kReluGrad) samples.back().dtypes = kAllDTypes;
    samples.push_back(samples.back());
    SampleInput many = input;
    many.shape = {3, 7000};
    samples.back().inputs = {in(many.shape), many};
    samples.back().label = "many";
    samples.back().only_kernels = true;
  }
  add_grad(samples, ops::kLeakyReluGrad, kinked({5, 2}, {0}), ops::LeakyReluAttrs{});
  SampleInput wide = kinked({5, 2}, {0});
  wide.extremes = 0.3;
  add_grad(samples, ops::kEluGrad, wide, ops::EluAttrs{});
  add_grad(samples, ops::kSoftplusGrad, wide, ops::SoftplusAttrs{});
  return samples;
}

}  // namespace flow::contract
