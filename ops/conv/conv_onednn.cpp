// Convolution by oneDNN. Results stay in the library's blocked layout, and operands are accepted in
// it, so that chains of layers are reordered only at their ends.
//
// The batch is divided into parts by the sizes alone, and the parts are run on the pool. Weight
// gradients of the parts are summed in order.
#include "ops/conv/conv_onednn.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/error.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/conv/blocked_copy.h"
#include "ops/conv/conv_kernels.h"
#include "ops/kernel/contiguous.h"
#include "ops/vendor/onednn.h"

namespace flow::ops {
namespace {

using OneDnnKernelPtr = std::shared_ptr<const OneDnnKernel>;

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// How a kernel gets a tensor: in its layout, or reordered.
struct Operand {
  OneDnnKernelPtr reorder;  // null: not reordered
  size_t bytes = 0;         // of the reordered form
};

// The kernel for a number of samples.
struct Part {
  OneDnnKernelPtr kernel;
  Operand x, y;

  size_t scratch_bytes() const {
    size_t bytes = kernel->scratch_bytes();
    for (const Operand* operand : {&x, &y}) {
      if (operand->reorder != nullptr) bytes = std::max(bytes, operand->reorder->scratch_bytes());
    }
    return aligned(bytes) + aligned(x.bytes) + aligned(y.bytes);
  }
};

struct OneDnnConvState {
  ConvRoles roles;
  ConvSizes sizes;
  int64_t samples = 0;  // of a part
  int64_t num_parts = 0;
  Part part, last;
  BlockedCopy weight;         // between the tensor and the kernel's layout
  size_t weight_bytes = 0;    // in the kernel's layout
  size_t x_sample_bytes = 0;  // in the layout of the tensor
  size_t y_sample_bytes = 0;
  const BlockedLayout* x_layout = nullptr;  // of the whole tensor
  const BlockedLayout* y_layout = nullptr;
};

size_t bytes_of(const BlockedLayout* layout, const Shape& shape) {
  return layout != nullptr ? layout->bytes : static_cast<size_t>(shape.numel()) * sizeof(float);
}

ConvolutionPass pass_of(const ConvRoles& roles) {
  if (roles.writes_x) return ConvolutionPass::kBackwardSource;
  return roles.writes_weight ? ConvolutionPass::kBackwardWeights : ConvolutionPass::kForward;
}

// False where the padding at an end would have to be negative.
bool set_window(const ConvSizes& sizes, Window& window) {
  window.num_dims = sizes.num_dims;
  for (size_t i = 0; i < static_cast<size_t>(sizes.num_dims); ++i) {
    const WindowDim& dim = sizes.window[i + static_cast<size_t>(kMaxSpatialDims - sizes.num_dims)];
    const int64_t end = (dim.out - 1) * dim.stride + dim.reach() - dim.in - dim.padding;
    window.in[i] = dim.in;
    window.kernel[i] = dim.kernel;
    window.stride[i] = dim.stride;
    window.dilation[i] = dim.dilation;
    window.padding_begin[i] = dim.padding;
    window.padding_end[i] = std::max<int64_t>(end, 0);
    if (window.out(static_cast<int>(i)) != dim.out) return false;
  }
  return true;
}

// The largest power of two up to `value` and `most`, at least 1.
int64_t power_of_two_in(double value, int64_t most) {
  const double bound = std::clamp(value, 1.0, static_cast<double>(std::max<int64_t>(most, 1)));
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bound)));
}

// Parts take about 20 µs for a few threads and 150 µs for more; they are longer if each writes a
// separate weight gradient. The sum over parts must not depend on the number of threads, so the
// number of parts does not depend on it either. It is a power of two, which two or four threads
// share evenly.
int64_t choose_parts(const ConvRoles& roles, const ConvSizes& sizes) {
  const int64_t group_channels = sizes.in_channels / sizes.groups;
  if (roles.writes_weight) {
    const auto weight_elements =
        static_cast<double>(sizes.out_channels * group_channels * sizes.kernel_size());
    return power_of_two_in(sizes.volume() / (1.2e6 + 15 * weight_elements),
                           std::min<int64_t>(8, sizes.batch));
  }
  // Moving an element takes as long as eight multiply-adds. Depthwise kernels do few per element,
  // and take four times as long for each.
  const auto moved = static_cast<double>(
      sizes.batch * (sizes.in_channels * sizes.in_size() + sizes.out_channels * sizes.out_size()));
  const double work = sizes.volume() + (group_channels == 1 ? 32 : 8) * moved;
  const double parts = std::max(std::min(work / 1.5e6, 4.0), work / 1.5e7);
  return power_of_two_in(parts, std::min<int64_t>(16, sizes.batch));
}

