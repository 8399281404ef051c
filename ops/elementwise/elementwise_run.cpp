#include "ops/elementwise/elementwise_run.h"

#include <algorithm>

#include "ops/kernel/blocked_layout.h"

namespace flow::ops {

namespace {

constexpr size_t kMaxInputs = LoopNest::kMaxOperands - 1;
// The number of elements in a buffer, chosen so that the buffers of all operands stay in L1.
constexpr int64_t kBuffer = 512;
constexpr size_t kMaxElementBytes = 8;

using Inputs = std::array<const std::byte*, kMaxInputs>;

template <class T>
void gather(const std::byte* source, int64_t stride, int64_t n, std::byte* target) {
  const T* x = reinterpret_cast<const T*>(source);
  T* y = reinterpret_cast<T*>(target);
  if (stride == 0) {
    std::fill_n(y, n, *x);
  } else {
    for (int64_t i = 0; i < n; ++i)
      y[i] = x[i * stride];
  }
}

template <class T>
void scatter(const std::byte* source, int64_t stride, int64_t n, std::byte* target) {
  const T* x = reinterpret_cast<const T*>(source);
  T* y = reinterpret_cast<T*>(target);
  for (int64_t i = 0; i < n; ++i)
    y[i * stride] = x[i];
}

using MoveFn = void (*)(const std::byte* source, int64_t stride, int64_t n, std::byte* target);

MoveFn gather_of(size_t bytes) {
  constexpr std::array<MoveFn, 9> kMoves = {nullptr, gather<uint8_t>,  gather<uint16_t>,
                                            nullptr, gather<uint32_t>, nullptr,
                                            nullptr, nullptr,          gather<uint64_t>};
  return kMoves[bytes];
}

MoveFn scatter_of(size_t bytes) {
  constexpr std::array<MoveFn, 9> kMoves = {nullptr, scatter<uint8_t>,  scatter<uint16_t>,
                                            nullptr, scatter<uint32_t>, nullptr,
                                            nullptr, nullptr,           scatter<uint64_t>};
  return kMoves[bytes];
}

// One stretch of the inner loop, and what is the same for all stretches.
struct Walker {
  const KernelContext& ctx;
  const ElementwiseState& state;
  size_t num_inputs;
  std::array<int64_t, LoopNest::kMaxOperands> bytes{};  // of an element, 0 is the output
  bool is_dense = true;

  explicit Walker(const KernelContext& context)
      : ctx(context),
        state(context.state_as<ElementwiseState>()),
        num_inputs(static_cast<size_t>(state.loop.num_operands - 1)) {
    const LoopNest::Offsets& stride = state.loop.inner_stride();
    bytes[0] = static_cast<int64_t>(dtype_size(ctx.out(0).meta->dtype));
    is_dense = stride[0] == 1;
    for (size_t i = 0; i < num_inputs; ++i) {
      bytes[i + 1] = static_cast<int64_t>(dtype_size(ctx.in(static_cast<int>(i)).meta->dtype));
      is_dense = is_dense && stride[i + 1] == 1;
    }
  }

  std::byte* output(const LoopNest::Offsets& offsets) const {
    return ctx.out(0).data + offsets[0] * bytes[0];
  }

  Inputs inputs(const LoopNest::Offsets& offsets) const {
    Inputs x{};
    for (size_t i = 0; i < num_inputs; ++i)
      x[i] = ctx.in(static_cast<int>(i)).data + offsets[i + 1] * bytes[i + 1];
    return x;
  }

