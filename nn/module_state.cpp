#include "nn/module_state.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <set>

#include <cxxabi.h>

#include "autograd/tensor_autograd.h"
#include "core/context.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "nn/layout.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"

namespace flow::nn {

std::string join_path(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : name.empty() ? prefix : prefix + "." + name;
}

std::string readable(const std::type_info& type) {
  int status = 0;
  char* name = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string text = status == 0 ? name : type.name();
  std::free(name);
  return text;
}

const std::string* interned_path(const std::string& path) {
  static std::mutex mutex;
  // Guarded by mutex; never destroyed, so that static tensors may refer to it.
  static auto& paths = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return &*paths.insert(path).first;
}

int64_t ModuleBase::State::add(const char* function, Hook hook) {
  hook.number = autograd::id_of_new_hook(function, hook.is_empty());
  hooks.push_back(std::move(hook));
  note_module_change();
  return hooks.back().number;
}

// A module may be made before its thread calls flow: no stream has been drawn then.
ModuleBase::State::State() {
  constinit static thread_local uint64_t num_made = 0;
  num_made_before = num_made++;
  if (const ThreadState* thread = flow::internal::current_thread_state) {
    first_stream = thread->context->generator().state().next_stream;
  }
}

void ModuleBase::State::CheckedObjects::replace(CheckedObject object) {
  const std::lock_guard lock(mutex_);
  std::erase_if(objects_, [&](const CheckedObject& known) { return known.type == object.type; });
  objects_.push_back(std::move(object));
}

// The owner is the state, or, of a parameter with several, a pointer that lives as long as the
// state of the last one but differs from each.
void ModuleBase::State::own(const Tensor& parameter) {
  std::weak_ptr<const void>& owner = autograd::make_autograd(parameter.impl()).owner;
  const std::shared_ptr<const void> present = owner.lock();
  const bool is_shared = present != nullptr && present.get() != this;
  owner = std::shared_ptr<const void>(shared_from_this(),
                                      is_shared ? static_cast<const void*>(&parameters) : this);
}

bool ModuleBase::State::owns_alone(const Tensor& parameter) const {
  const auto num_names = std::count_if(parameters.begin(), parameters.end(), [&](const auto& own) {
    return own.second.is_same(parameter);
  });
  return num_names == 1 && autograd::make_autograd(parameter.impl()).owner.lock().get() == this;
}

Substitution::Pairs ModuleBase::State::compute_members() const {
  Substitution::Pairs pairs;
  const bool keeps_values = thread_state().trace == nullptr && !Substitution::is_active();
  for (const Computed& one : computed) {
    const Tensor value = one.compute(*one.list);
    if (!(value.shape() == one.member.shape())) {
      throw InvalidArgument(str("[parametrize] the parametrization of '", one.name,
                                "' must keep its shape; received ", value.shape(), " for ",
                                one.member.shape(),
                                "; let its modules return a tensor of the "
                                "shape that the layer was made with"));
    }
    if (keeps_values) one.member.set_data(value.detach());
    pairs.emplace_back(one.member, value);
  }
  return pairs;
}

void ModuleBase::State::add_held(std::set<const TensorImpl*>& parameters_found) const {
  for (const auto& [name, parameter] : parameters)
    parameters_found.insert(&parameter.impl());
  for (const auto& [name, child] : children)
    child.live_state().add_held(parameters_found);
  for (const std::weak_ptr<State>& old : replaced) {
    if (const auto state = old.lock()) state->add_held(parameters_found);
  }
}

ModuleBase::State::Form ModuleBase::State::form() const {
  Form form{.state = this,
            .num_registrations = num_registrations,
            .stage = stage,
            .stage_placement = stage_placement,
            .recomputes = recomputes};
  for (const Hook& hook : hooks)
    form.hooks.push_back(hook.number);
  return form;
}

namespace {
const Tensor& find_part(const StateDict& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    throw InvalidArgument(str("[module] '", name,
                              "' cannot be joined in files: no tensor of this name is registered; "
                              "register the parts first"));
  }
  return found->second;
}

// A state may lack how many batches a batch norm has seen, as PyTorch's did before 0.4.1; the
// number stays then.
bool is_optional(const std::string& name, const StateDict& own) {
  constexpr std::string_view kCount = "num_batches_tracked";
  if (!name.ends_with(kCount)) return false;
  return own.contains(name.substr(0, name.size() - kCount.size()) + "running_mean");
}
}  // namespace

// The module's persistent tensors by name, sharing memory.
StateDict ModuleBase::persistent_tensors() const {
  StateDict tensors;
  for (const auto& [name, tensor] : named_parameters())
    tensors.emplace(name, tensor.detach());
  std::set<std::string> transient;
  for (const auto& [prefix, module] : named_modules()) {
    for (const std::string& name : module.live_state().transient)
      transient.insert(join_path(prefix, name));
  }
  for (const auto& [name, tensor] : named_buffers()) {
    if (!transient.contains(name)) tensors.emplace(name, tensor.detach());
  }
  return tensors;
}

