#include "ops/conv/conv_kernels.h"

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

bool conv_parts_agree(const KernelQuery& query, const ConvRoles& roles, const ConvSizes& sizes) {
  const Shape& x = (roles.writes_x ? query.output(0) : query.input(roles.x)).local_shape;
  const Shape& weight =
      (roles.writes_weight ? query.output(0) : query.input(roles.weight)).local_shape;
  const Shape& y = (roles.writes_y() ? query.output(0) : query.input(roles.y)).local_shape;
  const auto& attrs = query.attrs_as<ConvAttrs>();
  const TensorMeta* bias = nullptr;
  if (roles.has_bias) bias = roles.writes_weight ? &query.output(1) : &query.input(2);
  // A rank may hold none of the groups.
  const bool has_groups = sizes.groups > 0 ? weight[0] % sizes.groups == 0 : weight[0] == 0;
  bool agree = x[0] == y[0] && weight[0] == y[1] && weight[1] * sizes.groups == x[1] &&
               has_groups && (bias == nullptr || bias->local_shape[0] == y[1]);
  const auto missing = static_cast<size_t>(kMaxSpatialDims - sizes.num_dims);
  for (size_t i = 0; i + missing < kMaxSpatialDims; ++i) {
    const WindowDim& dim = sizes.window[i + missing];
    const int64_t padded = dim.in + dim.padding + attrs.padding_end[i];
    agree = agree && count_windows(padded, dim.reach(), dim.stride) == dim.out;
  }
  return agree;
}

}  // namespace flow::ops
