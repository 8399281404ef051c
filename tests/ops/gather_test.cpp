#include "ops/gather.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/binary.h"
#include "ops/compare.h"
#include "ops/creation.h"
#include "ops/gather.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace flow {
namespace {

using Tensors = std::vector<Tensor>;
using Floats = std::vector<float>;
using Ints64 = std::vector<int64_t>;

Tensor counting(const Shape& shape) {
  return arange(shape.numel(), {.dtype = float32}).reshape(shape);
}

Tensor longs(const Ints64& values, const Shape& shape) {
  return tensor(values, shape);
}

Tensor leaf(const Shape& shape) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.numel(); ++i)
    values.push_back(0.5 * static_cast<double>(i * i) - 3);
  return tensor(values, shape, {.requires_grad = true});
}

std::string message_of(const auto& call) {
  try {
    call();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Gather, TakesAlongADim) {
  const Tensor x = counting({2, 3});

  EXPECT_EQ(gather(x, 1, longs({2, 2, 0, 1}, {2, 2})).to_vector<float>(), Floats({2, 2, 3, 4}));
  EXPECT_EQ(gather(x, 0, longs({1, 0}, {1, 2})).to_vector<float>(), Floats({3, 1}));
  EXPECT_EQ(gather(x.t(), -1, longs({1, 0, 1}, {3, 1})).to_vector<float>(), Floats({3, 1, 5}));
  EXPECT_NE(message_of([&] {
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

}  // namespace
}  // namespace flow
