// Bisection, a row of values at a time.
#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "core/float16.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/index/search_op.h"
#include "ops/kernel/lines.h"

#include "ops/kernel/isa_begin.h"

void register_search_cpu(KernelTable& table);

namespace {

template <class T>
using Compared =
    std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>, float, T>;

// Returns true if an element comes before `wanted`. A NaN is behind every number, and before
// nothing.
template <bool kRight, class C>
bool is_before(C element, C wanted) {
  return (wanted != wanted) | (kRight ? element <= wanted : element < wanted);
}

#if FLOW_ISA == 0

// The number of elements before `value`; a NaN comes after all others.
template <class T, bool kRight>
int64_t place_of(const T* sequence, int64_t stride, int64_t size, T value) {
  int64_t begin = 0;
  int64_t end = size;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    const auto element = static_cast<Compared<T>>(sequence[middle * stride]);
    const auto wanted = static_cast<Compared<T>>(value);
    if (is_before<kRight>(element, wanted)) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

template <class T, bool kRight>
void search_rows(const KernelContext& ctx) {
  const TensorView& sequence = ctx.in(0);
  const TensorView& values = ctx.in(1);
  const TensorView& y = ctx.out(0);
  const bool is_shared = sequence.shape().size() == 1;
  const int64_t last = values.shape().size() - 1;
  const int64_t size = sequence.shape()[sequence.shape().size() - 1];
  const int64_t count = line_size(values, last);
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, count));
  ctx.pool().parallel_for(0, num_lines(values, last), grain, [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l) {
      const Line from = line_of(values, last, l);
      const Line to = line_of(y, last, l);
      const Line within = line_of(sequence, sequence.shape().size() - 1, is_shared ? 0 : l);
      for (int64_t i = 0; i < count; ++i) {
        y.as<int64_t>()[to.offset + i * to.stride] =
            place_of<T, kRight>(sequence.as<T>() + within.offset, within.stride, size,
                                values.as<T>()[from.offset + i * from.stride]);
      }
    }
  });
}

void search(const KernelContext& ctx) {
  dispatch_all(ctx.in(0).meta->dtype, [&]<class T>() {
    if (ctx.attrs_as<SearchsortedAttrs>().right) {
      search_rows<T, true>(ctx);
    } else {
      search_rows<T, false>(ctx);
    }
  });
}

#endif

// Bisections of this many values run in step, without branches.
constexpr size_t kTogether = 32;
// As wide as the elements, so that the compiler makes gathers of them.
template <class T>
using Place = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
template <class T>
using Places = std::array<Place<T>, kTogether>;

template <class T, bool kRight>
void find_places(const T* sequence, int64_t size, const std::array<Compared<T>, kTogether>& wanted,
                 Places<T>& places) {
  places.fill(0);
  for (auto left = static_cast<Place<T>>(size); left > 0;) {
    const Place<T> half = left - left / 2;
    const T* last = sequence + half - 1;  // of the lower half
    for (size_t i = 0; i < kTogether; ++i) {
      const auto element = static_cast<Compared<T>>(last[places[i]]);
      const Place<T> is_above = is_before<kRight>(element, wanted[i]) ? -1 : 0;
      places[i] += half & is_above;
    }
    left -= half;
  }
}

template <class T, bool kRight>
void search_fast(const KernelContext& ctx) {
  const TensorView& sequence = ctx.in(0);
  const TensorView& values = ctx.in(1);
  auto* y = ctx.out(0).as<int64_t>();
  const bool is_shared = sequence.shape().size() == 1;
  const int64_t size = sequence.shape()[sequence.shape().size() - 1];
  // One sequence serves all values as one row.
  const int64_t count = is_shared ? values.numel() : values.shape()[values.shape().size() - 1];
  constexpr auto kGroup = static_cast<int64_t>(kTogether);
  const int64_t blocks = (count + kGroup - 1) / kGroup;
  const auto search_block = [&](int64_t block) {
    const int64_t row = block / blocks;
    const int64_t begin = block % blocks * kGroup;
    const int64_t n = std::min(kGroup, count - begin);
    const Line within = line_of(sequence, sequence.shape().size() - 1, is_shared ? 0 : row);
    const T* sought = values.as<T>() + row * count + begin;
    std::array<Compared<T>, kTogether> wanted{};
    Places<T> places;
    for (int64_t i = 0; i < n; ++i)
      wanted[static_cast<size_t>(i)] = static_cast<Compared<T>>(sought[i]);
    find_places<T, kRight>(sequence.as<T>() + within.offset, size, wanted, places);
    std::copy_n(places.begin(), n, y + row * count + begin);
  };
  ctx.pool().parallel_for(0, values.numel() / count * blocks, 64, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block)
      search_block(block);
  });
}

KernelChoice select_search(const KernelQuery& query) {
  const TensorMeta& sequence = query.input(0);
  const TensorMeta& values = query.input(1);
  if (!values.is_contiguous || values.local_numel == 0) return {};
  const int64_t last = sequence.dim() - 1;
  if (sequence.strides[last] != 1 || sequence.local_shape[last] > INT32_MAX) return {};
  const bool right = query.attrs_as<SearchsortedAttrs>().right;
  return {dispatch_all(values.dtype, [right]<class T>() -> KernelFn {
    return right ? search_fast<T, true> : search_fast<T, false>;
  })};
}

}  // namespace

void register_search_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kSearchsorted, DeviceType::kCpu, {"reference", always<search>});
#endif
  table.add(kSearchsorted, DeviceType::kCpu, {FLOW_ISA_NAME, select_search});
}

#include "ops/kernel/isa_end.h"
