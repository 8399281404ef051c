// Kernels that move packs of elements, at the sizes and addresses where packs begin and end. The
// results are compared with those on the CPU.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/generator.h"
#include "core/tensor.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/support/closeness.h"
#include "tests/support/values.h"

namespace flow {

namespace {

using Function = std::function<Tensor(const Tensor&)>;

const std::vector<DType> kFloats{float32, bfloat16, float16, float64};

// `t` on the device of x.
Tensor like(const Tensor& t, const Tensor& x) {
  return x.device() == DeviceType::kCuda ? t.to("cuda") : t;
}

void expect_as_on_cpu(const Function& f, const Tensor& x, const std::string& what) {
  const Tensor expected = f(x);
  const Tensor actual = f(x.to("cuda"));

  ASSERT_EQ(actual.device(), DeviceType::kCuda) << what;
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  EXPECT_EQ(contract::difference(contract::read_values(actual.to("cpu").contiguous()),
                                 contract::read_values(expected.contiguous()),
                                 contract::kernel_tolerance(expected.dtype())),
            "")
      << what << ", " << dtype_name(x.dtype()) << ", " << x.shape();
}

class CudaPacks : public CudaFixture {
 protected:
  void SetUp() override {
    manual_seed(3);
    CudaFixture::SetUp();
  }
};

// More tensors than one launch takes, some of them empty.
TEST_F(CudaPacks, JoinedSmallTensors) {
  for (const DType dtype : {uint8, bfloat16, float32, int64}) {
    const Tensor x = cast(mul(rand({600, 3}), 200), dtype);
    expect_as_on_cpu(
        [](const Tensor& t) {
          std::vector<Tensor> parts;
          for (int64_t i = 0; i < 300; ++i)
            parts.push_back(t.narrow(0, 2 * i, i % 3));
          return cat(parts);
        },
        x, "rows");
    expect_as_on_cpu([](const Tensor& t) { return stack(t.flatten().unbind(0)); }, x, "numbers");
  }
}

// Places that many values go to: fewer and more than a thread combines, whole pieces and parts.
TEST_F(CudaPacks, ManyValuesOfOnePlace) {
  for (const DType dtype : {float32, bfloat16}) {
    for (const int64_t count : {31, 32, 33, 64, 100, 257, 1000}) {
      for (const int64_t places : {1, 2, 3, 40}) {
        const Tensor rows = randint(0, places, {count}, {.dtype = int64});
        const Tensor dy = cast(randn({count, 5}), dtype);
        expect_as_on_cpu(
            [&](const Tensor& t) {
              const Tensor table = like(cast(zeros({places + 1, 5}), dtype), t).requires_grad_();
              return grad({embedding(like(rows, t), table)}, {table}, {.grad_outputs = {t}})[0];
            },
            dy, str("embedding of ", count, " in ", places));
        expect_as_on_cpu(
            [&](const Tensor& t) {
              const Tensor to = like(cast(ones({places}), dtype), t);
              return to.scatter_add(0, like(rows, t), t.select(1, 0).contiguous());
            },
            dy, str("scatter_add of ", count, " in ", places));
      }
    }
  }
}

// Whole tiles, parts of tiles, sizes that are no multiple of a pack, and addresses that are none.
TEST_F(CudaPacks, TransposedCopies) {
  for (const DType dtype : {uint8, bfloat16, float32, int64}) {
    for (const Shape& shape : {Shape{64, 64}, Shape{72, 200}, Shape{33, 130}, Shape{136, 40}}) {
      const Tensor x = cast(mul(rand(shape), 200), dtype);
      expect_as_on_cpu([](const Tensor& t) { return t.t().clone(); }, x, "transposed");
      expect_as_on_cpu([](const Tensor& t) { return t.narrow(1, 1, t.size(1) - 1).t().clone(); }, x,
                       "transposed part");
    }
    const Tensor x = cast(mul(rand({2, 40, 3, 48}), 200), dtype);
    expect_as_on_cpu(
        [](const Tensor& t) {
          return t.permute({0, 2, 3, 1}).clone();
        },
        x, "permuted");
    expect_as_on_cpu(
        [](const Tensor& t) {
          return t.permute({3, 0, 2, 1}).clone();
        },
        x, "permuted");
    expect_as_on_cpu(
        [](const Tensor& t) {
          const Tensor y = like(zeros({48, 3, 42, 2}, {.dtype = t.dtype()}), t);
          y.narrow(2, 1, 40).copy_(t.permute({3, 2, 1, 0}));
          return y;
        },
        x, "copied into a part");
  }
}

TEST_F(CudaPacks, Elementwise) {
  for (const DType dtype : kFloats) {
    for (const int64_t n : {1, 7, 8, 1027, 4096}) {
      const Tensor x = cast(randn({n + 1}), dtype);
      expect_as_on_cpu([](const Tensor& t) { return gelu(t, {.approximate = "tanh"}); }, x, "gelu");
      expect_as_on_cpu([](const Tensor& t) { return add(t.narrow(0, 1, t.numel() - 1), 2); }, x,
                       "add to a part");
      expect_as_on_cpu([](const Tensor& t) { return cast(t, float32); }, x, "cast");
      expect_as_on_cpu([](const Tensor& t) { return cast(t, bfloat16); }, x, "cast");
      expect_as_on_cpu([](const Tensor& t) { return where(gt(t, 0), t, neg(t)); }, x, "where");
    }
    for (const int64_t n : {5, 64}) {
      const Tensor x = cast(randn({12, 3, n}), dtype);
      expect_as_on_cpu([](const Tensor& t) { return add(t, t.select(0, 1)); }, x, "add a matrix");
      expect_as_on_cpu([](const Tensor& t) { return mul(t, t.narrow(2, 0, 1)); }, x,
                       "mul by columns");
      expect_as_on_cpu([](const Tensor& t) { return mul(t.permute({2, 0, 1}), 2); }, x, "permuted");
    }
  }
}

TEST_F(CudaPacks, Reductions) {
  for (const DType dtype : kFloats) {
    for (const int64_t n : {1, 15, 8192, 8193, 70001}) {
      const Tensor x = cast(rand({n + 1}), dtype);
      expect_as_on_cpu([](const Tensor& t) { return sum(t); }, x, "sum");
      expect_as_on_cpu([](const Tensor& t) { return mean(t.narrow(0, 1, t.numel() - 1)); }, x,
                       "mean of a part");
    }
    for (const Shape& shape : {Shape{3, 1000}, Shape{300, 36}, Shape{9, 2, 515}}) {
      const Tensor x = cast(rand(shape), dtype);
      expect_as_on_cpu([](const Tensor& t) { return sum(t, -1); }, x, "sum of rows");
      expect_as_on_cpu([](const Tensor& t) { return sum(t, 0); }, x, "sum of columns");
      expect_as_on_cpu([](const Tensor& t) { return sum(t.narrow(-1, 1, t.size(-1) - 1), -1); }, x,
                       "sum of parts of rows");
    }
  }
}

// From rows of one element to those that are too long for registers.
TEST_F(CudaPacks, Rows) {
  for (const DType dtype : kFloats) {
    for (const int64_t n : {1, 13, 64, 519, 520, 3072, 34000}) {
      const Tensor x = cast(randn({n > 1000 ? 2 : 9, n}), dtype);
      expect_as_on_cpu([](const Tensor& t) { return softmax(t, -1); }, x, "softmax");
      expect_as_on_cpu([](const Tensor& t) { return log_softmax(t, -1); }, x, "log_softmax");
      expect_as_on_cpu([](const Tensor& t) { return layer_norm(t, {t.size(1)}); }, x, "layer_norm");
      const Tensor parameters = cast(randn({2, n}), dtype);
      const auto with_weight = [&](const Tensor& t) {
        return layer_norm(t, {t.size(1)},
                          {.weight = like(parameters.select(0, 0).clone(), t),
                           .bias = like(parameters.select(0, 1).clone(), t)});
      };
      expect_as_on_cpu(with_weight, x, "layer_norm with weight");
    }
  }
}

// The gradients of x (N, C), the weight and the bias as rows of one matrix.
Tensor layer_norm_gradients(const Tensor& x, const Tensor& parameters, const Tensor& dy) {
  const Tensor leaf = x.detach().requires_grad_();
  const Tensor weight = like(parameters.select(0, 0).clone(), x).requires_grad_();
  const Tensor bias = like(parameters.select(0, 1).clone(), x).requires_grad_();
  const Tensor y = layer_norm(leaf, {x.size(1)}, {.weight = weight, .bias = bias});
  const std::vector<Tensor> gradients =
      grad({y}, {leaf, weight, bias}, {.grad_outputs = {like(dy, x)}});
  return concat({gradients[0], gradients[1].unsqueeze(0), gradients[2].unsqueeze(0)}, 0);
}

Tensor softmax_gradient(const Tensor& x, const Tensor& dy) {
  const Tensor leaf = x.detach().requires_grad_();
  return grad({softmax(leaf, -1)}, {leaf}, {.grad_outputs = {like(dy, x)}})[0];
}

// Groups of rows, and one that is shorter.
TEST_F(CudaPacks, GradientsOfRows) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{1, 1}, Shape{70, 13}, Shape{9, 64}, Shape{67, 520},
                               Shape{33, 768}, Shape{3, 3072}, Shape{40, 9000}}) {
      if (dtype != float32 && shape[1] > 8192 && shape[0] > 3) continue;  // slow
      const Tensor x = cast(randn(shape), dtype);
      const Tensor dy = cast(randn(shape), dtype);
      const Tensor parameters = cast(randn({2, shape[1]}), dtype);
      expect_as_on_cpu([&](const Tensor& t) { return layer_norm_gradients(t, parameters, dy); }, x,
                       "layer_norm");
      expect_as_on_cpu([&](const Tensor& t) { return softmax_gradient(t, dy); }, x, "softmax");
    }
  }
}

}  // namespace

}  // namespace flow
