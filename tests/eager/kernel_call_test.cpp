#include "core/kernel_call.h"

#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/strided_twin.h"
#include "eager/runtime.h"
#include "graph/program/kernel_binding.h"
#include "ops/conv/conv.h"
#include "ops/creation/copy_op.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"
#include "ops/vendor/onednn.h"

namespace flow {
namespace {

using Kind = KernelCall::Kind;
using Floats = std::vector<float>;

MetaPtr floats(const Shape& shape) {
  return local_meta(shape, float32, DeviceType::kCpu);
}

const OpDef& op(const char* name) {
  return *op_table().find(name);
}

KernelCall reshaped(MetaPtr input, const Shape& shape) {
  const std::array inputs{input};
  const std::array outputs{floats(shape)};
  return make_kernel_call(
      {.op = op("reshape"), .inputs = inputs, .outputs = outputs, .attrs = &shape}, kernel_table());
}

TEST(KernelCall, AViewShowsTheMemoryOfItsInput) {
  const KernelCall call = reshaped(floats({2, 6}), {3, 4});

  EXPECT_EQ(call.kind, Kind::kView);
  EXPECT_EQ(call.view_offset, 0);
  ASSERT_EQ(call.outputs.size(), 1U);
  EXPECT_EQ(call.outputs[0], floats({3, 4}));
  EXPECT_EQ(call.forms, std::vector{InputForm::kAsIs});
}

TEST(KernelCall, AKernelCopiesWhereStridesCannotExpressTheView) {
  const KernelCall call = reshaped(with_strides(floats({2, 6}), {1, 2}), {12});

  EXPECT_EQ(call.kind, Kind::kKernel);
  EXPECT_NE(call.fn, nullptr);
  EXPECT_EQ(call.outputs[0], floats({12}));
}

TEST(KernelCall, IsNothingWhereThisRankHoldsNoPart) {
  const Placement elsewhere("cpu", {1});
  const MetaPtr absent = global_meta({4, 4}, float32, elsewhere, sbp::broadcast, 0);
  const std::array inputs{absent};
  const KernelCall call =
      make_kernel_call({.op = op("relu"), .inputs = inputs, .outputs = inputs}, kernel_table());

  EXPECT_EQ(call.kind, Kind::kNothing);
  EXPECT_EQ(call.outputs[0], absent);
}

TEST(KernelCall, OutputsOfAWriteAreTheWrittenInputs) {
  const MetaPtr target = with_strides(floats({3, 2}), {1, 3});
  const std::array inputs{target, floats({3, 2})};
  const std::array wanted{floats({3, 2})};
  const KernelCall call = make_kernel_call(
      {.op = ops::kCopy, .inputs = inputs, .outputs = wanted, .mutates = 1}, kernel_table());

  EXPECT_EQ(call.kind, Kind::kKernel);
  EXPECT_EQ(call.outputs[0], target);
}

// The output of a convolution keeps the layout of oneDNN.
class BlockedKernelCall : public testing::Test {
 protected:
  void SetUp() override {
    if (!ops::has_onednn()) GTEST_SKIP() << ops::onednn_description();
    x_ = convolve();
    ASSERT_NE(x_.meta().blocked, nullptr);
    values_ = convolve().to_vector<float>();
  }

  static Tensor convolve() {
    const Tensor x = linspace(-2, 3, 2 * 3 * 4 * 4).reshape({2, 3, 4, 4});
    return conv2d(x, linspace(-0.5, 1, 20 * 3).reshape({20, 3, 1, 1}));
  }

  bool is_blocked() const { return x_.meta().blocked != nullptr; }

