// Where the elements of a reduction lie, for kernels.
#pragma once

#include <memory>

#include "ops/kernel/rows_cuda.cuh"
#include "ops/reduce/reduce_op.h"

namespace flow::ops {

// Result k begins at kept_in(k) in the input and is stored at kept_out(k); its elements lie
// reduced(r) further.
struct ReducedPlaces {
  Places kept_in;
  Places kept_out;
  Places reduced;
  int64_t kept_numel = 1;
  int64_t reduced_numel = 1;

  explicit ReducedPlaces(const ReducePlan& plan)
      : kept_in(places_of(plan.kept, plan.num_kept, &ReducePlan::Dim::in_stride)),
        kept_out(places_of(plan.kept, plan.num_kept, &ReducePlan::Dim::out_stride)),
        reduced(places_of(plan.reduced, plan.num_reduced, &ReducePlan::Dim::in_stride)),
        kept_numel(plan.kept_numel),
        reduced_numel(plan.reduced_numel) {}

 private:
  static Places places_of(const std::array<ReducePlan::Dim, kMaxDims>& dims, int count,
                          int64_t ReducePlan::Dim::*stride) {
    Shape size;
    Strides strides;
    for (int i = 0; i < count; ++i) {
      size.push_back(dims[static_cast<size_t>(i)].size);
      strides.push_back(dims[static_cast<size_t>(i)].*stride);
    }
    return {size, strides};
  }
};

inline std::shared_ptr<const ReducePlan> share_reduction(const KernelQuery& query,
                                                         const Shape& dims) {
  return std::make_shared<const ReducePlan>(plan_reduction(query.input(0), dim_set(dims)));
}

}  // namespace flow::ops
