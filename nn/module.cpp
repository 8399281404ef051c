#include "nn/module.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/context.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "nn/module_reads.h"
#include "nn/module_state.h"
#include "ops/elementwise/cast.h"

namespace flow::nn {

ModuleBase::ModuleBase() : state_(std::make_shared<State>()) {}

ModuleBase::State& ModuleBase::live_state() const {
  if (internal::module_recorder != nullptr) [[unlikely]]
    internal::module_recorder->note_read(*this);
  State* state = state_.get();
  while (state->replacement)
    state = state->replacement->state_.get();
  return *state;
}

void ModuleBase::check_new_name(std::string_view name) const {
  if (name.empty() || name.find('.') != std::string_view::npos) {
    throw InvalidArgument(
        str("[module] '", name, "' cannot be used as a name; use a word without dots"));
  }
  const auto is_taken = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& e) { return e.first == name; });
  };
  if (is_taken(live_state().parameters) || is_taken(live_state().buffers) ||
      is_taken(live_state().children)) {
    throw InvalidArgument(str("[module] '", name, "' is already registered; choose another name"));
  }
}

Tensor ModuleBase::register_parameter(std::string_view name, const Tensor& value) {
  check_new_name(name);
  if (!value.defined()) return value;
  value.requires_grad_();
  live_state().parameters.emplace_back(name, value);
  note_registration();
  return value;
}

Tensor ModuleBase::register_buffer(std::string_view name, const Tensor& value, bool persistent) {
  check_new_name(name);
  if (value.defined()) live_state().buffers.emplace_back(name, value);
  note_registration();
  if (!persistent) live_state().transient.emplace(name);
  return value;
}

void ModuleBase::add_child(std::string_view name, const ModuleBase& module,
                           const std::type_info& type) {
  check_new_name(name);
  live_state().children.emplace_back(name, module);
  live_state().child_types.push_back(&type);
  note_registration();
  // Modules are registered from the inside out, so paths grow at the front.
  for (auto& [inner, descendant] : module.named_modules()) {
    descendant.live_state().path = interned_path(join_path(std::string(name), inner));
  }
}

const NamedModules& ModuleBase::children() const {
  return live_state().children;
}

NamedModules ModuleBase::named_modules() const {
  NamedModules all{{"", *this}};
  for (const auto& [name, child] : live_state().children) {
    for (auto& [inner, module] : child.named_modules()) {
      all.emplace_back(join_path(name, inner), std::move(module));
    }
  }
  return all;
}

NamedTensors ModuleBase::collect(bool wants_parameters) const {
  NamedTensors all;
  std::set<const TensorImpl*> seen;
  for (const auto& [prefix, module] : named_modules()) {
    const State& state = module.live_state();
    for (const auto& [name, tensor] : wants_parameters ? state.parameters : state.buffers) {
      if (seen.insert(&tensor.impl()).second) all.emplace_back(join_path(prefix, name), tensor);
    }
  }
  return all;
}

NamedTensors ModuleBase::named_parameters() const {
  return collect(true);
}

NamedTensors ModuleBase::named_buffers() const {
  return collect(false);
}

std::vector<Tensor> ModuleBase::parameters() const {
  std::vector<Tensor> all;
  for (auto& [name, tensor] : collect(true))
    all.push_back(std::move(tensor));
  return all;
}

int64_t ModuleBase::num_parameters() const {
  int64_t count = 0;
  for (const Tensor& parameter : parameters())
    count += parameter.numel();
  return count;
}

void ModuleBase::note_registration() const {
  ++live_state().num_registrations;
  note_module_change();
}

void ModuleBase::train(bool on) {
  for (auto& [name, module] : named_modules()) {
    bool& is_training = module.live_state().is_training;
    if (std::exchange(is_training, on) != on) note_module_change();
  }
}

bool ModuleBase::is_training() const {
  return live_state().is_training;
}

void ModuleBase::requires_grad_(bool on) {
  for (const Tensor& parameter : parameters())
    parameter.requires_grad_(on);
}

void ModuleBase::zero_grad() {
  for (const Tensor& parameter : parameters())
    parameter.set_grad(Tensor());
}

void ModuleBase::to(DType dtype) {
  if (!is_floating(dtype)) {
    throw InvalidArgument(str("[to] the dtype of a module must be floating; received ", dtype,
                              "; give float16, bfloat16, float32 or float64"));
  }
  const NoGradGuard no_grad;
  for (const NamedTensors& tensors : {named_parameters(), named_buffers()}) {
    for (const auto& [name, tensor] : tensors) {
      if (!is_floating(tensor.dtype())) continue;
      const Tensor grad = tensor.grad();
      tensor.set_data(cast(tensor, dtype));
      if (grad.defined()) tensor.set_grad(cast(grad, dtype));
    }
  }
}

void ModuleBase::to(std::string_view device, Site site) {
  const NoGradGuard no_grad;
  for (const NamedTensors& tensors : {named_parameters(), named_buffers()}) {
    for (const auto& [name, tensor] : tensors) {
      const Tensor moved = tensor.to(device, site);
      if (!moved.is_same(tensor)) tensor.set_data(moved);
    }
  }
}

ModuleBase::CallScope::CallScope(const ModuleBase& module, size_t bytes, Site site) {
  if (internal::module_recorder != nullptr) [[unlikely]]
    internal::module_recorder->note_call(module, bytes);
  ThreadState& state = thread_state();
  const State& own = module.live_state();
  outer_site_ = state.scope_site;
  outer_stage_ = state.stage;
  if (own.stage >= 0) state.stage = own.stage;
  outer_path_ = std::exchange(state.module_path, own.path);
  if (site.is_known() && !site.is_inside_library()) state.scope_site = site;
}

ModuleBase::CallScope::~CallScope() {
  ThreadState& state = thread_state();
  state.scope_site = outer_site_;
  state.module_path = outer_path_;
  state.stage = outer_stage_;
}

}  // namespace flow::nn
