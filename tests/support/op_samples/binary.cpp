#include "ops/elementwise/binary.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

using Call = std::function<void(const Inputs& x)>;

// Adds samples of an op of a tensor and a number, besides those of its row.
void add_number(Samples& samples, const char* op, const SampleInput& x, DTypeSet dtypes,
                const Call& call, const std::string& label) {
  samples.push_back({op, {x}, dtypes, call, label});
  SampleInput many = x;
  many.shape = {3, 7000};
  samples.push_back({op, {many}, dtypes, call, label + " many"});
  samples.back().only_kernels = true;
}

void add_sums(Samples& samples) {
  for (const double alpha : {2.0, -3.0}) {
    samples.push_back({"add",
                       {in({5, 2}), in({5, 2})},
                       kNumbers,
                       [alpha](const Inputs& x) { add(x[0], x[1], {.alpha = alpha}); },
                       str("alpha ", alpha)});
  }
  samples.push_back(
      {"mul_scalar", {in({5, 2})}, kNumbers, [](const Inputs& x) { mul(x[0], -2); }, "by -2"});
}

void add_quotients(Samples& samples) {
  for (const auto& [op, call] : std::vector<std::pair<const char*, Call>>{
           {"div", [](const Inputs& x) { div(x[0], x[1]); }},
           {"floor_divide", [](const Inputs& x) { floor_divide(x[0], x[1]); }},
           {"trunc_divide", [](const Inputs& x) { div(x[0], x[1], {.rounding_mode = "trunc"}); }},
           {"fmod", [](const Inputs& x) { fmod(x[0], x[1]); }},
           {"remainder", [](const Inputs& x) { remainder(x[0], x[1]); }}}) {
    samples.push_back({op, {sparse({4, 25}, 0.3), sparse({4, 25}, 0.3)}, kFloats, call, "zeros"});
    samples.back().only_kernels = true;
  }
  const DTypeSet dtypes = kAllDTypes & ~only(DType::kUInt8);
  for (const auto& [op, call] : std::vector<std::pair<const char*, Call>>{
           {"div_scalar", [](const Inputs& x) { div(x[0], -2); }},
           {"floor_divide_scalar", [](const Inputs& x) { floor_divide(x[0], -2); }},
           {"trunc_divide_scalar",
            [](const Inputs& x) { div(x[0], -2, {.rounding_mode = "trunc"}); }},
           {"fmod_scalar", [](const Inputs& x) { fmod(x[0], -2); }},
           {"remainder_scalar", [](const Inputs& x) { remainder(x[0], -2); }}}) {
    add_number(samples, op, in({5, 2}, -9, 9),
               op == std::string("div_scalar") ? kAllDTypes : dtypes, call, "by -2");
  }
}

void add_powers(Samples& samples) {
  samples.push_back({"pow",
                     {in({5, 2}), in({5, 2}, 0, 2)},
                     kIntegers,
                     [](const Inputs& x) { pow(x[0], x[1]); },
                     "integers"});
  for (const int64_t exponent : {1, 3}) {
    add_number(
        samples, "pow_scalar", in({5, 2}), kAllDTypes,
        [exponent](const Inputs& x) { pow(x[0], exponent); }, str("to the ", exponent));
  }
  // Negative numbers have no such power, but -inf does, so special values are needed to find what
  // holds.
  for (const double exponent : {0.5, -2.5, 1.7}) {
    const auto call = [exponent](const Inputs& x) { pow(x[0], exponent); };
    const std::string label = str("to the ", exponent);
    samples.push_back({"pow_scalar", {in({5, 2}, 0.5, 2)}, kFloats, call, label});
    samples.back().is_general = exponent == 0.5;
    samples.push_back({"pow_scalar", {specials({5, 2})}, kFloats, call, label + ", specials"});
    samples.back().constant_inputs = 1;
  }
  add_number(
      samples, "pow_scalar", nonzero({5, 2}), kFloats, [](const Inputs& x) { pow(x[0], -1.0); },
      "to the -1");
  for (const double base : {2.0, 0.5}) {
    add_number(
        samples, "rpow_scalar", in({5, 2}), kAllDTypes,
        [base](const Inputs& x) { pow(base, x[0]); }, str("of ", base));
  }
}

}  // namespace

Samples binary_samples() {
  Samples samples;
  add_sums(samples);
  add_quotients(samples);
  add_powers(samples);
  return samples;
}

}  // namespace flow::contract
