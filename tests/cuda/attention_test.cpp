// Attention of 16-bit operands and its gradients, on a device and as float32 on the CPU.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "nn/flow.h"
#include "tests/cuda/cuda_fixture.h"

namespace flow {

namespace {

class CudaAttention : public CudaFixture {};

struct Case {
  const char* name;
  Shape q, k, v;
  bool is_causal;
  bool has_transposed_heads =
      false;  // (batch, rows, heads, width), seen as (batch, heads, rows, width)
};

Tensor heads_of(const Case& of, const Tensor& x) {
  return of.has_transposed_heads ? x.transpose(1, 2) : x;
}

// The result and the gradients of q, k and v, in host memory.
std::vector<Tensor> attend(const Case& of, const std::vector<Tensor>& values, const Tensor& dy) {
  std::vector<Tensor> in;
  for (const Tensor& x : values)
    in.push_back(x.detach().requires_grad_());
  const Tensor y = scaled_dot_product_attention(heads_of(of, in[0]), heads_of(of, in[1]),
                                                heads_of(of, in[2]), {.is_causal = of.is_causal});
  std::vector<Tensor> results = grad({y}, in, {.grad_outputs = {dy}});
  results.insert(results.begin(), y.detach());
  for (Tensor& x : results)
    x = cast(x.to("cpu"), float32);
  return results;
}

void expect_close(const Tensor& actual, const Tensor& expected, double tolerance,
                  const std::string& what) {
  const std::vector<float> a = actual.to_vector<float>();
  const std::vector<float> b = expected.to_vector<float>();
  ASSERT_EQ(a.size(), b.size()) << what;
  double largest = 0;
  for (const float x : b)
    largest = std::max(largest, std::abs(static_cast<double>(x)));
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], tolerance * largest) << what << ", element " << i;
}

// More than one tile of queries and of keys, parts of tiles, widths of both kernels, widths that
// fill no 16 bytes, and causal masks that begin and end within tiles.
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"causal", {2, 70, 64}, {2, 70, 64}, {2, 70, 64}, true},
      {"all keys", {1, 33, 64}, {1, 130, 64}, {1, 130, 64}, false},
      {"more queries than keys", {1, 100, 16}, {1, 40, 16}, {1, 40, 16}, true},
      {"wide", {1, 66, 128}, {1, 66, 128}, {1, 66, 128}, true},
      {"odd widths", {2, 65, 21}, {2, 65, 21}, {2, 65, 19}, true},
      {"widths that differ", {1, 20, 40}, {1, 20, 40}, {1, 20, 72}, false},
      {"heads", {1, 67, 2, 32}, {1, 67, 2, 32}, {1, 67, 2, 32}, true, true},
      {"heads of a batch", {3, 72, 2, 32}, {3, 72, 2, 32}, {3, 72, 2, 32}, true, true},
  };
  return all;
}

TEST_F(CudaAttention, Of16BitOperandsIsThatOfTheCpu) {
  for (const DType dtype : {float16, bfloat16}) {
    for (const Case& of : cases()) {
      manual_seed(9);
      std::vector<Tensor> host;
      std::vector<Tensor> device;
      for (const Shape& shape : {of.q, of.k, of.v}) {
        const Tensor rounded = cast(randn(shape), dtype);
        host.push_back(cast(rounded, float32));
        device.push_back(rounded.to("cuda"));
      }
      const Shape y = scaled_dot_product_attention(heads_of(of, host[0]), heads_of(of, host[1]),
                                                   heads_of(of, host[2]))
                          .shape();
      const Tensor dy = cast(randn(y), dtype);

      const std::vector<Tensor> expected = attend(of, host, cast(dy, float32));
      const std::vector<Tensor> actual = attend(of, device, dy.to("cuda"));

      const char* names[] = {"y", "dq", "dk", "dv"};
      for (size_t i = 0; i < expected.size(); ++i) {
        expect_close(actual[i], expected[i], dtype == float16 ? 4e-3 : 3e-2,
                     str(of.name, ", ", dtype, ", ", names[i]));
      }
    }
  }
}

TEST_F(CudaAttention, KeepsTheOrderOfDims) {
  for (const DType dtype : {float32, bfloat16}) {
    const Tensor x = cast(randn({2, 5, 3, 16}, {.device = "cuda"}), dtype);  // (B, T, heads, width)
    const Tensor heads = x.transpose(1, 2).requires_grad_();

    const Tensor y = scaled_dot_product_attention(heads, heads, heads, {.is_causal = true});
    const Tensor dx = grad({y}, {heads}, {.grad_outputs = {heads.detach()}})[0];

    EXPECT_TRUE(y.transpose(1, 2).is_contiguous()) << dtype;
    EXPECT_EQ(dx.shape(), heads.shape());
  }
}

}  // namespace

}  // namespace flow
