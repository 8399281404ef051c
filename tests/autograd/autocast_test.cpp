#include "autograd/autocast.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/function.h"
#include "autograd/recompute.h"
#include "autograd/shape_in_place.h"
#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/dispatch.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "eager/runtime.h"
#include "ops/conv/conv.h"
#include "ops/conv/grid_sample.h"
#include "ops/conv/interpolate.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/row_table.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/elementwise/unary.h"
#include "ops/index/gather.h"
#include "ops/index/index.h"
#include "ops/index/selection.h"
#include "ops/linear/attention.h"
#include "ops/linear/einsum.h"
#include "ops/linear/matmul.h"
#include "ops/linear/recurrent.h"
#include "ops/linear/vector_algebra.h"
#include "ops/loss/cross_entropy.h"
#include "ops/loss/loss.h"
#include "ops/loss/margin_loss.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/norm.h"
#include "ops/norm/softmax.h"
#include "ops/random/random.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

Floats values(const Tensor& x) {
  return cast(x, float32).to_vector<float>();
}

TEST(Autocast, EveryOpTakesTheDtypeOfItsList) {
  manual_seed(1);
  const Tensor x = randn({4, 4}), half = cast(x, bfloat16), image = randn({1, 2, 5, 5});
  const Tensor kernel = randn({2, 2, 3, 3}), bias = randn({2}), target = arange(4);
  const AutocastGuard autocast;
  for (const Tensor& lower :
       {matmul(x, x), mm(half, x), linear(x, x, x.select(0, 0)),
        linear(x, x.select(0, 0), tensor(1.f)), addmm(x, x, x), einsum("ij,kj->ik", {x, x}),
        conv2d(image, kernel, bias), conv_transpose2d(image, kernel, bias),
        prelu(x, tensor({0.5f})), scaled_dot_product_attention(x, x, x),
        rnn_tanh_cell(x, x, x, x, Tensor(), Tensor()),
        gru_cell(x, x, randn({12, 4}), randn({12, 4}), Tensor(), Tensor())}) {
    EXPECT_EQ(lower.dtype(), bfloat16) << lower.meta();
  }
  for (const Tensor& wide : {softmax(half, 0),
                             log_softmax(half, 0),
                             layer_norm(half, {4}),
                             rms_norm(half, {4}),
                             exp(half),
                             log(half),
                             log1p(half),
                             pow(half, 2),
                             pow(half, half),
                             pow(2, half),
                             rsqrt(half),
                             reciprocal(half),
                             softplus(half),
                             tan(half),
                             sum(half),
                             sum(half, 0),
                             prod(half),
                             cumsum(half, 0),
                             cumprod(half, 0),
                             norm(half),
                             logsumexp(half),
                             cross_entropy(half, target),
                             nll_loss(half, target),
                             cross_entropy(half, half),
                             mse_loss(half, half),
                             smooth_l1_loss(half, half),
                             l1_loss(half, half),
                             kl_div(half, half),
                             binary_cross_entropy_with_logits(half, half),
                             margin_ranking_loss(half, half, half),
                             half + x,
                             cat({half, x}, 0),
                             scatter_add(half, 0, zeros({1, 4}, {.dtype = int64}), x)}) {
    EXPECT_EQ(wide.dtype(), float32) << wide.meta();
  }
  for (const Tensor& same :
       {half + half, relu(half), gelu(half), mean(half), max(half), half.transpose(0, 1),
        batch_norm(cast(image, bfloat16), Tensor(), Tensor(), {.training = true})}) {
    EXPECT_EQ(same.dtype(), bfloat16) << same.meta();
  }
  EXPECT_EQ(softmax(x, 0, {.dtype = bfloat16}).dtype(), bfloat16);
  EXPECT_EQ(sum(x, 0, {.dtype = float16}).dtype(), float16);
  const Tensor wide = cast(x, float64), whole = cast(x, int64);
  EXPECT_EQ(matmul(wide, wide).dtype(), float64);
  EXPECT_EQ(exp(wide).dtype(), float64);
  EXPECT_EQ(matmul(whole, whole).dtype(), int64);
  const Tensor written = half.clone();
  EXPECT_EQ(dispatch_in_place(ops::op_of<ops::Exp>(), {&written}, nullptr, Site::here()).dtype(),
            bfloat16);
}

