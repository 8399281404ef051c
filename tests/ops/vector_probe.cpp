#include "tests/ops/vector_probe.h"

#include "ops/kernel/vector_math.h"
#include "ops/kernel/vector_pow.h"
#include "ops/kernel/vector_tan.h"

#include "ops/kernel/isa_begin.h"

namespace {

template <class F>
VectorFunction function(std::string_view name, F) {
  return {name, [](float* y, const float* x, int64_t n) { map(y, n, F{}, x); },
          [](double* y, const double* x, int64_t n) { map(y, n, F{}, x); }};
}

template <class F>
VectorOperator operation(std::string_view name, F) {
  return {name, [](float* y, const float* a, const float* b, int64_t n) { map(y, n, F{}, a, b); },
          [](double* y, const double* a, const double* b, int64_t n) { map(y, n, F{}, a, b); }};
}

template <class F>
VectorOperator comparison(std::string_view name, F) {
  return operation(name, []<class T>(Vec<T> a, Vec<T> b) {
    return select(F{}(a, b), Vec<T>::fill(T(1)), Vec<T>::zero());
  });
}

std::vector<VectorFunction> make_functions() {
  return {
      function("exp", [](auto v) { return exp(v); }),
      function("expm1", [](auto v) { return expm1(v); }),
      function("log", [](auto v) { return log(v); }),
      function("log1p", [](auto v) { return log1p(v); }),
      function("tanh", [](auto v) { return tanh(v); }),
      function("sigmoid", [](auto v) { return sigmoid(v); }),
      function("softplus", [](auto v) { return softplus(v); }),
      function("erf", [](auto v) { return erf(v); }),
      function("silu", [](auto v) { return silu(v); }),
      function("gelu_erf", [](auto v) { return gelu_erf(v); }),
      function("gelu_erf_slope", [](auto v) { return gelu_erf_slope(v); }),
      function("gelu_tanh", [](auto v) { return gelu_tanh(v); }),
      function("gelu_tanh_slope", [](auto v) { return gelu_tanh_slope(v); }),
      function("sin", [](auto v) { return sin(v); }),
      function("cos", [](auto v) { return cos(v); }),
      function("tan", [](auto v) { return tan(v); }),
      function("atan", [](auto v) { return atan(v); }),
      function("asin", [](auto v) { return asin(v); }),
      function("acos", [](auto v) { return acos(v); }),
      function("sqrt", [](auto v) { return sqrt(v); }),
      function("abs", [](auto v) { return abs(v); }),
      function("negate", [](auto v) { return -v; }),
      function("floor", [](auto v) { return floor(v); }),
      function("ceil", [](auto v) { return ceil(v); }),
      function("trunc", [](auto v) { return trunc(v); }),
      function("round_even", [](auto v) { return round_even(v); }),
  };
}

std::vector<VectorOperator> make_operators() {
  return {
      operation("add", [](auto a, auto b) { return a + b; }),
      operation("subtract", [](auto a, auto b) { return a - b; }),
      operation("multiply", [](auto a, auto b) { return a * b; }),
      operation("divide", [](auto a, auto b) { return a / b; }),
      operation("copysign", [](auto a, auto b) { return copysign(a, b); }),
      operation("min", [](auto a, auto b) { return min(a, b); }),
      operation("max", [](auto a, auto b) { return max(a, b); }),
      operation("minimum", [](auto a, auto b) { return minimum(a, b); }),
      operation("maximum", [](auto a, auto b) { return maximum(a, b); }),
      operation("pow", [](auto a, auto b) { return pow(a, b); }),
      comparison("less", [](auto a, auto b) { return a < b; }),
      comparison("less_equal", [](auto a, auto b) { return a <= b; }),
      comparison("greater", [](auto a, auto b) { return a > b; }),
      comparison("greater_equal", [](auto a, auto b) { return a >= b; }),
      comparison("equal", [](auto a, auto b) { return a == b; }),
      comparison("not_equal", [](auto a, auto b) { return a != b; }),
      comparison("either_nan", [](auto a, auto b) { return is_nan(a) | is_nan(b); }),
      comparison("both_finite", [](auto a, auto b) { return is_finite(a) & ~(~is_finite(b)); }),
  };
}

constexpr auto kSame = [](Vec<float> v) { return v; };

}  // namespace

VectorProbe make_vector_probe() {
  return {
      .num_lanes = Vec<float>::kLanes,
      .functions = make_functions(),
      .operators = make_operators(),
      .add_stream =
          [](float* y, const float* a, const float* b, int64_t n) {
            map_stream(
                y, n, [](Vec<float> u, Vec<float> v) { return u + v; }, a, b);
          },
      .to_half = [](Float16* y, const float* x, int64_t n) { map(y, n, kSame, x); },
      .from_half = [](float* y, const Float16* x, int64_t n) { map(y, n, kSame, x); },
      .to_bfloat = [](BFloat16* y, const float* x, int64_t n) { map(y, n, kSame, x); },
      .from_bfloat = [](float* y, const BFloat16* x, int64_t n) { map(y, n, kSame, x); },
      .sum = [](const float* x) { return sum(load(x)); },
      .max_of = [](const float* x) { return max_of(load(x)); },
      .min_of = [](const float* x) { return min_of(load(x)); },
      .load_some = [](float* y, const float* x,
                      int64_t n) { store(y, Vec<float>::load_n(x, n, 7.0F)); },
  };
}

#include "ops/kernel/isa_end.h"
