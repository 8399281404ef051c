// Look-up of modules by path, replacement of modules, hooks, and modules as text.
#include <algorithm>
#include <memory>
#include <utility>

#include "autograd/node.h"
#include "core/error.h"
#include "nn/module_reads.h"
#include "nn/module_state.h"
#include "ops/shape/view.h"

namespace flow::nn {

namespace {
// Splits "a.b.c" into "a.b" and "c".
std::pair<std::string_view, std::string_view> split_last(std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

template <class Entry>
const Entry* find_named(const std::vector<Entry>& entries, std::string_view name) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.first == name; });
  return found == entries.end() ? nullptr : &*found;
}

[[noreturn]] void throw_missing(std::string_view kind, std::string_view path,
                                std::string_view name) {
  throw InvalidArgument(
      str("[module] there is no ", kind, " '", path, "': '", name,
          "' is not registered; use a name that named_modules() or named_parameters() lists"));
}
}  // namespace

ModuleBase ModuleBase::get_submodule(std::string_view path, Site site) const {
  const SiteScope scope(site);
  ModuleBase at = *this;
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find('.'));
    const auto* child = find_named(at.live_state().children, name);
    if (child == nullptr) throw_missing("sub-module", path, name);
    at = ModuleBase(child->second);
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
  }
  return at;
}

Tensor ModuleBase::get_parameter(std::string_view path, Site site) const {
  const SiteScope scope(site);
  const auto [parent, name] = split_last(path);
  const ModuleBase module = get_submodule(parent);
  const auto* found = find_named(module.live_state().parameters, name);
  if (found == nullptr) throw_missing("parameter", path, name);
  return found->second;
}

Tensor ModuleBase::get_buffer(std::string_view path, Site site) const {
  const SiteScope scope(site);
  const auto [parent, name] = split_last(path);
  const ModuleBase module = get_submodule(parent);
  const auto* found = find_named(module.live_state().buffers, name);
  if (found == nullptr) throw_missing("buffer", path, name);
  return found->second;
}

bool ModuleBase::check_replacement(std::string_view path, const std::type_info& type,
                                   bool maps_tensors) const {
  const auto [parent, name] = split_last(path);
  const ModuleBase module = get_submodule(parent);
  const State& state = module.live_state();
  const auto* child = find_named(state.children, name);
  if (child == nullptr) throw_missing("sub-module", path, name);
  const auto i = static_cast<size_t>(child - state.children.data());
  const std::type_info& member = *state.child_types[i];
  const bool is_any = member == typeid(AnyModule);
  if (member == type || (is_any && maps_tensors)) return is_any;
  throw InvalidArgument(
      str("[replace_module] '", path, "' is a ", readable(member), " and cannot become a ",
          readable(type),
          "; give a module of the member's type, or register the member as an AnyModule, which "
          "accepts every module that maps a tensor to a tensor"));
}

void ModuleBase::put_replacement(std::string_view path, const internal::ModuleObject& module) {
  const auto [parent, name] = split_last(path);
  const ModuleBase owner = get_submodule(parent);
  auto& children = owner.live_state().children;
  auto& child = children[static_cast<size_t>(find_named(children, name) - children.data())];
  State& old = child.second.live_state();
  for (const auto& [inner, descendant] : module->named_modules()) {
    if (&descendant.live_state() == &old) {
      throw InvalidArgument(str("[replace_module] the replacement of '", path,
                                "' contains the module that it replaces, as '", inner,
                                "'; build it from a copy of that module"));
    }
  }
  const std::string& prefix = *old.path;
  for (auto& [inner, descendant] : module->named_modules())
    descendant.live_state().path = interned_path(join_path(prefix, inner));
  // Handles of modules that `old` has replaced will lead to the new one directly, so that `old` can
  // end.
  std::vector<std::weak_ptr<State>>& replaced = owner.live_state().replaced;
  std::erase_if(replaced, [](const std::weak_ptr<State>& state) { return state.expired(); });
  replaced.push_back(child.second.state_);
  std::vector<std::shared_ptr<State>> earlier;
  for (const std::weak_ptr<State>& candidate : replaced) {
    auto state = candidate.lock();
    const internal::ModuleObject& next = state->replacement;
    if (next && next->state_.get() == &old && next.type() == module.type())
      earlier.push_back(std::move(state));
  }
  child.second = *module;
  old.replacement = module;
  for (const std::shared_ptr<State>& state : earlier)
    state->replacement = module;
  owner.note_registration();
}

ModuleBase* ModuleBase::replacement(const std::type_info& type) const {
  ModuleBase* found = nullptr;
  for (const State* state = state_.get(); state->replacement;
       state = state->replacement->state_.get()) {
    if (state->replacement.type() != type) break;
    found = &*state->replacement;
  }
  return found;
}

void AnyModule::refuse_type(const std::type_info& type, const std::type_info& wanted, Site site) {
  throw InvalidArgument(str("[as] the module is a ", readable(type), ", not a ", readable(wanted),
                            "; ask for the type it was made as"),
                        site);
}

int64_t ModuleBase::register_forward_pre_hook(ForwardPreHook hook) {
  return live_state().add("register_forward_pre_hook", {.before = std::move(hook)});
}

int64_t ModuleBase::register_forward_hook(ForwardHook hook) {
  return live_state().add("register_forward_hook", {.after = std::move(hook)});
}

int64_t ModuleBase::register_full_backward_pre_hook(FullBackwardPreHook hook) {
  return live_state().add("register_full_backward_pre_hook", {.before_backward = std::move(hook)});
}

int64_t ModuleBase::register_full_backward_hook(FullBackwardHook hook) {
  return live_state().add("register_full_backward_hook", {.after_backward = std::move(hook)});
}

