// The modules of a rank's job functions.
#include <string>

#include "core/error.h"
#include "core/grad_mode.h"
#include "graph/trace/tracer.h"
#include "nn/job/rank_job.h"

namespace flow::job {

namespace {

// Turns global tensors that all devices hold whole into local tensors of each device.
void make_local(const nn::ModuleBase& module) {
  for (const nn::NamedTensors& tensors : {module.named_parameters(), module.named_buffers()}) {
    for (const auto& [name, tensor] : tensors)
      tensor.set_data(tensor.detach().to_local().clone());
  }
}

}  // namespace

std::shared_ptr<void> RankJob::module(std::string_view name, const std::type_info& type,
                                      const std::function<internal::MadeModule()>& make,
                                      const ModuleOptions& options, Site site) {
  auto found = modules_.find(name);
  if (found == modules_.end()) {
    found = modules_.emplace(name, make_module(name, type, make, options, site)).first;
    mode_.reset();
  }
  const HeldModule& held = found->second;
  if (held.view != body_->definition.view) {
    const bool is_mirrored = held.view == View::kMirrored;
    throw InvalidArgument(
        str("[job] module ", name, " already exists in ", is_mirrored ? "mirrored" : "consistent",
            " view, where ",
            is_mirrored ? "every device has a copy" : "all devices share its parameters",
            "; received a request for it in ", is_mirrored ? "consistent" : "mirrored",
            " view; use another name"),
        site);
  }
  if (*held.type != type || !(held.placement == body_->placement)) {
    throw InvalidArgument(str("[job] module ", name, " already exists on ", held.placement,
                              "; received a request for it on ", body_->placement,
                              *held.type == type ? "" : " as another type", "; use another name"),
                          site);
  }
  set_mode(body_->definition.is_train);
  for (const Tensor& parameter : held.made.base.parameters())
    note_use(parameter);
  return held.made.module;
}

RankJob::HeldModule RankJob::make_module(std::string_view name, const std::type_info& type,
                                         const std::function<internal::MadeModule()>& make,
                                         const ModuleOptions& options, Site site) {
  const bool is_mirrored = body_->definition.view == View::kMirrored;
  if (is_mirrored && !options.distribute.empty()) {
    throw InvalidArgument(str("[job] module ", name,
                              " cannot be distributed in mirrored view, where every device has its "
                              "own model; leave out distribute or use the consistent view"),
                          site);
  }
  const graph::SuspendTracing outside;
  const NoGradGuard no_grad;
  HeldModule held{make(), &type, body_->placement, body_->definition.view};
  nn::ModuleBase& module = held.made.base;
  module.to_global(devices_, sbp::broadcast, site);  // with the values of device 0
  if (is_mirrored) {
    make_local(module);
  } else if (!options.distribute.empty()) {
    module.to_global(body_->placement, options.distribute, site);
  } else if (body_->placement != devices_) {
    module.to_global(body_->placement, sbp::broadcast, site);
  }
  add_variables(name, module, site);
  return held;
}

void RankJob::add_variables(std::string_view name, const nn::ModuleBase& module, Site site) {
  nn::NamedTensors tensors = module.named_parameters();
  const nn::StateDict persistent = module.state_dict();
  for (const auto& [inner, buffer] : module.named_buffers()) {
    if (persistent.contains(inner)) tensors.emplace_back(inner, buffer);
  }
  const std::string prefix = name.empty() ? "" : str(name, '.');
  for (const auto& [inner, tensor] : tensors) {
    if (!variables_.contains(prefix + inner)) continue;
    throw InvalidArgument(str("[job] a variable named ", prefix, inner,
                              " already exists; give the module another name"),
                          site);
  }
  for (const auto& [inner, tensor] : tensors)
    variables_.emplace(prefix + inner, Variable{tensor, tensor.requires_grad()});
}

void RankJob::set_mode(bool is_train) {
  if (mode_ == is_train) return;
  for (auto& [name, held] : modules_)
    held.made.base.train(is_train);
  mode_ = is_train;
}

}  // namespace flow::job
