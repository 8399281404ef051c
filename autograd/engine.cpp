#include "autograd/engine.h"

#include <functional>

#include "autograd/backward_rules.h"
#include "autograd/backward_run.h"
#include "autograd/layout.h"
#include "core/error.h"
#include "ops/elementwise/cast.h"

namespace flow {

namespace {

using autograd::BackwardRun;
using autograd::Edge;

Tensor seed(const Tensor& output, const Tensor& gradient, size_t i, const char* name, Site site) {
  if (!gradient.defined()) {
    if (output.numel() != 1) {
      throw InvalidArgument(str("[", name, "] output ", i, " is ", output.meta(),
                                ", not a single number; pass its gradient, or reduce it with sum() "
                                "or mean() first"),
                            user_site(site));
    }
    return autograd::ones_for(output.meta(), site);
  }
  const TensorMeta& wanted = output.meta();
  const TensorMeta& given = gradient.meta();
  const bool takes_dtype =
      given.dtype == wanted.dtype || (is_floating(given.dtype) && is_floating(wanted.dtype));
  if (!(given.shape == wanted.shape) || !takes_dtype || given.placement != wanted.placement ||
      given.device != wanted.device) {
    throw InvalidArgument(
        str("[", name, "] the gradient of output ", i, " is ", given, ", the output is ", wanted,
            "; pass one with the output's shape, dtype, placement and device"),
        user_site(site));
  }
  return cast({gradient, site}, wanted.dtype);
}

// The edge to the node that made `tensor`.
Edge edge_to(const Tensor& tensor, const char* role, size_t i, const char* name, Site site) {
  if (!tensor.defined()) {
    throw InvalidArgument(str("[", name, "] ", role, " ", i, " is undefined; pass a tensor"),
                          user_site(site));
  }
  Edge edge = autograd::current_edge_of(tensor);
  if (!edge.node) {
    throw InvalidArgument(
        str("[", name, "] ", role, " ", i, ", ", tensor.meta(),
            ", does not require grad; call requires_grad_() on the tensors to differentiate, and "
            "compute outside NoGradGuard"),
        user_site(site));
  }
  return edge;
}

void add_roots(BackwardRun& run, const std::vector<Tensor>& outputs,
               const std::vector<Tensor>& gradients, const char* name, Site site,
               const std::function<Tensor(const Tensor&, const Tensor&)>& scale) {
  if (outputs.empty()) {
    throw InvalidArgument(str("[", name, "] there are no outputs; pass at least one"),
                          user_site(site));
  }
  if (!gradients.empty() && gradients.size() != outputs.size()) {
    throw InvalidArgument(str("[", name, "] ", gradients.size(), " gradients were given for ",
                              outputs.size(), " outputs; pass one per output, or none"),
                          user_site(site));
  }
  const Tensor none;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Edge edge = edge_to(outputs[i], "output", i, name, site);
    const Tensor begin = seed(outputs[i], gradients.empty() ? none : gradients[i], i, name, site);
    run.add_root(edge, scale ? scale(outputs[i], begin) : begin);
  }
}

}  // namespace

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients,
              BackwardOptions options, Site site) {
  if (!(options.bucket_mb >= 0)) {
    throw InvalidArgument(
        str("[backward] bucket_mb must not be negative; received ", options.bucket_mb),
        user_site(site));
  }
  BackwardRun run({.keep_graph = options.retain_graph || options.create_graph,
                   .create_graph = options.create_graph,
                   .bucket_mb = options.bucket_mb,
                   .site = user_site(site)});
  const autograd::BackwardRules* rules = autograd::active_backward_rules();
  add_roots(run, outputs, gradients, "backward", site,
            rules == nullptr ? nullptr : rules->scale_seed);
  run.run();
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options, Site site) {
  BackwardRun run({.keep_graph = options.retain_graph || options.create_graph,
                   .create_graph = options.create_graph,
                   .captures = true,
                   .site = user_site(site)});
  for (size_t i = 0; i < inputs.size(); ++i)
    run.add_capture(edge_to(inputs[i], "input", i, "grad", site));
  add_roots(run, outputs, options.grad_outputs, "grad", site, nullptr);
  run.run();
  std::vector<Tensor> gradients;
  for (const BackwardRun::Capture& capture : run.captures()) {
    if (!capture.gradient.defined() && !options.allow_unused) {
      throw InvalidArgument(
          str("[grad] the outputs do not depend on input ", gradients.size(), ", ",
              inputs[gradients.size()].meta(),
              "; leave it out, or set .allow_unused to get an undefined gradient"),
          user_site(site));
    }
    gradients.push_back(capture.gradient);
  }
  return gradients;
}

}  // namespace flow
