#include "ops/conv/pool_state.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "ops/kernel/blocked_layout.h"

namespace flow::ops {
namespace {

bool is_max_pool(const OpDef& op) {
  return &op == &kMaxPool || &op == &kMaxPoolWithIndices || &op == &kMaxPoolBackward ||
         &op == &kMaxPoolGather;
}

bool is_adaptive(const OpDef& op) {
  return &op == &kAdaptiveAvgPool || &op == &kAdaptiveAvgPoolBackward;
}

// The shapes of x and y, whichever the op reads or writes.
struct PoolShapes {
  const Shape& x;
  const Shape& y;
};

PoolShapes shapes_of(const KernelQuery& query) {
  const Shape& in = query.input(0).local_shape;
  const Shape& out = query.output(0).local_shape;
  if (&query.op == &kMaxPoolBackward) return {in, query.input(1).local_shape};
  const bool is_backward = &query.op == &kAvgPoolBackward || &query.op == &kAdaptiveAvgPoolBackward;
  return is_backward ? PoolShapes{out, in} : PoolShapes{in, out};
}

PoolDim prepare_max(const WindowDim& window) {
  PoolDim dim{.in = window.in,
              .out = window.out,
              .step = window.dilation,
              .taps = {},
              .elements = {},
              .begin = -window.padding,
              .stride = window.stride,
              .kernel = window.kernel};
  for (int64_t o = 0; o < window.out; ++o) {
    const TapRange range = taps_inside(window, o);
    dim.taps.push_back({o * window.stride - window.padding + range.begin * window.dilation,
                        range.end - range.begin});
  }
  return dim;
}

PoolDim prepare_mean(const WindowDim& window, bool count_include_pad) {
  PoolDim dim = prepare_max(window);
  for (int64_t o = 0; o < window.out; ++o) {
    const int64_t start = o * window.stride - window.padding;
    const int64_t end = std::min(start + window.kernel, window.in + window.padding);
    const int64_t inside = dim.taps[static_cast<size_t>(o)].count;
    dim.elements.push_back(static_cast<double>(count_include_pad ? end - start : inside));
  }
  return dim;
}

PoolDim prepare_adaptive(int64_t in, int64_t out) {
  PoolDim dim{.in = in, .out = out, .step = 1, .taps = {}, .elements = {}};
  for (int64_t o = 0; o < out; ++o) {
    const auto [begin, end] = adaptive_window(in, out, o);
    dim.taps.push_back({begin, end - begin});
    dim.elements.push_back(static_cast<double>(end - begin));
  }
  return dim;
}

}  // namespace

bool PoolDim::tiles() const {
  int64_t next = 0;
  for (const PoolTaps& own : taps) {
    if (own.first != next || (step != 1 && own.count > 1)) return false;
    next += own.count;
  }
  return next == in;
}

bool parts_agree(const KernelQuery& query) {
  const auto [x, y] = shapes_of(query);
  if (&query.op == &kMaxPoolGather && !(query.input(1).local_shape == x)) return false;
  return std::equal(x.begin(), x.end() - 2, y.begin(), y.end() - 2);
}

PoolState prepare_pool(const KernelQuery& query) {
  const PoolShapes shapes = shapes_of(query);
  PoolState state;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t at = shapes.x.size() - 2 + static_cast<int64_t>(i);
    const int64_t in = shapes.x[at];
    const int64_t out = shapes.y[at];
    const bool is_max = is_max_pool(query.op);
    if (is_max ? query.attrs_as<MaxPoolAttrs>().is_adaptive() : is_adaptive(query.op)) {
      state.dims[i] = prepare_adaptive(in, out);
    } else if (is_max) {
      state.dims[i] = prepare_max(window_dim(query.attrs_as<MaxPoolAttrs>(), i, in, out));
    } else {
      const auto& attrs = query.attrs_as<AvgPoolAttrs>();
      state.dims[i] = prepare_mean(window_dim(attrs, i, in, out), attrs.count_include_pad);
      state.divisor = static_cast<double>(attrs.divisor);
    }
  }
  state.planes = 1;
  for (int64_t i = 0; i < shapes.x.size() - 2; ++i)
    state.planes *= shapes.x[i];
  return state;
}

bool prepare_layout(const KernelQuery& query, PoolState& state, std::vector<MetaPtr>& outputs) {
  outputs.assign(query.outputs.begin(), query.outputs.end());
  const TensorMeta& in = query.input(0);
  const bool has_second = query.inputs.size() > 1;
  if (in.blocked == nullptr) return !has_second || query.input(1).blocked == nullptr;
  if (in.dim() != 4 || outputs.size() > 1) return false;
  const ChannelBlocks blocks = channel_blocks(*in.blocked, in.local_shape);
  state.lanes = blocks.lanes;
  if (state.lanes == 0) return false;
  state.planes = blocks.batch * blocks.blocks();
  const auto layout = layout_like(in.blocked, outputs[0]->local_shape);
  if (!layout) return false;
  outputs[0] = with_blocked(outputs[0], *layout);
  if (!has_second) return true;
  const TensorMeta& second = query.input(1);
  const auto wanted = layout_like(in.blocked, second.local_shape);
  if (!wanted) return false;
  if (second.blocked == *wanted) return true;
  if (second.blocked == nullptr && !second.is_contiguous) return false;
  state.reorder =
      make_onednn(ReorderSpec{.shape = second.local_shape, .from = second.blocked, .to = *wanted});
  state.reordered_bytes = (*wanted)->bytes;
  return true;
}

}  // namespace flow::ops
