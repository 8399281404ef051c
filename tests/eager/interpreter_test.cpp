#include "eager/interpreter.h"

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "core/context.h"
#include "core/dispatch.h"
#include "core/error.h"
#include "eager/chooser.h"
#include "eager/runtime.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

using eager::decision_cache;
using Floats = std::vector<float>;

// Runs before the initializers of the library, which is linked behind this file.
const Tensor kMadeBeforeMain = ones({2, 2}) * 3.0;

TEST(EagerInterpreter, TensorsMayBeMadeBeforeMain) {
  EXPECT_EQ((kMadeBeforeMain + kMadeBeforeMain).to_vector<float>(), Floats(4, 6));
}

TEST(EagerInterpreter, ViewsShareStorage) {
  const Tensor x = tensor({{1.F, 2.F, 3.F}, {4.F, 5.F, 6.F}});

  const Tensor row = select(x, 0, 1);
  const Tensor column = t(narrow(x, 1, 1, 1));
  row.add_(10);

  EXPECT_EQ(row.impl().storage.get(), x.impl().storage.get());
  EXPECT_EQ(row.storage_offset(), 3);
  EXPECT_EQ(column.to_vector<float>(), (Floats{2, 15}));
}

TEST(EagerInterpreter, ReshapeCopiesWhereStridesCannotExpressIt) {
  const Tensor x = tensor({{1.F, 2.F}, {3.F, 4.F}});

  const Tensor y = reshape(t(x), {4});
  y.add_(1);

  EXPECT_NE(y.impl().storage.get(), x.impl().storage.get());
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{2, 4, 3, 5}));
}

TEST(EagerInterpreter, WritingBumpsTheVersionOfAllAliases) {
  const Tensor x = ones({2, 3});
  const Tensor row = select(x, 0, 0);
  const uint32_t before = x.impl().version();

  row.mul_(2);
  x.add_(1);

  EXPECT_EQ(x.impl().version(), before + 2);
  EXPECT_EQ(row.impl().version(), before + 2);
}

// Both calls share one decision, whose kernel knows the strides of the transpose.
TEST(EagerInterpreter, CopiesOfOverlapsKeepTheStridesTheKernelKnows) {
  const auto matrix = [] { return tensor({{1.F, 2.F}, {3.F, 4.F}}); };
  const Floats sum = {2, 5, 5, 8};
  decision_cache().clear();
  const Tensor a = matrix();
  a.add_(t(a));
  const Tensor b = matrix();
  b.add_(t(matrix()));

  EXPECT_EQ(a.to_vector<float>(), sum);
  EXPECT_EQ(b.to_vector<float>(), sum);

  decision_cache().clear();
  const Tensor c = matrix();
  c.add_(t(matrix()));
  const Tensor d = matrix();
  d.add_(t(d));
  const Tensor e = matrix();
  e.copy_(expand(select(e, 0, 1), {2, 2}));

  EXPECT_EQ(c.to_vector<float>(), sum);
  EXPECT_EQ(d.to_vector<float>(), sum);
  EXPECT_EQ(e.to_vector<float>(), (Floats{3, 4, 3, 4}));
}

TEST(EagerInterpreter, ReadingBumpsNoVersion) {
  const Tensor x = ones({2, 3});
  const uint32_t before = x.impl().version();

  add(x, x);

  EXPECT_EQ(x.impl().version(), before);
}

// Every element is read before it is written: x[1:] += x[:-1] adds the old neighbours.
TEST(EagerInterpreter, OverlappingInputsAreCopiedBeforeTheyAreWritten) {
  const Tensor x = tensor({1.F, 2.F, 3.F, 4.F});

  narrow(x, 0, 1, 3).add_(narrow(x, 0, 0, 3));

  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 3, 5, 7}));
}

TEST(EagerInterpreter, TransposedInputOfItselfIsCopiedBefore) {
  const Tensor x = tensor({{1.F, 2.F}, {3.F, 4.F}});

  x.add_(t(x));

  EXPECT_EQ(x.to_vector<float>(), (Floats{2, 5, 5, 8}));
}

TEST(EagerInterpreter, TheSameViewMayBeReadAndWritten) {
  const Tensor x = tensor({1.F, 2.F, 3.F});

  x.mul_(x);

  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 4, 9}));
}

TEST(EagerInterpreter, ExpandedTargetIsRefused) {
  const Tensor x = tensor({1.F, 2.F});
  const Tensor wide = expand(x, {3, 2});

  try {
    wide.add_(1);
    FAIL() << "elements that share memory were written";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("clone() it first"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 2}));
}

TEST(EagerInterpreter, ResultThatDoesNotFitInPlaceIsRefused) {
  const Tensor x = ones({3});

  EXPECT_THROW(x.add_(ones({2, 3})), InvalidArgument);
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 1, 1}));
}

TEST(EagerInterpreter, WritesThroughStridedTargets) {
  const Tensor x = zeros({2, 3});

  t(x).add_(tensor({{1.F, 2.F}, {3.F, 4.F}, {5.F, 6.F}}));

  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 3, 5, 2, 4, 6}));
}

TEST(EagerInterpreter, KernelGuardRunsKernelsOfOneName) {
  const Tensor x = tensor({-1.F, 2.F});
  Floats result;
  {
    const eager::KernelGuard guard("reference");
    result = relu(x).to_vector<float>();
  }

  EXPECT_EQ(result, relu(x).to_vector<float>());
}

TEST(EagerInterpreter, KernelGuardRefusesNamesThatDoNotApply) {
  const Tensor x = ones({2});
  const eager::KernelGuard guard("no such kernel");

  EXPECT_THROW(relu(x), Unsupported);
}

TEST(EagerInterpreter, MixedLocalAndGlobalInputsAreRefused) {
  const Tensor local = ones({2});
  const Tensor global = ones({2}, {.placement = Placement("cpu", {0}), .sbp = sbp::broadcast});

  EXPECT_THROW(add(local, global), InvalidArgument);
}

TEST(EagerInterpreter, UndefinedInputIsRefused) {
  EXPECT_THROW(relu(Tensor()), InvalidArgument);
}

TEST(EagerInterpreter, CallsThatDoNotFitTheOpAreRefused) {
  const OpDef& sort = *op_table().find("sort");
  const std::vector<std::byte> attrs(sort.attrs->size);
  const Tensor x = ones({2});
  const Tensor* const input = &x;

  EXPECT_THROW(dispatch(sort, {&x}, Site::here()), InvalidArgument);  // without its attrs
  EXPECT_THROW(dispatch_raw(sort, {&input, 1}, attrs.data(), Site::here()), InvalidArgument);
  const OpDef& isnan = *op_table().find("isnan");
  EXPECT_THROW(dispatch(isnan, {&x, &x}, Site::here()), InvalidArgument);
  EXPECT_THROW(dispatch_in_place(isnan, {&x}, nullptr, Site::here()), InvalidArgument);
}

}  // namespace

}  // namespace flow