void ModuleBase::remove_hook(int64_t number) {
  std::erase_if(live_state().hooks, [&](const State::Hook& hook) { return hook.number == number; });
  note_module_change();
}

bool ModuleBase::has_hooks() const {
  return !state_->hooks.empty();
}

bool ModuleBase::has_backward_hooks() const {
  return std::any_of(state_->hooks.begin(), state_->hooks.end(), [](const State::Hook& hook) {
    return hook.before_backward || hook.after_backward;
  });
}

bool ModuleBase::has_graph_options() const {
  const State& state = live_state();
  return state.recomputes || state.stage_placement.defined() || recomputes_blocks();
}

Tensor ModuleBase::run_pre_hooks(const Tensor& x) {
  Tensor input = x;
  const auto hooks = state_->hooks;  // a hook may remove itself
  for (const State::Hook& hook : hooks) {
    if (!hook.before) continue;
    if (Tensor changed = hook.before(*this, input); changed.defined()) input = std::move(changed);
  }
  // A separate tensor for this call, so that its gradient comes from this call alone.
  const bool is_watched = has_backward_hooks() && input.requires_grad();
  return is_watched ? reshape(input, input.shape()) : input;
}

Tensor ModuleBase::run_hooks(const Tensor& x, Tensor y) {
  const auto hooks = state_->hooks;
  for (const State::Hook& hook : hooks) {
    if (!hook.after) continue;
    if (Tensor changed = hook.after(*this, x, y); changed.defined()) y = std::move(changed);
  }
  return watch_backward(x, y);
}

Tensor ModuleBase::watch_backward(const Tensor& x, const Tensor& y) {
  if (!has_backward_hooks()) return y;
  const bool reaches_x = x.requires_grad() && !x.is_leaf();  // true if run_pre_hooks made it
  if (y.defined() && !y.requires_grad()) return y;
  const auto seen_dy = std::make_shared<Tensor>();
  if (reaches_x) {
    x.register_hook([self = *this, seen_dy](const Tensor& dx) mutable {
      return self.run_backward_hooks(dx, std::exchange(*seen_dy, Tensor()));
    });
  }
  if (!y.defined()) return y;
  Tensor result = reshape(y, y.shape());
  result.register_hook([self = *this, seen_dy, reaches_x](const Tensor& dy) mutable {
    Tensor changed = self.run_backward_pre_hooks(dy);
    if (reaches_x) {
      *seen_dy = changed;
    } else {
      self.run_backward_hooks(Tensor(), changed);
    }
    return changed;
  });
  return result;
}

Tensor ModuleBase::run_backward_pre_hooks(const Tensor& dy) {
  Tensor gradient = dy;
  const auto hooks = state_->hooks;
  for (const State::Hook& hook : hooks) {
    if (!hook.before_backward) continue;
    Tensor changed = hook.before_backward(*this, gradient);
    if (changed.defined()) gradient = std::move(changed);
  }
  return gradient;
}

Tensor ModuleBase::run_backward_hooks(const Tensor& dx, const Tensor& dy) {
  Tensor gradient = dx;
  const auto hooks = state_->hooks;
  for (const State::Hook& hook : hooks) {
    if (!hook.after_backward) continue;
    Tensor changed = hook.after_backward(*this, gradient, dy);
    if (changed.defined()) gradient = std::move(changed);
  }
  return gradient;
}

void ModuleBase::join_in_files(std::string_view name, std::vector<std::string> parts) {
  live_state().joined.push_back({std::string(name), std::move(parts)});
}

namespace {

// Puts two spaces before each line but the first.
std::string indented(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "  ";
  }
  return result;
}

// "flow::nn::ModuleList<flow::nn::Linear>" → "ModuleList".
std::string short_name(const std::type_info& type) {
  const std::string full = readable(type);
  size_t begin = 0, end = full.size();
  int depth = 0;
  for (size_t i = 0; i < full.size(); ++i) {
    const char c = full[i];
    if (c == '<' && depth == 0) end = i;
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
    if (depth == 0 && c == ':' && i + 1 < full.size() && full[i + 1] == ':') {
      begin = i + 2;
      end = full.size();
    }
  }
  return full.substr(begin, end - begin);
}

// The lines of the elements of a ModuleList: equal elements that follow each other share one.
std::vector<std::string> list_lines(const NamedModules& elements) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < elements.size();) {
    const std::string text = elements[i].second.repr();
    size_t last = i;
    while (last + 1 < elements.size() && elements[last + 1].second.repr() == text)
      ++last;
    lines.push_back(last == i ? str("(", i, "): ", text)
                              : str("(", i, "-", last, "): ", last - i + 1, " x ", text));
    i = last + 1;
  }
  return lines;
}

}  // namespace

void ModuleBase::set_extra_repr(std::string text) {
  live_state().extra_repr = std::move(text);
}

std::string ModuleBase::repr() const {
  const State& state = live_state();
  std::string name = state.type == nullptr ? "Module" : short_name(*state.type);
  const bool is_list = name == "ModuleList";
  if (!state.computed.empty()) name = "Parametrized" + name;
  std::vector<std::string> lines;
  if (is_list) {
    lines = list_lines(state.children);
  } else {
    for (const auto& [child, module] : state.children)
      lines.push_back(str("(", child, "): ", module.repr()));
  }
  const std::string& extra = state.extra_repr;
  if (lines.empty() && extra.find('\n') == std::string::npos) return name + "(" + extra + ")";
  std::string text = name + "(\n";
  if (!extra.empty()) text += "  " + indented(extra) + "\n";
  for (const std::string& line : lines)
    text += "  " + indented(line) + "\n";
  return text + ")";
}

}  // namespace flow::nn
