// Global tensors on cuda placements: ranks that share a device, or have one each.
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "core/context.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/linear/matmul.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "tests/cuda/cuda_fixture.h"

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
  run_ranks(2, [] {
    const auto train = [](const char* device) {
      manual_seed(2);
      nn::Linear net(6, 3);
      net.to(device);
      nn::parallel::DistributedDataParallel<nn::Linear> ddp(net);
      optim::SGD sgd(net.parameters(), {.lr = 0.1});
      std::vector<double> losses;
      for (int step = 0; step < 3; ++step) {
        const Tensor loss = mse_loss(ddp(randn({4, 6}).to(device)), zeros({4, 3}).to(device));
        sgd.zero_grad();
        loss.backward();
        sgd.step();
        losses.push_back(loss.item());
      }
      return losses;
    };
    const std::vector<double> expected = train("cpu");
    const std::vector<double> actual = train("cuda");
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(actual[i], expected[i], 1e-5 * expected[i]);
  });
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

}  // namespace

}  // namespace flow
