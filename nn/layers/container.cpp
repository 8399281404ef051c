#include "nn/layers/container.h"

namespace flow::nn {

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (AnyModule& module : modules_)
    y = module(y);
  return y;
}

namespace internal {
void check_position(int64_t i, int64_t size) {
  if (i >= 0 && i < size) return;
  throw InvalidArgument(str("[ModuleList] index ", i, " is out of range: the list has ", size,
                            " modules; use an index from 0 to size() - 1"));
}
}  // namespace internal

}  // namespace flow::nn
