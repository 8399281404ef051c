// Kernels that order, scan or reduce lines, at lengths around vectors and blocks. Plain loops give
// what is expected.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/context.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/index/count.h"
#include "ops/index/index.h"
#include "ops/index/search.h"
#include "ops/index/sort.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/order_statistics.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Doubles = std::vector<double>;
using Longs = std::vector<int64_t>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

const Longs kLengths = {1,  2,  3,  7,  8,   15,  16,  17,  31,  32,  33,   40,
                        63, 64, 65, 96, 127, 128, 129, 200, 256, 257, 1000, 4100};

// Small numbers with many ties; every dtype holds them. `specials` adds NaN, infinities and -0.
Doubles values_of(int64_t n, bool specials, uint32_t seed) {
  Doubles values;
  uint32_t state = seed * 2654435761U + 12345U;
  for (int64_t i = 0; i < n; ++i) {
    state = state * 1664525U + 1013904223U;
    const uint32_t draw = state >> 16;
    double value = static_cast<double>(draw % 41) - 20;
    if (specials && draw % 11 == 0) value = draw % 2 == 0 ? kNan : -0.0;
    if (specials && draw % 23 == 0) value = draw % 2 == 0 ? kInf : -kInf;
    values.push_back(value);
  }
  return values;
}

struct Case {
  Doubles values;
  Tensor x;
};

// The values in several dtypes, and integers that need 64 bits.
std::vector<Case> cases_of(int64_t n) {
  std::vector<Case> cases;
  const auto seed = static_cast<uint32_t>(n);
  const Doubles floats = values_of(n, true, seed);
  for (const DType dtype : {float32, float64, bfloat16, float16})
    cases.push_back({floats, cast(tensor(floats, {n}), dtype)});
  Doubles integers = values_of(n, false, seed + 1);
  for (const DType dtype : {int64, int32, int8})
    cases.push_back({integers, cast(tensor(integers, {n}), dtype)});
  Doubles natural = integers;
  for (double& value : natural)
    value = std::abs(value);
  cases.push_back({natural, cast(tensor(natural, {n}), uint8)});
  for (double& value : integers)
    value *= 0x1p35;
  cases.push_back({integers, cast(tensor(integers, {n}), int64)});
  return cases;
}

bool comes_before(double a, double b) {  // NaN last
  return std::isnan(a) ? false : std::isnan(b) || a < b;
}

Longs order_of(const Doubles& values, bool descending) {
  Longs order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    const double a = values[static_cast<size_t>(i)];
    const double b = values[static_cast<size_t>(j)];
    return descending ? comes_before(b, a) : comes_before(a, b);
  });
  return order;
}

void expect_values(const Tensor& actual, const Doubles& values, const Longs& places) {
  const Doubles found = actual.to_vector<double>();
  ASSERT_EQ(found.size(), places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    const double expected = values[static_cast<size_t>(places[i])];
    EXPECT_TRUE(found[i] == expected || (std::isnan(found[i]) && std::isnan(expected)))
        << actual.dtype() << " of " << values.size() << " at " << i << ": " << found[i] << ", not "
        << expected;
  }
}

TEST(LineKernels, SortEveryLength) {
  for (const int64_t n : kLengths) {
    for (const Case& c : cases_of(n)) {
      for (const bool descending : {false, true}) {
        const Longs order = order_of(c.values, descending);
        const Tensor columns = stack({c.x, c.x}, 1);

        const auto [values, indices] = sort(c.x, {.descending = descending});
        EXPECT_EQ(indices.to_vector<int64_t>(), order) << c.x.dtype() << " " << n;
        expect_values(values, c.values, order);
        const Tensor second = sort(columns, {.dim = 0, .descending = descending}).indices;
        EXPECT_EQ(select(second, 1, 1).to_vector<int64_t>(), order);
      }
    }
  }
}

