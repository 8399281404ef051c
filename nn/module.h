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
#include <utility>
#include <vector>

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

class ModuleBase;
using NamedModules = std::vector<std::pair<std::string, ModuleBase>>;

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

  // Parameters and buffers by name, sharing memory with the module.
  StateDict state_dict() const;
  // Copies values into the parameters and buffers. Throws InvalidArgument, before anything is
  // written, when a shape differs or (strict) a name is missing or unexpected; all are listed.
  void load_state_dict(const StateDict& state, LoadOptions options = {});

  // Training or evaluation mode of this module and all descendants.
  void train(bool on = true);

  void eval() { train(false); }

  bool is_training() const;
  // Drops the gradients of all parameters.
  void zero_grad();
  // Converts floating parameters and buffers in place; the handles stay.
  void to(DType dtype);
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
  Tensor register_buffer(std::string_view name, const Tensor& value);
  template <class M>

  requires std::derived_from<M, ModuleBase> M register_module(std::string_view name, M module) {
    add_child(name, module);
    return module;
  }

  // Makes this another handle of `other`'s parameters, sub-modules and mode.
  void share_state(const ModuleBase& other) { state_ = other.state_; }

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
  };

 private:
  struct State;
  void add_child(std::string_view name, const ModuleBase& module);
  void check_new_name(std::string_view name) const;
  NamedTensors collect(bool wants_parameters) const;

  std::shared_ptr<State> state_;
};

namespace internal {
template <class... Args>
inline constexpr bool begins_with_tensor = false;
template <class First, class... Rest>
inline constexpr bool begins_with_tensor<First, Rest...> = std::convertible_to<First, TensorArg>;
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
    return static_cast<Derived&>(*this).forward(x.tensor(), std::forward<Rest>(rest)...);
  }
  // Everything else: no argument, a tuple, a list, a number first.
  template <class... Args, class Self = Derived>

  requires(!internal::begins_with_tensor<Args...> &&
           requires(Self & self, Args&&... args) {
             self.forward(std::forward<Args>(args)...);
           }) auto
  operator()(Args&&... args) {
    const CallScope scope(*this, Site::none());
    return static_cast<Derived&>(*this).forward(std::forward<Args>(args)...);
  }
};

// Any module that maps a tensor to a tensor, behind one type.
class AnyModule : public Module<AnyModule> {
 public:
  template <class M>

  requires std::derived_from<M, ModuleBase> AnyModule(
      M module)  // NOLINT(google-explicit-constructor): any module is one
      : forward_([module](const Tensor& x) mutable { return module(x); }) {
    share_state(module);  // names and modes are those of the module itself
  }

  Tensor forward(const Tensor& x) { return forward_(x); }

 private:
  std::function<Tensor(const Tensor&)> forward_;
};

}  // namespace flow::nn
