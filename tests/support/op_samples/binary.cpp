#include "ops/elementwise/binary.h"

#include "core/dispatch.h"
#include "ops/elementwise/binary_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

using Call = std::function<void(const Inputs& x)>;

// Adds samples of an op of two tensors: the shapes that broadcast, and many elements.
void add_pairs(Samples& samples, const char* op, const SampleInput& a, const SampleInput& b,
               DTypeSet dtypes, const Call& call) {
  struct Shapes {
    Shape a, b;
    const char* label;
  };

  for (const auto& [a_shape, b_shape, label] : std::vector<Shapes>{
           {{5, 2}, {5, 2}, ""},
           {{5, 2}, {2}, "row"},
           {{5, 1}, {3, 1, 2}, "both repeat"},
           {{5, 2}, {}, "scalar"},
           {{}, {5}, "scalar first"},
           {{3, 7000}, {3, 7000}, "many"},
           {{30, 70}, {70}, "many rows"},
           {{30, 70}, {30, 1}, "many columns"},
           {{1}, {30, 70}, "one and many"},
       }) {
    SampleInput left = a;
    SampleInput right = b;
    left.shape = a_shape;
    right.shape = b_shape;
    samples.push_back({op, {left, right}, dtypes, call, label});
    samples.back().only_kernels = b_shape.numel() > 100 || a_shape.numel() > 100;
  }
  SampleInput left = specials({4, 25});
  SampleInput right = specials({4, 25});
  left.avoid = a.avoid;
  right.avoid = b.avoid;
  samples.push_back({op, {left, right}, dtypes, call, "specials"});
  samples.back().only_kernels = true;
}

// Adds samples of an op of a tensor and a number.
void add_scalar(Samples& samples, const char* op, const SampleInput& x, DTypeSet dtypes,
                const Call& call, const char* label = "") {
  samples.push_back({op, {x}, dtypes, call, label});
  SampleInput many = x;
  many.shape = {3, 7000};
  samples.push_back({op, {many}, dtypes, call, std::string(label) + " many"});
  samples.back().only_kernels = true;
}

void add_sums(Samples& samples) {
  add_pairs(samples, "add", in({}), in({}), kAllDTypes, [](const Inputs& x) { add(x[0], x[1]); });
  add_pairs(samples, "sub", in({}), in({}), kNumbers, [](const Inputs& x) { sub(x[0], x[1]); });
  add_pairs(samples, "mul", in({}), in({}), kAllDTypes, [](const Inputs& x) { mul(x[0], x[1]); });
  for (const double alpha : {2.0, -3.0}) {
    samples.push_back({"add",
                       {in({5, 2}), in({5, 2})},
                       kNumbers,
                       [alpha](const Inputs& x) { add(x[0], x[1], {.alpha = alpha}); },
                       str("alpha ", alpha)});
  }
  add_scalar(samples, "add_scalar", in({5, 2}), kAllDTypes, [](const Inputs& x) { add(x[0], 3); });
  add_scalar(samples, "sub_scalar", in({5, 2}), kNumbers, [](const Inputs& x) { sub(x[0], 3); });
  add_scalar(samples, "rsub_scalar", in({5, 2}), kAllDTypes, [](const Inputs& x) { 3 - x[0]; });
  add_scalar(samples, "mul_scalar", in({5, 2}), kAllDTypes, [](const Inputs& x) { mul(x[0], 3); });
  samples.push_back(
      {"mul_scalar", {in({5, 2})}, kNumbers, [](const Inputs& x) { mul(x[0], -2); }, "by -2"});
}