TEST(LineKernels, TopkOfEveryLength) {
  for (const int64_t n : kLengths) {
    for (const Case& c : cases_of(n)) {
      for (const bool largest : {false, true}) {
        const Longs order = order_of(c.values, largest);
        for (const int64_t k : {int64_t{1}, std::min<int64_t>(5, n), n / 5, n / 2, n}) {
          const Longs first(order.begin(), order.begin() + k);

          const auto [values, indices] = topk(c.x, k, {.largest = largest});
          EXPECT_EQ(indices.to_vector<int64_t>(), first) << c.x.dtype() << " " << k << " of " << n;
          expect_values(values, c.values, first);
        }
      }
    }
  }
}

TEST(LineKernels, TopkOfLinesThatRise) {
  for (const int64_t n : {129, 1000}) {
    const Tensor x = arange(n, {.dtype = float32});
    EXPECT_EQ(topk(x, 3).indices.to_vector<int64_t>(), Longs({n - 1, n - 2, n - 3}));
    EXPECT_EQ(topk(x, 3, {.largest = false}).indices.to_vector<int64_t>(), Longs({0, 1, 2}));
  }
}

TEST(LineKernels, FindEveryRank) {
  for (const int64_t n : kLengths) {
    for (const Case& c : cases_of(n)) {
      const Longs order = order_of(c.values, false);
      for (const int64_t k : {int64_t{1}, (n + 1) / 2, n}) {
        const auto [value, index] = kthvalue(c.x, k);
        EXPECT_EQ(index.item<int64_t>(), order[static_cast<size_t>(k - 1)])
            << c.x.dtype() << " " << k << " of " << n;
        expect_values(reshape(value, {1}), c.values, {order[static_cast<size_t>(k - 1)]});
      }
      const auto numbers =
          std::count_if(c.values.begin(), c.values.end(), [](double v) { return !std::isnan(v); });
      const auto first_nan =
          std::find_if(c.values.begin(), c.values.end(), [](double v) { return std::isnan(v); });
      const int64_t middle = order[static_cast<size_t>((n - 1) / 2)];
      const int64_t of_numbers =
          order[static_cast<size_t>(std::max<int64_t>(0, (numbers - 1) / 2))];
      const int64_t expected = numbers == n ? middle : first_nan - c.values.begin();
      EXPECT_EQ(median(c.x, 0).indices.item<int64_t>(), expected) << c.x.dtype() << " " << n;
      EXPECT_EQ(nanmedian(c.x, 0).indices.item<int64_t>(), of_numbers) << c.x.dtype() << " " << n;
      expect_values(reshape(median(c.x), {1}), c.values, {expected});
      expect_values(reshape(nanmedian(c.x), {1}), c.values, {of_numbers});
    }
  }
}

TEST(LineKernels, FindTheLongestRun) {
  for (const int64_t n : kLengths) {
    for (const Case& c : cases_of(n)) {
      const Longs order = order_of(c.values, false);
      size_t run = 0;
      size_t longest = 0;
      int64_t expected = order[0];
      for (size_t i = 0; i < order.size(); ++i) {
        const auto value = [&](size_t place) {
          return c.values[static_cast<size_t>(order[place])];
        };
        ++run;
        if (i + 1 < order.size() && value(i) == value(i + 1)) continue;
        if (run > longest) expected = order[i];
        longest = std::max(longest, run);
        run = 0;
      }
      EXPECT_EQ(mode(c.x).indices.item<int64_t>(), expected) << c.x.dtype() << " " << n;
    }
  }
}

TEST(LineKernels, DistinctElementsOfEveryLength) {
  for (const int64_t n : kLengths) {
    const Doubles values = values_of(n, false, 7);
    Doubles expected = values;
    std::sort(expected.begin(), expected.end());
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());

    const UniqueResult found =
        unique(cast(tensor(values, {n}), float32), {.return_inverse = true, .return_counts = true});
    EXPECT_EQ(found.output.to_vector<double>(), expected);
    const Longs inverse = found.inverse_indices.to_vector<int64_t>();
    Longs counts(expected.size(), 0);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(expected[static_cast<size_t>(inverse[i])], values[i]);
      ++counts[static_cast<size_t>(inverse[i])];
    }
    EXPECT_EQ(found.counts.to_vector<int64_t>(), counts);
  }
}

