#include "ops/elementwise/elementwise_run.h"

#include <algorithm>

#include "ops/kernel/blocked_layout.h"
#include "ops/kernel/divide_up.h"
#include "ops/kernel/plane_copy.h"

namespace flow::ops {

namespace {

constexpr size_t kMaxInputs = LoopNest::kMaxOperands - 1;
// A piece of the loop that is staged: up to kBand rows (the elements of a cache line in a
// transposed operand) of up to kStagedRow elements. The pitch of a buffer's rows spreads them over
// the cache.
constexpr int64_t kBand = 16;
constexpr int64_t kStagedRow = 256;
constexpr int64_t kPitch = kStagedRow + 32;
constexpr int64_t kShortRow = 64;  // rows that are staged in bands to save calls
constexpr size_t kMaxElementBytes = 8;

using Inputs = std::array<const std::byte*, kMaxInputs>;
using Bytes = std::array<int64_t, LoopNest::kMaxOperands>;

// The dim of the loop along which an operand is dense that is strided in the inner loop (a
// transpose), or -1.
int transposed_dim(const LoopNest& loop) {
  const LoopNest::Offsets& inner = loop.inner_stride();
  for (int k = 0; k < loop.num_operands; ++k) {
    const auto operand = static_cast<size_t>(k);
    if (inner[operand] == 0 || inner[operand] == 1) continue;
    for (int d = 0; d + 1 < loop.num_dims; ++d) {
      if (loop.stride[static_cast<size_t>(d)][operand] == 1) return d;
    }
  }
  return -1;
}

// What is the same for all stretches of the loop.
struct Walker {
  const KernelContext& ctx;
  const ElementwiseState& state;
  size_t num_inputs;
  Bytes bytes{};                                         // of an element, 0 is the output
  std::array<PlaneCopy, LoopNest::kMaxOperands> copy{};  // null for operands that are not staged
  bool is_dense = true;

  explicit Walker(const KernelContext& context)
      : ctx(context),
        state(context.state_as<ElementwiseState>()),
        num_inputs(static_cast<size_t>(state.loop.num_operands - 1)) {
    const LoopNest::Offsets& stride = state.loop.inner_stride();
    for (size_t k = 0; k <= num_inputs; ++k) {
      const TensorView& view = k == 0 ? ctx.out(0) : ctx.inputs[k - 1];
      bytes[k] = static_cast<int64_t>(dtype_size(view.meta->dtype));
      if (stride[k] == 1 || (k > 0 && k == state.repeated)) continue;
      copy[k] = plane_copy(static_cast<size_t>(bytes[k]));
      is_dense = false;
    }
  }

  std::byte* output(const LoopNest::Offsets& offsets) const {
    return ctx.out(0).data + offsets[0] * bytes[0];
  }

  Inputs inputs(const LoopNest::Offsets& offsets) const {
    Inputs x{};
    for (size_t i = 0; i < num_inputs; ++i)
      x[i] = ctx.inputs[i].data + offsets[i + 1] * bytes[i + 1];
    return x;
  }
};

// Computes pieces of the loop whose operands are not all dense. Inputs that are repeated or strided
// are copied to buffers, where a repeated one stays as long as its elements do; so is the output.
class Stager {
 public:
  // `between` is the distance of neighbouring rows of a piece in each operand.
  Stager(const Walker& walker, const LoopNest::Offsets& between)
      : walker_(walker), between_(between) {}

  // Computes `rows` <= kBand rows of n elements of the inner loop.
  void run(std::byte* y, const Inputs& x, int64_t rows, int64_t n) {
    const LoopNest::Offsets& stride = walker_.state.loop.inner_stride();
    for (int64_t i = 0; i < n; i += kStagedRow) {
      const int64_t count = std::min(kStagedRow, n - i);
      Inputs sources{};
      for (size_t k = 1; k <= walker_.num_inputs; ++k) {
        sources[k - 1] = x[k - 1] + i * stride[k] * walker_.bytes[k];
        if (walker_.copy[k] != nullptr) sources[k - 1] = stage(k, sources[k - 1], rows, count);
      }
      run_rows(y + i * stride[0] * walker_.bytes[0], sources, rows, count);
    }
  }

 private:
  // What a buffer holds.
  struct Staged {
    const std::byte* source = nullptr;
    int64_t rows = 0;
    int64_t columns = 0;
  };

  const std::byte* stage(size_t k, const std::byte* source, int64_t rows, int64_t columns) {
    const int64_t stride = walker_.state.loop.inner_stride()[k];
    Staged& staged = staged_[k];
    const bool is_there =
        stride == 0 && staged.source == source && staged.rows >= rows && staged.columns >= columns;
    std::byte* buffer = buffers_[k].data();
    if (!is_there) {
      walker_.copy[k]({buffer, source, rows, columns, kPitch, 1, between_[k], stride});
      staged = {source, rows, columns};
    }
    return buffer;
  }

