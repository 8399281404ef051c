#include "ops/local_parts.h"

#include <algorithm>
#include <vector>

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

}  // namespace flow::ops
