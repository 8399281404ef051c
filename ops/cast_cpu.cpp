// Kernels of ops/cast.h: bound by memory, the compiler's loops suffice.
#include "ops/cast_formula.h"
#include "ops/cast_op.h"
#include "ops/elementwise_loops.h"

#include "ops/isa_begin.h"

namespace {

template <class To, class From>
void convert_elements(To* y, int64_t n, const From* x) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    y[i] = convert<To>(x[i]);
}

struct CastBlock {
  template <class To, class From>
  static void run(const void* /*attrs*/, To* y, int64_t n, const From* x) {
    if constexpr (is_floating(dtype_of<To>) && is_floating(dtype_of<From>) &&
                  (sizeof(To) == 2 || sizeof(From) == 2) && sizeof(To) <= 4 && sizeof(From) <= 4) {
      map(
          y, n, [](auto v) { return v; }, x);
    } else {
      convert_elements(y, n, x);
    }
  }
};

template <class To, class From>
void add_cast(KernelTable& table) {
  add_kernel<CastBlock, To, From>(table, kCast);
}

#if FLOW_ISA == 0
template <class To, class From>
void reference_row(const void* /*attrs*/, std::byte* y, int64_t n, const std::byte* const* x,
                   const int64_t* stride) {
  To* target = reinterpret_cast<To*>(y);
  const From* source = reinterpret_cast<const From*>(x[0]);
  for (int64_t i = 0; i < n; ++i)
    target[i * stride[0]] = convert<To>(source[i * stride[1]]);
}

KernelChoice select_reference(const KernelQuery& query) {
  RowFn row = nullptr;
  dispatch_all(query.output(0).dtype, [&]<class To>() {
    dispatch_all(query.input(0).dtype, [&]<class From>() { row = reference_row<To, From>; });
  });
  return choose_rows(query, row);
}
#endif

}  // namespace

void register_cast_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kCast, DeviceType::kCpu, {"reference", select_reference});
#endif
  add_cast<double, float>(table);
  add_cast<float, double>(table);
  add_cast<float, bool>(table);
  add_cast<double, bool>(table);
  add_cast<float, uint8_t>(table);
  add_cast<float, int32_t>(table);
  add_cast<float, int64_t>(table);
  add_cast<int64_t, float>(table);
  add_cast<int64_t, int32_t>(table);
  add_cast<Float16, float>(table);
  add_cast<float, Float16>(table);
  add_cast<BFloat16, float>(table);
  add_cast<float, BFloat16>(table);
}

#include "ops/isa_end.h"
