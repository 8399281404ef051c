// Definitions of the reductions, and the functions they share with other families.
#pragma once

#include <array>
#include <tuple>

#include "core/kernel.h"
#include "core/op.h"

namespace flow::ops {

// `dims` are normalised and ascending. A reduction over all dims lists every dim.
struct ReduceAttrs {
  Shape dims;
  bool keepdim = false;

  static constexpr auto fields() {
    return std::tuple(key_field("dims", &ReduceAttrs::dims),
                      key_field("keepdim", &ReduceAttrs::keepdim));
  }
};

// `count` is the number of logical elements that make one result. A rank that holds only some of
// these elements divides by `count` too, so a mean over a split dim is a partial sum.
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

// These are sums with attrs of their own; the other reductions are rows of
// ops/reduce/reduce_rows.h.
extern const OpDef kMean, kSumTo;

// Layout rules. A split kept dim stays split. A rank that holds only some of the reduced elements
// has a partial sum, a partial maximum (any) or a partial minimum (all) of the result;
// sbp_kept_dims has no such rule.
void sbp_kept_dims(SbpContext& ctx);
void sbp_sum(SbpContext& ctx);
void sbp_nansum(SbpContext& ctx);  // not linear: a NaN may come from any part
void sbp_any(SbpContext& ctx);
void sbp_all(SbpContext& ctx);

// At each element of x, the product of the other elements along `dims`, which is one dim or all
// dims.
Tensor products_of_others(const Tensor& x, const Shape& dims);

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
// Returns y, the result of reducing a tensor of `shape`, with the reduced dims inserted again as
// size 1.
Tensor with_reduced_dims(const Tensor& y, const Shape& shape, const Shape& dims, bool keepdim);
// Returns the dims that a call of a reduction reduces. The op takes ReduceAttrs or is kMean or
// kSumTo.
DimSet reduced_dims_of(const OpDef& op, const TensorMeta& input, const void* attrs);
// Those that a kernel reduces. Where sum_to could keep a dim of size 1, the parts decide.
DimSet reduced_dims_of(const KernelQuery& query);

// The order in which a kernel walks one local reduction. Dims of size 1 are removed and
// neighbouring dims are merged. Dims of stride 0 come first, then the others by descending stride,
// so the last dim of one of the two lists is the innermost.
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
  // True if the innermost dim has stride 1 and is a reduced dim (has_rows), or a kept dim that is
  // contiguous in the output as well.
  bool has_rows = false;
  bool has_columns = false;
  // The number that a mean divides by.
  double divisor = 1;
};

ReduceState prepare_reduction(const TensorMeta& input, DimSet reduced);

}  // namespace flow::ops