// A step of two layers and a loss, its result and gradients.
std::vector<Floats> step_of(bool by_hand, DType dtype) {
  manual_seed(3);
  const Tensor x = randn({5, 4}), target = tensor(std::vector<int64_t>{0, 1, 2, 1, 0}, {5});
  const Tensor w1 = randn({6, 4}).requires_grad_(), b1 = randn({6}).requires_grad_();
  const Tensor w2 = randn({3, 6}).requires_grad_();
  Tensor loss;
  if (by_hand) {
    const Tensor h = relu(linear(cast(x, dtype), cast(w1, dtype), cast(b1, dtype)));
    loss = cross_entropy(cast(linear(h, cast(w2, dtype)), float32), target);
  } else {
    const AutocastGuard autocast(dtype);
    loss = cross_entropy(linear(relu(linear(x, w1, b1)), w2), target);
  }
  EXPECT_EQ(loss.dtype(), float32);
  loss.backward();
  EXPECT_EQ(w1.grad().dtype(), float32);
  return {values(loss), values(w1.grad()), values(b1.grad()), values(w2.grad())};
}

TEST(Autocast, ComputesWhatCastsByHandCompute) {
  for (const DType dtype : {bfloat16, float16})
    EXPECT_EQ(step_of(false, dtype), step_of(true, dtype));
}

TEST(Autocast, GuardsNestAndEnd) {
  const Tensor x = ones({2, 2});
  EXPECT_FALSE(is_autocast_enabled());
  {
    const AutocastGuard outer(float16);
    EXPECT_EQ(autocast_dtype(), float16);
    EXPECT_EQ(matmul(x, x).dtype(), float16);
    {
      const AutocastGuard off(bfloat16, {.enabled = false});
      EXPECT_FALSE(is_autocast_enabled());
      EXPECT_EQ(matmul(x, x).dtype(), float32);
      const AutocastGuard inner(bfloat16);
      EXPECT_EQ(matmul(x, x).dtype(), bfloat16);
    }
    EXPECT_EQ(matmul(x, x).dtype(), float16);
  }
  EXPECT_EQ(autocast_dtype(), float32);
  EXPECT_EQ(matmul(x, x).dtype(), float32);
}

TEST(Autocast, InPlaceFormsComputeInTheDtypeOfTheirTensor) {
  const Tensor a = tensor({1.001F, 2.003F, 3.007F, 4.009F}).reshape({2, 2});
  const auto product = [&](bool is_batched) {
    const Tensor sum = zeros({2, 2});
    if (is_batched) {
      sum.unsqueeze(0).baddbmm_(a.unsqueeze(0), a.unsqueeze(0));
    } else {
      sum.addmm_(a, a);
    }
    return sum.to_vector<float>();
  };
  const AutocastGuard guard(bfloat16);
  for (const bool is_batched : {false, true}) {
    const auto inside = product(is_batched);
    const AutocastGuard off(bfloat16, {.enabled = false});
    EXPECT_EQ(inside, product(is_batched));
  }
}

TEST(Autocast, RefusesADtypeThatIsNotLower) {
  for (const DType dtype : {float32, float64, int64, bool_}) {
    try {
      const AutocastGuard guard(dtype);
      FAIL() << "no error";
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("give bfloat16 or float16"), std::string::npos);
    }
  }
  EXPECT_FALSE(is_autocast_enabled());
}

TEST(Autocast, AWeightIsCastOncePerGuardAndAgainWhenItWasWritten) {
  const Tensor x = ones({1, 2}, {.dtype = bfloat16});
  const Tensor w = ones({2, 2}).requires_grad_();
  const auto bytes = [&](const AutocastOptions& options) {
    const AutocastGuard autocast(bfloat16, options);
    const Tensor first = linear(x, w), second = linear(x, w);
    (first + second).sum().backward();
    return values(w.grad());
  };
  // Summed up in bfloat16 before the cast, or after it: the same here.
  EXPECT_EQ(bytes({}), Floats({2, 2, 2, 2}));
  w.set_grad(Tensor());
  EXPECT_EQ(bytes({.cache_enabled = false}), Floats({2, 2, 2, 2}));

  const AutocastGuard autocast;
  EXPECT_EQ(values(linear(x, w)), Floats({2, 2}));
  {
    const NoGradGuard no_grad;
    w.mul_(3);
  }
  EXPECT_EQ(values(linear(x, w)), Floats({6, 6}));
  // A cast that was made without recording does not cut off the gradient.
  w.set_grad(Tensor());
  w.set_data(full({2, 2}, 4.0));
  {
    const NoGradGuard no_grad;
    EXPECT_EQ(values(linear(x, w)), Floats({8, 8}));
  }
  linear(x, w).sum().backward();
  EXPECT_EQ(values(w.grad()), Floats({1, 1, 1, 1}));
}

