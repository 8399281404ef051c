// Redistributions among ranks that share a device: by pointers and events, with the bits of host
// memory.
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "boxing/redistribute_op.h"
#include "core/context.h"
#include "core/dispatch.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/cuda/data_parallel.h"

namespace flow {

namespace {

class CudaExchange : public CudaFixture {};

// The values of this rank's part; empty on ranks that have none.
std::vector<double> part_of(const Tensor& x) {
  if (!x.placement().contains(env::rank())) return {};
  return cast(x.to_local().to("cpu"), float64).contiguous().to_vector<double>();
}

// Ranks that share device 0, however many devices there are.
void share_a_device(int64_t count, const std::function<void()>& body) {
  run_ranks(count, [&] {
    cuda::set_device(0);
    body();
  });
}

Placement on_cuda(const Placement& placement) {
  return {DeviceType::kCuda, placement.shape(), placement.ranks()};
}

Tensor random_part(const Shape& local, DType dtype) {
  return cast(randn(local) * 100, dtype);
}

// From random parts in each layout to each other one, with the sums of host memory.
TEST_F(CudaExchange, RanksOfOneDeviceHoldWhatRanksInHostMemoryHold) {
  share_a_device(4, [] {
    const auto expect_same = [](const Tensor& x, const Placement& placement, const NdSbp& to) {
      const Tensor expected = x.to_global({.placement = placement, .sbp = to});
      const Tensor actual = x.to("cuda").to_global({.placement = on_cuda(placement), .sbp = to});
      EXPECT_EQ(actual.device(), DeviceType::kCuda);
      EXPECT_EQ(part_of(actual), part_of(expected))
          << x.meta() << " to " << to << " on " << placement << ", rank " << env::rank();
    };
    const Placement three("cpu", {0, 1, 2}), two("cpu", {3, 1});
    const Placement square("cpu", {{0, 1}, {2, 3}});
    for (const DType dtype : {float32, bfloat16, float16, int32, float64}) {
      for (const Sbp from :
           {sbp::split(0), sbp::split(1), sbp::broadcast, sbp::partial_sum, sbp::partial_max}) {
        const Tensor x =
            from.is_partial()
                ? random_part({5, 7}, dtype).to_global({.placement = three, .sbp = from})
                : cast(randn({5, 7}, {.placement = three, .sbp = from}) * 100, dtype);
        for (const Sbp to :
             {sbp::split(0), sbp::split(1), sbp::broadcast, sbp::partial_sum, sbp::partial_min}) {
          expect_same(x, three, to);
          expect_same(x, two, to);
        }
      }
      const Tensor x =
          random_part({4, 3}, dtype)
              .to_global({.placement = square, .sbp = {sbp::partial_sum, sbp::split(1)}});
      for (const NdSbp& to :
           {NdSbp{sbp::split(0), sbp::split(0)}, NdSbp{sbp::broadcast, sbp::split(1)},
            NdSbp{sbp::split(1), sbp::partial_sum}, NdSbp{sbp::broadcast, sbp::broadcast}})
        expect_same(x, square, to);
    }
  });
}

// Large sums are reduced in chunks, one by each rank.
// A local tensor of the host becomes global on the device in the device's memory, and back.
TEST_F(CudaExchange, LocalTensorsMoveToTheDeviceOfTheirPlacement) {
  const Placement device("cuda", {0}), host("cpu", {0});
  const Tensor x = randn({3, 4});
  const Tensor there = x.to_global(device, sbp::broadcast);
  EXPECT_EQ((there * 2).to("cpu").to_local().to_vector<float>(), (x * 2).to_vector<float>());
  const Tensor back = x.to("cuda").to_global(host, sbp::split(0));
  EXPECT_EQ((back * 2).to_local().to_vector<float>(), (x * 2).to_vector<float>());

  nn::Linear fc(4, 2);
  const Tensor expected = fc(x);
  fc.to_global(device, sbp::broadcast);
  EXPECT_TRUE(fc(there).to("cpu").to_local().allclose(expected));
}

TEST_F(CudaExchange, RanksOfOneDeviceAddLargeTensorsInTheOrderOfHostMemory) {
  share_a_device(3, [] {
    const Placement three("cpu", {0, 1, 2});
    for (const DType dtype : {float32, bfloat16}) {
      const Tensor x =
          random_part({211, 307}, dtype).to_global({.placement = three, .sbp = sbp::partial_sum});
      EXPECT_EQ(part_of(x.to("cuda").to_global({.sbp = sbp::broadcast})),
                part_of(x.to_global({.sbp = sbp::broadcast})));
      const Tensor there = x.to("cuda");
      EXPECT_EQ(part_of(dispatch(boxing::kAllReduceMean, {&there}, Site::here())),
                part_of(dispatch(boxing::kAllReduceMean, {&x}, Site::here())));
      EXPECT_EQ(part_of(there.transpose(0, 1).to_global({.sbp = sbp::split(0)})),
                part_of(x.transpose(0, 1).to_global({.sbp = sbp::split(0)})));
    }
  });
}

TEST_F(CudaExchange, RanksOfOneDeviceFindCallsThatDiffer) {
  EXPECT_THROW(
      share_a_device(2,
                     [] {
                       const Tensor x = randn({3}).to("cuda").to_global(
                           {.placement = Placement("cuda", {0, 1}), .sbp = sbp::partial_sum});
                       const bool is_first = env::rank() == 0;
                       x.to_global({.sbp = is_first ? sbp::broadcast : sbp::split(0)});
                     }),
      DistributedError);
}

TEST_F(CudaExchange, RanksOfOneDeviceTrainInDataParallelAsInHostMemory) {
  share_a_device(2, expect_data_parallel_losses_of_host_memory);
}

}  // namespace

}  // namespace flow
