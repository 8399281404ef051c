#include "ops/elementwise/ternary.h"

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

TEST(Ternary, AddcTakesAFactor) {
  const Tensor x = tensor({1.f, 2.f});

  EXPECT_EQ(addcmul(x, x, tensor({{3.f}, {4.f}}), {.value = 0.5}).to_vector<float>(),
            Floats({2.5, 5, 3, 6}));
  EXPECT_EQ(addcdiv(x, x, tensor({4.f, 8.f}), {.value = -4}).to_vector<float>(), Floats({0, 1}));
  EXPECT_EQ(addcmul(tensor({1}), tensor({2}), tensor({3})).to_vector<float>(), Floats({7}));
  EXPECT_THROW(addcdiv(x, tensor({1}), tensor({1})), InvalidArgument);
}

TEST(Ternary, LerpReachesBothEnds) {
  const Tensor start = tensor({1.f, 2.f});
  const Tensor end = tensor({3.f, 10.f});

  EXPECT_EQ(lerp(start, end, 0.25).to_vector<float>(), Floats({1.5, 4}));
  EXPECT_EQ(lerp(start, end, 1).to_vector<float>(), Floats({3, 10}));
  EXPECT_EQ(lerp(start, end, tensor({0.75f, 1.f})).to_vector<float>(), Floats({2.5, 10}));
  const float big = 3e8F;
  EXPECT_EQ(lerp(tensor({-big}), tensor({1.f}), tensor({1.f})).item<float>(), 1);
}

// A layout may hand out parts of a maximum, which are infinite where a rank has none.
TEST(Ternary, LerpToAnEndIsFiniteInEveryLayout) {
  run_ranks(4, [] {
    const Placement grid("cpu", {{0, 1}, {2, 3}});
    const NdSbp whole{sbp::broadcast, sbp::broadcast};
    const auto placed = [&](const Tensor& x, const NdSbp& layout) {
      return x.to_global(grid, whole).to_global(grid, layout);
    };
    const Tensor start = arange(12, {.dtype = float32}).reshape({4, 3});
    const Tensor end = tensor({0.5F});
    for (const Sbp sbp : {sbp::split(1), sbp::partial_max, sbp::partial_min}) {
      for (const double weight : {0.0, 1.0}) {
        const Tensor y = lerp(placed(start, {sbp, sbp}), placed(end, whole), weight);
        EXPECT_EQ(y.full().to_vector<float>(), lerp(start, end, weight).to_vector<float>());
        const Tensor z = lerp(placed(end, whole), placed(start, {sbp, sbp}), weight);
        EXPECT_EQ(z.full().to_vector<float>(), lerp(end, start, weight).to_vector<float>());
      }
    }
  });
}

TEST(Ternary, LerpHasAGradientInItsWeight) {
  const Tensor weight = tensor({0.25f, 0.75f}, {.requires_grad = true});

  sum(lerp(tensor({1.f, 2.f}), tensor({3.f, 10.f}), weight)).backward();

  EXPECT_EQ(weight.grad().to_vector<float>(), Floats({2, 8}));
}

TEST(Ternary, DtypesArePromotedTogether) {
  const Tensor x = tensor({1, 2});

  EXPECT_EQ(addcmul(x, tensor({2.5, 3.0}, {.dtype = float64}), tensor(2.F)).dtype(), float64);
  EXPECT_EQ(addcmul(x, x, tensor(1.5F)).dtype(), float32);
  EXPECT_EQ(addcmul(tensor({1.F}), tensor({2.F}), tensor(2.0, {.dtype = float64})).dtype(),
            float32);
  EXPECT_THROW(addcmul(x, x, x, {.value = 0.5}), InvalidArgument);
}

TEST(Ternary, FormsInPlaceKeepTheDtypeAndGradients) {
  const Tensor x = tensor({1.F, 2.F});
  addcmul_(x, tensor({2.0, 3.0}, {.dtype = float64}), x, {.value = 2});
  EXPECT_EQ(x.to_vector<float>(), Floats({5, 14}));
  EXPECT_THROW(addcmul_(tensor({1}), tensor({0.5F}), tensor({2})), InvalidArgument);
  EXPECT_THROW(addcdiv_(ones({2}), ones({3, 2}), ones({2})), InvalidArgument);

  const Tensor weight = tensor({0.25F, 0.75F}, {.requires_grad = true});
  const Tensor start = tensor({1.F, 2.F});
  lerp_(start, tensor({3.F, 10.F}), weight);
  sum(start).backward();
  EXPECT_EQ(start.to_vector<float>(), Floats({1.5, 8}));
  EXPECT_EQ(weight.grad().to_vector<float>(), Floats({2, 8}));
}

}  // namespace
}  // namespace flow
