// Dropout on the CPU. Bits are drawn in whole groups of Philox blocks and compared as integers.

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/local_parts.h"
#include "ops/random/draw_runs.h"
#include "ops/random/dropout_op.h"

#include "ops/kernel/isa_begin.h"

namespace {

constexpr int64_t kGrain = 1 << 15;

template <class T>
using Wide = std::conditional_t<kIsHalf<T>, float, T>;

template <class T>
Wide<T> scale_of(double p) {
  return p < 1 ? static_cast<Wide<T>>(1 / (1 - p)) : Wide<T>{0};
}

// An element is kept when its uniform number, bits / 2^24, is at least p.
uint32_t threshold_of(double p) {
  return static_cast<uint32_t>(std::ceil(p * 0x1p24));
}

// Computes n contiguous elements from the given bits.
template <class T>
void drop(T* y, bool* mask, const T* x, const uint32_t* bits, int64_t n, uint32_t threshold,
          Wide<T> scale) {
  auto* kept = reinterpret_cast<uint8_t*>(mask);
  for (int64_t i = 0; i < n; ++i) {
    const bool keeps = (bits[i] >> 8) >= threshold;
    const Wide<T> scaled = static_cast<Wide<T>>(x[i]) * scale;
    y[i] = static_cast<T>(keeps ? scaled : Wide<T>{0});
    kept[i] = keeps ? 1 : 0;
  }
}

template <class T>
void run_dropout(const KernelContext& ctx) {
  const TensorMeta& x_meta = *ctx.in(0).meta;
  const TensorMeta& meta = *ctx.out(0).meta;
  const T* x = ctx.in(0).as<T>();
  T* y = ctx.out(0).as<T>();
  bool* mask = ctx.out(1).as<bool>();
  const double p = ctx.attrs_as<DropoutAttrs>().p;
  const uint32_t threshold = threshold_of(p);
  const Wide<T> scale = scale_of<T>(p);
  if (meta.local_numel == 0) return;
  constexpr auto kGroup = static_cast<int64_t>(kDrawLanes);
  const LogicalRuns runs(meta);
  for (int64_t r = 0; r < runs.count; ++r) {
    const int64_t first = runs.first(meta, r);
    ctx.pool().parallel_for(0, runs.length, kGrain, [&](int64_t begin, int64_t end) {
      std::array<uint32_t, kDrawLanes> lanes;
      std::array<T, kDrawLanes> gathered;
      for (int64_t i = begin; i < end;) {
        const int64_t skipped = (first + i) % kGroup;
        const int64_t count = std::min(end - i, kGroup - skipped);
        philox_group(ctx.random, static_cast<uint64_t>((first + i) / kGroup * kDrawBlocks),
                     lanes.data());
        const int64_t at = r * runs.length + i;
        const T* source = x + at;
        if (!x_meta.is_contiguous) {
          for (int64_t k = 0; k < count; ++k)
            gathered[static_cast<size_t>(k)] = x[offset_of(x_meta, at + k)];
          source = gathered.data();
        }
        drop(y + at, mask + at, source, lanes.data() + skipped, count, threshold, scale);
        i += count;
      }
    });
  }
}

template <class T>
void run_backward(const KernelContext& ctx) {
  const TensorMeta& dy_meta = *ctx.in(0).meta;
  const TensorMeta& mask_meta = *ctx.in(1).meta;
  const T* dy = ctx.in(0).as<T>();
  const auto* mask = reinterpret_cast<const uint8_t*>(ctx.in(1).data);
  T* dx = ctx.out(0).as<T>();
  const Wide<T> scale = scale_of<T>(ctx.attrs_as<DropoutAttrs>().p);
  const bool dense = dy_meta.is_contiguous && mask_meta.is_contiguous;
  ctx.pool().parallel_for(0, ctx.out(0).numel(), kGrain, [&](int64_t begin, int64_t end) {
    const auto one = [&](int64_t i, int64_t dy_at, int64_t mask_at) {
      const Wide<T> scaled = static_cast<Wide<T>>(dy[dy_at]) * scale;
      dx[i] = static_cast<T>(mask[mask_at] != 0 ? scaled : Wide<T>{0});
    };
    if (dense) {
      for (int64_t i = begin; i < end; ++i)
        one(i, i, i);
    } else {
      for (int64_t i = begin; i < end; ++i)
        one(i, offset_of(dy_meta, i), offset_of(mask_meta, i));
    }
  });
}

template <bool kBackward>
KernelChoice select(const KernelQuery& query) {
  if (FLOW_ISA == 0 && !parts_fit(query)) return {};
  KernelChoice choice;
  dispatch_floating(query.input(0).dtype,
                    [&]<class T>() { choice.fn = kBackward ? run_backward<T> : run_dropout<T>; });
  return choice;
}

}  // namespace

void register_dropout_cpu(KernelTable& table);

void register_dropout_cpu(KernelTable& table) {
  // The baseline's kernel is the reference: all instruction sets give the same bits.
  constexpr const char* kName = FLOW_ISA == 0 ? "reference" : FLOW_ISA_NAME;
  table.add(kDropout, DeviceType::kCpu, {kName, select<false>});
  table.add(kDropoutBackward, DeviceType::kCpu, {kName, select<true>});
}

#include "ops/kernel/isa_end.h"