class Planner {
 public:
  explicit Planner(const KernelQuery& query) : query_(query) {
    state_.roles = conv_roles(query);
    state_.sizes = conv_sizes(query);
  }

  // Null where oneDNN has no kernel for the call.
  std::shared_ptr<const OneDnnConvState> make() {
    const ConvSizes& sizes = state_.sizes;
    if (sizes.volume() == 0 || !set_window(sizes, spec_.window)) return nullptr;
    const bool reads_weight = !state_.roles.writes_weight;
    if (reads_weight && query_.input(state_.roles.weight).blocked != nullptr) return nullptr;
    spec_.pass = pass_of(state_.roles);
    spec_.in_channels = sizes.in_channels;
    spec_.out_channels = sizes.out_channels;
    spec_.groups = sizes.groups;
    spec_.has_bias = state_.roles.has_bias;
    try {
      const int64_t parts = choose_parts(state_.roles, sizes);
      if (!make_parts((sizes.batch + parts - 1) / parts) && !make_parts(sizes.batch)) {
        return nullptr;
      }
    } catch (const Unsupported&) {  // the next kernel of the list takes the call
      return nullptr;
    }
    return std::make_shared<const OneDnnConvState>(state_);
  }

 private:
  // 16-bit results are converted, so they have to be contiguous.
  const BlockedLayout* wanted(bool is_written) const {
    const bool converts = query_.output(0).dtype != DType::kFloat32;
    return is_written && converts ? nullptr : &kAnyLayout;
  }

  // Returns false if a layout cannot be divided into parts of that many samples.
  bool make_parts(int64_t samples) {
    const ConvRoles& roles = state_.roles;
    const int64_t batch = state_.sizes.batch;
    state_.samples = samples;
    state_.num_parts = (batch + samples - 1) / samples;
    spec_.batch = samples;
    spec_.source = wanted(roles.writes_x);
    spec_.weights = &kAnyLayout;
    spec_.destination = wanted(roles.writes_y());
    state_.part.kernel = make_onednn(spec_);
    const OneDnnKernel& kernel = *state_.part.kernel;
    const ConvolutionSpec part_spec = spec_;
    spec_.batch = batch;
    const Shape x_shape = spec_.source_shape();
    const Shape y_shape = spec_.destination_shape();
    const auto whole = [&](bool is_written, int index, const BlockedLayout* own,
                           const Shape& shape) -> std::optional<const BlockedLayout*> {
      return is_written ? cut(own, shape) : query_.input(index).blocked;
    };
    const auto x_layout = whole(roles.writes_x, roles.x, kernel.source(), x_shape);
    const auto y_layout = whole(roles.writes_y(), roles.y, kernel.destination(), y_shape);
    if (!x_layout || !y_layout) return false;
    state_.x_layout = *x_layout;
    state_.y_layout = *y_layout;
    state_.x_sample_bytes = bytes_of(*x_layout, x_shape) / static_cast<size_t>(batch);
    state_.y_sample_bytes = bytes_of(*y_layout, y_shape) / static_cast<size_t>(batch);
    state_.weight_bytes = bytes_of(kernel.weights(), spec_.weights_shape());
    set_weight_copy();
    if (!set_reorders(state_.part, part_spec)) return false;
    state_.last = state_.part;
    if (batch % samples == 0) return true;
    return make_last(part_spec, batch % samples);
  }

  // The remaining samples, in the layouts of the other parts.
  bool make_last(ConvolutionSpec spec, int64_t samples) {
    const OneDnnKernel& kernel = *state_.part.kernel;
    spec.batch = samples;
    const auto source = cut(kernel.source(), spec.source_shape());
    const auto destination = cut(kernel.destination(), spec.destination_shape());
    if (!source || !destination) return false;
    spec.source = *source;
    spec.weights = kernel.weights();
    spec.destination = *destination;
    state_.last.kernel = make_onednn(spec);
    return set_reorders(state_.last, spec);
  }

  // Converts the layout of a part to that of the whole tensor, or the reverse.
  std::optional<const BlockedLayout*> cut(const BlockedLayout* layout, const Shape& shape) const {
    return state_.num_parts == 1 ? layout : layout_like(layout, shape);
  }

  void set_weight_copy() {
    const BlockedLayout* own = state_.part.kernel->weights();
    if (own == nullptr) return;
    const Shape shape = spec_.weights_shape();
    state_.weight = state_.roles.writes_weight ? BlockedCopy::to_row_major(shape, *own)
                                               : BlockedCopy::to_blocked(shape, *own);
  }

