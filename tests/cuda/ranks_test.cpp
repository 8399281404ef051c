// Global tensors on cuda placements: ranks that share a device, or have one each.
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "core/context.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/linear/matmul.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/cuda/data_parallel.h"

namespace flow {

namespace {

using Floats = std::vector<float>;

class CudaRanks : public CudaFixture {};

TEST_F(CudaRanks, RedistributeAsInHostMemory) {
  run_ranks(4, [] {
    const Placement four("cuda", {0, 1, 2, 3});
    const Tensor x =
        arange(10, {.dtype = DType::kFloat32, .placement = four, .sbp = sbp::split(0)});

    EXPECT_EQ(x.device(), DeviceType::kCuda);
    EXPECT_EQ(x.to_global({.sbp = sbp::broadcast}).to_local().to_vector<float>(),
              (Floats{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_EQ(x.full().device(), DeviceType::kCuda);
    EXPECT_EQ(sum(x).item(), 45);
    const Tensor parts = full({2, 2}, 1, {.placement = four, .sbp = sbp::broadcast})
                             .to_local()
                             .to_global({.placement = four, .sbp = sbp::partial_sum});
    EXPECT_EQ(parts.to_global({.sbp = sbp::split(1)}).full().to_vector<float>(),
              (Floats{4, 4, 4, 4}));
  });
}

TEST_F(CudaRanks, MoveBetweenHostAndDeviceKeepsTheLayout) {
  run_ranks(2, [] {
    const Placement host("cpu", {0, 1});
    const Tensor x = arange(6, {.dtype = DType::kFloat32, .placement = host, .sbp = sbp::split(0)});

    const Tensor there = x.to("cuda");

    EXPECT_EQ(there.placement(), Placement("cuda", {0, 1}));
    EXPECT_EQ(there.sbp(), x.sbp());
    EXPECT_EQ(there.to("cpu").to_local().to_vector<float>(), x.to_local().to_vector<float>());
  });
}

// (S(0), B), (S(1), S(0)) and (B, S(1)): each needs other transfers.
TEST_F(CudaRanks, MultiplyInAnyLayout) {
  run_ranks(2, [] {
    const Placement two("cuda", {0, 1});
    const auto on_two = [&](const Sbp& sbp) { return TensorOptions{.placement = two, .sbp = sbp}; };
    for (const auto& [a, b] :
         {std::pair(sbp::split(0), sbp::broadcast), std::pair(sbp::split(1), sbp::split(0)),
          std::pair(sbp::broadcast, sbp::split(1))}) {
      const Tensor y = matmul(full({3, 5}, 2, on_two(a)), full({5, 4}, 3, on_two(b)));
      EXPECT_EQ(y.full().to_vector<float>(), Floats(12, 30));
    }
  });
}

TEST_F(CudaRanks, TrainInDataParallelAsInHostMemory) {
  run_ranks(2, expect_data_parallel_losses_of_host_memory);
}

TEST_F(CudaRanks, DrawTheNumbersOfOneRank) {
  manual_seed(3);
  const Floats expected = rand({7, 3}).to_vector<float>();

  run_ranks(2, [&] {
    manual_seed(3);
    const Tensor x = rand({7, 3}, {.placement = Placement("cuda", {0, 1}), .sbp = sbp::split(0)});
    EXPECT_EQ(x.full().to_vector<float>(), expected);
  });
}

// Rank 1 of two devices leaves a tensor to the caller, which computes on the first device.
class CudaRanksOfTwoDevices : public CudaRanks {
 protected:
  void SetUp() override {
    CudaRanks::SetUp();
    if (IsSkipped()) return;
    if (cuda::device_count() < 2) GTEST_SKIP() << "one device";
    ASSERT_EQ(cuda::current_device(), 0);
  }

  static Tensor made_elsewhere(const std::function<Tensor()>& make) {
    Tensor kept;
    run_ranks(2, [&] {
      if (env::rank() == 1) kept = make();
    });
    return kept;
  }
};

TEST_F(CudaRanksOfTwoDevices, RefuseToComputeWithEachOthersTensors) {
  const Tensor there = made_elsewhere([] { return ones({3}, {.device = "cuda"}); });
  const Tensor here = ones({3}, {.device = "cuda"});
  std::string message;

  try {
    add(here, there);
  } catch (const InvalidArgument& error) {
    message = error.what();
  }

  EXPECT_TRUE(
      message.ends_with("[add] a tensor is in the memory of device cuda:1, but this rank "
                        "computes on cuda:0; copy it with to(\"cuda\") first"))
      << message;
  EXPECT_THROW(there.add_(1), InvalidArgument);
  EXPECT_THROW(there.copy_(here), InvalidArgument);
  EXPECT_EQ(sum(here).item(), 3);
}

TEST_F(CudaRanksOfTwoDevices, CopyAndReadEachOthersTensors) {
  const Tensor there = made_elsewhere([] {
    return arange(6, {.dtype = DType::kFloat32, .device = "cuda"}).reshape({2, 3});
  });
  const Tensor target = zeros({2, 3}, {.device = "cuda"});
  std::ostringstream out;

  target.copy_(there);
  out << there.select(0, 1);

  EXPECT_EQ(add(there.to("cuda"), 1).to_vector<float>(), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(add(there.t().to("cuda"), 1).to_vector<float>(), (Floats{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(there.to("cpu").to_vector<float>(), (Floats{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(there.t().to_vector<float>(), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(there.select(0, 1).select(0, 2).item(), 5);
  EXPECT_EQ(target.to_vector<float>(), (Floats{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(out.str(), "tensor([3., 4., 5.], device=cuda)");
  const Tensor own = there.to("cuda");
  EXPECT_TRUE(own.to("cuda").is_same(own));
}

TEST_F(CudaRanksOfTwoDevices, CopyWithGradients) {
  const Tensor there = made_elsewhere([] { return ones({3}, {.device = "cuda"}); });
  there.requires_grad_(true);

  sum(mul(there.to("cuda"), 3)).backward();

  EXPECT_EQ(there.grad().to_vector<float>(), (Floats{3, 3, 3}));
}

}  // namespace

}  // namespace flow
