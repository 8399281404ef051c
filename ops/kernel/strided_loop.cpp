#include "ops/kernel/strided_loop.h"

#include <algorithm>

#include "core/error.h"

namespace flow::ops {

namespace {

struct Dim {
  int64_t size;
  LoopNest::Offsets stride;
};

bool follows(const Dim& outer, const Dim& inner) {
  for (size_t k = 0; k < outer.stride.size(); ++k) {
    if (outer.stride[k] != inner.stride[k] * inner.size) return false;
  }
  return true;
}

}  // namespace

bool LoopNest::is_flat() const {
  if (rows != 1) return false;
  const Offsets& strides = inner_stride();
  return std::all_of(strides.begin(), strides.begin() + num_operands,
                     [](int64_t step) { return step == 1; });
}

LoopNest make_loop_nest(const TensorMeta& output, std::span<const MetaPtr> inputs) {
  FLOW_ASSERT(inputs.size() < LoopNest::kMaxOperands, "too many operands");
  const Shape& shape = output.local_shape;
  std::array<Dim, kMaxDims> dims;
  size_t count = 0;
  for (int64_t d = 0; output.local_numel != 0 && d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    Dim& dim = dims[count++];
    dim = {.size = shape[d], .stride = {output.strides[d]}};
    for (size_t k = 0; k < inputs.size(); ++k) {
      const TensorMeta& input = *inputs[k];
      const int64_t own = d - (shape.size() - input.local_shape.size());
      const bool is_repeated = own < 0 || input.local_shape[own] == 1;
      dim.stride[k + 1] = is_repeated ? 0 : input.strides[own];
    }
  }
  std::stable_sort(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(count),
                   [](const Dim& a, const Dim& b) { return a.stride[0] > b.stride[0]; });
  size_t merged = 0;
  for (size_t d = 0; d < count; ++d) {
    if (merged > 0 && follows(dims[merged - 1], dims[d])) {
      dims[d].size *= dims[merged - 1].size;
      --merged;
    }
    dims[merged++] = dims[d];
  }

  LoopNest state;
  state.num_operands = static_cast<int>(inputs.size()) + 1;
  if (merged == 0) {  // one element or none
    dims[0] = {.size = shape.numel(), .stride = {}};
    dims[0].stride.fill(1);
    merged = 1;
  }
  state.num_dims = static_cast<int>(merged);
  state.rows = 1;
  for (size_t d = 0; d < merged; ++d) {
    state.size[d] = dims[d].size;
    state.stride[d] = dims[d].stride;
    if (d + 1 < merged) state.rows *= dims[d].size;
  }
  state.inner = dims[merged - 1].size;
  if (output.local_numel == 0) state.rows = 0;
  return state;
}

std::shared_ptr<const LoopNest> share_loop_nest(const TensorMeta& output,
                                                std::span<const MetaPtr> inputs) {
  return std::make_shared<const LoopNest>(make_loop_nest(output, inputs));
}

}  // namespace flow::ops
