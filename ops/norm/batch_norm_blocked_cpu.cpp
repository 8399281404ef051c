// batch_norm, and hardtanh after it, on oneDNN's blocked layouts, so that chains of convolutions
// are not reordered. As in batch_norm_cpu.cpp: sums in double, x read once for them and once for
// the result.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/kernel/blocked_layout.h"
#include "ops/kernel/vector.h"
#include "ops/norm/batch_norm_op.h"
#include "ops/vendor/onednn.h"

#include "ops/kernel/isa_begin.h"

void register_batch_norm_blocked_cpu(KernelTable& table);

namespace {

using V = Vec<float>;
constexpr int64_t kLanes = V::kLanes;

struct BlockedNormState {
  ChannelBlocks blocks;
  // Converts dy to the layout of x; null if dy already has it.
  std::shared_ptr<const OneDnnKernel> reorder;
  size_t reordered_bytes = 0;

  int64_t vectors() const { return blocks.lanes / kLanes; }

  double count() const { return static_cast<double>(blocks.batch * blocks.positions); }
};

// One vector of channels: its position in the tensor, and its channels [first, first + used).
struct Unit {
  Unit(const BlockedNormState& state, int64_t index)
      : block(index / state.vectors()),
        lane(index % state.vectors() * kLanes),
        first(block * state.blocks.lanes + lane),
        used(std::clamp<int64_t>(state.blocks.channels - first, 0, kLanes)) {}

  // The offset of its first element in image n.
  int64_t offset(const ChannelBlocks& blocks, int64_t n) const {
    return (n * blocks.blocks() + block) * blocks.positions * blocks.lanes + lane;
  }

  int64_t block;
  int64_t lane;
  int64_t first;
  int64_t used;
};

template <class Fn>
void for_units(const KernelContext& ctx, const BlockedNormState& state, const Fn& fn) {
  ctx.pool().parallel_for(0, state.blocks.blocks() * state.vectors(), 1,
                          [&](int64_t begin, int64_t end) {
                            for (int64_t index = begin; index < end; ++index)
                              fn(Unit(state, index));
                          });
}

// sum(a b) and sum(a) of each channel of a unit.
struct ChannelSums {
  double products[kLanes];
  double totals[kLanes];
};

struct Chain {
  Vec<double> low_products, high_products, low_totals, high_totals;

  // g++ 12 compiles a constructor that is not written without the region's instruction set. Unless
  // it is inlined, it takes a vector that zero() returns from another place.
  Chain() { low_products = high_products = low_totals = high_totals = Vec<double>::zero(); }

  [[gnu::always_inline]] void add(V a, V b) {
    const Vec<double> low = widen_low(a);
    const Vec<double> high = widen_high(a);
    low_products = fma(low, widen_low(b), low_products);
    high_products = fma(high, widen_high(b), high_products);
    low_totals = low_totals + low;
    high_totals = high_totals + high;
  }
};

// `a` and `b` give the vector at an offset of the tensor.
template <class A, class B>
ChannelSums sum_unit(const BlockedNormState& state, const Unit& unit, const A& a, const B& b) {
  const ChannelBlocks& blocks = state.blocks;
  Chain even;
  Chain odd;
  for (int64_t n = 0; n < blocks.batch; ++n) {
    int64_t at = unit.offset(blocks, n);
    int64_t position = 0;
    for (; position + 2 <= blocks.positions; position += 2) {
      even.add(a(at), b(at));
      odd.add(a(at + blocks.lanes), b(at + blocks.lanes));
      at += 2 * blocks.lanes;
    }
    if (position < blocks.positions) even.add(a(at), b(at));
  }
  ChannelSums sums;
  (even.low_products + odd.low_products).store(sums.products);
  (even.high_products + odd.high_products).store(sums.products + kLanes / 2);
  (even.low_totals + odd.low_totals).store(sums.totals);
  (even.high_totals + odd.high_totals).store(sums.totals + kLanes / 2);
  return sums;
}

// The elements of a tensor.
struct Plain {
  const float* data;

  [[gnu::always_inline]] V operator()(int64_t at) const { return V::load(data + at); }
};

// What follows batch_norm: nothing, or hardtanh as in ops/elementwise/activation_cpu.cpp.
struct Identity {
  using Attrs = BatchNormAttrs;

  explicit Identity(const Attrs& /*attrs*/) {}

  [[gnu::always_inline]] V operator()(V x) const { return x; }
};

struct Clamped {
  using Attrs = BatchNormHardtanhAttrs;

  V low;
  V high;

  explicit Clamped(const Attrs& attrs)
      : low(V::fill(static_cast<float>(attrs.min_val))),
        high(V::fill(static_cast<float>(attrs.max_val))) {}

  [[gnu::always_inline]] V operator()(V x) const { return min(high, max(low, x)); }

  // The gradient. y is strictly between the bounds where x is.
  [[gnu::always_inline]] V slope(V dy, V y) const {
    const V below_high = select(y >= high, V::zero(), dy);
    return select(y <= low, V::zero(), below_high);
  }
};

// The gradient that passes through hardtanh.
struct Passed {
  const float* dy;
  const float* y;
  const Clamped& clamped;