TEST(Autocast, BackwardAndDoubleBackwardRunOutsideIt) {
  const Tensor x = tensor(Floats{1, 2, 3, 4}, {2, 2}).requires_grad_();
  const AutocastGuard autocast;
  // In bfloat16 x·x of dx would be rounded.
  const Tensor y = pow(x, 3.0).sum();
  const Tensor dx = grad({y}, {x}, {.create_graph = true})[0];
  EXPECT_EQ(values(dx), Floats({3, 12, 27, 48}));
  dx.sum().backward();
  EXPECT_EQ(values(x.grad()), Floats({6, 12, 18, 24}));
}

struct Product : Function<Product> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return matmul(x, x);
  }

  static std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& dy) {
    seen = is_autocast_enabled() ? autocast_dtype() : float32;
    return {cast(matmul(dy[0], ctx.saved()[0]), float32)};
  }

  static inline thread_local DType seen = float64;
};

TEST(Autocast, CustomFunctionsAndRecomputeKeepThatOfTheirForward) {
  const Tensor x = ones({2, 2}).requires_grad_();
  Tensor y;
  {
    const AutocastGuard autocast(float16);
    y = Product::apply(x);
  }
  y.sum().backward();
  EXPECT_EQ(Product::seen, float16);

  manual_seed(4);
  const Tensor a = randn({4, 4}), w = randn({4, 4}).requires_grad_();
  const auto block = [&](const Tensor& t) { return linear(relu(linear(t, w)), w); };
  const auto gradient = [&](bool again) {
    const Tensor in = a.clone().requires_grad_();
    w.set_grad(Tensor());
    Tensor out;
    {
      const AutocastGuard autocast;
      out = again ? recompute([&](const std::vector<Tensor>& t) { return block(t[0]); }, {in})
                  : block(in);
    }
    EXPECT_EQ(out.dtype(), bfloat16);
    out.sum().backward();
    return std::vector<Floats>{values(out), values(in.grad()), values(w.grad())};
  };
  EXPECT_EQ(gradient(true), gradient(false));
}

TEST(Autocast, EachRankHasItsOwn) {
  run_ranks(2, [] {
    const Tensor x = ones({2, 2});
    std::unique_ptr<AutocastGuard> guard;
    if (env::rank() == 1) guard = std::make_unique<AutocastGuard>(float16);
    EXPECT_EQ(matmul(x, x).dtype(), env::rank() == 1 ? float16 : float32);
  });
}

TEST(Autocast, CastsFollowTheShapeAndTheMemoryOfAWeight) {
  const Tensor x = ones({1, 2});
  Tensor w = tensor({{1.f, 2.f}, {3.f, 4.f}}).requires_grad_();
  const AutocastGuard autocast;
  EXPECT_EQ(linear(x, w).to(float32).to_vector<float>(), (std::vector<float>{3, 7}));
  {
    const NoGradGuard no_grad;
    transpose_(w, 0, 1);
  }
  EXPECT_EQ(linear(x, w).to(float32).to_vector<float>(), (std::vector<float>{4, 6}));

  const Tensor flat = tensor({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}, {7.f, 8.f}});
  w.set_data(flat.narrow(0, 0, 2));
  EXPECT_EQ(linear(x, w).to(float32).to_vector<float>(), (std::vector<float>{3, 7}));
  w.set_data(flat.narrow(0, 2, 2));
  EXPECT_EQ(linear(x, w).to(float32).to_vector<float>(), (std::vector<float>{11, 15}));
}

TEST(Autocast, CastsOfGlobalTensorsKeepTheirLayout) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const Tensor x = ones({4, 6}, {.placement = both, .sbp = sbp::split(1)});
    const Tensor w = ones({3, 6}, {.placement = both, .sbp = sbp::split(1)}).requires_grad_();
    Tensor y, z;
    {
      const AutocastGuard autocast;
      y = linear(x, w);
      z = exp(y);
    }
    EXPECT_EQ(y.dtype(), bfloat16);
    EXPECT_EQ(y.sbp(), NdSbp(sbp::partial_sum));
    EXPECT_EQ(z.dtype(), float32);
    EXPECT_FLOAT_EQ(z.full().to_vector<float>()[0], std::exp(6.f));
    z.sum().backward();
    EXPECT_EQ(w.grad().dtype(), float32);
    EXPECT_EQ(w.grad().sbp(), NdSbp(sbp::split(1)));
  });
}

