#include "ops/elementwise/unary.h"

#include "core/dispatch.h"
#include "ops/elementwise/unary_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

using Function = Tensor (*)(const TensorArg& x);

// One row of the unary table, with values at which the function is smooth.
struct Row {
  std::string op;
  Function function;
  SampleInput input;
  DTypeSet dtypes;
};

const std::vector<double> kWholes = {-2, -1, 0, 1, 2};
const std::vector<double> kHalves = {-1.5, -0.5, 0.5, 1.5};

std::vector<Row> rows() {
  const SampleInput plain = in({5, 2}, -3, 3);
  const SampleInput positive = in({5, 2}, 0.5, 3);
  return {
      {"neg", neg, plain, kNumbers},
      {"abs", abs, kinked({5, 2}, {0}), kAllDTypes},
      {"sign", sign, kinked({5, 2}, {0}), kAllDTypes},
      {"square", square, plain, kAllDTypes},
      {"floor", floor, kinked({5, 2}, kWholes), kNumbers},
      {"ceil", ceil, kinked({5, 2}, kWholes), kNumbers},
      {"round", round, kinked({5, 2}, kHalves), kNumbers},
      {"trunc", trunc, kinked({5, 2}, kWholes), kNumbers},
      {"frac", frac, kinked({5, 2}, kWholes), kFloats},
      {"exp", exp, plain, kAllDTypes},
      {"exp2", exp2, plain, kAllDTypes},
      {"expm1", expm1, plain, kAllDTypes},
      {"log", log, positive, kAllDTypes},
      {"log2", log2, positive, kAllDTypes},
      {"log10", log10, positive, kAllDTypes},
      {"log1p", log1p, in({5, 2}, -0.8, 3), kAllDTypes},
      {"sqrt", sqrt, positive, kAllDTypes},
      {"rsqrt", rsqrt, positive, kAllDTypes},
      {"reciprocal", reciprocal, nonzero({5, 2}), kAllDTypes},
      {"sin", sin, plain, kAllDTypes},
      {"cos", cos, plain, kAllDTypes},
      {"tanh", tanh, plain, kAllDTypes},
      {"erf", erf, plain, kAllDTypes},
      {"erfc", erfc, plain, kAllDTypes},
      {"sinc", sinc, nonzero({5, 2}), kAllDTypes},
      {"sigmoid", sigmoid, plain, kAllDTypes},
      {"relu", relu, kinked({5, 2}, {0}), kNumbers},
      {"gelu", [](const TensorArg& x) { return gelu(x); }, plain, kFloats},
      {"gelu_tanh", [](const TensorArg& x) { return gelu(x, {.approximate = "tanh"}); }, plain,
       kFloats},
      {"silu", silu, plain, kFloats},
      {"leaky_relu", [](const TensorArg& x) { return leaky_relu(x); }, kinked({5, 2}, {0}),
       kFloats},
      {"elu", [](const TensorArg& x) { return elu(x); }, kinked({5, 2}, {0}), kFloats},
      {"softplus", [](const TensorArg& x) { return softplus(x); }, plain, kFloats},
      {"isnan", isnan, specials({5, 2}), kAllDTypes},
      {"isinf", isinf, specials({5, 2}), kAllDTypes},
      {"isfinite", isfinite, specials({5, 2}), kAllDTypes},
      {"logical_not", logical_not, sparse({5, 2}, 0.5), kAllDTypes},
  };
}

OpSample only_kernels(const Row& row, SampleInput input, const char* label) {
  return {.op = row.op,
          .inputs = {std::move(input)},
          .dtypes = row.dtypes,
          .call = [function = row.function](const Inputs& x) { function(x[0]); },
          .label = label,
          .only_kernels = true};
}

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

}  // namespace

Samples unary_samples() {
  Samples samples;
  for (const Row& row : rows()) {
    samples.push_back({row.op, {row.input}, row.dtypes, [function = row.function](const Inputs& x) {
                         function(x[0]);
                       }});
    SampleInput many = row.input;
    many.shape = {3, 7000};
    samples.push_back(only_kernels(row, many, "many"));
    samples.push_back(only_kernels(row, specials({4, 25}), "specials"));
    SampleInput wide = row.input;
    wide.shape = {4, 25};
    wide.extremes = 0.3;
    wide.zeros = 0.2;
    samples.push_back(only_kernels(row, wide, "extremes"));
  }
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
  samples.push_back({"logical_not",
                     {mask({5, 2})},
                     kNoDType,
                     [](const Inputs& x) { logical_not(x[0]); },
                     "masks"});
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
