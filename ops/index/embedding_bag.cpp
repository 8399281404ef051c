#include "ops/index/embedding_bag.h"

#include <cmath>

#include "core/context.h"
#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/embedding.h"
#include "ops/index/gather.h"
#include "ops/index/scatter_reduce.h"
#include "ops/index/search.h"
#include "ops/named_errors.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/shape/arrange.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

void check(const TensorArg& indices, const EmbeddingBagOptions& options) {
  const Site site = indices.site();
  const bool is_vector = indices->dim() == 1;
  if (options.mode != "sum" && options.mode != "mean" && options.mode != "max") {
    throw InvalidArgument(
        str("[embedding_bag] mode is '", options.mode, "'; give sum, mean or max"), site);
  }
  if ((!is_vector && indices->dim() != 2) || is_vector != options.offsets.defined() ||
      (is_vector && options.offsets.dim() != 1)) {
    throw InvalidArgument(str("[embedding_bag] takes indices (B, n), or a vector of them with a ",
                              "vector of offsets; received ", indices->meta()),
                          site);
  }
  if (options.offsets.defined() && options.offsets.dtype() != DType::kInt64 &&
      options.offsets.dtype() != DType::kInt32) {
    throw InvalidArgument(str("[embedding_bag] offsets must be int64 or int32; received ",
                              options.offsets.meta(), "; cast them"),
                          site);
  }
  if (!options.per_sample_weights.defined()) return;
  if (options.mode != "sum" || options.per_sample_weights.shape() != indices->shape()) {
    throw InvalidArgument(
        str("[embedding_bag] per_sample_weights must have the shape of the indices and ",
            "need mode sum; received ", options.per_sample_weights.meta(), " for ", indices->meta(),
            ", mode ", options.mode),
        site);
  }
}

// Throws InvalidArgument unless the offsets ascend from 0 to at most the number of indices. A trace
// has no values to look at, and the host would wait for those of a device.
void check_offsets(const Tensor& offsets, int64_t num_indices, Site site) {
  if (thread_state().trace != nullptr || offsets.device() != DeviceType::kCpu) return;
  int64_t last = 0;
  bool is_first = true;
  for (const int64_t offset : offsets.to_vector<int64_t>()) {
    if (offset < last || offset > num_indices || (is_first && offset != 0)) {
      throw InvalidArgument(str("[embedding_bag] offsets must begin with 0 and ascend to at most ",
                                num_indices, ", the number of indices; received ", offset,
                                is_first ? str(" first") : str(" after ", last)),
                            site);
    }
    last = offset;
    is_first = false;
  }
}

// The bag of each index of a vector.
Tensor bags_of(const Tensor& indices, const Tensor& starts, Site site) {
  const TensorOptions layout = ops::whole_like(indices, starts.dtype());
  const Tensor places = arange(indices.numel(), layout, site);
  return sub({searchsorted({starts, site}, {places, site}, {.right = true}), site}, 1);
}

}  // namespace

Tensor embedding_bag(const TensorArg& indices, const TensorArg& weight,
                     const EmbeddingBagOptions& options) {
  return ops::named("embedding_bag", indices.site(), [&]() -> Tensor {
    const Site site = indices.site();
    check(indices, options);
    const bool is_vector = indices->dim() == 1;
    Tensor starts = options.offsets;
    if (is_vector) check_offsets(starts, indices->numel(), site);
    if (is_vector && options.include_last_offset) {
      starts = narrow({starts, site}, 0, 0, starts.numel() - 1);
    }
    const int64_t bags = is_vector ? starts.numel() : indices->size(0);
    const int64_t width = weight->size(-1);
    Tensor rows = embedding(indices, weight,
                            {.padding_idx = options.padding_idx,
                             .max_norm = options.max_norm,
                             .norm_type = options.norm_type});
    if (options.per_sample_weights.defined()) {
      rows = mul({rows, site}, unsqueeze({options.per_sample_weights, site}, -1));
    }
    Tensor counts = cast({ones_like(indices), site}, rows.dtype());  // 1 for an index that counts
    if (options.padding_idx) {
      const int64_t padding =
          *options.padding_idx < 0 ? *options.padding_idx + weight->size(0) : *options.padding_idx;
      const Tensor is_padding = eq(indices, padding);
      counts = masked_fill({counts, site}, {is_padding, site}, 0);
      rows = masked_fill({rows, site}, {unsqueeze({is_padding, site}, -1), site},
                         options.mode == "max" ? -INFINITY : 0.0);
    }
    Tensor y;
    Tensor sizes;
    if (is_vector) {
      const Tensor bag = bags_of(indices, starts, site);
      const Tensor empty = new_zeros({rows, site}, {bags, width});
      const Tensor place = expand({unsqueeze({bag, site}, 1), site}, rows.shape());
      y = options.mode == "max" ? scatter_reduce({empty, site}, 0, {place, site}, {rows, site},
                                                 "amax", {.include_self = false})
                                : scatter_add({empty, site}, 0, {place, site}, {rows, site});
      const Tensor none = new_zeros({counts, site}, {bags});
      sizes = scatter_add({none, site}, 0, {bag, site}, {counts, site});
    } else if (options.mode == "max" && indices->size(1) > 0) {
      y = max({rows, site}, 1).values;
      sizes = sum({counts, site}, 1);
    } else {
      y = sum({rows, site}, 1);
      sizes = sum({counts, site}, 1);
    }
    const Tensor size_of_row = unsqueeze({sizes, site}, 1);
    if (options.mode == "mean") {
      return div({y, site}, clamp({size_of_row, site}, {.min = 1}));
    }
    if (options.mode == "max") {
      return masked_fill({y, site}, {eq({size_of_row, site}, 0), site}, 0);
    }
    return y;
  });
}

}  // namespace flow