TEST(Autocast, IndexAddTakesTheWidestOfItsOperands) {
  const AutocastGuard guard(DType::kBFloat16);
  const Tensor index = tensor({1, 0}, {.dtype = int64});
  const Tensor narrow = zeros({2}, {.dtype = bfloat16}), source = tensor({1.F, 0x1.000002p0F});
  const Tensor y = index_add(narrow, 0, index, source);
  EXPECT_EQ(y.dtype(), float32);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0x1.000002p0F, 1}));
  EXPECT_EQ(index_add(source, 0, index, narrow).dtype(), float32);
}

TEST(Autocast, AWeightedLossOf16BitsIsFloat32) {
  const AutocastGuard guard(DType::kBFloat16);
  const Tensor x = ones({2}, {.dtype = bfloat16});
  EXPECT_EQ(binary_cross_entropy_with_logits(x, x).dtype(), float32);
  EXPECT_EQ(binary_cross_entropy_with_logits(x, x, {.pos_weight = x}).dtype(), float32);
  EXPECT_EQ(binary_cross_entropy_with_logits(x, x, {.weight = x}).dtype(), float32);
}

TEST(Autocast, ALossOfTwoDtypesIsFloat32) {
  const Tensor half = full({2}, 300, {.dtype = float16}), zero = zeros({2});
  const AutocastGuard guard(DType::kFloat16);
  const Tensor squares = huber_loss(half, zero, {.delta = 1000});  // 45000 each, 90000 together
  EXPECT_EQ(squares.dtype(), float32);
  EXPECT_EQ(huber_loss(half, zero, {.reduction = "sum", .delta = 1000}).item<float>(), 90000);
  EXPECT_EQ(huber_loss(half, zero, {.weight = zero}).dtype(), float32);
  for (const Tensor& loss : {binary_cross_entropy_with_logits(zero, half),
                             binary_cross_entropy_with_logits(zero, half, {.weight = half}),
                             binary_cross_entropy_with_logits(half, zero, {.pos_weight = half})})
    EXPECT_EQ(loss.dtype(), float32);
}

// A number that bfloat16 and float16 round.
constexpr float kFine = 1 + 0x1p-20F;

TEST(Autocast, FunctionsOfSeveralOpsTakeTheWidestOfTheirOperands) {
  const AutocastGuard guard(DType::kFloat16);
  const Tensor fine = full({2, 2}, kFine), half = ones({2, 2}, {.dtype = float16});
  const Tensor row = fine.select(0, 0), half_row = half.select(0, 0);
  EXPECT_EQ(dot(row, half_row).item<float>(), 2 * kFine);
  EXPECT_EQ(tensordot(half, fine).item<float>(), 4 * kFine);
  EXPECT_EQ(inner(fine, half).to_vector<float>(), Floats(4, 2 * kFine));
  EXPECT_EQ(bilinear(fine, half, ones({1, 2, 2}), half_row.slice(0, 0, 1)).to_vector<float>(),
            Floats(2, 4 * kFine + 1));
  EXPECT_EQ(index_put(half, {tensor({0})}, fine.slice(0, 0, 1)).to_vector<float>(),
            Floats({kFine, kFine, 1, 1}));
  const Tensor image = ones({1, 1, 2, 2}, {.dtype = float16}), grid = zeros({1, 1, 1, 2});
  EXPECT_EQ(grid_sample(image, grid).dtype(), float32);
  EXPECT_EQ(dot(half_row, half_row).dtype(), float16);
  EXPECT_EQ(tensordot(half, half).dtype(), float16);
}

TEST(Autocast, ResizedImagesAndDistancesAreFloat32) {
  const AutocastGuard guard(DType::kFloat16);
  const Tensor large = full({1, 1, 2, 2}, 60000, {.dtype = float16});
  EXPECT_EQ(interpolate(large, {.scale_factor = {2.0}}).dtype(), float32);
  EXPECT_EQ(interpolate(large, {.scale_factor = {2.0}, .mode = "bilinear"}).dtype(), float32);
  EXPECT_EQ(dist(large, neg(large)).item<float>(), 240000);
}

// As in PyTorch: a Function that recomputes its forward has gradients of the outer dtype.
TEST(Autocast, AGradientThatIsPassedTakesTheDtypeOfItsOutput) {
  const Tensor x = ones({2}).requires_grad_();
  const Tensor y = x.to(bfloat16) * 3;
  const Tensor dx = grad({y}, {x}, {.grad_outputs = {tensor({1.F, 0.5F})}})[0];
  EXPECT_EQ(dx.dtype(), float32);
  EXPECT_EQ(dx.to_vector<float>(), (std::vector<float>{3, 1.5}));
}

}  // namespace
}  // namespace flow
