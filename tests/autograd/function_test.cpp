#include "autograd/function.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

Tensor leaf(float value) {
  return tensor({value}).requires_grad_();
}

struct Cube : Function<Cube> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x * x;
  }

  static std::vector<Tensor> backward(FunctionContext& ctx, std::vector<Tensor> dy) {
    const Tensor x = ctx.saved()[0];
    return {dy[0] * 3 * x * x};
  }
};

// Saves its output and takes a number.
struct ScaledExp : Function<ScaledExp> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, double scale) {
    Tensor y = (x * scale).exp();
    ctx.save_for_backward({y});
    ctx.set(scale);
    return y;
  }

  static std::vector<Tensor> backward(FunctionContext& ctx, std::vector<Tensor> dy) {
    return {dy[0] * ctx.saved()[0] * ctx.get<double>(), Tensor()};
  }
};

// (sum of a list, its first element), the second without gradient.
struct SumAndFirst : Function<SumAndFirst> {
  static std::vector<Tensor> forward(FunctionContext& ctx, const std::vector<Tensor>& list) {
    Tensor total = list[0];
    for (size_t i = 1; i < list.size(); ++i)
      total = total + list[i];
    const Tensor first = list[0].clone();
    ctx.mark_non_differentiable({first});
    ctx.set(list.size());
    return {total, first};
  }

  static std::vector<Tensor> backward(FunctionContext& ctx, std::vector<Tensor> dy) {
    return std::vector<Tensor>(ctx.get<size_t>(), dy[0]);
  }
};

TEST(Function, UsesItsOwnBackward) {
  const Tensor x = leaf(2);

  const Tensor y = Cube::apply(x);
  y.backward();

  EXPECT_EQ(y.to_vector<float>(), Floats({8}));
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({12}));
}

TEST(Function, OfDifferentiableOpsHasHigherDerivatives) {
  const Tensor x = tensor(std::vector<double>{0.3, -1.2}, {2}, {.requires_grad = true});

  const auto cube = [](const std::vector<Tensor>& in) { return Cube::apply(in[0]); };
  EXPECT_TRUE(gradcheck(cube, {x}));
  EXPECT_TRUE(gradgradcheck(cube, {x}));
  const auto exp = [](const std::vector<Tensor>& in) { return ScaledExp::apply(in[0], 0.7); };
  EXPECT_TRUE(gradcheck(exp, {x}));
  EXPECT_TRUE(gradgradcheck(exp, {x}));
}

TEST(Function, TakesListsAndMarksOutputs) {
  const Tensor a = leaf(1), b = leaf(2);

  const auto outputs = SumAndFirst::apply(std::vector<Tensor>{a, b, a});
  (outputs[0] * 3).backward();

  EXPECT_FALSE(outputs[1].requires_grad());
  EXPECT_EQ(a.grad().to_vector<float>(), Floats({6}));
  EXPECT_EQ(b.grad().to_vector<float>(), Floats({3}));
}

TEST(Function, RecordsNothingWithoutNeed) {
  EXPECT_FALSE(Cube::apply(tensor({2.f})).requires_grad());
  const NoGradGuard no_grad;
  EXPECT_FALSE(Cube::apply(leaf(2)).requires_grad());
}

struct Needs : Function<Needs> {
  static Tensor forward(FunctionContext& ctx, const Tensor& a, const Tensor& b) {
    ctx.set(std::vector<bool>{ctx.needs_input_grad(0), ctx.needs_input_grad(1)});
    return a * b;
  }

  static std::vector<Tensor> backward(FunctionContext& ctx, std::vector<Tensor> dy) {
    EXPECT_EQ(ctx.get<std::vector<bool>>(), (std::vector<bool>{true, false}));
    EXPECT_TRUE(ctx.needs_input_grad(0));
    EXPECT_FALSE(ctx.needs_input_grad(1));
    EXPECT_THROW(static_cast<void>(ctx.needs_input_grad(2)), InvalidArgument);
    EXPECT_THROW(ctx.get<int>(), InvalidArgument);
    return {dy[0], Tensor()};
  }
};

TEST(Function, KnowsWhichGradientsAreWanted) {
  const Tensor a = leaf(1);

  Needs::apply(a, tensor({2.f})).backward();

  EXPECT_EQ(a.grad().to_vector<float>(), Floats({1}));
}

struct TwoOutputs : Function<TwoOutputs> {
  static std::vector<Tensor> forward(FunctionContext& ctx, const Tensor& x, bool materialize) {
    ctx.set_materialize_grads(materialize);
    return {x * 1, x * 2};
  }

  static std::vector<Tensor> backward(FunctionContext& /*ctx*/, std::vector<Tensor> dy) {
    return {dy[1].defined() ? dy[0] + dy[1] * 2 : dy[0] * 100, Tensor()};
  }
};

TEST(Function, UnusedOutputsGetZerosUnlessRefused) {
  const Tensor x = leaf(1), y = leaf(1);

  TwoOutputs::apply(x, true)[0].backward();
  TwoOutputs::apply(y, false)[0].backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({1}));
  EXPECT_EQ(y.grad().to_vector<float>(), Floats({100}));
}

