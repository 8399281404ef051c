#include "ops/creation/creation.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/concat.h"
#include "tests/support/error_of.h"

namespace flow {
namespace {

using Floats = std::vector<float>;
using Ints64 = std::vector<int64_t>;

TEST(Creation, NestedBracesGiveShapeAndValues) {
  const Tensor x = tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});

  EXPECT_EQ(x.shape(), Shape({2, 3}));
  EXPECT_EQ(x.dtype(), float32);
  EXPECT_EQ(x.to_vector<float>(), Floats({1, 2, 3, 4, 5, 6}));
}

TEST(Creation, LiteralsTakeTheirCategorysDtype) {
  EXPECT_EQ(tensor({1, 2}).dtype(), int64);
  EXPECT_EQ(tensor({true, false}).dtype(), bool_);
  EXPECT_EQ(tensor({1.0, 2.0}).dtype(), float32);
  EXPECT_EQ(tensor({1, 2.5}).dtype(), float32);
  EXPECT_EQ(tensor(3.5).shape(), Shape());
  EXPECT_EQ(tensor({}).shape(), Shape({0}));
  EXPECT_EQ(tensor({1, 2}, {.dtype = float64}).to_vector<double>(), std::vector<double>({1, 2}));
}

TEST(Creation, RaggedBracesAreRefused) {
  EXPECT_THROW(tensor({{1, 2}, {3}}), InvalidArgument);
}

TEST(Creation, VectorsKeepTheirDtype) {
  EXPECT_EQ(tensor(std::vector<double>{1, 2, 3, 4}, {2, 2}).dtype(), float64);
  EXPECT_EQ(tensor(std::vector<int32_t>{1, 2}, {2}).dtype(), int32);
  const Tensor mask = tensor(std::vector<bool>{true, false}, {2});
  EXPECT_EQ(mask.dtype(), bool_);
  EXPECT_EQ(mask.to_vector<int64_t>(), Ints64({1, 0}));
  EXPECT_EQ(message_of<Error>([] {
              tensor(std::vector<float>{1, 2, 3}, {2, 2});
            }),
            "[tensor] 3 values do not fill shape (2, 2), which has 4 elements; give one value per "
            "element");
}

TEST(Creation, ConstantsFillTheirShape) {
  EXPECT_EQ(zeros({2}).to_vector<float>(), Floats({0, 0}));
  EXPECT_EQ(ones({2}, {.dtype = bfloat16}).to_vector<float>(), Floats({1, 1}));
  EXPECT_EQ(full({2}, 7).dtype(), int64);
  EXPECT_EQ(full({2}, 7.5).to_vector<float>(), Floats({7.5, 7.5}));
  EXPECT_EQ(full({2}, true).dtype(), bool_);
  EXPECT_EQ(empty({2, 0}).numel(), 0);
  EXPECT_EQ(zeros({}).item<float>(), 0);
}