  void run_buffered(std::byte* y, int64_t n, const Inputs& x) const {
    const LoopNest::Offsets& stride = state.loop.inner_stride();
    // Left uninitialised on purpose, because rows may be short.
    alignas(64)
        std::array<std::array<std::byte, kBuffer * kMaxElementBytes>, LoopNest::kMaxOperands>
            buffers;
    for (int64_t i = 0; i < n; i += kBuffer) {
      const int64_t count = std::min(kBuffer, n - i);
      Inputs sources{};
      for (size_t k = 0; k < num_inputs; ++k) {
        sources[k] = x[k] + i * stride[k + 1] * bytes[k + 1];
        if (stride[k + 1] == 1) continue;
        const bool is_filled = stride[k + 1] == 0 && i > 0;
        std::byte* buffer = buffers[k + 1].data();
        if (!is_filled) {
          gather_of(static_cast<size_t>(bytes[k + 1]))(sources[k], stride[k + 1], count, buffer);
        }
        sources[k] = buffer;
      }
      std::byte* target = y + i * stride[0] * bytes[0];
      if (stride[0] == 1) {
        state.block(ctx.attrs, target, count, sources.data());
      } else {
        state.block(ctx.attrs, buffers[0].data(), count, sources.data());
        scatter_of(static_cast<size_t>(bytes[0]))(buffers[0].data(), stride[0], count, target);
      }
    }
  }
};

struct BlockedState {
  BlockFn block;
  int64_t elements;  // with the padding
  ChannelBlocks blocks;
  bool has_padding;
};

bool maps_zeros_to_zero(const KernelContext& ctx, BlockFn block) {
  constexpr float kZero = 0;
  Inputs zeros;
  zeros.fill(reinterpret_cast<const std::byte*>(&kZero));
  float y = 1;
  block(ctx.attrs, reinterpret_cast<std::byte*>(&y), 1, zeros.data());
  return y == 0;
}

void run_blocked(const KernelContext& ctx) {
  const auto& state = ctx.state_as<BlockedState>();
  std::byte* y = ctx.out(0).data;
  ctx.pool().parallel_for(0, state.elements, kElementwiseGrain, [&](int64_t begin, int64_t end) {
    const int64_t offset = begin * static_cast<int64_t>(sizeof(float));
    Inputs x{};
    for (size_t i = 0; i < ctx.inputs.size(); ++i)
      x[i] = ctx.inputs[i].data + offset;
    state.block(ctx.attrs, y + offset, end - begin, x.data());
  });
  // The kernels of the library rely on zeros there.
  if (state.has_padding && !maps_zeros_to_zero(ctx, state.block))
    clear_padding(state.blocks, reinterpret_cast<float*>(y));
}

}  // namespace

void run_strided(const KernelContext& ctx) {
  const Walker walker(ctx);
  parallel_stretches(ctx.pool(), walker.state.loop,
                     [&](const LoopNest::Offsets& offsets, int64_t n) {
                       const Inputs x = walker.inputs(offsets);
                       if (walker.is_dense) {
                         walker.state.block(ctx.attrs, walker.output(offsets), n, x.data());
                       } else {
                         walker.run_buffered(walker.output(offsets), n, x);
                       }
                     });
}

void run_rows(const KernelContext& ctx) {
  const Walker walker(ctx);
  const LoopNest& loop = walker.state.loop;
  for_rows(loop, 0, loop.rows, [&](const LoopNest::Offsets& offsets) {
    walker.state.row(ctx.attrs, walker.output(offsets), loop.inner, walker.inputs(offsets).data(),
                     loop.inner_stride().data());
  });
}

void run_dense(const KernelContext& ctx, BlockFn block, BlockFn streaming) {
  const size_t num_inputs = ctx.inputs.size();
  std::array<int64_t, kMaxInputs> bytes{};
  bool is_in_place = false;
  for (size_t i = 0; i < num_inputs; ++i) {
    bytes[i] = static_cast<int64_t>(dtype_size(ctx.inputs[i].meta->dtype));
    is_in_place |= ctx.inputs[i].data == ctx.out(0).data;
  }
  const int64_t n = ctx.out(0).numel();
  const auto y_bytes = static_cast<int64_t>(dtype_size(ctx.out(0).meta->dtype));
  const BlockFn run = n * y_bytes >= kStreamBytes && !is_in_place ? streaming : block;
  ctx.pool().parallel_for(0, n, kElementwiseGrain, [&](int64_t begin, int64_t end) {
    Inputs x{};
    for (size_t i = 0; i < num_inputs; ++i)
      x[i] = ctx.inputs[i].data + begin * bytes[i];
    run(ctx.attrs, ctx.out(0).data + begin * y_bytes, end - begin, x.data());
  });
}

bool has_blocked_input(const KernelQuery& query) {
  return std::any_of(query.inputs.begin(), query.inputs.end(),
                     [](MetaPtr input) { return input->blocked != nullptr; });
}

KernelChoice choose_blocked(const KernelQuery& query, BlockFn block) {
  const BlockedLayout* layout = query.input(0).blocked;
  const TensorMeta& output = query.output(0);
  if (layout == nullptr || output.dtype != DType::kFloat32) return {};
  const bool is_one_layout =
      std::all_of(query.inputs.begin(), query.inputs.end(), [&](MetaPtr input) {
        return input->blocked == layout && input->dtype == DType::kFloat32 &&
               input->local_shape == output.local_shape;
      });
  if (!is_one_layout) return {};
  const auto elements = static_cast<int64_t>(layout->bytes / sizeof(float));
  const ChannelBlocks blocks = channel_blocks(*layout, output.local_shape);
  const bool is_known = blocks.lanes != 0;
  if (!is_known && elements != output.local_numel) return {};
  return {run_blocked,
          std::make_shared<const BlockedState>(
              BlockedState{block, elements, blocks, is_known && blocks.has_padding()}),
          {with_blocked(query.outputs[0], layout)}};
}

KernelChoice choose_strided(const KernelQuery& query, BlockFn block) {
  return {run_strided, std::make_shared<const ElementwiseState>(ElementwiseState{
                           make_loop_nest(query.output(0), query.inputs), block, nullptr})};
}

KernelChoice choose_rows(const KernelQuery& query, RowFn row) {
  return {run_rows, std::make_shared<const ElementwiseState>(ElementwiseState{
                        make_loop_nest(query.output(0), query.inputs), nullptr, row})};
}

bool is_dense(const KernelQuery& query) {
  const TensorMeta& output = query.output(0);
  return output.is_contiguous &&
         std::all_of(query.inputs.begin(), query.inputs.end(), [&](MetaPtr input) {
           return input->is_contiguous && input->local_shape == output.local_shape;
         });
}

}  // namespace flow::ops
