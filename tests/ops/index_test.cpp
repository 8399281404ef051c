#include "ops/index/index.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/dispatch.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/index/gather.h"
#include "ops/index/index_op.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"
#include "tests/support/error_of.h"
#include "tests/support/sample_tensors.h"

namespace flow {
namespace {

using Tensors = std::vector<Tensor>;
using Floats = std::vector<float>;
using Ints64 = std::vector<int64_t>;

Tensor longs(const Ints64& values, const Shape& shape) {
  return tensor(values, shape);
}

TEST(Index, NumbersAndSlicesGiveViews) {
  const Tensor x = counting({3, 4});

  EXPECT_EQ(x[1].to_vector<float>(), Floats({4, 5, 6, 7}));
  EXPECT_EQ(x[-1][0].item<float>(), 8);
  EXPECT_EQ(x[Slice(1, None)].to_vector<float>(), Floats({4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(x.index({Slice(), 2}).to_vector<float>(), Floats({2, 6, 10}));
  EXPECT_EQ(x.index({Slice(0, 3, 2), Slice(-2, None)}).to_vector<float>(), Floats({2, 3, 10, 11}));
  EXPECT_EQ(index(x, {1, 2}).shape(), Shape());
  x[0].fill_(0);
  EXPECT_EQ(sum(x).item<float>(), 60);
}

TEST(Index, NoneAddsADimAndEllipsisFillsUp) {
  const Tensor x = counting({2, 3, 4});

  EXPECT_EQ(x[None].shape(), Shape({1, 2, 3, 4}));
  EXPECT_EQ(x.index({Ellipsis, 0}).shape(), Shape({2, 3}));
  EXPECT_EQ(x.index({0, Ellipsis, None}).shape(), Shape({3, 4, 1}));
  EXPECT_EQ(x.index({Slice(), None, 1}).shape(), Shape({2, 1, 4}));
  EXPECT_EQ(x[Ellipsis].data<float>(), x.data<float>());
}

TEST(Index, TensorsPickElementByElement) {
  const Tensor x = counting({3, 4});

  EXPECT_EQ(x[longs({2, 0, 2}, {3})].shape(), Shape({3, 4}));
  EXPECT_EQ(index(x, {longs({2, 0}, {2}), longs({-1, 1}, {2})}).to_vector<float>(),
            Floats({11, 1}));
  EXPECT_EQ(index(x, {longs({2, 0}, {2, 1}), longs({0, 3}, {2})}).to_vector<float>(),
            Floats({8, 11, 0, 3}));
  EXPECT_EQ(index(x, {Slice(), longs({3, 3}, {2})}).to_vector<float>(),
            Floats({3, 3, 7, 7, 11, 11}));
  EXPECT_EQ(x[tensor(std::vector<int32_t>{1}, {1})].to_vector<float>(), Floats({4, 5, 6, 7}));
  EXPECT_EQ(x[longs({1}, {})].shape(), Shape({4}));
}

TEST(Index, PickedDimsStandWhereTheTensorsStood) {
  const Tensor x = counting({2, 3, 4, 5});
  const Tensor two = longs({0, 1}, {2});

  EXPECT_EQ(index(x, {Slice(), two, two}).shape(), Shape({2, 2, 5}));
  EXPECT_EQ(index(x, {two, Slice(), two}).shape(), Shape({2, 3, 5}));
  EXPECT_EQ(index(x, {0, Slice(), two}).shape(), Shape({3, 2, 5}));
  EXPECT_EQ(index(x, {Ellipsis, two}).shape(), Shape({2, 3, 4, 2}));
  // x[two, :, two][i][j][k] = x[two[i]][j][two[i]][k]
  EXPECT_EQ(index(x, {two, Slice(), two}).index({1, 2, 3}).item<float>(),
            x.index({1, 2, 1, 3}).item<float>());
}

TEST(Index, MasksPickTrueElements) {
  const Tensor x = counting({2, 3});

  EXPECT_EQ(x[gt(x, 2)].to_vector<float>(), Floats({3, 4, 5}));
  EXPECT_EQ(x[tensor({false, true})].to_vector<float>(), Floats({3, 4, 5}));
  EXPECT_EQ(index(x, {Slice(), tensor({true, false, true})}).to_vector<float>(),
            Floats({0, 2, 3, 5}));
  EXPECT_EQ(x[lt(x, 0)].shape(), Shape({0}));
  EXPECT_EQ(masked_select(x, tensor({true, false, true})).to_vector<float>(), Floats({0, 2, 3, 5}));
  EXPECT_THROW(x[tensor({true, false, true})], InvalidArgument);
}

TEST(Index, OutOfRangeNamesValueAndSize) {
  const Tensor x = counting({3, 4});

  EXPECT_NE(error_of([&] { x[3]; }).find("index 3 is out of range for dim 0 of size 3"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              x[longs({0, 7}, {2})];
            })
                .find("index 7 is out of range for dim 0 of "
                      "size 3"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              index(x, {Slice(), longs({-5}, {1})});
            }).find("index -5"),
            std::string::npos);
  EXPECT_THROW(x.index({0, 0, 0}), InvalidArgument);
  EXPECT_THROW(x.index({Ellipsis, Ellipsis}), InvalidArgument);
  EXPECT_THROW(x[tensor({1.f})], InvalidArgument);
  EXPECT_THROW(index(x, {longs({0, 1}, {2}), longs({0, 1, 2}, {3})}), InvalidArgument);
}

TEST(Index, PutWritesIntoViews) {
  Tensor x = zeros({3, 4});

  index_put_(x, {1}, 5);
  index_put_(x, {Slice(), 0}, tensor({1.f, 2.f, 3.f}));
  EXPECT_EQ(x.to_vector<float>(), Floats({1, 0, 0, 0, 2, 5, 5, 5, 3, 0, 0, 0}));
  index_put_(x, {longs({0, 2}, {2}), longs({3, 3}, {2})}, tensor({8.f, 9.f}));
  EXPECT_EQ(x.index({Slice(), 3}).to_vector<float>(), Floats({8, 5, 9}));
  index_put_(x, {gt(x, 4)}, -1);
  EXPECT_EQ(x.to_vector<float>(), Floats({1, 0, 0, -1, 2, -1, -1, -1, 3, 0, 0, -1}));
}

TEST(Index, PutBeyondTheEndWritesNothing) {
  const Tensor x = zeros({3});

  EXPECT_THROW(index_put_(x, {longs({0, 3}, {2})}, 1), InvalidArgument);
  EXPECT_EQ(x.to_vector<float>(), Floats({0, 0, 0}));
}

TEST(Index, PutKeepsTheLastOrAddsAll) {
  const Tensor x = zeros({3});
  const Tensor twice = longs({1, 1, 2}, {3});
  const Tensor values = tensor({1.f, 2.f, 3.f});

  EXPECT_EQ(index_put(x, {twice}, values).to_vector<float>(), Floats({0, 2, 3}));
  EXPECT_EQ(index_put(x, {twice}, values, {.accumulate = true}).to_vector<float>(),
            Floats({0, 3, 3}));
  EXPECT_EQ(x.to_vector<float>(), Floats({0, 0, 0}));
}

TEST(Index, SelectsAlongOneDim) {
  const Tensor x = counting({2, 3});

  EXPECT_EQ(index_select(x, 1, longs({2, 0, 0}, {3})).to_vector<float>(),
            Floats({2, 0, 0, 5, 3, 3}));
  EXPECT_EQ(index_select(x, -2, longs({1}, {})).to_vector<float>(), Floats({3, 4, 5}));
  EXPECT_THROW(index_select(x, 0, longs({0, 1}, {2, 1})), InvalidArgument);
  EXPECT_THROW(index_select(x, 0, longs({2}, {1})), InvalidArgument);
  EXPECT_THROW(index_select(x, 0, longs({-1}, {1})), InvalidArgument);
}

TEST(Index, OfAScalarSelectsItsElement) {
  const Tensor x = full({}, 5);

  EXPECT_EQ(index_select(x, 0, longs({0}, {1})).shape(), Shape{});
  EXPECT_EQ(index_select(x, -1, longs({0}, {})).item<float>(), 5);
  EXPECT_THROW(index_select(x, 0, longs({0, 0}, {2})), InvalidArgument);
  EXPECT_THROW(index_select(x, 1, longs({0}, {1})), InvalidArgument);
}

TEST(Index, GradientsAreRight) {
  const Tensor x = leaf({3, 4});
  const Tensor values = leaf({2, 4});
  const Tensor rows = longs({2, 0, 2}, {3});
  const auto reads = [&](const Tensors& in) {
    const Tensor& v = in[0];
    return Tensors{v[rows] * 2, index(v, {rows, longs({1, 1, 3}, {3})}),
                   v.index({1, Slice(0, 3, 2)}),
                   index(v, {Slice(), rows}) * index(v, {Slice(), rows}), v[gt(v.detach(), 0)]};
  };
  const auto writes = [&](const Tensors& in) {
    return Tensors{index_put(in[0] * 1, {longs({2, 0}, {2})}, in[1]),
                   index_put(in[0] * 2, {longs({1, 1}, {2})}, in[1], {.accumulate = true})};
  };

  EXPECT_TRUE(gradcheck(reads, {x}));
  EXPECT_TRUE(gradgradcheck(reads, {x}));
  EXPECT_TRUE(gradcheck(writes, {x, values}));
  EXPECT_TRUE(gradgradcheck(writes, {x, values}));
}

TEST(Index, NonzeroListsPositions) {
  EXPECT_EQ(nonzero(tensor({{0.f, 2.f}, {-1.f, 0.f}})).to_vector<int64_t>(), Ints64({0, 1, 1, 0}));
  EXPECT_EQ(nonzero(zeros({2, 3})).shape(), Shape({0, 2}));
  EXPECT_EQ(nonzero(full({}, 1.0)).shape(), Shape({1, 0}));
}

TEST(Index, NonzeroWritesAsManyRowsAsWereCounted) {
  const Tensor x = tensor({{0.f, 2.f, 3.f}, {-1.f, 0.f, 0.f}});
  for (const Tensor& values : {x, transpose(x, 0, 1)}) {
    for (const int64_t count : {1, 2, 4, 6}) {
      const std::string text = error_of(
          [&] { dispatch(ops::kNonzero, {&values}, ops::NonzeroAttrs{count}, Site::here()); });
      EXPECT_NE(text.find("[nonzero] the tensor has changed"), std::string::npos)
          << count << ": " << text;
    }
  }
}

TEST(Index, NonzeroReducesPartialSumsOnce) {
  run_ranks(4, [] {
    const Placement grid("cpu", {{0, 1}, {2, 3}});
    const auto sum_of = [&](const NdSbp& sbp) {
      const Floats parts = {0.1f, 0.7f, -0.8f, 0.3f};
      const float own = parts[static_cast<size_t>(env::rank())];
      return tensor({{own, 0.f, 1.f}, {0.f, own, own}}).to_global(grid, sbp);
    };
    for (const NdSbp& sbp :
         {NdSbp{sbp::partial_sum, sbp::partial_sum}, NdSbp{sbp::partial_sum, sbp::split(0)},
          NdSbp{sbp::broadcast, sbp::partial_sum}, NdSbp{sbp::partial_max, sbp::partial_min}}) {
      const Tensor x = sum_of(sbp);
      EXPECT_EQ(nonzero(x).full().to_vector<int64_t>(), nonzero(x.full()).to_vector<int64_t>())
          << sbp;
    }
  });
}

TEST(Index, OneHotMarksClasses) {
  EXPECT_EQ(one_hot(longs({2, 0}, {2})).to_vector<int64_t>(), Ints64({0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(one_hot(longs({1}, {1}), 4).shape(), Shape({1, 4}));
  EXPECT_THROW(one_hot(longs({3}, {1}), 3), InvalidArgument);
  EXPECT_THROW(one_hot(longs({-1}, {1}), 3), InvalidArgument);
  EXPECT_THROW(one_hot(longs({}, {0})), InvalidArgument);
  EXPECT_THROW(one_hot(ones({2}), 3), InvalidArgument);
}

TEST(Index, ATensorIsPutIntoItself) {
  const Tensor moved = tensor({0.f, 1.f, 2.f, 3.f});
  const Tensor added = tensor({0.f, 1.f, 2.f, 3.f});

  index_put_(moved, {longs({1, 2, 3, 0}, {4})}, moved);
  index_put_(added, {longs({1, 2, 3, 0}, {4})}, added, {.accumulate = true});

  EXPECT_EQ(moved.to_vector<float>(), std::vector<float>({3, 0, 1, 2}));
  EXPECT_EQ(added.to_vector<float>(), std::vector<float>({3, 1, 3, 5}));
}

TEST(Index, MasksAreFilledInPlace) {
  const Tensor x = zeros({2, 3, 2});

  index_put_(x, {Slice(), tensor({true, false, true})}, 5);
  EXPECT_EQ(x.to_vector<float>(), Floats({5, 5, 0, 0, 5, 5, 5, 5, 0, 0, 5, 5}));
  index_put_(x, {1, tensor({false, true, false})}, 7);
  EXPECT_EQ(x.to_vector<float>(), Floats({5, 5, 0, 0, 5, 5, 5, 5, 7, 7, 5, 5}));
  index_put_(x, {Ellipsis, tensor({true, false})}, 1);
  EXPECT_EQ(x.to_vector<float>(), Floats({1, 5, 1, 0, 1, 5, 1, 5, 1, 7, 1, 5}));
  index_put_(x, {eq(x, 1)}, 2);
  EXPECT_EQ(x.to_vector<float>(), Floats({2, 5, 2, 0, 2, 5, 2, 5, 2, 7, 2, 5}));
  EXPECT_THROW(index_put_(x, {tensor({true, false, true})}, 1), InvalidArgument);
}

// Picks of single elements, of lines and of planes, and picks that repeat.
TEST(Index, PicksOfAnyLayoutAreReadAndAdded) {
  const Tensor x = arange(5 * 6 * 7, {.dtype = float32}).reshape({5, 6, 7});
  const Tensor places = longs({3, 0, 3, -1}, {4});
  for (const auto& order : {Ints{0, 1, 2}, Ints{2, 1, 0}, Ints{1, 2, 0}}) {
    const Tensor view = x.permute(order);
    for (int64_t dim = 0; dim < 3; ++dim) {
      std::vector<IndexArg> list(static_cast<size_t>(dim), IndexArg(Slice()));
      list.emplace_back(places);
      Tensor sum = view.clone();
      std::vector<Tensor> parts;
      for (const int64_t place : {3, 0, 3, -1}) {
        const int64_t position = place < 0 ? place + view.size(dim) : place;
        parts.push_back(view.narrow(dim, position, 1));
        sum.narrow(dim, position, 1).add_(parts.back());
      }
      const Tensor picked = cat(parts, dim);

      EXPECT_EQ(index(view, IndexList(list)).to_vector<float>(), picked.to_vector<float>());
      const Tensor added = view.clone();
      index_put_(added, IndexList(list), picked, {.accumulate = true});
      EXPECT_EQ(added.to_vector<float>(), sum.to_vector<float>());
      const Tensor in_place = x.clone().permute(order);
      in_place.index_add_(dim, longs({3, 0, 3, view.size(dim) - 1}, {4}), picked);
      EXPECT_EQ(in_place.to_vector<float>(), sum.to_vector<float>());
    }
  }
}

// Threads divide the picks, or the dims before them.
TEST(Index, PicksDoNotDependOnTheThreads) {
  const auto picked = [](int threads) {
    RankContext context({}, threads);
    const RankScope scope(context);
    const Tensor x = counting({40, 50, 60});
    const Tensor many = remainder(mul(arange(3000), 7), 40);
    const Tensor few = remainder(mul(arange(70), 7), 50);
    std::vector<float> all;
    for (const Tensor& y :
         {index_select(x, 0, many), index_select(x, 1, few), index_select(x, 2, few),
          index_select(x.permute({2, 0, 1}), 0, few), index_select(x.select(2, 3), 0, many)}) {
      const std::vector<float> values = y.to_vector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };

  EXPECT_EQ(picked(1), picked(3));
}

// The rows of an expanded tensor have one element in memory.
TEST(Index, PicksOfExpandedTensorsAreRepeated) {
  const Tensor column = tensor({1.f, 2.f, 3.f, 4.f}).reshape({4, 1});
  const Tensor wide = column.expand({4, 3});
  const Tensor deep = column.reshape({4, 1, 1}).expand({4, 2, 3});
  const Tensor places = longs({2, 0}, {2});

  EXPECT_EQ(index(wide, {places}).to_vector<float>(), Floats({3, 3, 3, 1, 1, 1}));
  EXPECT_EQ(index_select(wide, 0, places).to_vector<float>(), Floats({3, 3, 3, 1, 1, 1}));
  EXPECT_EQ(index(deep, {places}).to_vector<float>(),
            index(deep.contiguous(), {places}).to_vector<float>());
  const Tensor sum = zeros({4, 3});
  index_put_(sum, {places}, column.narrow(0, 1, 2).expand({2, 3}), {.accumulate = true});
  EXPECT_EQ(sum.to_vector<float>(), Floats({3, 3, 3, 0, 0, 0, 2, 2, 2, 0, 0, 0}));
}

// As in PyTorch, where a scalar tensor is read as a number.
TEST(Index, AScalarTensorDoesNotSeparateOthers) {
  const Tensor x = counting({3, 4, 2});
  const Tensor at = tensor(int64_t{1});
  const Tensor places = longs({1, 0, 1}, {3});

  const Tensor y = x.index({at, Slice(), places});
  EXPECT_EQ(y.shape(), Shape({4, 3}));
  EXPECT_EQ(y.to_vector<float>(), x.index({1, Slice(), places}).to_vector<float>());
  EXPECT_EQ(x.index({at, None, at}).shape(), Shape({1, 2}));
  const Tensor values = counting({4, 3}) + 100;
  Tensor written = x.clone();
  Tensor expected = x.clone();
  index_put_(written, {at, Slice(), places}, values);
  index_put_(expected, {1, Slice(), places}, values);
  EXPECT_EQ(written.to_vector<float>(), expected.to_vector<float>());
}

// As in PyTorch, where values are assigned; add_ and copy_ take no more dims than the target has.
TEST(Index, AssignedValuesMayHaveLeadingDimsOfSizeOne) {
  const Tensor x = zeros({2, 3});
  x[0] = tensor({{1.0, 2.0, 3.0}});
  x[1][2] = tensor({7.0});
  index_put_(x, {1, Slice(0, 2)}, tensor({{{4.0, 5.0}}}));
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{1, 2, 3, 4, 5, 7}));
  index_put_(x, {longs({1, 0}, {2}), 0}, tensor({{8.0, 9.0}}));
  index_put_(x, {0}, ones({1, 3}), {.accumulate = true});
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{10, 3, 4, 8, 5, 7}));
  const Tensor w = ones({1, 3}).requires_grad_();
  const Tensor y = zeros({2, 3}) * 1.0;
  y[1] = w;
  y.sum().backward();
  EXPECT_EQ(w.grad().shape(), (Shape{1, 3}));
  EXPECT_THROW(x[0] = ones({2, 3}), InvalidArgument);
  EXPECT_THROW(index_put_(x, {longs({1, 0}, {2}), 0}, ones({2, 2})), InvalidArgument);
  EXPECT_THROW(x[0].copy_(ones({1, 3})), InvalidArgument);
}

}  // namespace
}  // namespace flow
