#include "ops/conv_kernels.h"

namespace flow::ops {

ConvRoles conv_roles(const KernelQuery& query) {
  if (&query.op == &kConv) return {.has_bias = query.has_input(2)};
  if (&query.op == &kConvBackwardInput) return {.writes_x = true, .x = 0, .weight = 1, .y = 0};
  return {.writes_weight = true,
          .x = 0,
          .weight = 0,
          .y = 1,
          .has_bias = &query.op == &kConvBackwardWeightBias};
}

ConvSizes conv_sizes(const KernelQuery& query) {
  const ConvRoles roles = conv_roles(query);
  const auto shape = [&](bool is_output, int i) -> const Shape& {
    return is_output ? query.output(i).local_shape : query.input(i).local_shape;
  };
  return conv_sizes(shape(roles.writes_x, roles.x), shape(roles.writes_weight, roles.weight),
                    shape(roles.writes_y(), roles.y), query.attrs_as<ConvAttrs>());
}

}  // namespace flow::ops