TEST(Creation, ArangeCountsUpToButNotIncludingTheEnd) {
  EXPECT_EQ(arange(4).to_vector<int64_t>(), Ints64({0, 1, 2, 3}));
  EXPECT_EQ(arange(5, 0, -2).to_vector<int64_t>(), Ints64({5, 3, 1}));
  EXPECT_EQ(arange(0, 1, 0.25).to_vector<float>(), Floats({0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(arange(3, 3).numel(), 0);
  EXPECT_THROW(arange(0, 3, -1), InvalidArgument);
  EXPECT_THROW(arange(0, 3, 0), InvalidArgument);
}

TEST(Creation, LinspaceIncludesBothEnds) {
  EXPECT_EQ(linspace(0, 1, 5).to_vector<float>(), Floats({0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(linspace(2, 4, 1).to_vector<float>(), Floats({2}));
  const auto values = linspace(0, 0.3, 4, {.dtype = float64}).to_vector<double>();
  EXPECT_EQ(values.back(), 0.3);
}

TEST(Creation, EyeIsOneOnTheDiagonal) {
  EXPECT_EQ(eye(2, 3).to_vector<float>(), Floats({1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(eye(2).shape(), Shape({2, 2}));
}

TEST(Creation, LikeTakesOverShapeAndDtype) {
  const Tensor x = ones({2}, {.dtype = float64});

  EXPECT_EQ(zeros_like(x).dtype(), float64);
  EXPECT_EQ(ones_like(x, {.dtype = int32}).dtype(), int32);
  EXPECT_EQ(full_like(x, 3).to_vector<double>(), std::vector<double>({3, 3}));
  EXPECT_EQ(empty_like(x).shape(), Shape({2}));
}

TEST(Creation, BlobsAreSharedAndReleasedOnce) {
  Floats memory = {1, 2, 3, 4};
  int releases = 0;
  {
    const Tensor x = from_blob(memory.data(), {2, 2}, {}, [&](void*) { ++releases; });
    memory[3] = 9;
    EXPECT_EQ(x.to_vector<float>(), Floats({1, 2, 3, 9}));
    const Tensor copy = x;
    EXPECT_EQ(releases, 0);
  }
  EXPECT_EQ(releases, 1);
  std::vector<int64_t> integers = {1, 2};
  EXPECT_THROW(from_blob(integers.data(), {2}, {.requires_grad = true}, [&](void*) { ++releases; }),
               InvalidArgument);
  EXPECT_EQ(releases, 1);  // the caller still owns the memory
  EXPECT_THROW(from_blob(memory.data(), {4}, {.dtype = int32}), InvalidArgument);
  EXPECT_THROW(from_blob<float>(nullptr, {4}), InvalidArgument);
}

TEST(Creation, RequiresGradNeedsAFloatingDtype) {
  EXPECT_TRUE(zeros({2}, {.requires_grad = true}).requires_grad());
  EXPECT_THROW(zeros({2}, {.dtype = int64, .requires_grad = true}), InvalidArgument);
}

TEST(Creation, MissingRanksAndDevicesSayWhatToDo) {
  const Placement two("cpu", {0, 1});

  EXPECT_EQ(message_of<Error>([&] { zeros({2}, {.placement = two, .sbp = sbp::split(0)}); }),
            "[zeros] placement cpu:(0, 1) names rank 1, but the world has 1 rank; start more with "
            "flowrun -n 2 PROGRAM or flow::run_ranks(2, …)");
  EXPECT_EQ(message_of<Error>([] { zeros({2}, {.device = "cuda"}); }),
            "[zeros] this build has no cuda kernels; configure with -DFLOW_CUDA=ON, or use device "
            "cpu");
  EXPECT_THROW(zeros({2}, {.sbp = sbp::split(0)}), InvalidArgument);
  EXPECT_THROW(zeros({2}, {.device = "tpu"}), InvalidArgument);
}

TEST(Creation, EachRankKeepsItsPart) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const bool is_first = env::rank() == 0;

    const Tensor rows =
        tensor({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}, {.placement = both, .sbp = sbp::split(0)});
    EXPECT_EQ(rows.shape(), Shape({3, 2}));
    EXPECT_EQ(rows.to_local().to_vector<float>(), is_first ? Floats({1, 2, 3, 4}) : Floats({5, 6}));

    const Tensor columns =
        tensor({{1.f, 2.f}, {3.f, 4.f}}, {.placement = both, .sbp = sbp::split(1)});
    EXPECT_EQ(columns.to_local().to_vector<float>(), is_first ? Floats({1, 3}) : Floats({2, 4}));

    const Tensor count = arange(5, {.placement = both, .sbp = sbp::split(0)});
    EXPECT_EQ(count.to_local().to_vector<int64_t>(), is_first ? Ints64({0, 1, 2}) : Ints64({3, 4}));

    const Tensor identity = eye(3, {.placement = both, .sbp = sbp::split(1)});
    EXPECT_EQ(identity.to_local().to_vector<float>(),
              is_first ? Floats({1, 0, 0, 1, 0, 0}) : Floats({0, 0, 1}));
  });
}

TEST(Creation, PartialSumsLieOnTheFirstRank) {
  run_ranks(2, [] {
    const TensorOptions partial{.placement = Placement("cpu", {0, 1}), .sbp = sbp::partial_sum};
    const float here = env::rank() == 0 ? 1 : 0;

    EXPECT_EQ(ones({2}, partial).to_local().to_vector<float>(), Floats({here, here}));
    EXPECT_EQ(tensor({2.f}, partial).to_local().to_vector<float>(), Floats({2 * here}));
    EXPECT_EQ(arange(2, partial).to_local().to_vector<float>(), Floats({0, here}));
  });
}

TEST(Creation, GuardGivesTheDefaultLayout) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const PlacementGuard guard(both, sbp::split(0));

    EXPECT_EQ(zeros({4}).sbp(), NdSbp(sbp::split(0)));
    EXPECT_EQ(zeros({4}, {.sbp = sbp::broadcast}).sbp(), NdSbp(sbp::broadcast));
    EXPECT_FALSE(zeros({4}, {.device = "cpu"}).is_global());
  });
}

// This keeps programs independent of the layout of x.
TEST(Creation, NewTensorsAreWholeAlongSplitsTheyLack) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const Tensor x = ones({4, 4}, {.placement = both, .sbp = sbp::split(1)});

    EXPECT_EQ(new_zeros(x, {3}).sbp(), sbp::broadcast);
    EXPECT_EQ(new_tensor(x, {1.f, 2.f}).sbp(), sbp::broadcast);
    EXPECT_EQ(new_zeros(x, {3, 2}).sbp(), sbp::split(1));
    EXPECT_THROW(new_zeros(x, {3}, {.sbp = sbp::split(1)}), InvalidArgument);
  });
}

