// Definitions of the reductions, and what other families share with them.
#pragma once

#include <array>
#include <tuple>

#include "core/op.h"

namespace flow::ops {

// `dims` are normalised, ascending, and spelled out for a full reduction.
struct ReduceAttrs {
  Shape dims;
  bool keepdim = false;

  static constexpr auto fields() {
    return std::tuple(key_field("dims", &ReduceAttrs::dims),
                      key_field("keepdim", &ReduceAttrs::keepdim));
  }
};

// `count` is the number of logical elements that make one result: a rank that holds some of them
// divides by it too, so a mean over a split dim is a partial sum.
struct MeanAttrs {
  Shape dims;
  bool keepdim = false;
  int64_t count = 1;

  static constexpr auto fields() {
    return std::tuple(key_field("dims", &MeanAttrs::dims),
                      key_field("keepdim", &MeanAttrs::keepdim),
                      key_field("count", &MeanAttrs::count));
  }
};

struct SumToAttrs {
  Shape shape;

  static constexpr auto fields() { return std::tuple(key_field("shape", &SumToAttrs::shape)); }
};

extern const OpDef kSum, kMean, kSumTo, kProd, kAny, kAll;

// A set of dims: bit i for dim i.
using DimSet = uint32_t;

// The normalised, ascending list of `dims` of a tensor; all of them for an empty list. Throws
// InvalidArgument naming `op` for a dim out of range or given twice.
Shape reduction_dims(const Ints& dims, int64_t ndim, const char* op);
DimSet dim_set(const Shape& dims);
Shape reduced_shape(const Shape& shape, const Shape& dims, bool keepdim);
// The number of elements that make one result.
int64_t reduced_count(const Shape& shape, const Shape& dims);
// Position in the result of dim `dim` (not among the reduced) of the operand.
int64_t reduced_dim(int64_t dim, const Shape& dims, bool keepdim);
// y, a result of reducing a tensor of `shape`, with the reduced dims back as size 1.
Tensor with_reduced_dims(const Tensor& y, const Shape& shape, const Shape& dims, bool keepdim);
// The dims a call of a reduction (one with ReduceAttrs, kMean or kSumTo) reduces.
DimSet reduced_dims_of(const OpDef& op, const TensorMeta& input, const void* attrs);

// How a kernel walks one local reduction: dims of size 1 are gone, neighbours merged, the largest
// strides first (dims of stride 0 before them), so that the last dim of one list is the innermost.
struct ReduceState {
  struct Dim {
    int64_t size;
    int64_t in_stride;
    int64_t out_stride;  // 0 for a reduced dim
  };

  std::array<Dim, kMaxDims> kept;
  std::array<Dim, kMaxDims> reduced;
  int num_kept = 0;
  int num_reduced = 0;
  int64_t kept_numel = 1;
  int64_t reduced_numel = 1;
  // The innermost dim has stride 1 and is a reduced / a kept one (then contiguous in the output).
  bool has_rows = false;
  bool has_columns = false;
  // What a mean divides by.
  double divisor = 1;
};

ReduceState prepare_reduction(const TensorMeta& input, DimSet reduced);

}  // namespace flow::ops
