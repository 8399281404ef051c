// Normalisation.
#include "ops/norm/batch_norm.h"
#include "ops/norm/instance_norm.h"
#include "ops/norm/norm.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

NormalizationOptions normalization_options(Case& c) {
  NormalizationOptions options{.weight = c.named("weight"), .bias = c.named("bias")};
  c.attrs.read("eps", options.eps);
  return options;
}

// Functions write their running statistics, so they get copies of the case's tensors.
Tensor copy_of(const Tensor& statistic) {
  return statistic.defined() ? statistic.detach().clone() : statistic;
}

Outputs batch_normalized(Case& c) {
  BatchNormOptions options{.weight = c.named("weight"), .bias = c.named("bias")};
  c.attrs.read("training", options.training);
  c.attrs.read("momentum", options.momentum);
  c.attrs.read("eps", options.eps);
  const Tensor mean = copy_of(c.named("running_mean"));
  const Tensor var = copy_of(c.named("running_var"));
  Outputs outputs = {batch_norm(c.in(0), mean, var, options)};
  if (mean.defined()) outputs.insert(outputs.end(), {mean, var});
  return outputs;
}

Tensor instance_normalized(Case& c) {
  InstanceNormOptions options{.weight = c.named("weight"), .bias = c.named("bias")};
  c.attrs.read("use_input_stats", options.use_input_stats);
  c.attrs.read("momentum", options.momentum);
  c.attrs.read("eps", options.eps);
  const Tensor mean = copy_of(c.named("running_mean"));
  const Tensor var = copy_of(c.named("running_var"));
  if (!mean.defined() && !var.defined()) return instance_norm(c.in(0), options);
  return instance_norm(c.in(0), mean, var, options);
}

}  // namespace

void bind_norms(Bindings& table) {
  table.add("layer_norm", [](Case& c) {
    const auto shape = c.attrs.get<Shape>("normalized_shape");
    return layer_norm(c.in(0), shape, normalization_options(c));
  });
  table.add("group_norm", [](Case& c) {
    const auto groups = c.attrs.get<int64_t>("num_groups");
    return group_norm(c.in(0), groups, normalization_options(c));
  });
  table.add("rms_norm", [](Case& c) {
    RmsNormOptions options{.weight = c.named("weight")};
    c.attrs.read("eps", options.eps);
    return rms_norm(c.in(0), c.attrs.get<Shape>("normalized_shape"), options);
  });
  table.add("batch_norm", batch_normalized);
  table.add("instance_norm", instance_normalized);
}

}  // namespace flow::conform
