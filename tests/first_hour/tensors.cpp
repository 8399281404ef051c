// Makes tensors, computes with them, takes slices and prints.
#include <sstream>

#include "tests/first_hour/expect.h"

int main() {
  const flow::Tensor a = flow::tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  const flow::Tensor b = flow::arange(3);  // int64
  const flow::Tensor c = a + b;            // broadcasts, and promotes to float32
  expect(c.shape() == flow::Shape{2, 3} && c.dtype() == flow::float32, "c is (2, 3) float32");
  expect_near(c, {1, 3, 5, 4, 6, 8}, "c");

  expect_near(a[1], {4, 5, 6}, "a[1]");
  expect_near(a.index({flow::Slice(), flow::Slice(1)}), {2, 3, 5, 6}, "a[:, 1:]");
  expect_near(a.t().matmul(a).diagonal(), {17, 29, 45}, "the diagonal of a^T a");
  expect_near(a.mean(1, {.keepdim = true}), {2, 5}, "the means of the rows");
  const auto [values, indices] = a.max(1);
  expect_near(values, {3, 6}, "the maxima");
  expect_near(indices, {2, 2}, "where they are");
  expect_near(flow::where(a > 3.5, a, 0 * a), {0, 0, 0, 4, 5, 6}, "what is above 3.5");

  flow::Tensor d = flow::zeros({2, 2});
  d[0] = 7;  // writes through the view
  d += 1;
  expect_near(d, {8, 8, 1, 1}, "d");
  expect(a.sum().item() == 21, "the sum is 21");
  expect(b.to_vector<int64_t>() == std::vector<int64_t>({0, 1, 2}), "b as a vector");

  std::ostringstream text;
  text << d;
  expect(text.str() == "tensor([[8., 8.],\n        [1., 1.]])",
         "d prints as in PyTorch: " + text.str());
  flow::print("d has shape", d.shape(), "and dtype", d.dtype());
}