TEST(Creation, NewTensorsTakeDtypeAndLayoutOfAnother) {
  const Tensor x = ones({2}, {.dtype = float64});

  EXPECT_EQ(new_zeros(x, {3}).dtype(), float64);
  EXPECT_EQ(new_ones(x, {2, 1}).to_vector<double>(), std::vector<double>({1, 1}));
  EXPECT_EQ(new_full(x, {1}, 7, {.dtype = int32}).dtype(), int32);
  EXPECT_EQ(new_tensor(x, {1, 2}).dtype(), float64);
  EXPECT_EQ(new_empty(x, {4}).shape(), Shape({4}));
}

TEST(Creation, FillsRefuseWhatTheDtypeCannotHold) {
  const Tensor x = zeros({2}, {.dtype = int32});

  EXPECT_THROW(full({2}, 300, {.dtype = uint8}), InvalidArgument);
  EXPECT_THROW(full({2}, 1e10, {.dtype = int32}), InvalidArgument);
  EXPECT_THROW(full({2}, NAN, {.dtype = int64}), InvalidArgument);
  EXPECT_THROW(x.fill_(int64_t{1} << 31), InvalidArgument);
  EXPECT_THROW(masked_fill(x, x.to(bool_), int64_t{1} << 31), InvalidArgument);
  EXPECT_THROW(scatter(x, 0, zeros({1}, {.dtype = int64}), int64_t{1} << 31), InvalidArgument);
  EXPECT_THROW(pad(x, {1, 0}, {.value = 1e10}), InvalidArgument);
  EXPECT_THROW(randint(300, {2}, {.dtype = uint8}), InvalidArgument);
  EXPECT_EQ(full({1}, -1, {.dtype = uint8}).item<int64_t>(), 255);
  EXPECT_EQ(full({1}, 2.9, {.dtype = int8}).item<int64_t>(), 2);
  EXPECT_EQ(randint(255, 256, {1}, {.dtype = uint8}).item<int64_t>(), 255);
}

