// Module: a named tree of parameters, buffers and sub-modules with a forward function. A module is
// a handle: copies share parameters and state.
//
//   struct Mlp : flow::nn::Module<Mlp> {
//     flow::nn::Linear fc1{register_module("fc1", flow::nn::Linear(784, 512))};
//     flow::nn::Linear fc2{register_module("fc2", flow::nn::Linear(512, 10))};
//     flow::Tensor forward(const flow::Tensor& x) { return fc2(flow::relu(fc1(x))); }
//   };
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "autograd/recompute.h"
#include "boxing/redistribute.h"
#include "core/tensor.h"

namespace flow::nn {

using StateDict = std::map<std::string, Tensor>;
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
// Glob patterns of dotted names (`*` and `?` match dots too, `[qkv]` one character) with the layout
// of the tensors they match.
using SbpPatterns = std::vector<std::pair<std::string, NdSbp>>;

struct LoadOptions {
  bool strict = true;  // every name must be there on both sides
};

// What load_state_dict passed over; both are empty when it was strict.
struct LoadResult {
  std::vector<std::string> missing_keys;     // of the module, not in the state
  std::vector<std::string> unexpected_keys;  // of the state, not in the module
};

class ModuleBase;
class AnyModule;
class GraphModule;
using NamedModules = std::vector<std::pair<std::string, ModuleBase>>;

// Called before forward with its first argument, and after it with that and the result, where these
// are tensors. A defined tensor that comes back takes the argument's or the result's place.
using ForwardPreHook = std::function<Tensor(ModuleBase& module, const Tensor& x)>;
using ForwardHook = std::function<Tensor(ModuleBase& module, const Tensor& x, const Tensor& y)>;
// Called in backward, once for each call of the module: with the gradient of its result, before
// those inside are computed; and with that of its first argument when it is known (undefined where
// that records none), beside that of the result. A defined tensor that comes back takes the place
// of the result's, or of the argument's. Where no single tensor is the result, its gradient is
// undefined.
using FullBackwardPreHook = std::function<Tensor(ModuleBase& module, const Tensor& grad_output)>;
using FullBackwardHook =
    std::function<Tensor(ModuleBase& module, const Tensor& grad_input, const Tensor& grad_output)>;

// What every module shares. Plain data members of a module are configuration, constant after
// construction; tensors and sub-modules are registered. Not thread safe.
class ModuleBase {
 public:
  ModuleBase();

  // Of this module and its descendants, with dotted names in order of registration. A tensor that
  // is registered under several names appears once, under the first.
  std::vector<Tensor> parameters() const;
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  // This module (name "") and all descendants.
  NamedModules named_modules() const;
  // Direct sub-modules.
  const NamedModules& children() const;
  // By dotted path ("" is this module); InvalidArgument names the part that is not there.
  ModuleBase get_submodule(std::string_view path) const;
  Tensor get_parameter(std::string_view path) const;
  Tensor get_buffer(std::string_view path) const;

  // Puts `module` in the place of the sub-module at a dotted path, for every handle: calls through
  // handles of the old one reach the new one, but their public tensors stay the old ones. The
  // replacement has the type of the member it was registered as, or that is an AnyModule and the
  // replacement maps a tensor to a tensor; else InvalidArgument names both.
  template <class M>

  requires std::derived_from<M, ModuleBase>

  void replace_module(std::string_view path, M module);

  // Parameters and buffers by name, sharing memory with the module; parts that are joined in files
  // are copies.
  StateDict state_dict() const;
  // Copies values into the parameters and buffers. Throws InvalidArgument, before anything is
  // written, when a shape differs or (strict) a name is missing or unexpected; all are listed.
  LoadResult load_state_dict(const StateDict& state, LoadOptions options = {});

  // Hooks run in order of registration; the number is for remove_hook.
  int64_t register_forward_pre_hook(ForwardPreHook hook);
  int64_t register_forward_hook(ForwardHook hook);
  int64_t register_full_backward_pre_hook(FullBackwardPreHook hook);
  int64_t register_full_backward_hook(FullBackwardHook hook);
  void remove_hook(int64_t number);

  // Training or evaluation mode of this module and all descendants.
  void train(bool on = true);

  void eval() { train(false); }