int64_t first_extremum(const Doubles& values, bool is_max) {
  size_t best = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    const bool is_better = is_max ? values[i] > values[best] : values[i] < values[best];
    if (!std::isnan(values[best]) && (is_better || std::isnan(values[i]))) best = i;
  }
  return static_cast<int64_t>(best);
}

TEST(LineKernels, PositionsOfExtremaInRowsAndColumns) {
  for (const int64_t n : kLengths) {
    for (const Case& c : cases_of(n)) {
      const int64_t largest = first_extremum(c.values, true);
      const int64_t smallest = first_extremum(c.values, false);
      EXPECT_EQ(argmax(c.x).item<int64_t>(), largest) << c.x.dtype() << " " << n;
      EXPECT_EQ(argmin(c.x, 0).item<int64_t>(), smallest) << c.x.dtype() << " " << n;
      expect_values(reshape(amax(c.x), {1}), c.values, {largest});
      expect_values(reshape(min(c.x, 0).values, {1}), c.values, {smallest});
      for (const int64_t width : {2, 16, 19, 530}) {
        if (n > 130 && width > 19) continue;
        const Tensor columns = reshape(c.x, {n, 1}).expand({n, width}).contiguous();
        const auto [values, indices] = max(columns, 0);
        EXPECT_EQ(indices.to_vector<int64_t>(), Longs(static_cast<size_t>(width), largest));
        expect_values(values, c.values, Longs(static_cast<size_t>(width), largest));
        expect_values(amin(columns, 0), c.values, Longs(static_cast<size_t>(width), smallest));
      }
    }
  }
}

TEST(LineKernels, TruthValuesAreCounted) {
  for (const int64_t n : {1, 8, 63, 64, 65, 127, 129, 16319, 16320, 16321, 16400, 70000}) {
    const auto size = static_cast<size_t>(n);
    std::vector<bool> truth(size, true);
    const auto as_tensor = [&] { return tensor(truth, {n}); };
    EXPECT_EQ(sum(as_tensor()).item<int64_t>(), n);
    EXPECT_TRUE(all(as_tensor()).item<bool>());
    for (const size_t at : {size_t{0}, size / 2, size - 1}) {
      truth.assign(size, true);
      truth[at] = false;
      EXPECT_EQ(sum(as_tensor()).item<int64_t>(), n - 1) << n << " at " << at;
      EXPECT_FALSE(all(as_tensor()).item<bool>()) << n << " at " << at;
      truth.flip();
      EXPECT_EQ(sum(as_tensor()).item<int64_t>(), 1) << n << " at " << at;
      EXPECT_TRUE(any(as_tensor()).item<bool>()) << n << " at " << at;
      truth[at] = false;
      EXPECT_FALSE(any(as_tensor()).item<bool>()) << n << " at " << at;
    }
  }
}

TEST(LineKernels, ProductsAndIntegerSumsOfEveryLength) {
  for (const int64_t n : kLengths) {
    Doubles values = values_of(n, false, 3);
    const double total = std::accumulate(values.begin(), values.end(), 0.0);
    const Tensor integers = cast(tensor(values, {n}), int32);
    const Tensor columns = reshape(integers, {n, 1}).expand({n, 3}).contiguous();
    EXPECT_EQ(sum(integers).item<double>(), total) << n;
    EXPECT_EQ(sum(columns, 0).to_vector<double>(), Doubles(3, total)) << n;

    for (double& value : values)
      value = 1 + value / 4096;
    const double product =
        std::accumulate(values.begin(), values.end(), 1.0, std::multiplies<double>());
    const Tensor factors = cast(tensor(values, {n}), float32);
    EXPECT_NEAR(prod(factors).item<double>(), product, 1e-6 * product) << n;
    const Tensor in_columns = reshape(factors, {n, 1}).expand({n, 3}).contiguous();
    EXPECT_NEAR(prod(in_columns, 0)[2].item<double>(), product, 1e-6 * product) << n;
  }
}

