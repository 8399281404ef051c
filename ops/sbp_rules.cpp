#include "ops/sbp_rules.h"

#include <array>

namespace flow::ops {

void elementwise_sbp(SbpContext& ctx) {
  const Shape& shape = ctx.output(0).shape;
  for (int64_t dim = 0; dim < shape.size(); ++dim) {
    std::vector<Sbp> inputs;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      Sbp entry = sbp::broadcast;
      if (ctx.has_input(i)) {
        const Shape& input = ctx.input(i).shape;
        const int64_t own = dim - (shape.size() - input.size());
        if (own >= 0 && input[own] == shape[dim]) entry = sbp::split(own);
      }
      inputs.push_back(entry);
    }
    const auto num_outputs = static_cast<size_t>(ctx.num_outputs());
    ctx.add(std::move(inputs), std::vector<Sbp>(num_outputs, sbp::split(dim)));
  }
}

void add_partials(SbpContext& ctx, uint32_t partials) {
  struct Mapping {
    uint32_t flag;
    Sbp from;
    Sbp to;
  };

  constexpr std::array kMappings = {
      Mapping{kLinear, sbp::partial_sum, sbp::partial_sum},
      Mapping{kMaxToMax, sbp::partial_max, sbp::partial_max},
      Mapping{kMinToMin, sbp::partial_min, sbp::partial_min},
      Mapping{kMaxToMin, sbp::partial_max, sbp::partial_min},
      Mapping{kMinToMax, sbp::partial_min, sbp::partial_max},
  };
  for (const Mapping& mapping : kMappings) {
    if ((partials & mapping.flag) != 0) ctx.add({mapping.from}, {mapping.to});
  }
}

void add_arithmetic_partials(SbpContext& ctx, uint32_t partials) {
  const bool is_exact = is_floating(ctx.input(0).dtype);
  add_partials(ctx, is_exact ? partials : partials & static_cast<uint32_t>(kLinear));
}

}  // namespace flow::ops
