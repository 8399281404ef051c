#include "nn/module.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "autograd/leaves.h"
#include "autograd/tensor_autograd.h"
#include "core/calls/deep_copy.h"
#include "core/calls/substitution.h"
#include "core/context.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/log.h"
#include "nn/init.h"
#include "nn/module_reads.h"
#include "nn/module_state.h"
#include "ops/elementwise/cast.h"

namespace flow::nn {

namespace {

using autograd::count_leaf_handles;
using autograd::LeafHandles;

// While it exists, looks at modules are no reads of a recorded program.
class UnrecordedLook {
 public:
  UnrecordedLook() : recorder_(std::exchange(internal::module_recorder, nullptr)) {}

  ~UnrecordedLook() { internal::module_recorder = recorder_; }

  UnrecordedLook(const UnrecordedLook&) = delete;
  UnrecordedLook& operator=(const UnrecordedLook&) = delete;

 private:
  CalledModules* recorder_;
};

// The number of handles of a leaf; 0 if it is not among them.
uint32_t count_of(const TensorImpl* leaf, const std::vector<LeafHandles>& handles) {
  const auto found = std::lower_bound(
      handles.begin(), handles.end(), leaf,
      [](const LeafHandles& entry, const TensorImpl* wanted) { return entry.leaf < wanted; });
  return found != handles.end() && found->leaf == leaf ? found->count : 0;
}

// The pointer that an object has among its bytes.
const void* pointer_at(const void* object, size_t offset) {
  const void* pointer = nullptr;
  std::memcpy(&pointer, static_cast<const std::byte*>(object) + offset, sizeof(pointer));
  return pointer;
}

Tensor tensor_of(const TensorImpl* leaf) {
  return Tensor(Ref<TensorImpl>(const_cast<TensorImpl*>(leaf)));
}

// The streams from `begin` to `end` were drawn while a module was made.
struct MadeModule {
  const ModuleBase* module;
  uint64_t first_made;
  uint64_t last_made;
  uint64_t begin;
  uint64_t end = 0;
};

}  // namespace

ModuleBase::ModuleBase() : state_(std::make_shared<State>()) {}

ModuleBase::ModuleBase(const std::type_info& type) : ModuleBase() {
  state_->type = &type;
}

struct ModuleBase::CloneScope::Copies {
  ~Copies() { current = nullptr; }

  // Makes room for copies of the states that a handle of this state leads to: its own, and those of
  // the modules that replaced it.
  void add_states(const State* state);
  // Makes the copies of a module's tensors.
  void add_tensors(const State& state, Site site);
  // From now on handles become handles of copies. The paths of the copies begin below `outer`.
  void fill_states(const std::string& outer);

