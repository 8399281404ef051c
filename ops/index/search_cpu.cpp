// Bisection, a row of values at a time.
#include <algorithm>
#include <type_traits>

#include "core/float16.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/index/search_op.h"
#include "ops/kernel/lines.h"

#include "ops/kernel/isa_begin.h"

void register_search_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

template <class T>
using Compared =
    std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>, float, T>;

// The number of elements before `value`; a NaN comes after all others.
template <class T, bool kRight>
int64_t place_of(const T* sequence, int64_t stride, int64_t size, T value) {
  int64_t begin = 0;
  int64_t end = size;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    const auto element = static_cast<Compared<T>>(sequence[middle * stride]);
    const auto wanted = static_cast<Compared<T>>(value);
    // A NaN is behind every number, and before nothing.
    const bool is_before = kRight ? element <= wanted : element < wanted;
    const bool is_behind = wanted == wanted && !is_before;
    if (is_behind) {
      end = middle;
    } else {
      begin = middle + 1;
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

}  // namespace

void register_search_cpu(KernelTable& table) {
  table.add(kSearchsorted, DeviceType::kCpu, {"reference", always<search>});
}

#else

void register_search_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