void add_quotients(Samples& samples) {
  add_pairs(samples, "div", in({}), nonzero({}), kAllDTypes,
            [](const Inputs& x) { div(x[0], x[1]); });
  add_pairs(samples, "floor_divide", in({}), nonzero({}), kNumbers,
            [](const Inputs& x) { floor_divide(x[0], x[1]); });
  add_pairs(samples, "trunc_divide", in({}), nonzero({}), kNumbers,
            [](const Inputs& x) { div(x[0], x[1], {.rounding_mode = "trunc"}); });
  add_pairs(samples, "fmod", in({}), nonzero({}), kNumbers,
            [](const Inputs& x) { fmod(x[0], x[1]); });
  add_pairs(samples, "remainder", in({}), nonzero({}), kNumbers,
            [](const Inputs& x) { remainder(x[0], x[1]); });
  for (const auto& [op, call] : std::vector<std::pair<const char*, Call>>{
           {"div", [](const Inputs& x) { div(x[0], x[1]); }},
           {"floor_divide", [](const Inputs& x) { floor_divide(x[0], x[1]); }},
           {"trunc_divide", [](const Inputs& x) { div(x[0], x[1], {.rounding_mode = "trunc"}); }},
           {"fmod", [](const Inputs& x) { fmod(x[0], x[1]); }},
           {"remainder", [](const Inputs& x) { remainder(x[0], x[1]); }}}) {
    samples.push_back({op, {sparse({4, 25}, 0.3), sparse({4, 25}, 0.3)}, kFloats, call, "zeros"});
    samples.back().only_kernels = true;
  }
  add_scalar(samples, "rdiv_scalar", nonzero({5, 2}), kAllDTypes,
             [](const Inputs& x) { 3 / x[0]; });
  for (const int64_t divisor : {3, -2}) {
    const std::string label = str("by ", divisor);
    add_scalar(
        samples, "div_scalar", in({5, 2}), kAllDTypes,
        [divisor](const Inputs& x) { div(x[0], divisor); }, label.c_str());
    const DTypeSet dtypes = divisor > 0 ? kAllDTypes : kAllDTypes & ~only(DType::kUInt8);
    add_scalar(
        samples, "floor_divide_scalar", in({5, 2}, -9, 9), dtypes,
        [divisor](const Inputs& x) { floor_divide(x[0], divisor); }, label.c_str());
    add_scalar(
        samples, "trunc_divide_scalar", in({5, 2}, -9, 9), dtypes,
        [divisor](const Inputs& x) { div(x[0], divisor, {.rounding_mode = "trunc"}); },
        label.c_str());
    add_scalar(
        samples, "fmod_scalar", in({5, 2}, -9, 9), dtypes,
        [divisor](const Inputs& x) { fmod(x[0], divisor); }, label.c_str());
    add_scalar(
        samples, "remainder_scalar", in({5, 2}, -9, 9), dtypes,
        [divisor](const Inputs& x) { remainder(x[0], divisor); }, label.c_str());
  }
}

void add_logarithms(Samples& samples) {
  add_pairs(samples, "logaddexp", in({}), in({}), kFloats,
            [](const Inputs& x) { logaddexp(x[0], x[1]); });
  add_pairs(samples, "xlogy", in({}), in({}, 0.5, 3), kAllDTypes,
            [](const Inputs& x) { xlogy(x[0], x[1]); });
  add_pairs(samples, "hypot", nonzero({}), nonzero({}), kFloats,
            [](const Inputs& x) { hypot(x[0], x[1]); });
}

void add_powers(Samples& samples) {
  add_pairs(samples, "pow", in({}, 0.5, 2), in({}), kFloats,
            [](const Inputs& x) { pow(x[0], x[1]); });
  samples.push_back({"pow",
                     {in({5, 2}), in({5, 2}, 0, 2)},
                     kIntegers,
                     [](const Inputs& x) { pow(x[0], x[1]); },
                     "integers"});
  for (const int64_t exponent : {1, 2, 3}) {
    add_scalar(
        samples, "pow_scalar", in({5, 2}), kAllDTypes,
        [exponent](const Inputs& x) { pow(x[0], exponent); }, str("to the ", exponent).c_str());
  }
  // Negative numbers have no such power, but -inf does, so special values are needed to find what
  // holds.
  for (const double exponent : {0.5, -2.5, 1.7}) {
    const auto call = [exponent](const Inputs& x) { pow(x[0], exponent); };
    const std::string label = str("to the ", exponent);
    samples.push_back({"pow_scalar", {in({5, 2}, 0.5, 2)}, kFloats, call, label});
    samples.back().is_general = false;
    samples.push_back({"pow_scalar", {specials({5, 2})}, kFloats, call, label + ", specials"});
    samples.back().constant_inputs = 1;
  }
  add_scalar(
      samples, "pow_scalar", nonzero({5, 2}), kFloats, [](const Inputs& x) { pow(x[0], -1.0); },
      "to the -1");
  for (const double base : {2.0, 0.5}) {
    add_scalar(
        samples, "rpow_scalar", in({5, 2}), kAllDTypes,
        [base](const Inputs& x) { pow(base, x[0]); }, str("of ", base).c_str());
  }
  add_pairs(samples, "maximum", in({}), in({}), kAllDTypes,
            [](const Inputs& x) { maximum(x[0], x[1]); });
  add_pairs(samples, "minimum", in({}), in({}), kAllDTypes,
            [](const Inputs& x) { minimum(x[0], x[1]); });
}

}  // namespace

Samples binary_samples() {
  Samples samples;
  add_sums(samples);
  add_quotients(samples);
  add_logarithms(samples);
  add_powers(samples);
  return samples;
}

}  // namespace flow::contract