  bool is_training() const;
  // Whether the parameters record gradients.
  void requires_grad_(bool on = true);
  // Drops the gradients of all parameters.
  void zero_grad();
  // Converts floating parameters, their gradients and floating buffers in place; the handles stay.
  void to(DType dtype);
  // Moves parameters and buffers to "cpu" or "cuda"; Unsupported where this build cannot.
  void to(std::string_view device, Site site = Site::here());
  // How graphs treat the module: model.blocks[1].to<nn::GraphModule>().set_stage(1, placement).
  template <class View>

  requires std::same_as<View, GraphModule> View to() { return View(*this); }

  // Lays every parameter and buffer out on a placement, in place: the handles stay. Of a local
  // module, which every rank holds whole, the values of the placement's first rank count (every
  // rank of the world calls this); a global one is redistributed, gradients along with it. Layouts
  // are split or broadcast. Nothing has changed when InvalidArgument is thrown.
  void to_global(const ToGlobalOptions& options, Site site = Site::here());
  void to_global(const Placement& placement, const NdSbp& sbp, Site site = Site::here());
  // The first pattern that matches a name decides. Throws InvalidArgument for a pattern that
  // matches no name and for a name that no pattern matches.
  //   model.to_global(p, {{"fc?.weight", sbp::split(0)}, {"*", sbp::broadcast}});
  void to_global(const Placement& placement, const SbpPatterns& patterns, Site site = Site::here());
  // A line for each parameter and buffer: name, dtype, shape, layout, bytes on this rank; then the
  // sums.
  std::string layout_table() const;
  // Number of parameter elements.
  int64_t num_parameters() const;

  template <class F>
  requires std::invocable<F&, ModuleBase&>

  void apply(F fn) {
    for (auto& [name, module] : named_modules())
      fn(module);
  }

 protected:
  // Names hold no dot and are unique among the module's tensors and sub-modules. Parameters record
  // gradients. An undefined tensor (a bias left out) is not registered.
  Tensor register_parameter(std::string_view name, const Tensor& value);
  // One that is not persistent is no part of state_dict().
  Tensor register_buffer(std::string_view name, const Tensor& value, bool persistent = true);
  template <class M>

  requires std::derived_from<M, ModuleBase> M register_module(std::string_view name, M module) {
    add_child(name, module, typeid(M));
    return module;
  }

  // state_dict() and files show `parts`, names of this module's tensors relative to it, as one
  // tensor `name`, joined along dim 0.
  void join_in_files(std::string_view name, std::vector<std::string> parts);

  // Makes this another handle of `other`'s parameters, sub-modules and mode.
  void share_state(const ModuleBase& other) { state_ = other.state_; }

  // What replaced this module as a member of this type, or null.
  ModuleBase* replacement(const std::type_info& type) const;
  bool has_hooks() const;
  bool has_backward_hooks() const;
  // Whether a graph has things to do around a call of it.
  bool has_graph_options() const;
  // In a trace: `x` where the module's stage lies.
  Tensor enter_stage(const Tensor& x) const;
  bool recomputes(const Tensor& x) const;
  // Throws where it was asked for on this module.
  void refuse_recompute() const;
  Tensor run_pre_hooks(const Tensor& x);
  Tensor run_hooks(const Tensor& x, Tensor y);
  // Has the backward hooks called when the gradients of this call's argument and result (undefined:
  // no tensor) come by; gives what takes the result's place.
  Tensor watch_backward(const Tensor& x, const Tensor& y);

  // Puts the caller's site and this module's path on the thread's scope for one call.
  class [[nodiscard]] CallScope {
   public:
    CallScope(const ModuleBase& module, Site site);
    ~CallScope();
    CallScope(const CallScope&) = delete;
    CallScope& operator=(const CallScope&) = delete;

   private:
    Site outer_site_ = Site::none();
    const std::string* outer_path_ = nullptr;
    int64_t outer_stage_ = -1;
  };

 private:
  friend class GraphModule;
  struct State;
  void add_child(std::string_view name, const ModuleBase& module, const std::type_info& type);
  void check_new_name(std::string_view name) const;
  Tensor run_backward_pre_hooks(const Tensor& dy);
  Tensor run_backward_hooks(const Tensor& dx, const Tensor& dy);
  // The state in force: that of the replacement, where there is one.
  State& live_state() const;
  // The tensors of a state by the module's own names, sharing memory.
  StateDict persistent_tensors() const;
  // Names in files and those of the parts they are made of.
  std::vector<std::pair<std::string, std::vector<std::string>>> joined_names() const;
  NamedTensors collect(bool wants_parameters) const;
  // Whether the sub-module was registered as an AnyModule; throws unless it was as that or `type`.
  bool check_replacement(std::string_view path, const std::type_info& type,
                         bool maps_tensors) const;
  void put_replacement(std::string_view path, std::shared_ptr<ModuleBase> module,
                       const std::type_info& type);