  [[gnu::always_inline]] V operator()(int64_t at) const {
    return clamped.slope(V::load(dy + at), V::load(y + at));
  }
};

// y = f((x - mean) scale + shift); padding gets 0.
template <class F>
void run_batch_norm(const KernelContext& ctx) {
  const auto& state = ctx.state_as<BlockedNormState>();
  const ChannelBlocks& blocks = state.blocks;
  const float* x = ctx.in(0).as<float>();
  const float* weight = ctx.has_input(1) ? ctx.in(1).as<float>() : nullptr;
  const float* bias = ctx.has_input(2) ? ctx.in(2).as<float>() : nullptr;
  float* y = ctx.out(0).as<float>();
  double* moments = ctx.out(1).as<double>();
  const auto& attrs = ctx.attrs_as<typename F::Attrs>();
  const double eps = attrs.eps;
  for_units(ctx, state, [&](const Unit& unit) {
    const F f(attrs);
    const ChannelSums sums = sum_unit(state, unit, Plain{x}, Plain{x});
    float means[kLanes] = {};
    float scales[kLanes] = {};
    float shifts[kLanes] = {};
    for (int64_t i = 0; i < unit.used; ++i) {
      const int64_t c = unit.first + i;
      const double mean = sums.totals[i] / state.count();
      const double var = std::max(sums.products[i] / state.count() - mean * mean, 0.0);
      moments[c] = mean;
      moments[blocks.channels + c] = var;
      means[i] = static_cast<float>(mean);
      const double factor = weight != nullptr ? static_cast<double>(weight[c]) : 1.0;
      scales[i] = static_cast<float>(factor / std::sqrt(var + eps));
      shifts[i] = bias != nullptr ? bias[c] : 0;
    }
    const V mean = V::load(means);
    const V scale = V::load(scales);
    const V shift = V::load(shifts);
    for (int64_t n = 0; n < blocks.batch; ++n) {
      const int64_t first = unit.offset(blocks, n);
      const float* source = x + first;
      float* target = y + first;
      for (int64_t position = 0; position < blocks.positions; ++position) {
        f(fma(V::load(source) - mean, scale, shift)).store(target);
        source += blocks.lanes;
        target += blocks.lanes;
      }
    }
  });
}

// What the gradient reads and writes: (dy, x, moments, weight), perhaps with y after dy.
struct BackwardOperands {
  BackwardOperands(const KernelContext& ctx, int x_input, double attrs_eps)
      : x(ctx.in(x_input).as<float>()),
        moments(ctx.in(x_input + 1).as<double>()),
        weight(ctx.has_input(x_input + 2) ? ctx.in(x_input + 2).as<float>() : nullptr),
        dx(ctx.out(0).as<float>()),
        dweight(ctx.out(1).as<float>()),
        dbias(ctx.out(2).as<float>()),
        eps(attrs_eps) {}

