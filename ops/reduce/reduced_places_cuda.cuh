// Offsets of the elements of a reduction, for kernels.
#pragma once

#include <algorithm>
#include <memory>

#include "ops/kernel/rows_cuda.cuh"
#include "ops/reduce/reduce_op.h"

namespace flow::ops {

// Result k begins at offset kept_in(k) of the input and is stored at kept_out(k). Its elements are
// at reduced(r) after its beginning.
struct ReducedPlaces {
  Places kept_in;
  Places kept_out;
  Places reduced;
  int64_t kept_numel = 1;
  int64_t reduced_numel = 1;

  explicit ReducedPlaces(const ReduceState& state)
      : kept_in(places_of(state.kept, state.num_kept, &ReduceState::Dim::in_stride)),
        kept_out(places_of(state.kept, state.num_kept, &ReduceState::Dim::out_stride)),
        reduced(places_of(state.reduced, state.num_reduced, &ReduceState::Dim::in_stride)),
        kept_numel(state.kept_numel),
        reduced_numel(state.reduced_numel) {}

 private:
  static Places places_of(const std::array<ReduceState::Dim, kMaxDims>& dims, int count,
                          int64_t ReduceState::Dim::*stride) {
    Shape size;
    Strides strides;
    for (int i = 0; i < count; ++i) {
      size.push_back(dims[static_cast<size_t>(i)].size);
      strides.push_back(dims[static_cast<size_t>(i)].*stride);
    }
    return {size, strides};
  }
};

// The pieces of each result, for one team of threads each, so that a few results of many elements
// keep the device busy too. They depend on the shape only.
struct ResultPieces {
  int64_t count = 1;
  int64_t size = 0;  // elements of each piece but the last
  int64_t numel = 0;

  ResultPieces(int64_t results, int64_t elements) : numel(elements) {
    constexpr int64_t kMostTeams = 1024;
#if defined(__CUDACC__)
    constexpr int64_t kLeast = 1 << 14;
#else
    constexpr int64_t kLeast = 1 << 6;  // emulated: small inputs have pieces too
#endif
    const int64_t wanted = kMostTeams / std::max<int64_t>(results, 1);
    count = std::clamp<int64_t>(elements / kLeast, 1, std::max<int64_t>(wanted, 1));
    size = (elements + count - 1) / count;
    if (size > 0) count = (elements + size - 1) / size;
  }

  __device__ int64_t begin(int64_t piece) const {
    return piece * size;
  }

  __device__ int64_t end(int64_t piece) const {
    return piece * size + size < numel ? piece * size + size : numel;
  }
};

inline std::shared_ptr<const ReduceState> share_reduction(const KernelQuery& query,
                                                          const Shape& dims) {
  return std::make_shared<const ReduceState>(prepare_reduction(query.input(0), dim_set(dims)));
}

}  // namespace flow::ops