  void run_rows(std::byte* y, const Inputs& x, int64_t rows, int64_t columns) {
    const bool is_staged = walker_.copy[0] != nullptr;
    for (int64_t r = 0; r < rows; ++r) {
      Inputs row{};
      for (size_t k = 1; k <= walker_.num_inputs; ++k)
        row[k - 1] = x[k - 1] + r * row_step(k) * walker_.bytes[k];
      std::byte* target = (is_staged ? buffers_[0].data() : y) + r * row_step(0) * walker_.bytes[0];
      walker_.state.block(walker_.ctx.attrs, target, columns, row.data());
    }
    if (is_staged) {
      walker_.copy[0]({y, buffers_[0].data(), rows, columns, between_[0],
                       walker_.state.loop.inner_stride()[0], kPitch, 1});
    }
  }

  int64_t row_step(size_t k) const { return walker_.copy[k] != nullptr ? kPitch : between_[k]; }

  const Walker& walker_;
  LoopNest::Offsets between_;
  std::array<Staged, LoopNest::kMaxOperands> staged_;
  // Left uninitialised on purpose, because rows may be short.
  alignas(64) std::array<std::array<std::byte, kBand * kPitch * kMaxElementBytes>,
                         LoopNest::kMaxOperands> buffers_;
};

// Runs a loop of one row.
void run_row(const Walker& walker) {
  const LoopNest& loop = walker.state.loop;
  walker.ctx.pool().parallel_for(0, loop.inner, kElementwiseGrain, [&](int64_t begin, int64_t end) {
    LoopNest::Offsets offsets = loop.inner_stride();
    for (int64_t& offset : offsets)
      offset *= begin;
    Stager(walker, {}).run(walker.output(offsets), walker.inputs(offsets), 1, end - begin);
  });
}

// Runs the loop in bands of up to `height` rows along its dim `dim`.
void run_bands(const Walker& walker, size_t dim, int64_t height) {
  LoopNest outer = walker.state.loop;
  const int64_t rows = outer.size[dim];
  const LoopNest::Offsets between = outer.stride[dim];
  const int64_t bands = divide_up(rows, height);
  outer.size[dim] = bands;
  for (int64_t& stride : outer.stride[dim])
    stride *= height;
  outer.rows = outer.rows / rows * bands;
  int64_t inside = 1;  // bands per step of the dim
  for (size_t d = dim + 1; d + 1 < static_cast<size_t>(outer.num_dims); ++d)
    inside *= outer.size[d];
  const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / (height * outer.inner));
  walker.ctx.pool().parallel_for(0, outer.rows, grain, [&](int64_t begin, int64_t end) {
    Stager stager(walker, between);
    int64_t row = begin;
    for_rows(outer, begin, end, [&](const LoopNest::Offsets& offsets) {
      const int64_t band = row++ / inside % bands;
      stager.run(walker.output(offsets), walker.inputs(offsets),
                 std::min(height, rows - band * height), outer.inner);
    });
  });
}

void run_staged(const Walker& walker) {
  const LoopNest& loop = walker.state.loop;
  if (loop.rows == 0) return;
  if (loop.num_dims == 1) return run_row(walker);
  const int transposed = transposed_dim(loop);
  const bool is_banded = transposed >= 0 || loop.inner <= kShortRow;
  const int dim = transposed >= 0 ? transposed : loop.num_dims - 2;
  run_bands(walker, static_cast<size_t>(dim), is_banded ? kBand : 1);
}

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
  if (!walker.is_dense) return run_staged(walker);
  parallel_stretches(
      ctx.pool(), walker.state.loop, [&](const LoopNest::Offsets& offsets, int64_t n) {
        walker.state.block(ctx.attrs, walker.output(offsets), n, walker.inputs(offsets).data());
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

KernelChoice choose_strided(const KernelQuery& query, BlockFn block,
                            const RepeatedBlocks& repeated) {
  auto state = std::make_shared<ElementwiseState>();
  state->loop = make_loop_nest(query.output(0), query.inputs);
  state->block = block;
  const LoopNest::Offsets& stride = state->loop.inner_stride();
  for (size_t i = 0; i < repeated.size(); ++i) {
    if (repeated[i] == nullptr || stride[i + 1] != 0 || stride[2 - i] == 0) continue;
    state->block = repeated[i];
    state->repeated = i + 1;
  }
  return {run_strided, std::move(state)};
}

KernelChoice choose_rows(const KernelQuery& query, RowFn row) {
  auto state = std::make_shared<ElementwiseState>();
  state->loop = make_loop_nest(query.output(0), query.inputs);
  state->row = row;
  return {run_rows, std::move(state)};
}

bool is_dense(const KernelQuery& query) {
  const TensorMeta& output = query.output(0);
  return output.is_contiguous &&
         std::all_of(query.inputs.begin(), query.inputs.end(), [&](MetaPtr input) {
           return input->is_contiguous && input->local_shape == output.local_shape;
         });
}

}  // namespace flow::ops