  std::map<const State*, std::shared_ptr<State>> states;
  std::map<TensorImpl*, Tensor> tensors;
  std::map<const void*, std::shared_ptr<void>> objects;
  std::optional<DeepCopy> handles;
  inline static constinit thread_local Copies* current = nullptr;
};

ModuleBase::ModuleBase(const ModuleBase& other) : state_(other.state_) {
  const CloneScope::Copies* copies = CloneScope::Copies::current;
  if (copies == nullptr) [[likely]]
    return;
  const auto found = copies->states.find(state_.get());
  if (found != copies->states.end()) state_ = found->second;
}

std::shared_ptr<void> ModuleBase::copy_object(const std::shared_ptr<void>& object,
                                              const std::function<std::shared_ptr<void>()>& make) {
  if (CloneScope::Copies::current == nullptr) return object;
  std::shared_ptr<void>& copy = CloneScope::Copies::current->objects[object.get()];
  if (copy == nullptr) copy = make();
  return copy;
}

void ModuleBase::CloneScope::Copies::add_states(const State* state) {
  for (;; state = state->replacement->state_.get()) {
    std::shared_ptr<State>& copy = states[state];
    if (copy == nullptr) copy = std::make_shared<State>();
    if (!state->replacement) return;
  }
}

void ModuleBase::CloneScope::Copies::add_tensors(const State& state, Site site) {
  const auto add = [&](const Tensor& tensor) {
    Tensor& copy = tensors[&tensor.impl()];
    if (copy.defined()) return;
    copy = tensor.detach().clone(site);
    if (tensor.requires_grad()) copy.requires_grad_();
  };
  for (const NamedTensors* list : {&state.parameters, &state.buffers}) {
    for (const auto& [name, tensor] : *list)
      add(tensor);
  }
  for (const State::Computed& one : state.computed)
    add(one.member);
}

void ModuleBase::CloneScope::Copies::fill_states(const std::string& outer) {
  DeepCopy::Pairs pairs;
  for (const auto& [tensor, copy] : tensors)
    pairs.emplace_back(Ref<TensorImpl>(tensor), Ref<TensorImpl>(&copy.impl()));
  handles.emplace(std::move(pairs));
  current = this;
  for (const auto& [state, copy] : states) {
    *copy = State(*state);
    std::string path = state->path->substr(std::min(outer.size(), state->path->size()));
    if (path.starts_with('.')) path.erase(0, 1);
    copy->path = interned_path(path);
    for (State::Computed& one : copy->computed)
      one.list = one.list.copy();
    for (std::weak_ptr<State>& replaced : copy->replaced) {
      const auto found = states.find(replaced.lock().get());
      replaced = found == states.end() ? std::shared_ptr<State>() : found->second;
    }
    if (copy->replacement) {  // its own tensors are not in use, so they are shared
      copy->replacement = copy->replacement.copy();
      continue;
    }
    for (const auto& [name, parameter] : copy->parameters)
      copy->own(parameter);
  }
}

ModuleBase::CloneScope::CloneScope(const ModuleBase& root, Site site)
    : copies_(std::make_unique<Copies>()) {
  if (thread_state().trace != nullptr) {
    throw Unsupported("[clone] a module cannot be cloned in build() of a graph; clone it before",
                      site);
  }
  const UnrecordedLook unrecorded;
  const NoGradGuard no_grad;
  for (const auto& [path, module] : root.named_modules()) {
    copies_->add_states(module.state_.get());
    const State& state = module.live_state();
    for (const std::weak_ptr<State>& replaced : state.replaced) {
      if (const auto old = replaced.lock()) copies_->add_states(old.get());
    }
    copies_->add_tensors(state, site);
  }
  copies_->fill_states(*root.live_state().path);
  note_module_change();
}

ModuleBase::CloneScope::~CloneScope() = default;

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

Tensor ModuleBase::register_parameter(std::string_view name, const Tensor& value, Site site) {
  const SiteScope scope(site);
  check_new_name(name);
  if (!value.defined()) return value;
  if (!value.is_leaf()) {
    throw InvalidArgument(str("[module] parameter '", name, "', ", value.meta(),
                              ", is the result of a recorded op, which no optimizer trains; give a "
                              "leaf, for example x.detach(), or compute it in forward()"));
  }
  value.requires_grad_();
  live_state().own(value);
  live_state().parameters.emplace_back(name, value);
  note_registration();
  return value;
}

Tensor ModuleBase::register_buffer(std::string_view name, const Tensor& value, bool persistent,
                                   Site site) {
  const SiteScope scope(site);
  check_new_name(name);
  if (value.defined()) live_state().buffers.emplace_back(name, value);
  note_registration();
  if (!persistent) live_state().transient.emplace(name);
  return value;
}

void ModuleBase::add_child(std::string_view name, const ModuleBase& module,
                           const std::type_info& type) {
  check_new_name(name);
  const NamedModules descendants = module.named_modules();
  for (const auto& [inner, descendant] : descendants) {
    if (&descendant.live_state() != &live_state()) continue;
    throw InvalidArgument(str("[module] '", name, "' is or contains the module that registers it; ",
                              "register a module of its own, such as clone() makes"));
  }
  live_state().children.emplace_back(name, module);
  live_state().child_types.push_back(&type);
  note_registration();
  // Modules are registered from the inside out, so paths grow at the front.
  for (const auto& [inner, descendant] : descendants) {
    descendant.live_state().path =
        interned_path(join_path(*live_state().path, join_path(std::string(name), inner)));
  }
}

const NamedTensors& ModuleBase::own_parameters() const {
  return live_state().parameters;
}

const NamedTensors& ModuleBase::own_buffers() const {
  return live_state().buffers;
}

const NamedModules& ModuleBase::children() const {
  return live_state().children;
}

NamedModules ModuleBase::named_modules() const {
  NamedModules all;
  std::set<const State*> seen;
  const auto add = [&](const auto& add_inner, const std::string& name,
                       const ModuleBase& module) -> void {
    const State& state = module.live_state();
    if (!seen.insert(&state).second) return;
    all.emplace_back(name, module);
    for (const auto& [child_name, child] : state.children)
      add_inner(add_inner, join_path(name, child_name), child);
  };
  add(add, "", *this);
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

void ModuleBase::to(DType dtype, Site site) {
  const SiteScope scope(site);
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
      if (moved.is_same(tensor)) continue;
      const Tensor grad = tensor.grad();
      tensor.set_data(moved);
      if (grad.defined()) tensor.set_grad(grad.to(device, site));
    }
  }
}

void ModuleBase::note_called(size_t bytes) const {
  if (internal::module_recorder != nullptr) [[unlikely]]
    internal::module_recorder->note_call(*this, bytes);
}