// As in PyTorch, which also refuses numbers that round to the largest one.
TEST(Creation, FillsRefuseNumbersThatBecomeInfinite) {
  const Tensor x = zeros({2}, {.dtype = float16});

  EXPECT_THROW(full({2}, 65520, {.dtype = float16}), InvalidArgument);
  EXPECT_THROW(full({2}, -1e39), InvalidArgument);
  EXPECT_THROW(full({2}, 3.4e38, {.dtype = bfloat16}), InvalidArgument);
  EXPECT_THROW(x.fill_(1e5), InvalidArgument);
  EXPECT_THROW(masked_fill(x, x.to(bool_), -1e9), InvalidArgument);
  EXPECT_THROW(scatter(x, 0, zeros({1}, {.dtype = int64}), 1e5), InvalidArgument);
  EXPECT_THROW(pad(x, {1, 0}, {.value = 1e10}), InvalidArgument);
  EXPECT_THROW(linspace(0, 1e5, 3, {.dtype = float16}), InvalidArgument);
  EXPECT_EQ(full({1}, 65519, {.dtype = float16}).item(), 65504);
  EXPECT_EQ(full({1}, 3.4028235e38).item(), std::numeric_limits<float>::max());
  EXPECT_EQ(x.fill_(-INFINITY).to(float32).to_vector<float>()[1], -INFINITY);
}

TEST(Creation, AnItemThatItsTypeCannotHoldRaises) {
  const Tensor large = tensor(std::vector<int64_t>{int64_t{1} << 32});
  EXPECT_THROW(large.item<int32_t>(), InvalidArgument);
  EXPECT_EQ(large.item<int64_t>(), int64_t{1} << 32);
  EXPECT_EQ(large.item(), 4294967296.0);
  EXPECT_THROW(tensor(std::vector<int32_t>{-129}).item<int8_t>(), InvalidArgument);
  EXPECT_THROW(tensor(std::vector<float>{300}).item<uint8_t>(), InvalidArgument);
  EXPECT_THROW(tensor(std::vector<float>{NAN}).item<int64_t>(), InvalidArgument);
  EXPECT_THROW(tensor(std::vector<double>{0x1p63}).item<int64_t>(), InvalidArgument);
  EXPECT_EQ(tensor(std::vector<float>{-128.5F}).item<int8_t>(), -128);
  EXPECT_TRUE(large.item<bool>());
}

TEST(Creation, AVectorWithoutShapeHasOneDim) {
  const std::vector<float> values{1, 2, 3};
  EXPECT_EQ(tensor(values).shape(), Shape{3});
  EXPECT_EQ(tensor(values, {.dtype = int64}).to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(tensor(std::vector<bool>{true, false}).dtype(), bool_);
  EXPECT_EQ(tensor(std::vector<int16_t>{}).shape(), Shape{0});
  EXPECT_EQ(tensor(std::vector<double>{4}, {}).dim(), 0);
}

TEST(Int16, ComputesAsTheOtherIntegers) {
  const Tensor x = tensor(std::vector<int16_t>{300, -2, 32767});
  EXPECT_EQ(x.dtype(), int16);
  EXPECT_EQ((x + x).to_vector<int>(), (std::vector<int>{600, -4, -2}));  // wraps around
  EXPECT_EQ(x.sum().dtype(), int64);
  EXPECT_EQ(x.sum().item<int64_t>(), 33065);
  EXPECT_EQ((x / 2).dtype(), default_dtype());
  EXPECT_EQ(x.to(int8).to_vector<int>(), (std::vector<int>{44, -2, -1}));
  EXPECT_EQ(x.to(float16).to(int16).to_vector<int>()[0], 300);
  EXPECT_EQ((x + tensor(std::vector<uint8_t>{1, 1, 1})).dtype(), int16);
  EXPECT_EQ((x * 1.5).dtype(), default_dtype());
  EXPECT_THROW(full({1}, 40000, {.dtype = int16}), InvalidArgument);
}

}  // namespace
}  // namespace flow
