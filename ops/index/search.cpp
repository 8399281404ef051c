#include "ops/index/search.h"

#include "core/dispatch.h"
#include "core/error.h"
#include "ops/elementwise/cast.h"
#include "ops/index/gather.h"
#include "ops/index/search_op.h"
#include "ops/named_errors.h"

namespace flow {

namespace ops {

namespace {

void infer(InferContext& ctx) {
  const Shape& sequence = ctx.input(0).shape;
  const Shape& values = ctx.input(1).shape;
  ctx.check(!sequence.empty(), "the sequence must have a dim");
  bool fits = sequence.size() == 1 || sequence.size() == values.size();
  for (int64_t i = 0; fits && i + 1 < sequence.size(); ++i)
    fits = sequence[i] == values[i];
  ctx.check(fits, "give one sequence (n), or one for each row of the values");
  ctx.check(ctx.input(0).dtype == ctx.input(1).dtype,
            "the sequence and the values must have one dtype; cast one");
  ctx.check(ctx.input(0).dtype != DType::kBool, "is not defined for bool; cast first");
  ctx.add_output(values, DType::kInt64);
}

// Values are looked up one by one. Each part of a sequence is sorted too, and the numbers of
// elements before a value add up. The position increases with the value.
void sbp(SbpContext& ctx) {
  const int64_t rows = ctx.input(0).dim() - 1;
  const int64_t dims = ctx.input(1).dim();
  for (int64_t i = 0; i < dims; ++i) {
    const bool is_row = i < rows;
    ctx.add({is_row ? sbp::split(i) : sbp::broadcast, sbp::split(i)}, {sbp::split(i)});
  }
  ctx.add({sbp::split(rows), sbp::broadcast}, {sbp::partial_sum});
  for (const Sbp side : {sbp::partial_max, sbp::partial_min})
    ctx.add({sbp::broadcast, side}, {side});
}

}  // namespace

const OpDef kSearchsorted{.name = "searchsorted",
                          .num_inputs = 2,
                          .attrs = attrs_def<SearchsortedAttrs>(),
                          .infer = infer,
                          .sbp = sbp,
                          .grad = not_differentiable};

void register_search(OpTable& table) {
  table.add(kSearchsorted);
}

}  // namespace ops

Tensor searchsorted(const TensorArg& sequence, const TensorArg& values,
                    const SearchsortedOptions& options) {
  return ops::named("searchsorted", sequence.site(), [&]() -> Tensor {
    const Site site = sequence.site();
    Tensor sorted = sequence;
    if (options.sorter.defined()) {
      if (options.sorter.shape() != sequence->shape()) {
        throw InvalidArgument(str("[searchsorted] the sorter must have the sequence's shape; ",
                                  "received ", sequence->meta(), ", ", options.sorter.meta()),
                              site);
      }
      sorted = gather(sequence, -1, {options.sorter, site});
    }
    const DType dtype = promote(sequence->dtype(), values->dtype());
    sorted = cast({sorted, site}, dtype);
    const Tensor sought = cast({values.tensor(), site}, dtype);
    const Tensor places = dispatch(ops::kSearchsorted, {&sorted, &sought},
                                   ops::SearchsortedAttrs{options.right}, site);
    return options.out_int32 ? cast({places, site}, DType::kInt32) : places;
  });
}

Tensor bucketize(const TensorArg& x, const TensorArg& boundaries, const BucketizeOptions& options) {
  return ops::named("bucketize", x.site(), [&]() -> Tensor {
    if (boundaries->dim() != 1) {
      throw InvalidArgument(str("[bucketize] boundaries must be a vector; received ",
                                boundaries->meta(), "; use searchsorted"),
                            x.site());
    }
    return searchsorted(TensorArg(boundaries, x.site()), x,
                        {.out_int32 = options.out_int32, .right = options.right});
  });
}

}  // namespace flow