// The further names of tensors that are registered more than once, as far as `wanted` has them.
void ModuleBase::add_other_names(const std::string& prefix, const StateDict& wanted,
                                 StateDict& tensors) const {
  const State& state = live_state();
  for (const NamedTensors* own : {&state.parameters, &state.buffers}) {
    for (const auto& [name, tensor] : *own) {
      const std::string path = join_path(prefix, name);
      if (state.transient.contains(name) || !wanted.contains(path)) continue;
      tensors.emplace(path, tensor.detach());
    }
  }
  for (const auto& [name, child] : state.children)
    child.add_other_names(join_path(prefix, name), wanted, tensors);
}

// Names in files, and the names of the parts that they join.
std::vector<std::pair<std::string, std::vector<std::string>>> ModuleBase::joined_names() const {
  std::vector<std::pair<std::string, std::vector<std::string>>> all;
  for (const auto& [prefix, module] : named_modules()) {
    for (const State::Joined& joined : module.live_state().joined) {
      auto& [name, parts] =
          all.emplace_back(join_path(prefix, joined.name), std::vector<std::string>());
      for (const std::string& part : joined.parts)
        parts.push_back(join_path(prefix, part));
    }
  }
  return all;
}

StateDict ModuleBase::state_dict() const {
  const NoGradGuard no_grad;
  StateDict tensors = persistent_tensors();
  for (const auto& [name, parts] : joined_names()) {
    std::vector<Tensor> pieces;
    for (const std::string& part : parts) {
      pieces.push_back(find_part(tensors, part));
      tensors.erase(part);
    }
    Tensor whole = cat(pieces, 0);
    if (whole.is_global()) {  // cat of pieces that are split along dim 0 would leave a partial sum
      whole = whole.to_global({.sbp = pieces[0].sbp()});
    }
    tensors.emplace(name, whole);
  }
  return tensors;
}

LoadResult ModuleBase::load_state_dict(const StateDict& state, LoadOptions options, Site site) {
  const SiteScope scope(site);
  const NoGradGuard no_grad;
  StateDict own = persistent_tensors();
  StateDict given = state;
  std::string problems;
  LoadResult result;
  for (const auto& [name, parts] : joined_names()) {
    const auto found = given.find(name);
    if (found == given.end()) continue;
    const Tensor whole = found->second;
    given.erase(name);
    std::vector<int64_t> sizes;
    Shape expected = find_part(own, parts[0]).shape();
    expected[0] = 0;
    for (const std::string& part : parts) {
      sizes.push_back(find_part(own, part).size(0));
      expected[0] += sizes.back();
    }
    if (!(whole.shape() == expected)) {
      problems += str("\n  shape of ", name, ": the module has ", expected, ", the state has ",
                      whole.shape());
      for (const std::string& part : parts)
        own.erase(part);
      continue;
    }
    const std::vector<Tensor> pieces = split(whole, sizes, 0);
    for (size_t i = 0; i < parts.size(); ++i)
      given.emplace(parts[i], pieces[i]);
  }
  add_other_names("", given, own);
  for (const auto& [name, tensor] : own) {
    const auto found = given.find(name);
    if (found == given.end() && is_optional(name, own)) continue;
    if (found == given.end()) {
      result.missing_keys.push_back(name);
      if (options.strict) problems += str("\n  missing: ", name, ' ', tensor.shape());
    } else if (!(found->second.shape() == tensor.shape())) {
      problems += str("\n  shape of ", name, ": the module has ", tensor.shape(),
                      ", the state has ", found->second.shape());
    } else if (found->second.is_global() && !tensor.is_global()) {
      problems +=
          str("\n  layout of ", name, ": the module's tensor is local, the state's is global, ",
              found->second.placement(), ' ', found->second.sbp(),
              "; lay out the module with to_global first, or load full() of the tensor");
    }
  }
  for (const auto& [name, tensor] : given) {
    if (own.contains(name)) continue;
    result.unexpected_keys.push_back(name);
    if (options.strict) problems += str("\n  unexpected: ", name);
  }
  if (!problems.empty()) {
    throw InvalidArgument(str("[load_state_dict] the state does not fit the module:", problems,
                              "\nnothing was loaded; load the matching file, or pass "
                              "{.strict = false} to skip names"));
  }
  for (const auto& [name, tensor] : own) {
    const auto found = given.find(name);
    if (found == given.end()) continue;
    tensor.copy_(with_layout_of(found->second, tensor, Site::here()));
  }
  return result;
}

}  // namespace flow::nn