TEST(LineKernels, NormsAndLogSumsOfEveryLength) {
  for (const int64_t n : {1, 5, 16, 17, 100, 2047, 2048, 2049, 5000}) {
    const Doubles values = values_of(n, false, 5);
    const Tensor x = cast(tensor(values, {n}), float32);
    const Tensor columns = reshape(x, {n, 1}).expand({n, 18}).contiguous();
    double squares = 0;
    double cubes = 0;
    double exponentials = 0;
    for (const double value : values) {
      squares += value * value;
      cubes += std::abs(value * value * value);
      exponentials += std::exp(value);
    }
    const double length = std::sqrt(squares);
    const double logarithm = std::log(exponentials);
    EXPECT_NEAR(norm(x).item<double>(), length, 1e-6 * length) << n;
    EXPECT_NEAR(norm(columns, {.dim = 0})[17].item<double>(), length, 1e-6 * length) << n;
    const double root = std::cbrt(cubes);
    EXPECT_NEAR(norm(x, {.p = 3}).item<double>(), root, 1e-6 * root) << n;
    EXPECT_NEAR(norm(columns, {.p = 3, .dim = 0})[17].item<double>(), root, 1e-6 * root) << n;
    EXPECT_NEAR(logsumexp(x, 0).item<double>(), logarithm, 1e-5) << n;
    EXPECT_NEAR(logsumexp(columns, 0)[17].item<double>(), logarithm, 1e-5) << n;
  }
}

TEST(LineKernels, NormsNeitherOverflowNorUnderflow) {
  for (const float value : {3e30F, 3e-30F}) {
    const Tensor x = full({40}, value);
    EXPECT_FLOAT_EQ(norm(x).item<float>(), value * std::sqrt(40.0F));
  }
}

TEST(LineKernels, RunningSumsOfLinesAndColumnsAgree) {
  for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 33, 1001}) {
    for (const int64_t width : {1, 2, 17, 515}) {
      const Doubles values = values_of(n * width, false, static_cast<uint32_t>(n + width));
      const Tensor x = cast(tensor(values, {n, width}), float32) / 7;
      const Tensor integers = cast(tensor(values, {n, width}), int64);
      const Tensor sums = cumsum(x, 0);
      const Tensor products = cumprod(1 + x / 64, 0);
      Doubles counted = values;
      for (size_t i = static_cast<size_t>(width); i < counted.size(); ++i)
        counted[i] += counted[i - static_cast<size_t>(width)];

      EXPECT_EQ(cumsum(integers, 0).to_vector<double>(), counted) << n << " x " << width;
      const Tensor lines = x.t().contiguous();
      EXPECT_EQ(cumsum(lines, 1).t().contiguous().to_vector<float>(), sums.to_vector<float>());
      EXPECT_EQ(cumprod(1 + lines / 64, 1).t().contiguous().to_vector<float>(),
                products.to_vector<float>());
      const Doubles found = sums.to_vector<double>();
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], counted[i] / 7, 1e-6 * std::abs(counted[i]) + 1e-5);
    }
  }
}

TEST(LineKernels, RunningSumsFromTheEnd) {
  for (const int64_t n : {1, 3, 4, 5, 9}) {
    for (const int64_t width : {1, 3}) {
      const Tensor x = ones({n, width}, {.requires_grad = true});
      const Tensor dx = grad({sum(cumsum(x, 0))}, {x})[0];
      for (int64_t i = 0; i < n; ++i)
        EXPECT_EQ(dx.index({i, width - 1}).item<float>(), static_cast<float>(n - i));
    }
  }
}