  // How the operands of a part are obtained from the tensors. The output gets the layout that the
  // kernel prefers.
  bool set_reorders(Part& part, const ConvolutionSpec& spec) const {
    const auto set = [&](Operand& operand, const BlockedLayout* whole, const BlockedLayout* own,
                         const Shape& shape) {
      operand = {};
      const auto from = cut(whole, shape);
      if (!from) return false;
      if (*from == own) return true;
      operand = {make_onednn(ReorderSpec{.shape = shape, .from = *from, .to = own}),
                 bytes_of(own, shape)};
      return true;
    };
    const ConvRoles& roles = state_.roles;
    return (roles.writes_x ||
            set(part.x, state_.x_layout, part.kernel->source(), spec.source_shape())) &&
           (roles.writes_y() ||
            set(part.y, state_.y_layout, part.kernel->destination(), spec.destination_shape()));
  }

  const KernelQuery& query_;
  OneDnnConvState state_;
  ConvolutionSpec spec_;
};

// Reads an operand of part `index` from `tensor`, reordered into `buffer` if the kernel needs
// another layout.
const void* read(const Operand& operand, const std::byte* tensor, size_t offset, std::byte* buffer,
                 std::byte* scratch) {
  if (operand.reorder == nullptr) return tensor + offset;
  operand.reorder->run({.source = tensor + offset, .destination = buffer, .scratch = scratch});
  return buffer;
}

// Runs all parts. `x` and `y` point at the whole tensors; weights and bias of part i are at
// multiples of their strides.
struct PartsRun {
  const std::byte* x;
  const std::byte* y;
  const std::byte* weight;
  size_t weight_stride;
  const std::byte* bias;
  size_t bias_stride;
};

void run_parts(const KernelContext& ctx, const OneDnnConvState& state, const PartsRun& run) {
  const size_t bytes = std::max(state.part.scratch_bytes(), state.last.scratch_bytes());
  ctx.pool().parallel_for(0, state.num_parts, 1, [&](int64_t begin, int64_t end) {
    const Ref<Storage> memory = ctx.scratch(bytes);
    for (int64_t i = begin; i < end; ++i) {
      const auto index = static_cast<size_t>(i);
      const Part& part = i + 1 < state.num_parts ? state.part : state.last;
      const size_t first = index * static_cast<size_t>(state.samples);
      std::byte* x_buffer = memory->data();
      std::byte* y_buffer = x_buffer + aligned(part.x.bytes);
      std::byte* scratch = y_buffer + aligned(part.y.bytes);
      part.kernel->run(
          {.source = read(part.x, run.x, first * state.x_sample_bytes, x_buffer, scratch),
           .weights = run.weight + index * run.weight_stride,
           .bias = run.bias == nullptr ? nullptr : run.bias + index * run.bias_stride,
           .destination = read(part.y, run.y, first * state.y_sample_bytes, y_buffer, scratch),
           .scratch = scratch});
    }
  });
}

const std::byte* as_bytes(const float* data) {
  return reinterpret_cast<const std::byte*>(data);
}

// The weights in the kernel's layout; `memory` holds them if they had to be reordered.
const std::byte* reordered_weights(const KernelContext& ctx, const OneDnnConvState& state,
                                   const float* weight, Ref<Storage>& memory) {
  if (!state.weight) return as_bytes(weight);
  memory = ctx.scratch(aligned(state.weight_bytes) + state.weight.scratch_bytes());
  std::byte* target = memory->data();
  state.weight.run(ctx.pool(), as_bytes(weight), target, target + aligned(state.weight_bytes));
  return target;
}

void run_forward(const KernelContext& ctx) {
  const auto& state = ctx.state_as<OneDnnConvState>();
  const ContiguousInput<float> x(ctx, 0);
  const ContiguousInput<float> weight(ctx, 1);
  std::optional<ContiguousInput<float>> bias;
  if (state.roles.has_bias) bias.emplace(ctx, 2);
  const ContiguousOutput<float> y(ctx, 0);
  Ref<Storage> memory;
  run_parts(ctx, state,
            {.x = as_bytes(x.data()),
             .y = as_bytes(y.data()),
             .weight = reordered_weights(ctx, state, weight.data(), memory),
             .weight_stride = 0,
             .bias = bias ? as_bytes(bias->data()) : nullptr,
             .bias_stride = 0});
  y.finish(ctx);
}

void run_backward_input(const KernelContext& ctx) {
  const auto& state = ctx.state_as<OneDnnConvState>();
  const ContiguousInput<float> dy(ctx, 0);
  const ContiguousInput<float> weight(ctx, 1);
  const ContiguousOutput<float> dx(ctx, 0);
  Ref<Storage> memory;
  run_parts(ctx, state,
            {.x = as_bytes(dx.data()),
             .y = as_bytes(dy.data()),
             .weight = reordered_weights(ctx, state, weight.data(), memory),
             .weight_stride = 0,
             .bias = nullptr,
             .bias_stride = 0});
  dx.finish(ctx);
}

