// batch_norm on oneDNN's blocked layouts, so that chains of convolutions are not reordered. As in
// batch_norm_cpu.cpp: sums in double, x read once for them and once for the result.

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
  Vec<double> low_products = Vec<double>::zero();
  Vec<double> high_products = Vec<double>::zero();
  Vec<double> low_totals = Vec<double>::zero();
  Vec<double> high_totals = Vec<double>::zero();

  [[gnu::always_inline]] void add(V a, V b) {
    const Vec<double> low = widen_low(a);
    const Vec<double> high = widen_high(a);
    low_products = fma(low, widen_low(b), low_products);
    high_products = fma(high, widen_high(b), high_products);
    low_totals = low_totals + low;
    high_totals = high_totals + high;
  }
};

ChannelSums sum_unit(const BlockedNormState& state, const Unit& unit, const float* a,
                     const float* b) {
  const ChannelBlocks& blocks = state.blocks;
  Chain even;
  Chain odd;
  for (int64_t n = 0; n < blocks.batch; ++n) {
    const int64_t first = unit.offset(blocks, n);
    const float* u = a + first;
    const float* v = b + first;
    int64_t position = 0;
    for (; position + 2 <= blocks.positions; position += 2) {
      even.add(V::load(u), V::load(v));
      odd.add(V::load(u + blocks.lanes), V::load(v + blocks.lanes));
      u += 2 * blocks.lanes;
      v += 2 * blocks.lanes;
    }
    if (position < blocks.positions) even.add(V::load(u), V::load(v));
  }
  ChannelSums sums;
  (even.low_products + odd.low_products).store(sums.products);
  (even.high_products + odd.high_products).store(sums.products + kLanes / 2);
  (even.low_totals + odd.low_totals).store(sums.totals);
  (even.high_totals + odd.high_totals).store(sums.totals + kLanes / 2);
  return sums;
}

// y = (x - mean) scale + shift; padding gets 0.
void run_batch_norm(const KernelContext& ctx) {
  const auto& state = ctx.state_as<BlockedNormState>();
  const ChannelBlocks& blocks = state.blocks;
  const float* x = ctx.in(0).as<float>();
  const float* weight = ctx.has_input(1) ? ctx.in(1).as<float>() : nullptr;
  const float* bias = ctx.has_input(2) ? ctx.in(2).as<float>() : nullptr;
  float* y = ctx.out(0).as<float>();
  double* moments = ctx.out(1).as<double>();
  const double eps = ctx.attrs_as<BatchNormAttrs>().eps;
  for_units(ctx, state, [&](const Unit& unit) {
    const ChannelSums sums = sum_unit(state, unit, x, x);
    float means[kLanes] = {};
    float scales[kLanes] = {};
    float shifts[kLanes] = {};
    for (int64_t i = 0; i < unit.used; ++i) {
      const int64_t c = unit.first + i;
      const double mean = sums.totals[i] / state.count();
      const double var = std::max(0.0, sums.products[i] / state.count() - mean * mean);
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
        fma(V::load(source) - mean, scale, shift).store(target);
        source += blocks.lanes;
        target += blocks.lanes;
      }
    }
  });
}

// dx = s (dy - a) - k (x - mean); padding gets 0.
void run_backward(const KernelContext& ctx) {
  const auto& state = ctx.state_as<BlockedNormState>();
  const ChannelBlocks& blocks = state.blocks;
  const float* dy = ctx.in(0).as<float>();
  Ref<Storage> memory;
  if (state.reorder != nullptr) {
    memory = ctx.scratch(state.reordered_bytes + state.reorder->scratch_bytes());
    state.reorder->run({.source = dy,
                        .destination = memory->data(),
                        .scratch = memory->data() + state.reordered_bytes});
    dy = reinterpret_cast<const float*>(memory->data());
  }
  const float* x = ctx.in(1).as<float>();
  const double* moments = ctx.in(2).as<double>();
  const float* weight = ctx.has_input(3) ? ctx.in(3).as<float>() : nullptr;
  float* dx = ctx.out(0).as<float>();
  const double eps = ctx.attrs_as<BatchNormAttrs>().eps;
  for_units(ctx, state, [&](const Unit& unit) {
    const ChannelSums sums = sum_unit(state, unit, dy, x);
    float slopes[kLanes] = {};
    float centers[kLanes] = {};
    float factors[kLanes] = {};
    float means[kLanes] = {};
    for (int64_t i = 0; i < unit.used; ++i) {
      const int64_t c = unit.first + i;
      const double mean = moments[c];
      const double r = 1 / std::sqrt(moments[blocks.channels + c] + eps);
      const double through_h = (sums.products[i] - mean * sums.totals[i]) * r;
      const double s = (weight != nullptr ? static_cast<double>(weight[c]) : 1.0) * r;
      ctx.out(1).as<float>()[c] = static_cast<float>(through_h);
      ctx.out(2).as<float>()[c] = static_cast<float>(sums.totals[i]);
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
        (s * (V::load(dy + at) - a) - k * (V::load(x + at) - mean)).store(dx + at);
      }
    }
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
      {kBackward ? run_backward : run_batch_norm,
       std::make_shared<const BlockedNormState>(std::move(state)), std::move(outputs)},
      std::move(blocks));
}

}  // namespace

void register_batch_norm_blocked_cpu(KernelTable& table) {
  table.add(kBatchNorm, DeviceType::kCpu, {FLOW_ISA_NAME, select_blocked<false>, true});
  table.add(kBatchNormBackward, DeviceType::kCpu, {FLOW_ISA_NAME, select_blocked<true>, true});
}

#include "ops/kernel/isa_end.h"