  std::shared_ptr<State> state_;
};

namespace internal {
template <class... Args>
inline constexpr bool kBeginsWithTensor = false;
template <class First, class... Rest>
inline constexpr bool kBeginsWithTensor<First, Rest...> = std::convertible_to<First, TensorArg>;
}  // namespace internal

// CRTP base: gives Derived its call operator, which runs Derived::forward.
template <class Derived>
class Module : public ModuleBase {
 public:
  // A call that begins with a tensor; its place goes on the module scope. Self delays the test
  // until Derived is complete.
  template <class... Rest, class Self = Derived>

  requires requires(Self& self, const Tensor& x, Rest&&... rest) {
    self.forward(x, std::forward<Rest>(rest)...);
  }

  auto operator()(const TensorArg& x, Rest&&... rest) {
    const CallScope scope(*this, x.site());
    Derived& self = target();
    if (self.has_graph_options()) [[unlikely]] {
      return call_in_graph(self, self.enter_stage(x.tensor()), std::forward<Rest>(rest)...);
    }
    return call(self, x.tensor(), std::forward<Rest>(rest)...);
  }

  // Everything else: no argument, a tuple, a list, a number first.
  template <class... Args, class Self = Derived>

  requires(!internal::kBeginsWithTensor<Args...> &&
           requires(Self & self, Args&&... args) {
             self.forward(std::forward<Args>(args)...);
           }) auto
  operator()(Args&&... args) {
    const CallScope scope(*this, Site::none());
    return target().forward(std::forward<Args>(args)...);
  }

 private:
  template <class... Rest>
  static auto call(Derived& self, const Tensor& x, Rest&&... rest) {
    if (!self.has_hooks()) return self.forward(x, std::forward<Rest>(rest)...);
    const Tensor input = self.run_pre_hooks(x);
    auto y = self.forward(input, std::forward<Rest>(rest)...);
    if constexpr (std::same_as<decltype(y), Tensor>) {
      return self.run_hooks(input, std::move(y));
    } else {
      self.watch_backward(input, Tensor());
      return y;
    }
  }

  template <class... Rest>
  static auto call_in_graph(Derived& self, const Tensor& x, Rest&&... rest) {
    if (!self.recomputes(x)) return call(self, x, std::forward<Rest>(rest)...);
    if constexpr ((std::copy_constructible<std::decay_t<Rest>> && ...) &&
                  requires { self.forward(x, rest...); }) {
      if constexpr (std::same_as<decltype(call(self, x, rest...)), Tensor>) {
        return recompute(
            [self, rest...](const std::vector<Tensor>& inputs) mutable {
              return call(self, inputs[0], rest...);
            },
            {x});
      }
    }
    self.refuse_recompute();
    return call(self, x, std::forward<Rest>(rest)...);
  }

  Derived& target() {
    ModuleBase* other = this->replacement(typeid(Derived));
    return static_cast<Derived&>(other != nullptr ? *other : *this);
  }
};

// Any module that maps a tensor to a tensor, behind one type.
class AnyModule : public Module<AnyModule> {
 public:
  template <class M>

  requires(std::derived_from<M, ModuleBase> && !std::same_as<M, AnyModule>)
      AnyModule(M module)  // NOLINT(google-explicit-constructor): any module is one
      : forward_([module](const Tensor& x) mutable {
          return module(TensorArg(x, Site::none()));  // the site is that of the call of this module
        }) {
    share_state(module);  // names and modes are those of the module itself
  }

  Tensor forward(const Tensor& x) { return forward_(x); }

 private:
  std::function<Tensor(const Tensor&)> forward_;
};

template <class M>

requires std::derived_from<M, ModuleBase>

void ModuleBase::replace_module(std::string_view path, M module) {
  constexpr bool kMapsTensors = std::is_invocable_r_v<Tensor, M&, const Tensor&>;
  const bool is_any = check_replacement(path, typeid(M), kMapsTensors);
  if constexpr (kMapsTensors && !std::same_as<M, AnyModule>) {
    if (is_any) {
      put_replacement(path, std::make_shared<AnyModule>(std::move(module)), typeid(AnyModule));
      return;
    }
  }
  put_replacement(path, std::make_shared<M>(std::move(module)), typeid(M));
}

}  // namespace flow::nn