ModuleBase::CallScope::CallScope(const ModuleBase& module, const ObjectType& type, Site site)
    : state_(thread_state()), scope_(site) {
  module.note_called(type.bytes);
  State& own = module.live_state();
  if (!module.is_checked(type)) [[unlikely]] {
    module.check_members(type, site);
    module.note_checked(type);
  }
  if (!own.computed.empty()) [[unlikely]]
    computed_ = std::make_unique<const Substitution>(own.compute_members());
  outer_stage_ = state_.stage;
  if (own.stage >= 0) state_.stage = own.stage;
  outer_path_ = std::exchange(state_.module_path, own.path);
}

ModuleBase::CallScope::~CallScope() {
  state_.module_path = outer_path_;
  state_.stage = outer_stage_;
}

bool ModuleBase::is_checked(const ObjectType& type) const {
  if (state_->replacement) return true;  // this object is not the one that runs
  return state_->checked.has(type.with_copy, [&](const State::CheckedObject& known) {
    return known.num_registrations == state_->num_registrations &&
           std::all_of(known.pointers.begin(), known.pointers.end(), [&](const auto& pointer) {
             return pointer_at(this, pointer.first) == pointer.second;
           });
  });
}

void ModuleBase::note_checked(const ObjectType& type) const {
  const UnrecordedLook unrecorded;
  std::set<const void*> registered;
  for (const auto& [name, parameter] : named_parameters())
    registered.insert(&parameter.impl());
  for (const auto& [path, module] : named_modules()) {
    if (!path.empty()) registered.insert(module.state_.get());
  }
  State::CheckedObject found{type.with_copy, state_->num_registrations, {}};
  for (size_t offset = 0; offset + sizeof(void*) <= type.bytes; offset += alignof(void*)) {
    const void* pointer = pointer_at(this, offset);
    if (registered.contains(pointer)) found.pointers.emplace_back(offset, pointer);
  }
  state_->checked.replace(std::move(found));
}

// What an object holds shows in the numbers of handles: they grow by the same amount with each copy
// of the object, and shrink again. So tensors in containers and in members of members are found
// too.
void ModuleBase::check_members(const ObjectType& type, Site site) const {
  const UnrecordedLook unrecorded;
  std::vector<LeafHandles> without = count_leaf_handles(), with_one, with_two;
  type.with_copy(*this, [&] { with_one = count_leaf_handles(); });
  std::set<const TensorImpl*> registered, held;
  live_state().add_held(registered);
  for (const auto& [leaf, count] : without) {
    if (count_of(leaf, with_one) > count) held.insert(leaf);
  }
  if (std::includes(registered.begin(), registered.end(), held.begin(), held.end()))
    return warn_of_lost_members(type, held, site);

  // A second look, to be sure: another thread may have copied a handle just now.
  without = count_leaf_handles();
  type.with_copy(*this, [&] {
    with_one = count_leaf_handles();
    type.with_copy(*this, [&] { with_two = count_leaf_handles(); });
  });
  const std::vector<LeafHandles> after = count_leaf_handles();
  for (const auto& [leaf, count] : without) {
    if (!held.contains(leaf) || registered.contains(leaf)) continue;
    const uint32_t one = count_of(leaf, with_one), two = count_of(leaf, with_two);
    if (one <= count || two - one != one - count || count_of(leaf, after) != count) continue;
    refuse_member(type, tensor_of(leaf), held, site);
  }
}

void ModuleBase::warn_of_lost_members(const ObjectType& type,
                                      const std::set<const TensorImpl*>& held, Site site) const {
  const State& state = live_state();
  for (const auto& [name, parameter] : state.parameters) {
    const TensorImpl* leaf = &parameter.impl();
    if (held.contains(leaf)) continue;
    const uint32_t without = count_of(leaf, count_leaf_handles());
    if (without == 0) continue;
    uint32_t with_one = 0;
    type.with_copy(*this, [&] { with_one = count_of(leaf, count_leaf_handles()); });
    if (with_one > without) continue;  // another thread dropped a handle at the first look
    warn_at(site,
            str("[module] the module object holds no handle of its parameter '",
                join_path(*state.path, name),
                "'. If another tensor was assigned to the member, calls use that tensor and the "
                "optimizer trains a parameter without effect; copy values into the member with "
                "copy_() under NoGradGuard"));
  }
}

