#include "tests/support/sample_tensors.h"

#include <vector>

#include "ops/creation/creation.h"
#include "ops/shape/view.h"

namespace flow {

Tensor counting(const Shape& shape, int64_t first) {
  return reshape(arange(first, first + shape.numel(), {.dtype = float32}), shape);
}

Tensor leaf(const Shape& shape) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.numel(); ++i)
    values.push_back(0.5 * static_cast<double>(i * i) - 3);
  return tensor(values, shape, {.requires_grad = true});
}

}  // namespace flow