  Tensor x_;
  Floats values_;
};

TEST_F(BlockedKernelCall, ABlockedInputIsConvertedForKernelsThatDoNotTakeIt) {
  const std::array inputs{x_.meta_ptr()};
  const std::array outputs{floats(x_.shape())};
  const KernelCall call =
      make_kernel_call({.op = ops::kClone, .inputs = inputs, .outputs = outputs}, kernel_table());

  EXPECT_TRUE(call.has_blocked_input);
  EXPECT_EQ(call.forms, std::vector{InputForm::kStrided});
  EXPECT_EQ(call.inputs[0], floats(x_.shape()));
}

TEST_F(BlockedKernelCall, AViewIsOneOfTheStridedTwin) {
  const KernelCall call = reshaped(x_.meta_ptr(), {2, 320});

  EXPECT_EQ(call.kind, Kind::kView);
  EXPECT_EQ(call.forms, std::vector{InputForm::kStrided});

  const Tensor view = reshape(x_, {2, 320});

  EXPECT_TRUE(is_blocked());
  EXPECT_EQ(view.impl().storage, x_.impl().storage->twin());
  EXPECT_EQ(view.to_vector<float>(), values_);
}

TEST_F(BlockedKernelCall, OtherCallsDoNotSeeTheTwin) {
  const MetaPtr before = x_.meta_ptr();

  const Tensor sum = add(x_, ones({20, 1, 1}));
  const Tensor flat = reshape(x_, {2, 320});
  const Tensor y = relu(x_);
  const Floats read = x_.to_vector<float>();

  EXPECT_EQ(sum.meta().blocked, nullptr);
  EXPECT_EQ(x_.meta_ptr(), before);
  EXPECT_EQ(y.meta().blocked, before->blocked);
  EXPECT_EQ(read, values_);
}

TEST_F(BlockedKernelCall, TheTwinIsMadeOnce) {
  const Tensor flat = reshape(x_, {2, 320});
  const Tensor rows = reshape(x_, {40, 16});

  EXPECT_EQ(flat.impl().storage, rows.impl().storage);
}

TEST_F(BlockedKernelCall, AWriteMakesTheTensorStridedForGood) {
  const Tensor flat = reshape(x_, {2, 320});

  x_.add_(1);

  EXPECT_FALSE(is_blocked());
  EXPECT_EQ(flat.impl().storage, x_.impl().storage);
  EXPECT_FLOAT_EQ(flat.to_vector<float>()[3], values_[3] + 1);
}

TEST_F(BlockedKernelCall, AWriteThroughAViewReachesTheTensor) {
  const uint32_t before = x_.impl().version();
  const Tensor flat = reshape(x_, {2, 320});

  select(flat, 0, 1).add_(1);

  EXPECT_EQ(x_.impl().version(), before + 1);
  EXPECT_FLOAT_EQ(relu(x_).to_vector<float>()[400], std::max(values_[400] + 1, 0.F));
  EXPECT_FALSE(is_blocked());
  EXPECT_FLOAT_EQ(x_.to_vector<float>()[3], values_[3]);
  EXPECT_FLOAT_EQ(x_.to_vector<float>()[400], values_[400] + 1);
}

TEST_F(BlockedKernelCall, AWriteOfTheTensorToItsOwnViewReadsBeforeItWrites) {
  const Tensor turned = permute(x_, {0, 1, 3, 2});

  turned.add_(x_);

  const Floats sum = x_.to_vector<float>();
  for (size_t row = 0; row < 4; ++row) {
    for (size_t column = 0; column < 4; ++column)
      EXPECT_FLOAT_EQ(sum[row * 4 + column], values_[row * 4 + column] + values_[column * 4 + row]);
  }
}

TEST_F(BlockedKernelCall, AWriteReachesDetachedHandles) {
  const Tensor other = x_.detach();
  EXPECT_EQ(other.meta_ptr(), x_.meta_ptr());

  x_.mul_(2);

  EXPECT_FLOAT_EQ(relu(other).to_vector<float>()[400], std::max(values_[400] * 2, 0.F));
  EXPECT_FLOAT_EQ(other.to_vector<float>()[400], values_[400] * 2);
}

TEST_F(BlockedKernelCall, AnOverwrittenSavedTensorIsNoticed) {
  const Tensor h = Tensor(x_.impl().alias()).requires_grad_();
  const Tensor y = mul(relu(h), 2);  // relu saves what it gives
  const Tensor z = relu(h);
  const Tensor loss = mul(z, z).sum();
  {
    const NoGradGuard no_grad;
    reshape(z, {2, 320}).add_(1);
  }

  EXPECT_THROW(grad({loss}, {h}), InvalidArgument);
  EXPECT_NO_THROW(grad({y.sum()}, {h}));
}

// ---- steps of programs

graph::Program program_of_clone(MetaPtr input, MetaPtr output) {
  graph::Program program;
  program.buffers = {{.meta = input, .external = 0}, {.meta = output, .external = 1}};
  program.steps = {
      {.body = graph::KernelStep{.op_call = {.op = &ops::kClone}}, .inputs = {0}, .outputs = {1}}};
  program.externals = {0, 1};
  return program;
}

TEST(BoundSteps, CallsOfAProgramFromAFileAreDecidedAgain) {
  graph::Program program = program_of_clone(with_strides(floats({3, 2}), {1, 3}), floats({3, 2}));

  graph::bind_kernel_calls(program, kernel_table());

  const KernelCall& call = *program.steps[0].as<graph::KernelStep>()->kernel_call;
  EXPECT_EQ(call.kind, Kind::kKernel);
  EXPECT_NE(call.fn, nullptr);
  EXPECT_EQ(call.inputs[0], program.buffers[0].meta);
  EXPECT_EQ(call.outputs[0], program.buffers[1].meta);
}

TEST_F(BlockedKernelCall, AStepThatLacksItsConversionIsRefused) {
  graph::Program program = program_of_clone(x_.meta_ptr(), floats(x_.shape()));

  EXPECT_THROW(graph::bind_kernel_calls(program, kernel_table()), BadFile);
}

}  // namespace
}  // namespace flow
