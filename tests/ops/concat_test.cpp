#include "ops/shape/concat.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/index/index.h"
#include "ops/random/random.h"
#include "ops/shape/view.h"
#include "tests/support/sample_tensors.h"

namespace flow {
namespace {

using Tensors = std::vector<Tensor>;
using Floats = std::vector<float>;

TEST(Concat, JoinsAlongADim) {
  const Tensor a = counting({2, 2});
  const Tensor b = counting({2, 1}) + 10;

  EXPECT_EQ(cat({a, a}).shape(), Shape({4, 2}));
  EXPECT_EQ(cat({a, b}, 1).to_vector<float>(), Floats({0, 1, 10, 2, 3, 11}));
  EXPECT_EQ(cat({a.t(), b}, -1).to_vector<float>(), Floats({0, 2, 10, 1, 3, 11}));
  EXPECT_EQ(cat(Tensors{a}).to_vector<float>(), a.to_vector<float>());
}

TEST(Concat, PromotesAndSkipsLegacyEmpties) {
  const Tensor ints = tensor(std::vector<int32_t>{1, 2}, {2});
  const Tensor halves = tensor({0.5f});

  EXPECT_EQ(cat({ints, halves}).dtype(), float32);
  EXPECT_EQ(cat({ints, halves}).to_vector<float>(), Floats({1, 2, 0.5}));
  EXPECT_EQ(cat({zeros({0}), counting({2, 2})}, 1).shape(), Shape({2, 2}));
  EXPECT_EQ(cat({zeros({0}), zeros({0})}).shape(), Shape({0}));
}

TEST(Concat, RefusesWhatDoesNotFit) {
  EXPECT_THROW(cat(Tensors{}), InvalidArgument);
  EXPECT_THROW(cat({full({}, 1.0), full({}, 2.0)}), InvalidArgument);
  EXPECT_THROW(cat({counting({2, 2}), counting({3, 3})}), InvalidArgument);
  EXPECT_THROW(cat({counting({2, 2}), counting({2})}), InvalidArgument);
  EXPECT_THROW(cat({counting({2}), counting({2})}, 1), InvalidArgument);
  EXPECT_THROW(stack({counting({2}), counting({3})}), InvalidArgument);
}

TEST(Concat, StacksAlongANewDim) {
  const Tensor a = counting({2});

  EXPECT_EQ(stack({a, a + 5}).to_vector<float>(), Floats({0, 1, 5, 6}));
  EXPECT_EQ(stack({a, a + 5}, -1).to_vector<float>(), Floats({0, 5, 1, 6}));
  EXPECT_EQ(stack({full({}, 1.0), full({}, 2.0)}).to_vector<float>(), Floats({1, 2}));
}

TEST(Concat, RepeatsAndTiles) {
  const Tensor x = counting({2});

  EXPECT_EQ(repeat(x, 2).to_vector<float>(), Floats({0, 1, 0, 1}));
  EXPECT_EQ(repeat(x, {2, 2}).shape(), Shape({2, 4}));
  EXPECT_EQ(repeat(counting({2, 2}), {1, 2}).to_vector<float>(), Floats({0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(repeat(x, 0).shape(), Shape({0}));
  EXPECT_EQ(tile(counting({2, 2}), 2).shape(), Shape({2, 4}));
  EXPECT_THROW(repeat(counting({2, 2}), 2), InvalidArgument);
  EXPECT_THROW(repeat(x, -1), InvalidArgument);
}

TEST(Concat, FlipsAndRolls) {
  const Tensor x = counting({2, 3});

  EXPECT_EQ(flip(x, 1).to_vector<float>(), Floats({2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(flip(x.t(), {0, 1}).to_vector<float>(), Floats({5, 2, 4, 1, 3, 0}));
  EXPECT_EQ(flip(zeros({0, 2}), 0).shape(), Shape({0, 2}));
  EXPECT_EQ(roll(x, 1).to_vector<float>(), Floats({5, 0, 1, 2, 3, 4}));
  EXPECT_EQ(roll(x, -1, 1).to_vector<float>(), Floats({1, 2, 0, 4, 5, 3}));
  EXPECT_EQ(roll(x, {1, 4}, {0, 1}).to_vector<float>(), Floats({5, 3, 4, 2, 0, 1}));
  EXPECT_THROW(roll(x, {1, 2}), InvalidArgument);
  EXPECT_THROW(roll(x, {1, 2}, 0), InvalidArgument);
}

TEST(Concat, PadsAndCuts) {
  const Tensor x = counting({2, 2});

  EXPECT_EQ(pad(x, {1, 0}).to_vector<float>(), Floats({0, 0, 1, 0, 2, 3}));
  EXPECT_EQ(pad(x, {0, 0, 0, 1}, {.value = -1}).to_vector<float>(), Floats({0, 1, 2, 3, -1, -1}));
  EXPECT_EQ(pad(x, {-1, 1}).to_vector<float>(), Floats({1, 0, 3, 0}));
  EXPECT_THROW(pad(x, {1}), InvalidArgument);
  EXPECT_THROW(pad(x, {1, 1, 1, 1, 1, 1}), InvalidArgument);
  EXPECT_THROW(pad(x, {-3, 0}), InvalidArgument);
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  EXPECT_THROW(pad(x, {kLargest, 0}), InvalidArgument);
  EXPECT_THROW(pad(x, {-kLargest - 1, 0}), InvalidArgument);
  EXPECT_THROW(pad(x, {int64_t{1} << 61, int64_t{1} << 61}), InvalidArgument);
}

TEST(Concat, RollRefusesDimsThatAScalarLacks) {
  EXPECT_THROW(roll(tensor(1.f), 1, 0), InvalidArgument);
  EXPECT_EQ(roll(tensor(1.f), 1).item(), 1);
  EXPECT_THROW(roll(ones({2, 2}), {1, 1}, 0), InvalidArgument);
}

TEST(Concat, Triangles) {
  const Tensor x = ones({2, 3});

  EXPECT_EQ(tril(x).to_vector<float>(), Floats({1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(tril(x, 1).to_vector<float>(), Floats({1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(triu(x).to_vector<float>(), Floats({1, 1, 1, 0, 1, 1}));
  EXPECT_EQ(triu(x, 5).to_vector<float>(), Floats(6, 0));
  EXPECT_EQ(triu(counting({2, 2, 2}).transpose(1, 2)).to_vector<float>(),
            Floats({0, 2, 0, 3, 4, 6, 0, 7}));
  EXPECT_THROW(tril(ones({3})), InvalidArgument);
}

TEST(Concat, GradientsAreRight) {
  const Tensor x = leaf({2, 3});
  const Tensor y = leaf({2, 3});
  const auto fn = [](const Tensors& in) {
    const Tensor &a = in[0], &b = in[1];
    return Tensors{cat({a, b, a}, 1) * 2, stack({a, b}, 1), repeat(a, {2, 1, 2}),
                   flip(a * b, {0, 1}),   roll(a, 2),       pad(b, {1, -1, 2, 0}),
                   tril(a) * triu(b, 1)};
  };

  EXPECT_TRUE(gradcheck(fn, {x, y}));
  EXPECT_TRUE(gradgradcheck(fn, {x, y}));
}

TEST(Concat, PadTakesElementsFromInside) {
  const Tensor x = tensor({{1.f, 2.f, 3.f, 4.f}});
  const auto padded = [&](const Ints& padding, const char* mode) {
    return pad(x, padding, {.mode = mode}).to_vector<float>();
  };

  EXPECT_EQ(padded({2, 3}, "reflect"), std::vector<float>({3, 2, 1, 2, 3, 4, 3, 2, 1}));
  EXPECT_EQ(padded({2, 3}, "replicate"), std::vector<float>({1, 1, 1, 2, 3, 4, 4, 4, 4}));
  EXPECT_EQ(padded({2, 3}, "circular"), std::vector<float>({3, 4, 1, 2, 3, 4, 1, 2, 3}));
  EXPECT_EQ(padded({-1, 2}, "replicate"), std::vector<float>({2, 3, 4, 4, 4}));
  EXPECT_EQ(padded({0, 0}, "reflect"), std::vector<float>({1, 2, 3, 4}));
  EXPECT_EQ(
      pad(tensor({{{1.f, 2.f}, {3.f, 4.f}}}), {1, 1, 1, 0}, {.mode = "reflect"}).to_vector<float>(),
      std::vector<float>({4, 3, 4, 3, 2, 1, 2, 1, 4, 3, 4, 3}));
  EXPECT_THROW(padded({4, 0}, "reflect"), InvalidArgument);
  EXPECT_THROW(padded({0, 5}, "circular"), InvalidArgument);
  EXPECT_THROW(padded({1, 1}, "mirror"), InvalidArgument);
  EXPECT_THROW(pad(x.flatten(), {1, 1}, {.mode = "reflect"}), InvalidArgument);
  EXPECT_THROW(pad(x, {1, 1}, {.mode = "reflect", .value = 1}), InvalidArgument);
}

TEST(Concat, GradientsOfPaddingReturnToWhereItCameFrom) {
  const Tensor x = tensor({{1.f, 2.f, 3.f}}, {.requires_grad = true});

  pad(x, {2, 1}, {.mode = "reflect"}).sum().backward();

  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>({1, 3, 2}));
}

// Rows of 70 elements are repeated by one copy, shorter ones dim by dim.
TEST(Concat, RepeatOfLongAndShortRowsJoinsCopies) {
  for (const int64_t size : {70, 7}) {
    const Tensor x = counting({3, size, 2}).permute({2, 0, 1}).detach();
    x.requires_grad_();
    const Tensor in_rows = cat({x, x, x}, 2);
    const Tensor planes = cat({in_rows, in_rows}, 0);

    const Tensor y = repeat(x, {2, 1, 3});
    const Tensor z = repeat(x, {2, 2, 1, 3});

    EXPECT_TRUE(equal(y, planes)) << size;
    EXPECT_TRUE(equal(z, stack({planes, planes})));
    EXPECT_EQ(grad({y.sum()}, {x})[0].to_vector<float>(),
              Floats(static_cast<size_t>(x.numel()), 6));
  }
}

// The position that `mode` copies to position i of a dim of `size` elements.
int64_t source_of(const std::string& mode, int64_t size, int64_t before, int64_t i) {
  i -= before;
  if (mode == "replicate") return i < 0 ? 0 : i >= size ? size - 1 : i;
  if (mode == "circular") return (i + size) % size;
  return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
}

TEST(Concat, PaddingFromInsideMatchesSelectingDimByDim) {
  const std::vector<int64_t> padding = {3, 1, 2, 4, 1, 1};
  for (const char* mode : {"reflect", "replicate", "circular"}) {
    for (const DType dtype : {float32, float64, bfloat16, uint8}) {
      const Tensor x = randint(0, 100, {3, 5, 6, 40}).to(dtype).permute({0, 2, 1, 3});
      Tensor expected = x;
      for (int64_t d = 1; d <= 3; ++d) {
        const auto pair = static_cast<size_t>(2 * (3 - d));
        std::vector<int64_t> from;
        for (int64_t i = 0; i < x.size(d) + padding[pair] + padding[pair + 1]; ++i)
          from.push_back(source_of(mode, x.size(d), padding[pair], i));
        const auto count = static_cast<int64_t>(from.size());
        expected = index_select(expected, d, tensor(from, {count}));
      }

      const Tensor y = pad(x, padding, {.mode = mode});

      EXPECT_TRUE(equal(y, expected)) << mode;
    }
  }
}

TEST(Concat, PaddingFromInsideHasBothGradients) {
  const Tensor x = leaf({2, 3, 4});
  const auto fn = [](const Tensors& in) {
    return Tensors{pad(in[0], {3, 2, 1, 2}, {.mode = "reflect"}) * 2,
                   pad(in[0], {1, 6, -1, 2}, {.mode = "replicate"}),
                   pad(in[0], {2, 4, 3, 0}, {.mode = "circular"})};
  };

  EXPECT_TRUE(gradcheck(fn, {x}));
  EXPECT_TRUE(gradgradcheck(fn, {x}));
}

// PyTorch's repeat, roll and pad never share memory, even if they change nothing.
TEST(Concat, ResultsHaveMemoryOfTheirOwn) {
  const Tensor x = tensor({{1.f, 2.f}});
  const std::vector<Tensor> results = {repeat(x, {2, 1}),
                                       repeat(x, {1, 1}),
                                       tile(x, {1}),
                                       roll(x, 2, 1),
                                       roll(x, 0),
                                       pad(x, {0, 0}),
                                       pad(x, {0, 0}, {.mode = "circular"}),
                                       pad(x, {-1, 0}, {.mode = "replicate"})};

  for (const Tensor& y : results) {
    EXPECT_NE(y.impl().storage.get(), x.impl().storage.get());
    y.add_(1);
  }

  EXPECT_EQ(results[0].to_vector<float>(), std::vector<float>({2, 3, 2, 3}));
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>({1, 2}));
}

}  // namespace
}  // namespace flow
