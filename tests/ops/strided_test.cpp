// Copies and elementwise functions of strided operands, around the sizes of vectors and tiles.
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/context.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/where.h"
#include "ops/kernel/box_copy.h"
#include "ops/kernel/plane_copy.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow::ops {
namespace {

// A plane within an array: the offset and strides of one of its sides.
struct Side {
  int64_t offset;
  int64_t row;
  int64_t column;
};

// Copies a plane and compares each element of the target's array with that of a plain loop.
template <class T>
void expect_copied(int64_t rows, int64_t columns, Side target, Side source) {
  constexpr int64_t kElements = 1 << 14;
  std::vector<T> x(kElements);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<T>(i * 2654435761U >> 7);
  std::vector<T> expected(kElements, T{1});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      expected[static_cast<size_t>(target.offset + r * target.row + c * target.column)] =
          x[static_cast<size_t>(source.offset + r * source.row + c * source.column)];
    }
  }
  for (const CpuIsa isa : {CpuIsa::kBaseline, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (isa > detected_isa()) continue;
    std::vector<T> y(kElements, T{1});
    plane_copy(sizeof(T), isa)({reinterpret_cast<std::byte*>(y.data() + target.offset),
                                reinterpret_cast<const std::byte*>(x.data() + source.offset), rows,
                                columns, target.row, target.column, source.row, source.column});
    ASSERT_EQ(y, expected) << to_string(isa) << ", " << sizeof(T) << " bytes, " << rows << " x "
                           << columns << ", source strides " << source.row << ", " << source.column
                           << ", target " << target.row;
  }
}

template <class T>
void expect_planes_copied(int64_t rows, int64_t columns) {
  const int64_t wide = columns + 3;
  const int64_t high = rows + 5;
  expect_copied<T>(rows, columns, {7, wide, 1}, {3, wide + 1, 1});             // dense
  expect_copied<T>(rows, columns, {7, wide, 1}, {3, 2, 0});                    // repeated
  expect_copied<T>(rows, columns, {7, wide, 1}, {3 + columns, wide, -1});      // reversed
  expect_copied<T>(rows, columns, {7, wide, 1}, {3, 1, high});                 // transposed
  expect_copied<T>(rows, columns, {7, columns, 1}, {3, 1, high});              // with dense rows
  expect_copied<T>(rows, columns, {7, wide, 1}, {3, 3 * columns, 3});          // strided
  expect_copied<T>(rows, columns, {7, 2 * columns, 2}, {3, columns, 1});       // spread
  expect_copied<T>(rows, columns, {7, wide, 1}, {3 + rows * wide, -wide, 1});  // from the end
}

TEST(PlaneCopy, CopiesEverySizeAroundVectorsOnEveryInstructionSet) {
  const std::vector<int64_t> sizes = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 49};
  for (const int64_t rows : sizes) {
    for (const int64_t columns : sizes) {
      expect_planes_copied<uint8_t>(rows, columns);
      expect_planes_copied<uint16_t>(rows, columns);
      expect_planes_copied<uint32_t>(rows, columns);
      expect_planes_copied<uint64_t>(rows, columns);
    }
  }
}

TEST(PlaneCopy, CopiesDenseRowsOfEveryLength) {
  for (int64_t columns = 0; columns <= 700; ++columns)
    expect_copied<uint8_t>(2, columns, {5, 1000, 1}, {11, 900, 1});
}

TEST(PlaneCopy, CopiesRowsLargerThanTheCaches) {
  std::vector<uint32_t> x((size_t{5} << 18) + 3);
  std::iota(x.begin(), x.end(), 0U);
  std::vector<uint32_t> y(x.size());

  plane_copy(4)({reinterpret_cast<std::byte*>(y.data()),
                 reinterpret_cast<const std::byte*>(x.data()), 1, static_cast<int64_t>(x.size()), 0,
                 1, 0, 1});

  EXPECT_EQ(y, x);
}

// The dims of the target may have any order, and those of the source any sign.
TEST(BoxCopy, CopiesBetweenAnyOrdersOfDims) {
  const Shape size{3, 18, 1, 5, 20};
  const Strides dense = contiguous_strides(size);
  std::vector<uint16_t> x(static_cast<size_t>(size.numel()));
  std::iota(x.begin(), x.end(), uint16_t{0});
  const std::vector<Strides> orders = {
      dense, {18, 1, 7, 54, 270}, {100, 300, 7, 20, 1}, {1, 300, 7, 60, 3}, {1800, 5, 7, 1, 90}};
  for (const Strides& target : orders) {
    for (const Strides& source : orders) {
      std::vector<uint16_t> y(x.size());
      copy_box(size, {reinterpret_cast<std::byte*>(y.data()), target},
               {reinterpret_cast<const std::byte*>(x.data()), source}, 2);
      for (int64_t i = 0; i < size.numel(); ++i) {
        int64_t to = 0;
        int64_t from = 0;
        int64_t rest = i;
        for (int64_t d = size.size() - 1; d >= 0; --d) {
          to += rest % size[d] * target[d];
          from += rest % size[d] * source[d];
          rest /= size[d];
        }
        ASSERT_EQ(y[static_cast<size_t>(to)], x[static_cast<size_t>(from)])
            << "target " << target << ", source " << source;
      }
    }
  }
}

// The values of a tensor in row-major order, from its contiguous copy.
std::vector<float> values_of(const Tensor& x) {
  return cast(x, DType::kFloat32).to_vector<float>();
}

Tensor counted(const Shape& shape, DType dtype) {
  return cast(remainder(arange(shape.numel()), 251).reshape(shape), dtype);
}

