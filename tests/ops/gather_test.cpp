#include "ops/index/gather.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "core/context.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/index/gather.h"
#include "ops/index/scatter_reduce.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "tests/support/error_of.h"
#include "tests/support/expect_tensor.h"
#include "tests/support/sample_tensors.h"

namespace flow {
namespace {

using Tensors = std::vector<Tensor>;
using Floats = std::vector<float>;
using Ints64 = std::vector<int64_t>;

Tensor longs(const Ints64& values, const Shape& shape) {
  return tensor(values, shape);
}

TEST(Gather, TakesAlongADim) {
  const Tensor x = counting({2, 3});

  EXPECT_EQ(gather(x, 1, longs({2, 2, 0, 1}, {2, 2})).to_vector<float>(), Floats({2, 2, 3, 4}));
  EXPECT_EQ(gather(x, 0, longs({1, 0}, {1, 2})).to_vector<float>(), Floats({3, 1}));
  EXPECT_EQ(gather(x.t(), -1, longs({1, 0, 1}, {3, 1})).to_vector<float>(), Floats({3, 1, 5}));
  EXPECT_NE(error_of([&] {
              gather(x, 1, longs({0, 3}, {2, 1}));
            }).find("index 3"),
            std::string::npos);
  EXPECT_THROW(gather(x, 1, longs({0}, {1})), InvalidArgument);
  EXPECT_THROW(gather(x, 1, longs({0, 0, 0}, {3, 1})), InvalidArgument);
}

TEST(Gather, ScattersIntoACopy) {
  const Tensor x = zeros({2, 3});
  const Tensor index = longs({2, 0, 0, 0}, {2, 2});
  const Tensor src = tensor({{1.f, 2.f}, {3.f, 4.f}});

  EXPECT_EQ(scatter(x, 1, index, src).to_vector<float>(), Floats({2, 0, 1, 4, 0, 0}));
  EXPECT_EQ(scatter(x, 1, index, 9).to_vector<float>(), Floats({9, 0, 9, 9, 0, 0}));
  EXPECT_EQ(scatter_add(x, 1, index, src).to_vector<float>(), Floats({2, 0, 1, 7, 0, 0}));
  EXPECT_EQ(x.to_vector<float>(), Floats(6, 0));
  EXPECT_THROW(scatter(x, 1, longs({3}, {1, 1}), src), InvalidArgument);
}

TEST(Gather, ScalarsAreVectorsOfOneElement) {
  const Tensor x = full({}, 5.0);
  const Tensor zero = longs({0}, {});

  EXPECT_EQ(gather(x, -1, zero).shape(), Shape{});
  EXPECT_EQ(gather(x, 0, longs({0, 0}, {2})).to_vector<float>(), Floats({5, 5}));
  EXPECT_EQ(gather(counting({3}), 0, longs({2}, {})).item<float>(), 2);
  EXPECT_EQ(scatter(x, 0, zero, 7).item<float>(), 7);
  EXPECT_EQ(scatter_add(x, 0, longs({0, 0}, {2}), ones({2})).item<float>(), 7);
  EXPECT_EQ(scatter_reduce(x, 0, zero, full({}, 2.0), "prod").item<float>(), 10);
  EXPECT_THROW(gather(x, 1, zero), InvalidArgument);
  EXPECT_THROW(gather(counting({2, 2}), 0, zero), InvalidArgument);
}

TEST(Gather, GradientsAreRight) {
  const Tensor x = leaf({2, 3});
  const Tensor src = leaf({2, 4});
  const Tensor index = longs({2, 1, 1, 2, 2, 0}, {2, 3});
  const Tensor once = longs({2, 1, 0, 1}, {2, 2});
  const auto fn = [&](const Tensors& in) {
    return Tensors{gather(in[0], 1, index) * in[0], scatter(in[0], 1, once, in[1]),
                   scatter(in[0], 1, index, 3), scatter_add(in[0], 1, index, in[1])};
  };

  EXPECT_TRUE(gradcheck(fn, {x, src}));
  EXPECT_TRUE(gradgradcheck(fn, {x, src}));
}

// One call of scatter_reduce and its gradients for dy = 1, 10, 100, 1000.
void expect_reduced(const std::string& reduce, bool include_self, const std::vector<double>& y,
                    const std::vector<double>& dx, const std::vector<double>& dsrc) {
  SCOPED_TRACE(reduce);
  const TensorOptions options{.dtype = float64, .requires_grad = true};
  const Tensor x = tensor({1, 2, 3, 4}, options);
  const Tensor src = tensor({5.0, 0.5, -2.0, 0.0, 2.5}, options);

  const Tensor result = scatter_reduce(x, 0, longs({0, 0, 2, 2, 2}, {5}), src, reduce,
                                       {.include_self = include_self});
  sum(mul(result, tensor({1, 10, 100, 1000}, {.dtype = float64}))).backward();

  expect_values(result, y);
  expect_values(x.grad(), dx);
  expect_values(src.grad(), dsrc);
}

// Values of PyTorch 2.
TEST(Gather, ScatterReduceWithSelf) {
  expect_reduced("sum", true, {6.5, 2, 3.5, 4}, {1, 10, 100, 1000}, {1, 1, 100, 100, 100});
  expect_reduced("prod", true, {2.5, 2, 0, 4}, {2.5, 10, 0, 1000}, {0.5, 5, 0, -1500, 0});
  expect_reduced("mean", true, {6.5 / 3, 2, 0.875, 4}, {1.0 / 3, 10, 25, 1000},
                 {1.0 / 3, 1.0 / 3, 25, 25, 25});
  expect_reduced("amax", true, {5, 2, 3, 4}, {0, 10, 100, 1000}, {1, 0, 0, 0, 0});
  expect_reduced("amin", true, {0.5, 2, -2, 4}, {0, 10, 0, 1000}, {0, 1, 100, 0, 0});
}

TEST(Gather, ScatterReduceWithoutSelf) {
  expect_reduced("sum", false, {5.5, 2, 0.5, 4}, {0, 10, 0, 1000}, {1, 1, 100, 100, 100});
  expect_reduced("prod", false, {2.5, 2, 0, 4}, {0, 10, 0, 1000}, {0.5, 5, 0, -500, 0});
  expect_reduced("mean", false, {2.75, 2, 0.5 / 3, 4}, {0, 10, 0, 1000},
                 {0.5, 0.5, 100.0 / 3, 100.0 / 3, 100.0 / 3});
  expect_reduced("amax", false, {5, 2, 2.5, 4}, {0, 10, 0, 1000}, {1, 0, 0, 0, 100});
  expect_reduced("amin", false, {0.5, 2, -2, 4}, {0, 10, 0, 1000}, {0, 1, 100, 0, 0});
}

TEST(Gather, ScatterReducesIntegersAndNan) {
  const Tensor index = longs({0, 0}, {2});
  const Tensor x = tensor({1, 2});

  EXPECT_EQ(scatter_reduce(x, 0, index, tensor({2, -9}), "mean").to_vector<int64_t>(),
            Ints64({-2, 2}));
  EXPECT_EQ(scatter_reduce(x, 0, index, tensor({-7, -9}), "amax", {.include_self = false})
                .to_vector<int64_t>(),
            Ints64({-7, 2}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor y = scatter_reduce(ones({1}), 0, index, tensor({nan, 3.f}), "amax");
  EXPECT_TRUE(std::isnan(y.item<float>()));
}

TEST(Gather, ScatterTakesAReduction) {
  const Tensor x = tensor({1.f, 2.f, 3.f});
  const Tensor index = longs({0, 0, 2}, {3});

  EXPECT_EQ(scatter(x, 0, index, 2, {.reduce = "multiply"}).to_vector<float>(), Floats({4, 2, 6}));
  EXPECT_EQ(scatter(x, 0, index, x, {.reduce = "add"}).to_vector<float>(), Floats({4, 2, 6}));
  EXPECT_THROW(scatter(x, 0, index, x, {.reduce = "mean"}), InvalidArgument);
  EXPECT_THROW(scatter_reduce(x, 0, index, x, "add"), InvalidArgument);
  EXPECT_THROW(scatter_reduce(x, 0, longs({3}, {1}), x, "prod"), InvalidArgument);
}

// Positions that a generator spreads over [0, size).
Tensor spread(const Shape& shape, int64_t size) {
  return remainder(mul(arange(shape.numel()), 7919), size).reshape(shape);
}

// What gather, scatter and scatter_add give, entry by entry in row-major order.
void expect_entries_followed(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  const std::vector<float> in_x = x.to_vector<float>();
  const std::vector<float> in_src = src.to_vector<float>();
  const std::vector<int64_t> entries = index.to_vector<int64_t>();
  const int64_t columns = index.size(1);
  Floats gathered;
  Floats scattered = in_x;
  Floats added = in_x;
  Floats largest = in_x;
  for (int64_t i = 0; i < index.numel(); ++i) {
    const int64_t row = i / columns;
    const int64_t column = i % columns;
    const int64_t entry = entries[static_cast<size_t>(i)];
    const auto place =
        static_cast<size_t>((dim == 0 ? entry : row) * x.size(1) + (dim == 1 ? entry : column));
    const float value = in_src[static_cast<size_t>(row * src.size(1) + column)];
    gathered.push_back(in_x[place]);
    scattered[place] = value;
    added[place] += value;
    largest[place] = std::max(largest[place], value);
  }
  EXPECT_EQ(gather(x, dim, index).to_vector<float>(), gathered) << x.shape() << index.shape();
  EXPECT_EQ(scatter(x, dim, index, src).to_vector<float>(), scattered);
  EXPECT_EQ(scatter_add(x, dim, index, src).to_vector<float>(), added);
  EXPECT_EQ(scatter_reduce(x, dim, index, src, "amax").to_vector<float>(), largest);
}

void expect_entries_of_any_layout_followed() {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>(500, 400), {300, 601}, {9, 7}}) {
    const Tensor x = counting({rows, columns});
    const Tensor src = remainder(mul(counting({rows, columns + 2}), 31), 1009);
    expect_entries_followed(x, 0, spread({rows, columns}, rows), src);
    expect_entries_followed(x, 1, spread({rows, columns}, columns), src);
    expect_entries_followed(x, 0, spread({columns, rows}, rows).t(), src);
    expect_entries_followed(x, 1, spread({columns, rows}, columns).t(), src);
    expect_entries_followed(x, 0, spread({rows, 1}, rows), src);
    expect_entries_followed(x, 1, spread({rows, 1}, columns), src);
    expect_entries_followed(x, 0, spread({rows, 1}, rows).expand({rows, columns}), src);
    expect_entries_followed(x, 1, spread({1, columns}, columns).expand({rows, columns}), src);
    expect_entries_followed(x.t().clone().t(), 0, spread({rows, columns}, rows), src);
  }
}

TEST(Gather, EntriesOfAnyLayoutAreFollowed) {
  for (const int threads : {1, 3}) {
    RankContext context({}, threads);
    const RankScope scope(context);
    expect_entries_of_any_layout_followed();
  }
}

TEST(Gather, ThreadsNameTheFirstEntryOutOfRange) {
  RankContext context({}, 3);
  const RankScope scope(context);
  const Tensor index = spread({400, 300}, 400).clone();
  for (const int64_t row : {399, 200, 7})
    index.select(0, row).select(0, 299 - row % 8).fill_(-row);

  for (const int64_t dim : {0, 1}) {
    const std::string message = error_of([&] { gather(counting({400, 400}), dim, index); });
    EXPECT_NE(message.find("index -7 at (7, 292)"), std::string::npos) << message;
  }
}

TEST(Gather, AnEntryOutOfRangeIsNamed) {
  const Tensor index = spread({40, 30}, 40).clone();
  index.select(0, 35).select(0, 28).fill_(40);

  const std::string message = error_of([&] { gather(counting({40, 30}), 0, index); });

  EXPECT_NE(message.find("index 40 at (35, 28)"), std::string::npos) << message;
  EXPECT_NE(error_of([&] {
              gather(counting({40, 30}), 0, longs({0, -1, 0}, {3, 1}).expand({3, 30}));
            }).find("index -1"),
            std::string::npos);
}

}  // namespace
}  // namespace flow
