// What the kernels of matrix ops share: a loop over the matrices of a batch, one thread for each,
// and the choice between plain loops and LAPACK.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/kernel/contiguous.h"
#include "ops/linalg/lapack_factors.h"
#include "ops/linalg/plain_factors.h"
#include "ops/local_parts.h"

namespace flow::ops {

// The sizes of a call, and the scratch memory that a thread needs.
struct MatrixState {
  int64_t batch = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t sides = 0;  // columns of input 1
  int64_t scratch_bytes = 0;
};

// The sizes of input 0 (batch…, rows, columns), and of input 1 if there is one.
MatrixState matrix_state(const KernelQuery& query);

// Where the line number `line` along the last dim begins, in elements.
int64_t line_offset(const TensorView& view, int64_t line);

// Throws InvalidArgument: "[op] matrix (1, 0) of the batch " + text.
[[noreturn]] void refuse_matrix(const KernelContext& ctx, const char* op, int64_t position,
                                const std::string& text);

// The second output, which says where a factorisation failed, or null if the call raises there.
inline int32_t* info_of(const KernelContext& ctx) {
  return ctx.outputs.size() == 2 ? ctx.out(1).as<int32_t>() : nullptr;
}

// Stores the info of matrix `position`; if it is not 0, its `count` results become NaN.
template <class T>
void report(int32_t* info, int64_t position, int64_t value, int64_t count, T* results) {
  info[position] = static_cast<int32_t>(value);
  if (value != 0) std::fill_n(results, count, std::numeric_limits<T>::quiet_NaN());
}

// Throws InvalidArgument if one of the `count` values of matrix `position` is NaN or infinite: no
// iteration would end.
template <class T>
void check_finite_matrix(const KernelContext& ctx, const char* op, int64_t position, int64_t count,
                         const T* values) {
  for (int64_t i = 0; i < count; ++i) {
    if (std::isfinite(values[i])) continue;
    refuse_matrix(ctx, op, position, "has a NaN or an infinity; check how it was computed");
  }
}

// True if the signs of the elements of a vector, `stride` apart, must be turned: the first element
// of almost the largest magnitude becomes positive. "Almost" keeps rounding from deciding between
// elements of equal magnitude.
template <class T>
bool turns_sign(const T* x, int64_t n, int64_t stride) {
  T largest = 0;
  for (int64_t i = 0; i < n; ++i)
    largest = std::max(largest, std::abs(x[i * stride]));
  for (int64_t i = 0; i < n; ++i) {
    if (std::abs(x[i * stride]) >= T(0.9) * largest) return x[i * stride] < 0;
  }
  return false;
}

// Calls fn(i, scratch) for the matrices i of the batch in parallel; `work` estimates the operations
// for one matrix.
template <class Fn>
void for_each_matrix(const KernelContext& ctx, int64_t work, const Fn& fn) {
  constexpr int64_t kGrain = 1 << 15;
  const auto& state = ctx.state_as<MatrixState>();
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work));
  ctx.pool().parallel_for(0, state.batch, grain, [&](int64_t begin, int64_t end) {
    Ref<Storage> memory;
    if (state.scratch_bytes > 0) memory = ctx.scratch(static_cast<size_t>(state.scratch_bytes));
    for (int64_t i = begin; i < end; ++i)
      fn(i, memory ? memory->data() : nullptr);
  });
}

// The bytes of scratch memory of one thread that computes in elements of `element` bytes.
using ScratchOf = int64_t (*)(const KernelQuery& query, const MatrixState& state, int64_t element);

inline int64_t no_scratch(const KernelQuery& /*query*/, const MatrixState& /*state*/,
                          int64_t /*element*/) {
  return 0;
}

template <class T, ScratchOf kScratch>
KernelChoice choose_matrix_kernel(const KernelQuery& query, KernelFn fn) {
  MatrixState state = matrix_state(query);
  state.scratch_bytes = kScratch(query, state, sizeof(T));
  KernelScratch scratch = contiguous_scratch(query, dtype_of<T>);
  if (state.scratch_bytes > 0) scratch.push_back({state.scratch_bytes, state.batch});
  return with_scratch({fn, std::make_shared<const MatrixState>(state)}, scratch);
}

// Plain loops compute in double, whatever the dtype.
template <KernelFn kFn, ScratchOf kScratch = no_scratch>
KernelChoice select_plain(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  return choose_matrix_kernel<double, kScratch>(query, kFn);
}

// LAPACK's sizes are ints.
bool fits_lapack(const KernelQuery& query);

template <KernelFn kFloat, KernelFn kDouble, ScratchOf kScratch = no_scratch>
KernelChoice select_lapack(const KernelQuery& query) {
  if (!parts_fit(query) || !fits_lapack(query)) return {};
  if (query.input(0).dtype == DType::kFloat64) {
    if (lapack_factors<double>() == nullptr) return {};
    return choose_matrix_kernel<double, kScratch>(query, kDouble);
  }
  if (lapack_factors<float>() == nullptr) return {};
  return choose_matrix_kernel<float, kScratch>(query, kFloat);
}

// The factorisations for a kernel's elements.
template <class T, bool kPlain>
const Factors<T>& factors() {
  if constexpr (kPlain) {
    return plain_factors();
  } else {
    return *lapack_factors<T>();
  }
}

}  // namespace flow::ops
