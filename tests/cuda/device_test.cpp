// Tensors on a device: how they are made, moved, read and mixed.
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/generator.h"
#include "eager/profiler.h"
#include "eager/runtime.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "tests/cuda/cuda_fixture.h"

namespace flow {

namespace {

using Floats = std::vector<float>;

const TensorOptions kOnDevice{.device = "cuda"};

class CudaTensor : public CudaFixture {};

TEST_F(CudaTensor, IsMadeOnTheDeviceAndReadFromIt) {
  const Tensor x = tensor({{1.F, 2.F, 3.F}, {4.F, 5.F, 6.F}}, kOnDevice);

  EXPECT_EQ(x.device(), DeviceType::kCuda);
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(x.select(0, 1).select(0, 2).item(), 6);
  EXPECT_EQ(zeros({2}, {.device = "gpu"}).to_vector<float>(), (Floats{0, 0}));
  EXPECT_EQ(arange(4, kOnDevice).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST_F(CudaTensor, MovesThereAndBack) {
  const Tensor host = tensor({{1.F, 2.F}, {3.F, 4.F}});

  const Tensor there = host.to("cuda");

  EXPECT_EQ(there.device(), DeviceType::kCuda);
  EXPECT_TRUE(there.to("cuda").is_same(there));
  EXPECT_EQ(there.to("cpu").to_vector<float>(), host.to_vector<float>());
  EXPECT_EQ(host.t().to("cuda").to_vector<float>(), (Floats{1, 3, 2, 4}));
  EXPECT_EQ(there.t().to("cpu").to_vector<float>(), (Floats{1, 3, 2, 4}));
}

// In the emulator each copy has many more pieces than the pinned memory has room for.
TEST_F(CudaTensor, MovesStridedTensorsOfManyPieces) {
  const Tensor numbers = arange(210 * 77, {.dtype = DType::kFloat64}).reshape({7, 30, 77});
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kBFloat16, DType::kUInt8}) {
    const Tensor host = cast(remainder(numbers, 251), dtype);
    const Tensor there = host.to("cuda");
    const auto views = [](const Tensor& x) {
      return std::vector<Tensor>{x,
                                 x.transpose(0, 2),
                                 x.transpose(1, 2),
                                 x.permute({2, 0, 1}),
                                 x.narrow(2, 5, 60),
                                 x.narrow(1, 3, 20).transpose(0, 1),
                                 x.select(2, 70),
                                 x.narrow(0, 2, 1).expand({4, 30, 77})};
    };
    const std::vector<Tensor> on_host = views(host);
    const std::vector<Tensor> on_device = views(there);
    for (size_t i = 0; i < on_host.size(); ++i) {
      const std::vector<double> expected = cast(on_host[i], DType::kFloat64).to_vector<double>();
      EXPECT_EQ(cast(on_host[i].to("cuda").to("cpu"), DType::kFloat64).to_vector<double>(),
                expected)
          << dtype << ", to the device, view " << i;
      EXPECT_EQ(cast(on_device[i].to("cpu"), DType::kFloat64).to_vector<double>(), expected)
          << dtype << ", to the host, view " << i;
    }
  }
}

TEST_F(CudaTensor, AnEarlierCopyDoesNotSeeLaterWritesToItsSource) {
  const Tensor host = ones({1000});

  const Tensor there = host.to("cuda");
  host.fill_(7);

  EXPECT_EQ(sum(there).item(), 1000);
}

TEST_F(CudaTensor, PrintsItsValuesAndDevice) {
  std::ostringstream out;

  out << tensor({1.F, 2.5F}, kOnDevice);

  EXPECT_EQ(out.str(), "tensor([1.0000, 2.5000], device=cuda)");
}

TEST_F(CudaTensor, GradientsReturnToTheDeviceTheirTensorIsOn) {
  const Tensor x = tensor({1.F, 2.F}, {.requires_grad = true});

  sum(mul(x.to("cuda"), tensor({3.F, 4.F}, kOnDevice))).backward();

  EXPECT_EQ(x.grad().device(), DeviceType::kCpu);
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{3, 4}));
}

TEST_F(CudaTensor, NumbersInHostMemoryMixWithIt) {
  const Tensor x = tensor({1.F, 2.F}, kOnDevice);
  const Tensor number = tensor(3.F, {.requires_grad = true});

  const Tensor y = mul(x, number);
  sum(y).backward();

  EXPECT_EQ(y.device(), DeviceType::kCuda);
  EXPECT_EQ(y.to_vector<float>(), (Floats{3, 6}));
  EXPECT_EQ(number.grad().device(), DeviceType::kCpu);
  EXPECT_EQ(number.grad().item(), 3);
}

TEST_F(CudaTensor, DevicesDoNotMixOtherwise) {
  const Tensor x = tensor({1.F, 2.F}, kOnDevice);
  const Tensor host = tensor({1.F, 2.F});
  std::string message;

  try {
    add(host, x);
  } catch (const InvalidArgument& error) {
    message = error.what();
  }

  EXPECT_TRUE(message.ends_with(
      ": [add] tensors are on different devices, cpu and cuda; move them to one with to(device); "
      "received (2,) float32, (2,) float32"))
      << message;
  EXPECT_THROW(tensor(1.F).add_(sum(x)), InvalidArgument);
}

TEST_F(CudaTensor, CopiesAcrossDevices) {
  const Tensor host = zeros({3});
  const Tensor there = zeros({3}, kOnDevice);

  there.copy_(tensor({1.F, 2.F, 3.F}));
  host.copy_(there);

  EXPECT_EQ(host.to_vector<float>(), (Floats{1, 2, 3}));
}

