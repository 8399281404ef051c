#include "ops/elementwise/unary.h"

#include "core/dispatch.h"
#include "ops/elementwise/unary_op.h"
#include "ops/elementwise/unary_rows.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

DTypeSet dtypes_for(ops::Takes takes) {
  switch (takes) {
    case ops::Takes::kNumbers:
    case ops::Takes::kPromotedNumbers:
      return kNumbers;
    case ops::Takes::kFloats:
      return kFloats;
    case ops::Takes::kAll:
    case ops::Takes::kPromoted:
      break;
  }
  return kAllDTypes;
}

SampleInput input_for(const ops::UnarySample& sample) {
  return {.shape = {5, 2},
          .low = sample.low,
          .high = sample.high,
          .avoid = {sample.avoid, sample.avoid + sample.num_avoided},
          .gap = sample.gap,
          .has_specials = sample.has_specials,
          .zeros = sample.zeros};
}

// The function at values where it is smooth, and its kernels at many, special and extreme ones.
void add_function(Samples& samples, const std::string& op, const SampleInput& input,
                  DTypeSet dtypes, const std::function<void(const Inputs&)>& call) {
  samples.push_back({op, {input}, dtypes, call});
  SampleInput many = input;
  many.shape = {3, 7000};
  samples.push_back({op, {many}, dtypes, call, "many", true});
  samples.push_back({op, {specials({4, 25})}, dtypes, call, "specials", true});
  SampleInput wide = input;
  wide.shape = {4, 25};
  wide.extremes = 0.3;
  wide.zeros = 0.2;
  samples.push_back({op, {wide}, dtypes, call, "extremes", true});
}

template <class... Row>
void add_rows(Samples& samples, ops::Rows<Row...> /*rows*/) {
  for (const ops::UnaryFacts& facts : {Row::kFacts...}) {
    add_function(samples, facts.name, input_for(facts.sample), dtypes_for(facts.takes),
                 [function = facts.call](const Inputs& x) { function(x[0]); });
  }
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
  add_rows(samples, ops::UnaryRows());
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
