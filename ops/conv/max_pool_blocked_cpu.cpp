// Maximum pooling of float32 on blocked memory, a vector of channels at a time.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/conv/pool_op.h"
#include "ops/conv/pool_state.h"
#include "ops/kernel/vector.h"

#include "ops/kernel/isa_begin.h"

void register_max_pool_blocked_cpu(KernelTable& table);

namespace {

using V = Vec<float>;

// Calls fn(first element of the plane and vector in x, the same in y) for all.
template <class Fn>
void for_planes(const KernelContext& ctx, const PoolState& state, const Fn& fn) {
  constexpr int64_t kGrain = 1 << 15;
  const int64_t x_size = state.in_size() * state.lanes;
  const int64_t y_size = state.out_size() * state.lanes;
  const int64_t grain = kGrain / std::max<int64_t>(x_size + y_size, 1) + 1;
  ctx.pool().parallel_for(0, state.planes, grain, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      for (int64_t lane = 0; lane < state.lanes; lane += V::kLanes)
        fn(plane * x_size + lane, plane * y_size + lane);
    }
  });
}

// Calls fn(offset in the plane, number of the tap) for the elements that output (oh, ow) reads.
template <class Fn>
[[gnu::always_inline]] inline void for_taps(const PoolState& state, const PoolTaps& h,
                                            const PoolTaps& w, const Fn& fn) {
  int64_t tap = 0;
  for (int64_t i = 0; i < h.count; ++i) {
    int64_t at = ((h.first + i * state.dims[0].step) * state.dims[1].in + w.first) * state.lanes;
    for (int64_t j = 0; j < w.count; ++j) {
      fn(at, tap++);
      at += state.dims[1].step * state.lanes;
    }
  }
}

// Calls fn(h taps, w taps, offset of the output in its plane).
template <class Fn>
void for_outputs(const PoolState& state, const Fn& fn) {
  int64_t offset = 0;
  for (const PoolTaps& h : state.dims[0].taps) {
    for (const PoolTaps& w : state.dims[1].taps) {
      fn(h, w, offset);
      offset += state.lanes;
    }
  }
}

void run_max_pool(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PoolState>();
  const float* x = ctx.in(0).as<float>();
  float* y = ctx.out(0).as<float>();
  for_planes(ctx, state, [&](int64_t from, int64_t to) {
    for_outputs(state, [&](const PoolTaps& h, const PoolTaps& w, int64_t offset) {
      V largest = V::fill(-std::numeric_limits<float>::infinity());
      for_taps(state, h, w, [&](int64_t at, int64_t /*tap*/) {
        largest = maximum(V::load(x + from + at), largest);
      });
      largest.store(y + to + offset);
    });
  });
}

// The first of equal maxima gets the gradient; if there are NaNs, the last of them.
void run_backward(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PoolState>();
  const float* x = ctx.in(0).as<float>();
  const float* dy = ctx.in(1).as<float>();
  float* dx = ctx.out(0).as<float>();
  Ref<Storage> memory;
  if (state.reorder != nullptr) {
    memory = ctx.scratch(state.reordered_bytes + state.reorder->scratch_bytes());
    state.reorder->run({.source = dy,
                        .destination = memory->data(),
                        .scratch = memory->data() + state.reordered_bytes});
    dy = reinterpret_cast<const float*>(memory->data());
  }
  const bool tiles = state.dims[0].tiles() && state.dims[1].tiles();
  for_planes(ctx, state, [&](int64_t to, int64_t from) {
    if (!tiles) {
      for (int64_t i = 0; i < state.in_size(); ++i)
        V::zero().store(dx + to + i * state.lanes);
    }
    for_outputs(state, [&](const PoolTaps& h, const PoolTaps& w, int64_t offset) {
      V largest = V::fill(-std::numeric_limits<float>::infinity());
      V winner = V::zero();
      for_taps(state, h, w, [&](int64_t at, int64_t tap) {
        const V value = V::load(x + to + at);
        const auto wins = (value > largest) | is_nan(value);
        largest = select(wins, value, largest);
        winner = select(wins, V::fill(static_cast<float>(tap)), winner);
      });
      const V own = V::load(dy + from + offset);
      for_taps(state, h, w, [&](int64_t at, int64_t tap) {
        float* target = dx + to + at;
        const V share = select(winner == V::fill(static_cast<float>(tap)), own, V::zero());
        (tiles ? share : V::load(target) + share).store(target);
      });
    });
  });
}

template <KernelFn kRun>
KernelChoice select_blocked(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  if (x.blocked == nullptr || x.dtype != DType::kFloat32) return {};
  PoolState state = prepare_pool(query);
  KernelChoice choice;
  if (!prepare_layout(query, state, choice.outputs) || state.lanes % V::kLanes != 0) return {};
  choice.fn = kRun;
  KernelScratch blocks;
  if (state.reorder != nullptr) {
    blocks.push_back(
        {static_cast<int64_t>(state.reordered_bytes + state.reorder->scratch_bytes())});
  }
  choice.state = std::make_shared<const PoolState>(std::move(state));
  return with_scratch(std::move(choice), std::move(blocks));
}

}  // namespace

void register_max_pool_blocked_cpu(KernelTable& table) {
  table.add(kMaxPool, DeviceType::kCpu, {FLOW_ISA_NAME, select_blocked<run_max_pool>, true});
  table.add(kMaxPoolBackward, DeviceType::kCpu,
            {FLOW_ISA_NAME, select_blocked<run_backward>, true});
}

#include "ops/kernel/isa_end.h"