TEST_F(CudaTensor, WritesThroughViews) {
  const Tensor x = zeros({2, 3}, kOnDevice);

  x.t().narrow(0, 1, 1).copy_(tensor({{7.F, 8.F}}, kOnDevice));
  x.select(0, 0).fill_(1);

  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 1, 1, 0, 8, 0}));
}

TEST_F(CudaTensor, DrawsWhatTheCpuDraws) {
  manual_seed(5);
  const Tensor host = rand({1001});
  const Tensor host_normal = randn({1001});
  const Tensor host_integers = randint(-3, 1000000007, {1001});
  const Tensor host_order = randperm(50);
  manual_seed(5);
  const Tensor there = rand({1001}, kOnDevice);
  const Tensor there_normal = randn({1001}, kOnDevice);
  const Tensor there_integers = randint(-3, 1000000007, {1001}, kOnDevice);
  const Tensor there_order = randperm(50, kOnDevice);

  EXPECT_EQ(there.to_vector<float>(), host.to_vector<float>());
  EXPECT_EQ(there_integers.to_vector<int64_t>(), host_integers.to_vector<int64_t>());
  EXPECT_EQ(there_order.to_vector<int64_t>(), host_order.to_vector<int64_t>());
  EXPECT_LT(abs(sub(there_normal.to("cpu"), host_normal)).max().item(), 1e-5);
}

// a + (b - a) u is rounded once, as std::fma does, on every device and for every instruction set.
TEST_F(CudaTensor, DrawsAreRoundedOnce) {
  constexpr int64_t kCount = 4000;
  Floats expected;
  std::vector<double> expected_doubles;
  const RandomStream stream{.seed = 9};
  const RandomStream second{.seed = 9, .stream = 1};
  for (uint64_t i = 0; i < kCount; ++i) {
    const float u = uniform_float(philox(stream, i / 4)[i % 4]);
    expected.push_back(std::fma(static_cast<float>(0.6 - -0.7), u, -0.7F));
    const auto lanes = philox(second, i / 2);
    expected_doubles.push_back(
        std::fma(0.6 - -0.7, uniform_double(lanes[2 * (i % 2)], lanes[2 * (i % 2) + 1]), -0.7));
  }
  for (const char* device : {"cpu", "cuda"}) {
    manual_seed(9);
    const Tensor floats = empty({kCount}, {.device = device});
    const Tensor doubles = empty({kCount}, {.dtype = DType::kFloat64, .device = device});

    floats.uniform_(-0.7, 0.6);
    doubles.uniform_(-0.7, 0.6);

    EXPECT_EQ(floats.to_vector<float>(), expected) << device;
    EXPECT_EQ(doubles.to_vector<double>(), expected_doubles) << device;
  }
}

// The CPU refuses what is no probability, which a kernel cannot.
TEST_F(CudaTensor, DrawsOfNoProbabilityAreNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
    const Tensor chances = tensor({0.F, 1.F, 1.5F, -0.5F, nan}, {.dtype = dtype, .device = "cuda"});

    const Floats drawn = cast(bernoulli(chances), DType::kFloat32).to_vector<float>();

    EXPECT_EQ((Floats{drawn[0], drawn[1]}), (Floats{0, 1})) << dtype;
    for (const size_t i : {2, 3, 4})
      EXPECT_TRUE(std::isnan(drawn[i])) << dtype << " " << i;
  }
}

// A device that fuses products and sums would give 5.6e-17 instead of 0.
TEST_F(CudaTensor, StepsAreRoundedAsOnTheCpu) {
  for (const char* device : {"cpu", "cuda"}) {
    const TensorOptions options{.dtype = DType::kFloat64, .device = device};

    EXPECT_EQ(arange(-1.0, 1.0, 0.1, options).to_vector<double>()[10], 0) << device;
    EXPECT_EQ(linspace(-1, 1, 21, options).to_vector<double>()[10], 0) << device;
  }
}

TEST_F(CudaTensor, SixteenBitFloatsRoundAsOnTheCpu) {
  const Tensor x = rand({500});
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const Tensor host = cast(x, dtype);
    const Tensor there = cast(x.to("cuda"), dtype);
    EXPECT_EQ(cast(there, DType::kFloat32).to_vector<float>(),
              cast(host, DType::kFloat32).to_vector<float>());
  }
}

TEST_F(CudaTensor, ProfilesTellTheTimeOnTheDevice) {
  const Tensor x = ones({1 << 16}, kOnDevice);
  profiler::Profile profile;

  exp(x);
  exp(ones({4}));
  profile.stop();

  ASSERT_EQ(profile.events().size(), 3U);
  EXPECT_GT(profile.events()[0].device_us, 0);
  EXPECT_EQ(profile.events()[2].device_us, 0);
  EXPECT_NE(profile.table().find("device ms"), std::string::npos);
}

TEST_F(CudaTensor, DeviceNumbersNameTheRanksDevice) {
  const std::string own = "cuda:" + std::to_string(cuda::current_device());

  EXPECT_EQ(ones({2}, {.device = own}).device(), DeviceType::kCuda);
  EXPECT_THROW(ones({2}, {.device = "cuda:99"}), InvalidArgument);
  EXPECT_THROW(ones({2}, {.device = "cuda:x"}), InvalidArgument);
  EXPECT_THROW(ones({2}, {.device = "cpu:0"}), InvalidArgument);
}

}  // namespace

}  // namespace flow