// Adds parts 1, 2, … of `count` floats, `stride` bytes apart, to part 0.
void sum_parts(const KernelContext& ctx, int64_t num_parts, std::byte* parts, size_t stride,
               int64_t count) {
  constexpr int64_t kGrain = 1 << 14;
  ctx.pool().parallel_for(0, count, kGrain, [&](int64_t begin, int64_t end) {
    auto* sum = reinterpret_cast<float*>(parts);
    for (int64_t part = 1; part < num_parts; ++part) {
      const auto* other =
          reinterpret_cast<const float*>(parts + static_cast<size_t>(part) * stride);
      for (int64_t i = begin; i < end; ++i)
        sum[i] += other[i];
    }
  });
}

void run_backward_weight(const KernelContext& ctx) {
  const auto& state = ctx.state_as<OneDnnConvState>();
  const ContiguousInput<float> x(ctx, 0);
  const ContiguousInput<float> dy(ctx, 1);
  const ContiguousOutput<float> dw(ctx, 0);
  std::optional<ContiguousOutput<float>> db;  // exists from the beginning, as scratch_of() states
  if (state.roles.has_bias) db.emplace(ctx, 1);
  const auto num_parts = static_cast<size_t>(state.num_parts);
  const size_t bias_bytes = static_cast<size_t>(state.sizes.out_channels) * sizeof(float);
  const size_t weight_stride = aligned(state.weight_bytes);
  const size_t bias_stride = state.roles.has_bias ? aligned(bias_bytes) : 0;
  const Ref<Storage> memory =
      ctx.scratch(num_parts * (weight_stride + bias_stride) + state.weight.scratch_bytes());
  std::byte* weights = memory->data();
  std::byte* biases = weights + num_parts * weight_stride;
  run_parts(ctx, state,
            {.x = as_bytes(x.data()),
             .y = as_bytes(dy.data()),
             .weight = weights,
             .weight_stride = weight_stride,
             .bias = state.roles.has_bias ? biases : nullptr,
             .bias_stride = bias_stride});
  sum_parts(ctx, state.num_parts, weights, weight_stride,
            static_cast<int64_t>(state.weight_bytes / sizeof(float)));
  auto* target = reinterpret_cast<std::byte*>(dw.data());
  if (state.weight) {
    state.weight.run(ctx.pool(), weights, target, biases + num_parts * bias_stride);
  } else {
    std::copy_n(weights, state.weight_bytes, target);
  }
  dw.finish(ctx);
  if (!db) return;
  sum_parts(ctx, state.num_parts, biases, bias_stride, state.sizes.out_channels);
  std::copy_n(biases, bias_bytes, reinterpret_cast<std::byte*>(db->data()));
  db->finish(ctx);
}

KernelScratch scratch_of(const KernelQuery& query, const OneDnnConvState& state) {
  KernelScratch blocks = contiguous_scratch(query, DType::kFloat32);
  const auto add = [&](size_t bytes, int64_t parts) {
    blocks.push_back({static_cast<int64_t>(bytes), parts});
  };
  if (state.roles.writes_weight) {
    const size_t bias_bytes = static_cast<size_t>(state.sizes.out_channels) * sizeof(float);
    const size_t stride =
        aligned(state.weight_bytes) + (state.roles.has_bias ? aligned(bias_bytes) : 0);
    add(static_cast<size_t>(state.num_parts) * stride + state.weight.scratch_bytes(), 1);
  } else if (state.weight) {
    add(aligned(state.weight_bytes) + state.weight.scratch_bytes(), 1);
  }
  add(std::max(state.part.scratch_bytes(), state.last.scratch_bytes()), state.num_parts);
  return blocks;
}

}  // namespace

KernelChoice select_conv_onednn(const KernelQuery& query) {
  if (query.output(0).dtype == DType::kFloat64 || !has_onednn()) return {};
  // oneDNN refuses to run a convolution without elements.
  const auto is_empty = [](MetaPtr meta) { return meta != nullptr && meta->local_numel == 0; };
  if (std::any_of(query.inputs.begin(), query.inputs.end(), is_empty) ||
      std::any_of(query.outputs.begin(), query.outputs.end(), is_empty)) {
    return {};
  }
  const auto state = Planner(query).make();
  if (state == nullptr) return {};
  const ConvRoles& roles = state->roles;
  std::vector<MetaPtr> outputs(query.outputs.begin(), query.outputs.end());
  if (roles.writes_x) outputs[0] = with_blocked(outputs[0], state->x_layout);
  if (roles.writes_y()) outputs[0] = with_blocked(outputs[0], state->y_layout);
  const KernelFn fn = roles.writes_x        ? run_backward_input
                      : roles.writes_weight ? run_backward_weight
                                            : run_forward;
  return with_scratch({fn, state, std::move(outputs)}, scratch_of(query, *state));
}

}  // namespace flow::ops