struct WrongCount : Function<WrongCount> {
  static Tensor forward(FunctionContext& /*ctx*/, const Tensor& x) { return x * 1; }

  static std::vector<Tensor> backward(FunctionContext& /*ctx*/, std::vector<Tensor> dy) {
    return {dy[0], dy[0]};
  }
};

struct WrongShape : Function<WrongShape> {
  static Tensor forward(FunctionContext& /*ctx*/, const Tensor& x) { return x * 1; }

  static std::vector<Tensor> backward(FunctionContext& /*ctx*/, const std::vector<Tensor>& /*dy*/) {
    return {zeros({5})};
  }
};

TEST(Function, WrongGradientsNameTheFunctionAndItsLine) {
  try {
    WrongCount::apply(leaf(1)).backward();
    FAIL() << "no error";
  } catch (const InvalidArgument& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("WrongCount"), std::string::npos) << message;
    EXPECT_NE(message.find("function_test.cpp"), std::string::npos) << message;
  }
  EXPECT_THROW(WrongShape::apply(leaf(1)).backward(), InvalidArgument);
}

struct WritesInput : Function<WritesInput> {
  static Tensor forward(FunctionContext& /*ctx*/, const Tensor& x) { return x.mul_(2); }

  static std::vector<Tensor> backward(FunctionContext& /*ctx*/, std::vector<Tensor> dy) {
    return {dy[0] * 2};
  }
};

TEST(Function, ForwardMustNotWriteItsInputs) {
  const Tensor x = leaf(1);

  EXPECT_THROW(WritesInput::apply(x * 1), InvalidArgument);
}

struct Identity : Function<Identity> {
  static Tensor forward(FunctionContext& /*ctx*/, const Tensor& x) { return x; }

  static std::vector<Tensor> backward(FunctionContext& /*ctx*/, std::vector<Tensor> dy) {
    return {dy[0] * -1};
  }
};

TEST(Function, MayReturnItsInput) {
  const Tensor x = leaf(3);

  const Tensor y = Identity::apply(x);
  EXPECT_FALSE(y.is_same(x));
  EXPECT_THROW(y.mul_(2), InvalidArgument);  // shares memory with x behind the graph's back
  y.backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({-1}));
}

TEST(Function, AResultThatSharesMemoryMustBeUsedBeforeTheInputIsWritten) {
  const Tensor x = leaf(3), z = x * 1;
  const Tensor y = Identity::apply(z), of_view = Identity::apply(z.slice(0, 0, 1));
  const Tensor used_before = y * 2;

  z.mul_(2);

  EXPECT_THROW(y * 2, InvalidArgument);
  EXPECT_THROW(y.backward(), InvalidArgument);
  EXPECT_THROW(of_view * 2, InvalidArgument);
  used_before.backward();
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({-2}));
}

struct InFloat64 : Function<InFloat64> {
  static Tensor forward(FunctionContext& /*ctx*/, const Tensor& x) { return x.to(float64) * 3; }

  static std::vector<Tensor> backward(FunctionContext& /*ctx*/, const std::vector<Tensor>& dy) {
    return {dy[0] * 3};
  }
};

TEST(Function, GradientsAreCastToTheDtypeOfTheArgument) {
  const Tensor x = leaf(2);

  InFloat64::apply(x).backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({3}));
}

TEST(Function, SavedTensorsGoWithTheGraph) {
  const Tensor x = leaf(2);
  const Tensor y = Cube::apply(x);
  y.backward();

  EXPECT_THROW(y.backward(), InvalidArgument);
}

struct InnerBackward : Function<InnerBackward> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x;
  }

  // Differentiates a graph of its own.
  static std::vector<Tensor> backward(FunctionContext& ctx, std::vector<Tensor> dy) {
    const EnableGradGuard enable_grad;
    const Tensor x = ctx.saved()[0].detach().requires_grad_();
    return grad({x * x}, {x}, {.grad_outputs = std::move(dy)});
  }
};

TEST(Function, BackwardMayRunBackward) {
  const Tensor x = leaf(3);

  InnerBackward::apply(InnerBackward::apply(x)).backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({2 * 9 * 2 * 3}));
}

struct Product : Function<Product> {
  static Tensor forward(FunctionContext& ctx, const Tensor& a, const Tensor& b) {
    ctx.save_for_backward({a, b});
    return a * b;
  }

  static std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& dy) {
    const std::vector<Tensor> saved = ctx.saved();
    return {dy[0] * saved[1], dy[0] * saved[0]};
  }
};

Tensor product(const TensorArg& a, const TensorArg& b) {
  return Product::apply(a, b);
}

TEST(Function, ArgumentsOfPublicFunctionsAreTensors) {
  const Tensor a = tensor({2.f}, {.requires_grad = true});
  const Tensor b = tensor({3.f}, {.requires_grad = true});

  product(a, b).backward();

  EXPECT_EQ(a.grad().item(), 3);
  EXPECT_EQ(b.grad().item(), 2);
}

}  // namespace
}  // namespace flow
