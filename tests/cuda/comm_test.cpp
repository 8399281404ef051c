// Collectives and messages of local tensors on devices: what they give in host memory, among ranks
// that share a device and among ranks that have one each.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "nn/flow.h"
#include "tests/cuda/cuda_fixture.h"

namespace flow {

namespace {

class CudaComm : public CudaFixture {};

// With device 0 for all ranks, and with the devices that they have by themselves.
void run_on_devices(int64_t count, const std::function<void()>& body) {
  for (const bool share : {true, false}) {
    run_ranks(count, [&] {
      if (share) cuda::set_device(0);
      body();
    });
  }
}

std::vector<double> values(const Tensor& x) {
  return cast(x.to("cpu"), float64).flatten().to_vector<double>();
}

using Call = std::function<Tensor(const Tensor&)>;

const std::vector<std::pair<std::string, Call>>& calls() {
  using comm::Reduction;
  static const std::vector<std::pair<std::string, Call>> all = {
      {"all_reduce", [](const Tensor& x) { return comm::all_reduce(x); }},
      {"reduce", [](const Tensor& x) { return comm::reduce(x, 2); }},
      {"reduce_scatter", [](const Tensor& x) { return comm::reduce_scatter(x); }},
      {"all_gather",
       [](const Tensor& x) { return comm::all_gather(x.narrow(0, 0, 1 + env::rank())); }},
      {"gather", [](const Tensor& x) { return comm::gather(x.narrow(0, 0, 3 - env::rank()), 1); }},
      {"scatter", [](const Tensor& x) { return comm::scatter(x, 1); }},
      {"broadcast", [](const Tensor& x) { return comm::broadcast(x, 2); }},
      {"all_to_all",
       [](const Tensor& x) {
         const int64_t own = env::rank();
         return comm::all_to_all(x, {.rows = {own, 5 - own, x.size(0) - 5}});
       }},
      {"some ranks",
       [](const Tensor& x) {
         return env::rank() == 1 ? x * 1 : comm::all_reduce(x, {.ranks = {2, 0}});
       }},
  };
  return all;
}

TEST_F(CudaComm, GivesTheBitsOfHostMemory) {
  run_on_devices(3, [] {
    for (const DType dtype : {float32, bfloat16, float64}) {
      // The larger one is reduced in chunks.
      for (const Shape& shape : {Shape{7, 3}, Shape{70, 301}}) {
        const Tensor x = cast(randn(shape) * 10, dtype);
        const Tensor there = x.to("cuda");
        for (const auto& [name, call] : calls())
          EXPECT_EQ(values(call(there)), values(call(x))) << name << ", " << dtype;
        for (const auto op : {comm::Reduction::kMax, comm::Reduction::kMin}) {
          EXPECT_EQ(values(comm::all_reduce(there, {.op = op})),
                    values(comm::all_reduce(x, {.op = op})));
        }
      }
    }
  });
}

TEST_F(CudaComm, HasTheGradientsOfHostMemory) {
  run_on_devices(3, [] {
    const Tensor x = randn({7, 3});
    for (const auto& [name, call] : calls()) {
      const auto gradient = [&](const Tensor& at) {
        const Tensor leaf = at.detach().requires_grad_();
        const Tensor y = call(leaf);
        return values(grad({y}, {leaf}, {.grad_outputs = {y.detach() * 2}})[0]);
      };
      EXPECT_EQ(gradient(x.to("cuda")), gradient(x)) << name;
    }
  });
}

TEST_F(CudaComm, SendsMessagesAndRunsInTheBackground) {
  run_on_devices(2, [] {
    const auto own = static_cast<double>(env::rank());
    const Tensor x = full({40, 500}, own, {.dtype = float32, .device = "cuda"});
    Tensor received = zeros({40, 500}, {.device = "cuda"});
    comm::Work receive = comm::irecv(received, 1 - env::rank());
    comm::send(x, 1 - env::rank());
    receive.wait();
    EXPECT_EQ(received.device(), DeviceType::kCuda);
    EXPECT_EQ(values(received), std::vector<double>(20000, 1 - own));

    comm::TensorWork sum = comm::all_reduce_async(x + 1);
    EXPECT_EQ(values(sum.wait()), std::vector<double>(20000, 3));
    comm::all_reduce_async_(received).wait();
    EXPECT_EQ(values(received), std::vector<double>(20000, 1));
  });
}

TEST_F(CudaComm, FindsCallsThatDiffer) {
  const auto run_in_order = [](const std::function<void()>& first,
                               const std::function<void()>& second) {
    run_ranks(2, [&] {
      cuda::set_device(0);
      static_cast<void>(comm::all_reduce(ones({2}, {.device = "cuda"})));
      if (env::rank() == 0) {
        first();
      } else {
        second();
      }
    });
  };
  const auto reduce = [](const char* device, int64_t size, comm::Reduction op) {
    return
        [=] { static_cast<void>(comm::all_reduce(ones({size}, {.device = device}), {.op = op})); };
  };
  using enum comm::Reduction;
  EXPECT_NO_THROW(run_in_order(reduce("cuda", 3, kMax), reduce("cuda", 3, kMax)));
  EXPECT_THROW(run_in_order(reduce("cuda", 3, kSum), reduce("cuda", 3, kMax)), DistributedError);
  EXPECT_THROW(run_in_order(reduce("cuda", 3, kSum), reduce("cuda", 4, kSum)), DistributedError);
  EXPECT_THROW(run_in_order(reduce("cuda", 3, kSum), reduce("cpu", 3, kSum)), DistributedError);
  EXPECT_THROW(
      run_in_order(reduce("cuda", 3, kSum),
                   [] { static_cast<void>(comm::broadcast(ones({3}, {.device = "cuda"}), 0)); }),
      DistributedError);
}

}  // namespace

}  // namespace flow
