#include "ops/linear/similarity.h"

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

void expect_near(const Tensor& y, const Shape& shape, const Doubles& wanted) {
  EXPECT_EQ(y.shape(), shape);
  expect_values(y, wanted, 1e-13);
}

// Values of PyTorch 2.
TEST(Similarity, CosineBroadcasts) {
  const Tensor x = tensor({{0.5, -1.0, 2.0}, {1.0, 0.0, -0.5}}, {.dtype = float64});
  const Tensor y = tensor({1.0, 2.0, 3.0}, {.dtype = float64});

  expect_near(cosine_similarity(x, y), {2}, {0.524890659167824, -0.11952286093343939});
  expect_near(cosine_similarity(x, zeros_like(y)), {2}, {0, 0});
  expect_near(cosine_similarity(x, x, {.dim = 0}), {3}, {1, 1, 1});
}

TEST(Similarity, DistancesAddEpsToDifferences) {
  const Tensor x = tensor({{0.5, -1.0, 2.0}, {1.0, 0.0, -0.5}}, {.dtype = float64});
  const Tensor y = tensor({1.0, 2.0, 3.0}, {.dtype = float64});

  expect_near(pairwise_distance(x, y), {2}, {3.201560713152727, 4.031127509767336});
  expect_near(pairwise_distance(x, y, {.p = 1, .eps = 0, .keepdim = true}), {2, 1}, {4.5, 5.5});
}

TEST(Similarity, NormalizedVectorsHaveLengthOne) {
  const Tensor x = tensor({{0.5, -1.0, 2.0}, {1.0, 0.0, -0.5}}, {.dtype = float64});

  expect_near(normalize(x), {2, 3},
              {0.2182178902359924, -0.4364357804719848, 0.8728715609439696, 0.8944271909999159, 0,
               -0.4472135954999579});
  expect_near(normalize(x, {.p = 1, .dim = 0}), {2, 3}, {1.0 / 3, -1, 0.8, 2.0 / 3, 0, -0.2});
  expect_near(normalize(zeros({1, 2}, {.dtype = float64})), {1, 2}, {0, 0});
}

TEST(Similarity, ZeroVectorsHaveFiniteGradients) {
  const Tensor x = zeros({1, 2}, {.requires_grad = true});

  sum(normalize(x, {.eps = 0.5})).backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({2, 2}));
}

TEST(Similarity, CosinePromotesAfterBroadcasting) {
  const Tensor x = ones({3}, {.dtype = float16});

  EXPECT_EQ(cosine_similarity(x, ones({}), {.dim = 0}).dtype(), float32);
}

// Values of PyTorch 2.15. The gradients of the quotients would be infinite in 16 bits.
TEST(Similarity, CosineOfTinyNumbersOf16Bits) {
  for (const DType dtype : {float16, bfloat16}) {
    const TensorOptions options{.dtype = dtype, .requires_grad = true};
    const Tensor x = tensor({3e-5, 0.0, 1e-5}, options);
    const Tensor y = tensor({4e-5, 2e-5, -1e-5}, options);

    const Tensor c = cosine_similarity(x, y, {.dim = 0});
    c.backward(full({}, 1e-5, {.dtype = dtype}));

    EXPECT_EQ(c.dtype(), dtype);
    expect_values(c, {0.759}, 8e-3);
    expect_values(x.grad(), {0.0483, 0.138, -0.145}, 4e-3);
    expect_values(y.grad(), {0.0624, -0.0723, 0.105}, 4e-3);
  }
}

}  // namespace
}  // namespace flow