TEST(LineKernels, RunningLogSumsOfLinesAndColumns) {
  for (const int64_t width : {1, 3, 520}) {
    constexpr int64_t kLength = 50;
    Doubles values = values_of(kLength * width, false, 17);
    const Tensor x = cast(tensor(values, {kLength, width}), float32);
    Doubles expected = values;
    for (size_t i = static_cast<size_t>(width); i < expected.size(); ++i) {
      const double before = expected[i - static_cast<size_t>(width)];
      const double high = std::max(before, values[i]);
      expected[i] = high + std::log(std::exp(before - high) + std::exp(values[i] - high));
    }

    const Doubles found = logcumsumexp(x, 0).to_vector<double>();
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 2e-7 * std::abs(expected[i]) + 1e-12) << i;
  }
}

TEST(LineKernels, RunningLogSumsOfInfinities) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = tensor(std::vector<float>{-inf, 1, -inf, inf, 2, NAN, 3}, {7});

  const std::vector<float> y = logcumsumexp(x, 0).to_vector<float>();
  EXPECT_EQ(y[0], -inf);
  EXPECT_EQ(y[1], 1);
  EXPECT_EQ(y[2], 1);
  EXPECT_EQ(y[3], inf);
  EXPECT_EQ(y[4], inf);
  EXPECT_TRUE(std::isnan(y[5]) && std::isnan(y[6]));
}

TEST(LineKernels, RunningExtremaOfEveryLength) {
  for (const int64_t n : kLengths) {
    if (n > 300) continue;
    for (const Case& c : cases_of(n)) {
      Longs places;
      for (size_t i = 0; i < c.values.size(); ++i) {
        const double value = c.values[i];
        const double best = places.empty() ? value : c.values[static_cast<size_t>(places.back())];
        const bool is_new = std::isnan(value) || (!std::isnan(best) && value >= best);
        places.push_back(is_new ? static_cast<int64_t>(i) : places.back());
      }
      const auto [values, indices] = cummax(c.x, 0);
      EXPECT_EQ(indices.to_vector<int64_t>(), places) << c.x.dtype() << " " << n;
      expect_values(values, c.values, places);
      const Tensor columns = reshape(c.x, {n, 1}).expand({n, 17}).contiguous();
      const auto of_columns = cummax(columns, 0);
      EXPECT_EQ(select(of_columns.indices, 1, 16).to_vector<int64_t>(), places);
      expect_values(select(of_columns.values, 1, 16), c.values, places);
    }
  }
}

TEST(LineKernels, NonzeroElementsOfEveryLength) {
  for (const int64_t n : kLengths) {
    for (Case& c : cases_of(n)) {
      Longs places;
      for (size_t i = 0; i < c.values.size(); ++i)
        if (c.values[i] != 0) places.push_back(static_cast<int64_t>(i));

      EXPECT_EQ(nonzero(c.x).to_vector<int64_t>(), places) << c.x.dtype() << " " << n;
      EXPECT_EQ(nonzero(cast(c.x, flow::bool_)).to_vector<int64_t>(), places);
    }
  }
}

TEST(LineKernels, NonzeroElementsOfSeveralDims) {
  for (const Shape& shape : {Shape({3, 70}), Shape({2, 3, 5}), Shape({2, 1, 3, 9}),
                             Shape({2, 2, 1, 2, 3}), Shape({4, 1})}) {
    const Doubles values = values_of(shape.numel(), false, 11);
    const Tensor x = cast(tensor(values, shape), float32);
    Longs places;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] == 0) continue;
      auto rest = static_cast<int64_t>(i);
      Longs place(static_cast<size_t>(shape.size()));
      for (int64_t d = shape.size() - 1; d >= 0; --d) {
        place[static_cast<size_t>(d)] = rest % shape[d];
        rest /= shape[d];
      }
      places.insert(places.end(), place.begin(), place.end());
    }
    EXPECT_EQ(nonzero(x).to_vector<int64_t>(), places) << shape;
  }
}

