// Reductions and searches, of which many threads compute pieces.
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "nn/flow.h"
#include "tests/cuda/cuda_fixture.h"

namespace flow {

namespace {

class CudaReduce : public CudaFixture {};

// The last element is in a piece of its own or the last one of an uneven piece.
TEST_F(CudaReduce, WholeTensorsAsOnTheCpu) {
  for (const int64_t numel : {1000, 100000, 131073}) {
    manual_seed(4);
    const Tensor host = randn({numel});
    const Tensor there = host.to("cuda");
    const std::string what = std::to_string(numel);

    EXPECT_NEAR(sum(there).item(), sum(cast(host, float64)).item(), 1e-2) << what;
    EXPECT_NEAR(vector_norm(there).item(), vector_norm(host).item(), 1e-3) << what;
    EXPECT_NEAR(logsumexp(there, 0).item(), logsumexp(host, 0).item(), 1e-5) << what;
    EXPECT_EQ(amax(there).item(), amax(host).item()) << what;
    EXPECT_EQ(amin(there).item(), amin(host).item()) << what;
    EXPECT_EQ(argmax(there).item(), argmax(host).item()) << what;
    EXPECT_EQ(argmin(there).item(), argmin(host).item()) << what;
  }
}

// The product of the elements after the zero is not in the range of double.
TEST_F(CudaReduce, RunningProductsAreZeroAfterAZero) {
  Tensor host = full({4096}, 1e10);
  host.narrow(0, 0, 1).fill_(0);

  EXPECT_EQ(sum(abs(cumprod(host.to("cuda"), 0))).item(), 0);
}

// The same of values that go to one place.
TEST_F(CudaReduce, ScatteredProductsAreZeroAfterAZero) {
  for (const DType dtype : {float32, float16}) {
    Tensor host = full({100}, 1e4, {.dtype = dtype});
    host.narrow(0, 0, 1).fill_(0);
    const Tensor index = zeros({100}, {.dtype = int64, .device = "cuda"});
    const Tensor one = ones({1}, {.dtype = dtype, .device = "cuda"});

    EXPECT_EQ(scatter_reduce(one, 0, index, host.to("cuda"), "prod").item(), 0) << dtype;
  }
}

// Threads share a line that is long enough; the last ones may have nothing to do.
TEST_F(CudaReduce, GradientsOfRunningProductsOfLongLinesAsOnTheCpu) {
  manual_seed(5);
  for (const Shape& shape : {Shape{1000}, Shape{3, 129}, Shape{257, 2}}) {
    const int64_t dim = shape.size() == 2 && shape[1] == 2 ? 0 : -1;
    Tensor host = rand(shape, {.dtype = float64}) + 0.5;
    host.narrow(dim, 100, 1).fill_(0);
    const Tensor weights = randn(shape, {.dtype = float64});
    const auto gradient = [&](const std::string& device) {
      const Tensor x = host.to(device).clone().requires_grad_();
      sum(cumprod(x, dim) * weights.to(device)).backward();
      return x.grad().to("cpu");
    };

    EXPECT_TRUE(allclose(gradient("cuda"), gradient("cpu"), {.rtol = 1e-10, .atol = 1e-12}))
        << shape;
  }
}

// The product of the elements that count nothing is not in the range of double.
TEST_F(CudaReduce, GradientsOfRunningProductsDoNotOverflowWithoutNeed) {
  Tensor x = full({4000}, 3.0, {.dtype = float64}).to("cuda").requires_grad_();
  cumprod(x, 0).narrow(0, 3, 1).sum().backward();

  EXPECT_EQ(x.grad().narrow(0, 0, 4).sum().item(), 4 * 27);
}

// Pieces may have no finite element, and the shift of others is far from theirs.
TEST_F(CudaReduce, LogsumexpOfInfiniteElements) {
  const double infinity = std::numeric_limits<double>::infinity();
  Tensor host = full({100000}, -infinity);
  EXPECT_EQ(logsumexp(host.to("cuda"), 0).item(), -infinity);
  host.narrow(0, 99000, 2).fill_(-1e4);
  EXPECT_NEAR(logsumexp(host.to("cuda"), 0).item(), -1e4 + std::log(2.0), 1e-2);
  host.narrow(0, 5, 1).fill_(infinity);
  EXPECT_EQ(logsumexp(host.to("cuda"), 0).item(), infinity);
  host.narrow(0, 70000, 1).fill_(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(logsumexp(host.to("cuda"), 0).item()));
}

// A team of threads for each slice, and one thread for each of many slices.
TEST_F(CudaReduce, SoftmaxOfInterleavedSlicesAsOnTheCpu) {
  manual_seed(6);
  for (const Shape& shape : {Shape{700, 40}, Shape{40, 5000}, Shape{20, 40}}) {
    const Tensor host = randn(shape);
    const Tensor weights = randn(shape);
    const auto gradient = [&](const std::string& device) {
      const Tensor x = host.to(device).clone().requires_grad_();
      sum(softmax(x, 0) * weights.to(device)).backward();
      return x.grad().to("cpu");
    };

    EXPECT_TRUE(allclose(softmax(host.to("cuda"), 0).to("cpu"), softmax(host, 0),
                         {.rtol = 1e-5, .atol = 1e-7}))
        << shape;
    EXPECT_TRUE(allclose(gradient("cuda"), gradient("cpu"), {.rtol = 1e-4, .atol = 1e-6})) << shape;
  }
}

TEST_F(CudaReduce, TheFirstOfEqualElementsIsFoundInAnyPiece) {
  Tensor host = zeros({70000});
  for (const int64_t at : {69999, 40000, 66000})
    host.narrow(0, at, 1).fill_(2);

  EXPECT_EQ(argmax(host.to("cuda")).item(), 40000);
}

// More stretches than the team has threads that finds where each begins.
TEST_F(CudaReduce, ElementsThatAreNotZeroAreFoundInOrder) {
  manual_seed(5);
  for (const int64_t rows : {1, 1100, 1500}) {
    const Tensor host = gt(randn({rows, 64}), 1.5);

    EXPECT_EQ(nonzero(host.to("cuda")).to_vector<int64_t>(), nonzero(host).to_vector<int64_t>())
        << rows;
  }
}

TEST_F(CudaReduce, VariancesOfDoublesOfAnyMean) {
  manual_seed(6);
  const Tensor host = add(randn({9000, 2}, {.dtype = float64}), 1e9);
  const Tensor mean = zeros({2}), var = ones({2});
  const Tensor mean_there = mean.to("cuda"), var_there = var.to("cuda");

  const Tensor y = batch_norm(host, mean, var, {.training = true});
  const Tensor there = batch_norm(host.to("cuda"), mean_there, var_there, {.training = true});

  EXPECT_TRUE(allclose(there.to("cpu"), y, {.rtol = 0, .atol = 1e-4}));
  EXPECT_TRUE(allclose(mean_there.to("cpu"), mean));
  EXPECT_TRUE(allclose(var_there.to("cpu"), var));
}

}  // namespace

}  // namespace flow
