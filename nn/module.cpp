#include "nn/module.h"

#include <algorithm>
#include <set>

#include "autograd/grad_mode.h"
#include "core/context.h"
#include "core/error.h"
#include "ops/cast.h"

namespace flow::nn {

struct ModuleBase::State {
  NamedTensors parameters;
  NamedTensors buffers;
  NamedModules children;
  bool is_training = true;
  std::string path;  // dotted, from the outermost module it was registered in
};

ModuleBase::ModuleBase() : state_(std::make_shared<State>()) {}

void ModuleBase::check_new_name(std::string_view name) const {
  if (name.empty() || name.find('.') != std::string_view::npos) {
    throw InvalidArgument(str("[module] '", name, "' cannot be a name; use a word without dots"));
  }
  const auto is_taken = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& e) { return e.first == name; });
  };
  if (is_taken(state_->parameters) || is_taken(state_->buffers) || is_taken(state_->children)) {
    throw InvalidArgument(str("[module] '", name, "' is registered already; choose another name"));
  }
}

Tensor ModuleBase::register_parameter(std::string_view name, const Tensor& value) {
  check_new_name(name);
  if (!value.defined()) return value;
  value.requires_grad_();
  state_->parameters.emplace_back(name, value);
  return value;
}

Tensor ModuleBase::register_buffer(std::string_view name, const Tensor& value) {
  check_new_name(name);
  if (value.defined()) state_->buffers.emplace_back(name, value);
  return value;
}

namespace {
std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : name.empty() ? prefix : prefix + "." + name;
}
}  // namespace

void ModuleBase::add_child(std::string_view name, const ModuleBase& module) {
  check_new_name(name);
  state_->children.emplace_back(name, module);
  // Paths grow at the front as modules are registered from the inside out.
  for (auto& [inner, descendant] : module.named_modules()) {
    descendant.state_->path = join(std::string(name), inner);
  }
}

const NamedModules& ModuleBase::children() const {
  return state_->children;
}

NamedModules ModuleBase::named_modules() const {
  NamedModules all{{"", *this}};
  for (const auto& [name, child] : state_->children) {
    for (auto& [inner, module] : child.named_modules()) {
      all.emplace_back(join(name, inner), std::move(module));
    }
  }
  return all;
}

NamedTensors ModuleBase::collect(bool wants_parameters) const {
  NamedTensors all;
  std::set<const TensorImpl*> seen;
  for (const auto& [prefix, module] : named_modules()) {
    const State& state = *module.state_;
    for (const auto& [name, tensor] : wants_parameters ? state.parameters : state.buffers) {
      if (seen.insert(&tensor.impl()).second) all.emplace_back(join(prefix, name), tensor);
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

StateDict ModuleBase::state_dict() const {
  StateDict state;
  for (const auto& [name, tensor] : named_parameters())
    state.emplace(name, tensor.detach());
  for (const auto& [name, tensor] : named_buffers())
    state.emplace(name, tensor.detach());
  return state;
}

void ModuleBase::load_state_dict(const StateDict& state, LoadOptions options) {
  const StateDict own = state_dict();
  std::string problems;
  for (const auto& [name, tensor] : own) {
    const auto found = state.find(name);
    if (found == state.end()) {
      if (options.strict) problems += str("\n  missing: ", name, ' ', tensor.shape());
    } else if (!(found->second.shape() == tensor.shape())) {
      problems += str("\n  shape of ", name, ": the module has ", tensor.shape(), ", the state ",
                      found->second.shape());
    }
  }
  for (const auto& [name, tensor] : state) {
    if (options.strict && !own.contains(name)) problems += str("\n  unexpected: ", name);
  }
  if (!problems.empty()) {
    throw InvalidArgument(str("[load_state_dict] the state does not fit the module:", problems,
                              "\nnothing was loaded; load the matching file, or pass "
                              "{.strict = false} to skip names"));
  }
  const NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) {
    const auto found = state.find(name);
    if (found != state.end()) tensor.copy_(found->second);
  }
}

void ModuleBase::train(bool on) {
  for (auto& [name, module] : named_modules())
    module.state_->is_training = on;
}

bool ModuleBase::is_training() const {
  return state_->is_training;
}

void ModuleBase::zero_grad() {
  for (const Tensor& parameter : parameters())
    parameter.set_grad(Tensor());
}

void ModuleBase::to(DType dtype) {
  if (!is_floating(dtype)) {
    throw InvalidArgument(str("[to] a module's dtype is a floating one; got ", dtype));
  }
  const NoGradGuard no_grad;
  for (const NamedTensors& tensors : {named_parameters(), named_buffers()}) {
    for (const auto& [name, tensor] : tensors) {
      if (is_floating(tensor.dtype())) tensor.set_data(cast(tensor, dtype));
    }
  }
}

ModuleBase::CallScope::CallScope(const ModuleBase& module, Site site) {
  ThreadState& state = thread_state();
  outer_site_ = state.scope_site;
  outer_path_ = std::exchange(state.module_path, &module.state_->path);
  if (site.is_known() && !site.is_inside_library()) state.scope_site = site;
}

ModuleBase::CallScope::~CallScope() {
  ThreadState& state = thread_state();
  state.scope_site = outer_site_;
  state.module_path = outer_path_;
}

}  // namespace flow::nn
