#include "autograd/gradcheck.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/function.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Tensors = std::vector<Tensor>;

Tensor leaf(const std::vector<double>& values, const Shape& shape) {
  return tensor(values, shape, {.requires_grad = true});
}

// The square, with the derivative of its second element wrong.
struct WrongSquare : Function<WrongSquare> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x;
  }

  static std::vector<Tensor> backward(FunctionContext& ctx, std::vector<Tensor> dy) {
    return {dy[0] * ctx.saved()[0] * tensor(std::vector<double>{2, 3}, {2})};
  }
};

TEST(Gradcheck, AcceptsRightGradients) {
  const Tensor a = leaf({0.5, -0.25, 1.5, 2}, {2, 2}), b = leaf({0.75, -1}, {2});
  const auto fn = [](const Tensors& in) {
    return Tensors{in[0] * in[1], (in[0].exp() + in[1]).sum()};
  };

  EXPECT_TRUE(gradcheck(fn, {a, b}));
  EXPECT_TRUE(gradgradcheck(fn, {a, b}));
  EXPECT_EQ(a.to_vector<double>(), (std::vector<double>{0.5, -0.25, 1.5, 2}));
}

TEST(Gradcheck, NamesTheEntryThatDiffers) {
  const Tensor x = leaf({1, 2}, {2});
  const auto fn = [](const Tensors& in) { return WrongSquare::apply(in[0]); };

  try {
    gradcheck(fn, {x});
    FAIL() << "no error";
  } catch (const InvalidArgument& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("element 1 of output 0 by element 1 of input 0"), std::string::npos)
        << message;
    EXPECT_NE(message.find("6 by the gradient rule"), std::string::npos) << message;
  }
  EXPECT_FALSE(gradcheck(fn, {x}, {.raise_exception = false}));
}

TEST(Gradcheck, MissingGradientIsFound) {
  const Tensor x = leaf({1, 2}, {2});

  EXPECT_FALSE(gradcheck([](const Tensors& in) { return in[0].detach() * 2; }, {x},
                         {.raise_exception = false}));
}

// One step below x is 0, whose logarithm is infinite.
TEST(Gradcheck, AnInfiniteDerivativeIsThatOfNoFiniteRule) {
  const Tensor x = leaf({1e-6}, {1});
  const auto log_with_gradient_times = [](double factor) {
    return [factor](const Tensors& in) {
      const Tensor y = in[0].log();
      if (y.requires_grad()) y.register_hook([factor](const Tensor& dy) { return dy * factor; });
      return y;
    };
  };

  EXPECT_FALSE(gradcheck(log_with_gradient_times(-500), {x}, {.raise_exception = false}));
  EXPECT_TRUE(gradcheck(log_with_gradient_times(HUGE_VAL), {x}, {.raise_exception = false}));
}

TEST(Gradcheck, VariesStridedInputs) {
  const Tensor x = tensor(std::vector<double>{1, 2, 3, 4, 5, 6}, {2, 3}).transpose(0, 1);
  x.requires_grad_();

  EXPECT_TRUE(gradcheck([](const Tensors& in) { return in[0] * in[0]; }, {x}));
}

TEST(Gradcheck, RefusesUnsuitableInputs) {
  const auto fn = [](const Tensors& in) { return in[0] * 2; };

  EXPECT_THROW(gradcheck(fn, {tensor({1.f}).requires_grad_()}), InvalidArgument);
  EXPECT_THROW(gradcheck(fn, {zeros({2}, {.dtype = float64})}), InvalidArgument);
  EXPECT_THROW(gradcheck(fn, {zeros({1}, {.dtype = float64}).expand({3}).requires_grad_()}),
               InvalidArgument);
}

TEST(Gradcheck, InputsAreAsBeforeWhereTheFunctionThrows) {
  const Tensor x = tensor({1.0}, {.dtype = float64, .requires_grad = true});
  int calls = 0;
  const auto throws_perturbed = [&](const std::vector<Tensor>& in) {
    if (calls++ > 0) throw std::runtime_error("perturbed");
    return in[0] * 2;
  };

  EXPECT_THROW(gradcheck(throws_perturbed, {x}), std::runtime_error);
  EXPECT_EQ(x.item(), 1);
}

}  // namespace
}  // namespace flow