void ModuleBase::refuse_member(const ObjectType& type, const Tensor& member,
                               const std::set<const TensorImpl*>& held, Site site) const {
  const State& state = live_state();
  const std::string who = state.path->empty() ? "this module" : str("module '", *state.path, "'");
  for (const auto& [name, parameter] : state.parameters) {
    if (held.contains(&parameter.impl()) || !(parameter.shape() == member.shape())) continue;
    throw InvalidArgument(
        str("[module] the parameter '", name, "' of ", who, " was assigned another tensor, ",
            member.meta(),
            ", so the registered parameter is trained but not used; tie the two with "
            "tie(a, b) of a module that contains both, or copy values with copy_() under "
            "NoGradGuard"),
        site);
  }
  const std::weak_ptr<const void>& owner = autograd::make_autograd(member.impl()).owner;
  const long without = owner.use_count();
  long with_one = 0;
  type.with_copy(*this, [&] { with_one = owner.use_count(); });
  if (without > 0 && with_one > without) {
    throw InvalidArgument(
        str("[module] ", who, " has a member module with the parameter ", member.meta(),
            " that is not registered, so parameters() does not list it and no optimizer trains it; "
            "make the member from the result of register_module(name, module), or exchange a "
            "registered one with replace_module(name, module)"),
        site);
  }
  if (without > 0) return;  // a parameter that another module owns and trains
  throw InvalidArgument(
      str("[module] ", who, " has a member tensor ", member.meta(),
          " that requires grad and is not registered, so parameters() does not list it and no "
          "optimizer trains it; make the member from the result of register_parameter(name, "
          "tensor), or detach() it if it is a constant"),
      site);
}

void ModuleBase::tie(Tensor& a, const Tensor& b, Site site) {
  if (!a.defined() || !b.defined() || !(a.shape() == b.shape()) || a.dtype() != b.dtype()) {
    const auto text = [](const Tensor& t) { return t.defined() ? str(t.meta()) : "undefined"; };
    throw InvalidArgument(str("[tie] tied parameters have one shape and dtype; received ", text(a),
                              " and ", text(b), "; make the two layers of equal sizes"),
                          site);
  }
  const NamedModules modules = named_modules();
  for (const auto& [path, module] : modules) {
    for (const State::Computed& one : module.live_state().computed) {
      if (!one.member.is_same(b)) continue;
      throw InvalidArgument(str("[tie] the parameter '", join_path(path, one.name),
                                "' is parametrized, so it is computed at each call and not "
                                "trained; call remove_parametrizations(module, \"",
                                one.name, "\") first"),
                            site);
    }
  }
  bool is_found = false;
  for (const auto& [path, module] : modules) {
    for (auto& [name, parameter] : module.live_state().parameters) {
      if (!parameter.is_same(a)) continue;
      parameter = b;
      module.live_state().own(b);
      is_found = true;
      module.note_registration();
    }
  }
  if (!is_found) {
    throw InvalidArgument(str("[tie] the tensor ", a.meta(),
                              " is no parameter of this module or of a module inside it; call tie "
                              "of a module that contains both parameters, after their modules are "
                              "registered"),
                          site);
  }
  b.requires_grad_();
  a = b;
}

void ModuleBase::draw_in_order(const std::vector<const ModuleBase*>& modules) {
  if (thread_state().trace != nullptr) return;
  std::vector<MadeModule> made;
  for (const ModuleBase* module : modules) {
    if (module == nullptr) continue;
    const State& own = module->live_state();
    MadeModule one{module, own.num_made_before, own.num_made_before, own.first_stream};
    for (const auto& [name, inner] : module->named_modules()) {
      const State& state = inner.live_state();
      one.last_made = std::max(one.last_made, state.num_made_before);
      if (state.num_made_before >= one.first_made) continue;
      one.first_made = state.num_made_before;
      one.begin = state.first_stream;
    }
    made.push_back(one);
  }
  const auto was_made_before = [](const MadeModule& a, const MadeModule& b) {
    return a.first_made < b.first_made;
  };
  if (std::is_sorted(made.begin(), made.end(), was_made_before)) return;

  // In the order in which the compiler has made them. Each drew until the next one was begun.
  Generator& generator = thread_state().context->generator();
  const Generator::State end = generator.state();
  std::vector<MadeModule*> order;
  for (MadeModule& one : made)
    order.push_back(&one);
  std::sort(order.begin(), order.end(),
            [&](const MadeModule* a, const MadeModule* b) { return was_made_before(*a, *b); });
  for (size_t i = 0; i < order.size(); ++i) {
    const MadeModule* next = i + 1 < order.size() ? order[i + 1] : nullptr;
    // One that contains an older module was not made as a whole in this call.
    if (next != nullptr && order[i]->last_made > next->first_made) return;
    order[i]->end = next != nullptr ? next->begin : end.next_stream;
    if (order[i]->begin > order[i]->end ||
        !init::internal::are_noted(order[i]->module->parameters(), {end.seed, order[i]->begin},
                                   order[i]->end))
      return;
  }
  uint64_t begin = order.front()->begin;
  for (const MadeModule& one : made) {
    init::internal::draw_again(one.module->parameters(), static_cast<int64_t>(begin - one.begin));
    begin += one.end - one.begin;
  }
  generator.set_state(end);
}

std::ostream& operator<<(std::ostream& out, const ModuleBase& module) {
  return out << module.repr();
}

}  // namespace flow::nn
