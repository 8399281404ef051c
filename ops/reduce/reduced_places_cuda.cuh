// Offsets of the elements of a reduction, for kernels.
#pragma once

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

inline std::shared_ptr<const ReduceState> share_reduction(const KernelQuery& query,
                                                          const Shape& dims) {
  return std::make_shared<const ReduceState>(prepare_reduction(query.input(0), dim_set(dims)));
}

}  // namespace flow::ops