TEST(LineKernels, PlacesInSequencesOfEveryLength) {
  for (int64_t n = 0; n < 40; ++n) {
    Doubles sequence = values_of(n, false, 2);
    std::sort(sequence.begin(), sequence.end());
    Doubles wanted = values_of(70, false, 9);
    wanted[33] = kNan;
    wanted[34] = kInf;
    Longs left;
    Longs right;
    for (const double value : wanted) {
      const auto lower = std::lower_bound(sequence.begin(), sequence.end(), value);
      const auto upper = std::upper_bound(sequence.begin(), sequence.end(), value);
      left.push_back(std::isnan(value) ? n : lower - sequence.begin());
      right.push_back(std::isnan(value) ? n : upper - sequence.begin());
    }
    for (const DType dtype : {float32, float64, bfloat16}) {
      const Tensor in = cast(tensor(sequence, {n}), dtype);
      const Tensor of = cast(tensor(wanted, {2, 35}), dtype);
      EXPECT_EQ(searchsorted(in, of).to_vector<int64_t>(), left) << n;
      EXPECT_EQ(searchsorted(in, of, {.right = true}).to_vector<int64_t>(), right) << n;
      const Tensor rows = stack({in, in}, 0);
      EXPECT_EQ(searchsorted(rows, of).to_vector<int64_t>(), left) << n;
    }
  }
}

TEST(LineKernels, StridesDoNotChangeTheResults) {
  const Tensor base = cast(tensor(values_of(40 * 300, true, 8), {40, 300}), float32);
  const std::vector<std::function<Tensor(const Tensor& x)>> functions = {
      [](const Tensor& x) { return sum(ne(x, 0)); },
      [](const Tensor& x) { return sum(nan_to_num(x, {.posinf = 9, .neginf = -9}), 0); },
      [](const Tensor& x) { return sum(nan_to_num(x, {.posinf = 9, .neginf = -9}), 1); },
      [](const Tensor& x) { return amax(x, 1); },
      [](const Tensor& x) { return argmax(x); },
      [](const Tensor& x) { return min(x, 0).indices; },
      [](const Tensor& x) { return norm(x, {.dim = 1}); },
      [](const Tensor& x) { return logsumexp(x, 0); },
      [](const Tensor& x) { return cumsum(x, 1); },
      [](const Tensor& x) { return cummax(x, 1).indices; },
      [](const Tensor& x) { return logcumsumexp(x, 1); },
      [](const Tensor& x) { return sort(x).indices; },
      [](const Tensor& x) { return topk(x, 7).indices; },
      [](const Tensor& x) { return kthvalue(x, 7).indices; },
      [](const Tensor& x) { return nanmedian(x); },
      [](const Tensor& x) { return nonzero(x); },
  };
  for (const Tensor& x : {base.t(), base.slice(1, 0, 300, 2), base.slice(1, 3, 4).expand({40, 140}),
                          base.slice(0, 2, 3).expand({70, 300})}) {
    for (size_t i = 0; i < functions.size(); ++i) {
      const Tensor y = functions[i](x);
      const Doubles expected = functions[i](x.contiguous()).to_vector<double>();
      const Doubles found = y.to_vector<double>();
      ASSERT_EQ(found.size(), expected.size());
      for (size_t k = 0; k < found.size(); ++k)
        EXPECT_TRUE(found[k] == expected[k] || (std::isnan(found[k]) && std::isnan(expected[k])))
            << "function " << i << " at " << k << " of " << x.shape();
    }
  }
}

TEST(LineKernels, ThreadsDoNotChangeTheResults) {
  const Tensor x = cast(tensor(values_of(70 * 900, true, 21), {70, 900}), float32);
  const auto results = [&x](int threads) {
    RankContext context({}, threads);
    const RankScope scope(context);
    const Tensor finite = cast(tensor(values_of(70 * 900, false, 4), {70, 900}), float32) / 7;
    return std::vector{sort(x, {.dim = 1}).indices.to_vector<int64_t>(),
                       topk(x, 9).indices.to_vector<int64_t>(),
                       kthvalue(x, 300).indices.to_vector<int64_t>(),
                       cast(cumsum(finite, 0) * 1e6, int64).to_vector<int64_t>(),
                       cast(norm(finite, {.dim = 1}) * 1e6, int64).to_vector<int64_t>()};
  };

  EXPECT_EQ(results(1), results(3));
}

}  // namespace
}  // namespace flow
