// Loop nests over strided operands, which every elementwise kernel uses.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "core/kernel.h"
#include "core/shape.h"
#include "core/tensor_meta.h"
#include "core/thread_pool.h"

namespace flow::ops {

// Elements per chunk of a parallel loop: about 5 µs of work, ten times the cost of handing a chunk
// to a thread.
inline constexpr int64_t kElementwiseGrain = 16384;

// Operand 0 is the output, and the others are inputs broadcast to its shape. Dims that are adjacent
// in every operand are merged. They are ordered as in the output's memory, outermost first, and the
// last one is the inner loop.
struct LoopNest {
  static constexpr int kMaxOperands = 6;
  using Offsets = std::array<int64_t, kMaxOperands>;  // in elements, one per operand

  int num_operands = 0;
  int num_dims = 1;
  int64_t rows = 0;   // number of runs of the inner loop
  int64_t inner = 0;  // its length
  std::array<int64_t, kMaxDims> size{};
  std::array<Offsets, kMaxDims> stride{};

  const Offsets& inner_stride() const { return stride[static_cast<size_t>(num_dims - 1)]; }

  // One row with stride 1 everywhere.
  bool is_flat() const;
};

// Builds the loop over the local parts.
LoopNest make_loop_nest(const TensorMeta& output, std::span<const MetaPtr> inputs);
std::shared_ptr<const LoopNest> share_loop_nest(const TensorMeta& output,
                                                std::span<const MetaPtr> inputs);

// Calls fn(offsets) for rows [begin, end), with the offset of the row's first element in each
// operand.
template <class Fn>
void for_rows(const LoopNest& state, int64_t begin, int64_t end, const Fn& fn) {
  if (begin >= end) return;  // sizes may be 0
  const int outer = state.num_dims - 1;
  std::array<int64_t, kMaxDims> index{};
  LoopNest::Offsets offsets{};
  const auto operands = static_cast<size_t>(state.num_operands);
  int64_t rest = begin;
  for (int d = outer - 1; d >= 0; --d) {
    const auto dim = static_cast<size_t>(d);
    index[dim] = rest % state.size[dim];
    rest /= state.size[dim];
    for (size_t k = 0; k < operands; ++k)
      offsets[k] += index[dim] * state.stride[dim][k];
  }
  for (int64_t row = begin; row < end; ++row) {
    fn(offsets);
    for (int d = outer - 1; d >= 0; --d) {
      const auto dim = static_cast<size_t>(d);
      const bool wraps = ++index[dim] == state.size[dim];
      const int64_t step = wraps ? 1 - state.size[dim] : 1;
      for (size_t k = 0; k < operands; ++k)
        offsets[k] += step * state.stride[dim][k];
      if (!wraps) break;
      index[dim] = 0;
    }
  }
}

// Calls fn(offsets, n) in parallel for stretches of n steps of the inner loop that together cover
// all elements.
template <class Fn>
void parallel_stretches(ThreadPool& pool, const LoopNest& state, const Fn& fn) {
  if (state.rows == 1) {
    pool.parallel_for(0, state.inner, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      LoopNest::Offsets offsets = state.inner_stride();
      for (int64_t& offset : offsets)
        offset *= begin;
      fn(offsets, end - begin);
    });
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / std::max<int64_t>(1, state.inner));
  pool.parallel_for(0, state.rows, grain, [&](int64_t begin, int64_t end) {
    for_rows(state, begin, end,
             [&](const LoopNest::Offsets& offsets) { fn(offsets, state.inner); });
  });
}

}  // namespace flow::ops
