#include "ops/local_parts.h"

#include <algorithm>
#include <vector>

#include "ops/kernel/box_copy.h"

namespace flow::ops {

bool parts_fit(const KernelQuery& query) {
  const auto is_part = [](MetaPtr meta) { return meta->is_global() && meta->is_held; };
  if (std::none_of(query.outputs.begin(), query.outputs.end(), is_part)) return true;
  std::vector<MetaPtr> parts;
  for (const MetaPtr input : query.inputs)
    parts.push_back(input == nullptr ? nullptr : local_part(input));
  InferContext ctx(query.op, parts, query.attrs);
  try {
    query.op.infer(ctx);
  } catch (const InvalidArgument&) {
    return false;
  }
  for (size_t i = 0; i < query.outputs.size(); ++i) {
    if (!(ctx.outputs()[i].shape == query.outputs[i]->local_shape)) return false;
  }
  return true;
}

bool same_part(const TensorMeta& a, const TensorMeta& b) {
  return a.local_shape == b.local_shape && a.local_begin == b.local_begin;
}

bool holds_partners(const TensorMeta& index, const TensorMeta& src) {
  if (index.local_numel == 0) return true;
  for (int64_t i = 0; i < index.dim(); ++i) {
    const Range own = local_range(index, i);
    const Range partners = local_range(src, i);
    if (own.begin < partners.begin || own.begin + own.size > partners.begin + partners.size) {
      return false;
    }
  }
  return true;
}

}  // namespace flow::ops