// Compares a - b with the difference of contiguous copies, which takes the dense loop.
void expect_same_as_dense(const Tensor& a, const Tensor& b) {
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), "sub");
  const Tensor wide_a = a.expand(shape).clone();
  const Tensor wide_b = b.expand(shape).clone();

  const Tensor y = sub(a, b);

  EXPECT_EQ(values_of(y), values_of(sub(wide_a, wide_b)))
      << a.shape() << " and " << b.shape() << " of " << a.dtype();
}

TEST(Strided, OperandsOfAnyLayoutGiveWhatDenseOnesGive) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kInt64, DType::kInt8}) {
    for (const int64_t rows : {1, 3, 16, 17, 40}) {
      for (const int64_t columns : {1, 2, 15, 64, 65, 300, 520}) {
        const Tensor x = counted({rows, columns}, dtype);
        const Tensor t = counted({columns, rows}, dtype).t();
        expect_same_as_dense(x, counted({rows, 1}, dtype));
        expect_same_as_dense(counted({rows, 1}, dtype), x);
        expect_same_as_dense(x, counted({columns}, dtype));
        expect_same_as_dense(counted({rows, 1}, dtype), counted({columns}, dtype));
        expect_same_as_dense(x, counted({}, dtype));
        expect_same_as_dense(x, t);
        expect_same_as_dense(t, t);
        expect_same_as_dense(t, counted({rows, 1}, dtype));
        expect_same_as_dense(slice(counted({rows, 3 * columns}, dtype), 1, 1, 3 * columns, 3), t);
      }
    }
  }
}

TEST(Strided, TransposesInTheMiddleOfDims) {
  const Tensor x = counted({4, 18, 5, 33}, DType::kFloat32);
  for (const auto& order :
       {Ints{0, 2, 1, 3}, Ints{0, 3, 2, 1}, Ints{3, 2, 1, 0}, Ints{1, 3, 0, 2}}) {
    const Tensor y = x.permute(order);
    expect_same_as_dense(y, counted(y.shape(), DType::kFloat32));
    expect_same_as_dense(y, y);
  }
}

TEST(Strided, WritesIntoTransposesAndSlices) {
  for (const int64_t n : {3, 17, 70, 300}) {
    const Tensor x = counted({n, n + 1}, DType::kFloat32);
    const Tensor expected = add(x.t().clone(), counted({n + 1, n}, DType::kFloat32));

    x.t().add_(counted({n + 1, n}, DType::kFloat32));

    EXPECT_EQ(values_of(x.t()), values_of(expected)) << n;
    const Tensor y = zeros({n, 2 * n});
    slice(y, 1, 1, 2 * n, 2).add_(counted({n, 1}, DType::kFloat32));
    EXPECT_EQ(values_of(slice(y, 1, 1, 2 * n, 2)),
              values_of(counted({n, 1}, DType::kFloat32).expand({n, n})))
        << n;
    EXPECT_EQ(values_of(slice(y, 1, 0, 2 * n, 2)), std::vector<float>(static_cast<size_t>(n * n)));
  }
}

// A value that every row repeats is staged once.
TEST(Strided, AnInputThatIsPartOfTheOutputKeepsItsOldValue) {
  const Tensor x = full({40, 100}, 2.0);

  x.mul_(x.select(0, 0).select(0, 0));

  EXPECT_EQ(values_of(x), std::vector<float>(4000, 4.0F));
}

// Threads divide the loop at other places than one thread does.
TEST(Strided, ThreadsGiveTheSameElements) {
  const auto compute = [](int threads) {
    RankContext rank({}, threads);
    const RankScope scope(rank);
    const Tensor x = counted({230, 510}, DType::kFloat32);
    const Tensor t = counted({510, 230}, DType::kFloat32).t();
    return std::vector<std::vector<float>>{
        values_of(sub(x, t)), values_of(sub(x, counted({230, 1}, DType::kFloat32))),
        values_of(sub(counted({1}, DType::kFloat32).expand({120000}),
                      counted({120000}, DType::kFloat32))),
        values_of(t.clone()),
        values_of(counted({20, 30, 40, 50}, DType::kFloat32).permute({2, 0, 3, 1}).clone())};
  };
  EXPECT_EQ(compute(3), compute(1));
}

TEST(Strided, ChoicesFollowMasksOfAnyLayout) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16, DType::kInt64,
        DType::kInt32, DType::kInt8, DType::kUInt8, DType::kBool}) {
    const Tensor a = counted({19, 70}, dtype);
    const Tensor b = cast(eq(remainder(counted({19, 70}, DType::kInt64), 3), 0), dtype);
    const Tensor full_mask = eq(remainder(counted({19, 70}, DType::kInt64), 2), 0);
    for (const Tensor& mask : {full_mask, full_mask.narrow(0, 1, 1), full_mask.narrow(1, 1, 1),
                               eq(remainder(counted({70, 19}, DType::kInt64), 2), 0).t()}) {
      const std::vector<float> in_a = values_of(a);
      const std::vector<float> in_b = values_of(b);
      const std::vector<float> chosen = values_of(mask.expand({19, 70}));
      std::vector<float> from_both;
      std::vector<float> filled;
      for (size_t i = 0; i < in_a.size(); ++i) {
        from_both.push_back(chosen[i] != 0 ? in_a[i] : in_b[i]);
        filled.push_back(chosen[i] != 0 ? 1 : in_a[i]);
      }
      EXPECT_EQ(values_of(where(mask, a, b)), from_both) << dtype;
      EXPECT_EQ(values_of(masked_fill(a, mask, 1)), filled) << dtype;
    }
  }
}

}  // namespace
}  // namespace flow::ops