  const float* x;
  const double* moments;
  const float* weight;
  float* dx;
  float* dweight;
  float* dbias;
  double eps;
};

// dx = s (dy - a) - k (x - mean) of a unit; padding gets 0. `dy` gives the vector at an offset.
template <class Dy>
void backward_of_unit(const BlockedNormState& state, const Unit& unit, const Dy& dy,
                      const BackwardOperands& in) {
  const ChannelBlocks& blocks = state.blocks;
  const ChannelSums sums = sum_unit(state, unit, dy, Plain{in.x});
  float slopes[kLanes] = {};
  float centers[kLanes] = {};
  float factors[kLanes] = {};
  float means[kLanes] = {};
  for (int64_t i = 0; i < unit.used; ++i) {
    const int64_t c = unit.first + i;
    const double mean = in.moments[c];
    const double r = 1 / std::sqrt(in.moments[blocks.channels + c] + in.eps);
    const double through_h = (sums.products[i] - mean * sums.totals[i]) * r;
    const double s = (in.weight != nullptr ? static_cast<double>(in.weight[c]) : 1.0) * r;
    in.dweight[c] = static_cast<float>(through_h);
    in.dbias[c] = static_cast<float>(sums.totals[i]);
    slopes[i] = static_cast<float>(s);
    centers[i] = static_cast<float>(sums.totals[i] / state.count());
    factors[i] = static_cast<float>(s * r * through_h / state.count());
    means[i] = static_cast<float>(mean);
  }
  const V s = V::load(slopes);
  const V a = V::load(centers);
  const V k = V::load(factors);
  const V mean = V::load(means);
  for (int64_t n = 0; n < blocks.batch; ++n) {
    const int64_t first = unit.offset(blocks, n);
    for (int64_t position = 0; position < blocks.positions; ++position) {
      const int64_t at = first + position * blocks.lanes;
      (s * (dy(at) - a) - k * (V::load(in.x + at) - mean)).store(in.dx + at);
    }
  }
}

void run_backward(const KernelContext& ctx) {
  const auto& state = ctx.state_as<BlockedNormState>();
  const float* dy = ctx.in(0).as<float>();
  Ref<Storage> memory;
  if (state.reorder != nullptr) {
    memory = ctx.scratch(state.reordered_bytes + state.reorder->scratch_bytes());
    state.reorder->run({.source = dy,
                        .destination = memory->data(),
                        .scratch = memory->data() + state.reordered_bytes});
    dy = reinterpret_cast<const float*>(memory->data());
  }
  const BackwardOperands in(ctx, 1, ctx.attrs_as<BatchNormAttrs>().eps);
  for_units(ctx, state, [&](const Unit& unit) { backward_of_unit(state, unit, Plain{dy}, in); });
}

void run_clamped_backward(const KernelContext& ctx) {
  const auto& state = ctx.state_as<BlockedNormState>();
  const auto& attrs = ctx.attrs_as<BatchNormHardtanhAttrs>();
  const BackwardOperands in(ctx, 2, attrs.eps);
  for_units(ctx, state, [&](const Unit& unit) {
    const Clamped clamped(attrs);
    backward_of_unit(state, unit, Passed{ctx.in(0).as<float>(), ctx.in(1).as<float>(), clamped},
                     in);
  });
}

// Applies to float32 x in blocks of whole vectors of channels. The result gets the layout of x.
template <bool kBackward>
KernelChoice select_blocked(const KernelQuery& query) {
  const TensorMeta& x = query.input(kBackward ? 1 : 0);
  if (x.blocked == nullptr || x.dtype != DType::kFloat32) return {};
  const TensorMeta& moments = kBackward ? query.input(2) : query.output(1);
  if (moments.local_shape[0] != 2) return {};
  BlockedNormState state;
  state.blocks = channel_blocks(*x.blocked, x.local_shape);
  if (state.blocks.lanes == 0 || state.blocks.lanes % kLanes != 0) return {};
  for (int i = 1; i < static_cast<int>(query.inputs.size()); ++i) {
    const bool is_x = kBackward && i == 1;
    if (!is_x && query.has_input(i) && !query.input(i).is_contiguous) return {};
  }
  if constexpr (kBackward) {
    const TensorMeta& dy = query.input(0);
    if (dy.blocked != x.blocked) {
      if (dy.blocked == nullptr && !dy.is_contiguous) return {};
      state.reorder =
          make_onednn(ReorderSpec{.shape = x.local_shape, .from = dy.blocked, .to = x.blocked});
      state.reordered_bytes = x.blocked->bytes;
    }
  }
  std::vector<MetaPtr> outputs(query.outputs.begin(), query.outputs.end());
  outputs[0] = with_blocked(outputs[0], x.blocked);
  KernelScratch blocks;
  if (state.reorder != nullptr) {
    blocks.push_back(
        {static_cast<int64_t>(state.reordered_bytes + state.reorder->scratch_bytes())});
  }
  return with_scratch(
      {kBackward ? run_backward : run_batch_norm<Identity>,
       std::make_shared<const BlockedNormState>(std::move(state)), std::move(outputs)},
      std::move(blocks));
}

// The same with hardtanh, for tensors that all have the layout of x. The padding is zero only if
// the bounds contain zero.
template <bool kBackward>
KernelChoice select_clamped(const KernelQuery& query) {
  const int x_input = kBackward ? 2 : 0;
  const TensorMeta& x = query.input(x_input);
  const auto& attrs = query.attrs_as<BatchNormHardtanhAttrs>();
  if (x.blocked == nullptr || x.dtype != DType::kFloat32) return {};
  if (attrs.min_val > 0 || attrs.max_val < 0) return {};
  BlockedNormState state;
  state.blocks = channel_blocks(*x.blocked, x.local_shape);
  if (state.blocks.lanes == 0 || state.blocks.lanes % kLanes != 0) return {};
  for (int i = 0; i < x_input; ++i) {
    if (query.input(i).blocked != x.blocked) return {};
  }
  for (int i = x_input + 1; i < static_cast<int>(query.inputs.size()); ++i) {
    if (query.has_input(i) && !query.input(i).is_contiguous) return {};
  }
  std::vector<MetaPtr> outputs(query.outputs.begin(), query.outputs.end());
  outputs[0] = with_blocked(outputs[0], x.blocked);
  return {kBackward ? run_clamped_backward : run_batch_norm<Clamped>,
          std::make_shared<const BlockedNormState>(std::move(state)), std::move(outputs)};
}

}  // namespace

void register_batch_norm_blocked_cpu(KernelTable& table) {
  table.add(kBatchNorm, DeviceType::kCpu, {FLOW_ISA_NAME, select_blocked<false>, true});
  table.add(kBatchNormBackward, DeviceType::kCpu, {FLOW_ISA_NAME, select_blocked<true>, true});
  table.add(kBatchNormHardtanh, DeviceType::kCpu, {FLOW_ISA_NAME, select_clamped<false>, true});
  table.add(kBatchNormHardtanhBackward, DeviceType::kCpu,
            {FLOW_ISA_NAME, select_clamped<true>, true});
}

#include "ops/kernel/isa_end.h"
