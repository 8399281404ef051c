// Module: a named tree of parameters, buffers and sub-modules with a forward function. Copies of a
// module are handles that share its parameters and state.
//
//   struct Mlp : flow::nn::Module<Mlp> {
//     flow::nn::Linear fc1{register_module("fc1", flow::nn::Linear(784, 512))};
//     flow::nn::Linear fc2{register_module("fc2", flow::nn::Linear(512, 10))};
//     flow::Tensor forward(const flow::Tensor& x) { return fc2(flow::relu(fc1(x))); }
//   };
#pragma once

#include <any>
#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "autograd/recompute.h"
#include "boxing/redistribute.h"
#include "core/calls/site_scope.h"
#include "core/tensor.h"

namespace flow {
class Substitution;
struct ThreadState;
}  // namespace flow

namespace flow::nn {

using StateDict = std::map<std::string, Tensor>;
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
// Glob patterns for dotted names, each with the layout of the tensors that it matches. `*` and `?`
// match dots as well; `[qkv]` matches one character.
using SbpPatterns = std::vector<std::pair<std::string, NdSbp>>;

struct LoadOptions {
  bool strict = true;  // require that module and state have the same names
};

// The names that load_state_dict skipped. Both lists are empty after a strict load.
struct LoadResult {
  std::vector<std::string> missing_keys;     // in the module, but not in the state
  std::vector<std::string> unexpected_keys;  // in the state, but not in the module
};

class ModuleBase;
class AnyModule;
class CalledModules;
class GraphModule;
class ModuleReads;
class Parametrized;
using NamedModules = std::vector<std::pair<std::string, ModuleBase>>;

// A pre-hook is called before forward with the first argument; a hook is called after forward with
// the first argument and the result. They run only where these are tensors. A defined tensor that a
// hook returns replaces the argument or the result.
using ForwardPreHook = std::function<Tensor(ModuleBase& module, const Tensor& x)>;
using ForwardHook = std::function<Tensor(ModuleBase& module, const Tensor& x, const Tensor& y)>;
// Backward hooks are called during backward, once for each call of the module. A pre-hook gets the
// gradient of the module's result, before the gradients inside the module are computed. A hook gets
// the gradient of the first argument, once it is known, and the gradient of the result. The
// gradient of the argument is undefined if the argument records no gradient; the gradient of the
// result is undefined if the result is not a single tensor. A defined tensor that a hook returns
// replaces the gradient of the result (pre-hook) or of the argument (hook).
using FullBackwardPreHook = std::function<Tensor(ModuleBase& module, const Tensor& grad_output)>;
using FullBackwardHook =
    std::function<Tensor(ModuleBase& module, const Tensor& grad_input, const Tensor& grad_output)>;

namespace internal {
class ModuleObject;

// Tells whether an object still exists. Each copy of an object has its own mark, which never
// changes: objects are compared byte by byte (nn/module_reads.h).
class LifeMark {
 public:
  LifeMark() = default;

  LifeMark(const LifeMark& /*other*/) {}

  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): an object keeps its mark
  LifeMark& operator=(const LifeMark& /*other*/) noexcept { return *this; }

  ~LifeMark() = default;

  // Expires when the object is destroyed.
  std::weak_ptr<const bool> watch() const { return alive_; }

 private:
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};
}  // namespace internal

// The part of a module that does not depend on its type. Plain data members of a module are
// configuration; tensors and sub-modules are registered. A graph that has called a module compiles
// again if the bytes of the module object change. Several threads of a rank may call a module at
// once if nothing is written, neither by the call nor elsewhere; otherwise not thread safe.
class ModuleBase {
 public:
  ModuleBase();
  // A handle of the same module, or, while clone() copies it, of its copy.
  ModuleBase(const ModuleBase& other);
  ModuleBase(ModuleBase&&) = default;
  ModuleBase& operator=(const ModuleBase&) = default;
  ModuleBase& operator=(ModuleBase&&) = default;
  ~ModuleBase() = default;

  // The parameters and buffers of this module and its descendants, with dotted names, in order of
  // registration. A tensor that is registered under several names appears once, under the first
  // name.
  std::vector<Tensor> parameters() const;
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  // Those of this module itself, under all names that they have.
  const NamedTensors& own_parameters() const;
  const NamedTensors& own_buffers() const;
  // This module (name "") and all descendants. A module that is registered under several names
  // appears once, under the first name.
  NamedModules named_modules() const;
  // Direct sub-modules.
  const NamedModules& children() const;
  // Look-ups by dotted path; "" is this module. They throw InvalidArgument, naming the part of the
  // path that does not exist.
  ModuleBase get_submodule(std::string_view path, Site site = Site::here()) const;
  Tensor get_parameter(std::string_view path, Site site = Site::here()) const;
  Tensor get_buffer(std::string_view path, Site site = Site::here()) const;

  // Replaces the sub-module at a dotted path, for every handle: calls through handles of the old
  // module reach the new one, but the public tensors of old handles remain the old ones. The
  // replacement must have the type of the member that was registered; if that is an AnyModule, the
  // replacement must map a tensor to a tensor. Otherwise throws InvalidArgument, naming both types.
  template <class M>

  requires std::derived_from<M, ModuleBase>

  void replace_module(std::string_view path, M module, Site site = Site::here());

  // Parameters and persistent buffers by name. The tensors share memory with the module, except for
  // tensors that are joined in files, which are copies.
  StateDict state_dict() const;
  // Makes `b` the parameter that `a`, a parameter of this module or of a descendant, is: the member
  // and the module that registered it refer to `b` from now on, so that both are trained as one.
  //   model.tie(model.head.weight, model.tok.weight);
  // Throws InvalidArgument if `a` is not registered here, or if shapes or dtypes differ.
  void tie(Tensor& a, const Tensor& b, Site site = Site::here());

  // Copies values into the parameters and buffers. Throws InvalidArgument, before anything is
  // written, if a shape differs or (strict) a name is missing or unexpected; the message lists all
  // differences. The state may have a tied parameter under all its names, as PyTorch's has.
  LoadResult load_state_dict(const StateDict& state, LoadOptions options = {},
                             Site site = Site::here());

  // Hooks run in order of registration. The returned number identifies the hook for remove_hook.
  int64_t register_forward_pre_hook(ForwardPreHook hook);
  int64_t register_forward_hook(ForwardHook hook);
  int64_t register_full_backward_pre_hook(FullBackwardPreHook hook);
  int64_t register_full_backward_hook(FullBackwardHook hook);
  void remove_hook(int64_t number);

  // Sets training or evaluation mode of this module and all descendants.
  void train(bool on = true);

  void eval() { train(false); }

  bool is_training() const;
  // Sets whether the parameters record gradients.
  void requires_grad_(bool on = true);
  // Sets the gradients of all parameters to undefined.
  void zero_grad();
  // Converts floating parameters, their gradients and floating buffers in place; handles remain
  // valid. A dtype that is not floating is InvalidArgument.
  void to(DType dtype, Site site = Site::here());
  // Moves parameters and buffers to "cpu" or "cuda". Unsupported if this build has no such device.
  void to(std::string_view device, Site site = Site::here());
  // Options for graphs: model.blocks[1].to<nn::GraphModule>().set_stage(1, placement).
  template <class View>

  requires std::same_as<View, GraphModule> View to() { return View(*this); }

  // Changes the layout of every parameter and buffer in place; handles remain valid. Every rank of
  // the world must call it. A local module, of which every rank has a copy, takes the values of the
  // placement's first rank; a global module is redistributed, together with its gradients. Layouts
  // must be split or broadcast. Throws InvalidArgument before anything is changed.
  void to_global(const ToGlobalOptions& options, Site site = Site::here());
  void to_global(const Placement& placement, const NdSbp& sbp, Site site = Site::here());
  // The layout of a tensor is that of the first pattern that matches its name. Throws
  // InvalidArgument for a pattern that matches no name and for a name that no pattern matches.
  //   model.to_global(p, {{"fc?.weight", sbp::split(0)}, {"*", sbp::broadcast}});
  void to_global(const Placement& placement, const SbpPatterns& patterns, Site site = Site::here());
  // The tree of modules as text, in PyTorch's form: types without namespaces, options of layers,
  // and sub-modules with their names. operator<< and flow::print write it.
  //   Mlp(
  //     (fc1): Linear(in_features=784, out_features=512, bias=True)
  //     (fc2): Linear(in_features=512, out_features=10, bias=True)
  //   )
  std::string repr() const;
  // A table with a line for each parameter and buffer (name, dtype, shape, layout, bytes on this
  // rank) and the totals.
  std::string layout_table() const;
  // The total number of parameter elements.
  int64_t num_parameters() const;

  template <class F>
  requires std::invocable<F&, ModuleBase&>

  void apply(F fn) {
    for (auto& [name, module] : named_modules())
      fn(module);
  }

 protected:
  // `type`: that of the object, which repr() shows.
  explicit ModuleBase(const std::type_info& type);

  // Sets what repr() shows in the parentheses after the type, such as "in_features=784". Several
  // lines are indented as sub-modules are.
  void set_extra_repr(std::string text);

  // Registers a tensor or sub-module. A name must not contain dots and must be unique among the
  // module's tensors and sub-modules, else InvalidArgument. Parameters record gradients. An
  // undefined tensor (for example a bias that is left out) is not registered.
  Tensor register_parameter(std::string_view name, const Tensor& value, Site site = Site::here());
  // A buffer that is not persistent is not part of state_dict().
  Tensor register_buffer(std::string_view name, const Tensor& value, bool persistent = true,
                         Site site = Site::here());
  template <class M>

  requires std::derived_from<M, ModuleBase> M register_module(std::string_view name, M module,
                                                              Site site = Site::here()) {
    const SiteScope scope(site);
    add_child(name, module, typeid(M));
    return module;
  }

  // Makes state_dict() and files store `parts`, names of tensors relative to this module, as one
  // tensor `name`, concatenated along dim 0.
  void join_in_files(std::string_view name, std::vector<std::string> parts);

  // Makes this a handle of `other`: they share parameters, sub-modules and mode.
  void share_state(const ModuleBase& other) { state_ = other.state_; }

  // The replacement of this module as a member of this type, or null.
  ModuleBase* replacement(const std::type_info& type) const;
  bool has_hooks() const;
  bool has_backward_hooks() const;
  // True if a graph has to do something before or after a call of this module.
  bool has_graph_options() const;
  // In a trace, returns `x` on the placement of the module's stage.
  Tensor enter_stage(const Tensor& x) const;
  bool recomputes(const Tensor& x) const;
  // Throws Unsupported if recomputation was requested for this module itself.
  void refuse_recompute() const;
  Tensor run_pre_hooks(const Tensor& x);
  Tensor run_hooks(const Tensor& x, Tensor y);
  // Arranges that the backward hooks are called with the gradients of this call's argument and
  // result (undefined: not a tensor). Returns the tensor that replaces the result.
  Tensor watch_backward(const Tensor& x, const Tensor& y);

  // What an object that the handles of a module share becomes in a copy of a handle: the object
  // itself, or, while clone() copies the module, what `make` returns the first time.
  template <class T>
  static std::shared_ptr<T> copy_shared(const std::shared_ptr<T>& object,
                                        const std::function<std::shared_ptr<T>()>& make) {
    return std::static_pointer_cast<T>(copy_object(object, make));
  }

  // Gives the parameters of modules that were made as the arguments of one call the initial values
  // that they have if the arguments are evaluated from left to right: C++ leaves that order to the
  // compiler. A null pointer stands for a module that existed before. Values that were written
  // since they were drawn are kept.
  static void draw_in_order(const std::vector<const ModuleBase*>& modules);

  // The type of a module object.
  struct ObjectType {
    size_t bytes;
    // Calls `use` while a copy of the object exists.
    void (*with_copy)(const ModuleBase& module, const std::function<void()>& use);
  };

  // While an object lives, copies of module objects refer to copies of the modules below `root`,
  // and their tensors to copies of the tensors.
  class [[nodiscard]] CloneScope {
   public:
    // Throws Unsupported in a trace and for modules that clone() does not support.
    CloneScope(const ModuleBase& root, Site site);
    ~CloneScope();
    CloneScope(const CloneScope&) = delete;
    CloneScope& operator=(const CloneScope&) = delete;

   private:
    friend class ModuleBase;
    struct Copies;
    std::unique_ptr<Copies> copies_;
  };

  // Tells a trace, if there is one, that a call reads the bytes of this object.
  void note_called(size_t bytes) const;

  // Sets the thread's scope to the caller's site and this module's path, for the duration of one
  // call. The first call, and the first one after a member was assigned, check that the parameters
  // which the object holds are registered.
  class [[nodiscard]] CallScope {
   public:
    // The address of the object is that of its ModuleBase.
    CallScope(const ModuleBase& module, const ObjectType& type, Site site);
    ~CallScope();
    CallScope(const CallScope&) = delete;
    CallScope& operator=(const CallScope&) = delete;

   private:
    ThreadState& state_;
    SiteScope scope_;
    const std::string* outer_path_ = nullptr;
    int64_t outer_stage_ = -1;
    // Of the weights that are computed from other parameters; null: there are none.
    std::unique_ptr<const Substitution> computed_;
  };

 private:
  friend class CalledModules;
  friend class GraphModule;
  friend class ModuleReads;
  friend class Parametrized;
  struct State;
  static std::shared_ptr<void> copy_object(const std::shared_ptr<void>& object,
                                           const std::function<std::shared_ptr<void>()>& make);
  void add_child(std::string_view name, const ModuleBase& module, const std::type_info& type);
  void note_registration() const;
  // True if check_members has found nothing, and no member was registered or assigned since then.
  bool is_checked(const ObjectType& type) const;
  void note_checked(const ObjectType& type) const;
  // Throws InvalidArgument if the object holds a parameter that is not registered, and warns about
  // a registered one that it does not hold.
  void check_members(const ObjectType& type, Site site) const;
  void warn_of_lost_members(const ObjectType& type, const std::set<const TensorImpl*>& held,
                            Site site) const;
  // `held`: the parameters that the object holds, `member` among them.
  void refuse_member(const ObjectType& type, const Tensor& member,
                     const std::set<const TensorImpl*>& held, Site site) const;
  void check_new_name(std::string_view name) const;
  Tensor run_backward_pre_hooks(const Tensor& dy);
  Tensor run_backward_hooks(const Tensor& dx, const Tensor& dy);
  // The state in use: that of the replacement if there is one.
  State& live_state() const;
  // The tensors of state_dict() under the names in the module, sharing memory.
  StateDict persistent_tensors() const;
  void add_other_names(const std::string& prefix, const StateDict& wanted,
                       StateDict& tensors) const;
  // Names in files, each with the names of the parts that it joins.
  std::vector<std::pair<std::string, std::vector<std::string>>> joined_names() const;
  NamedTensors collect(bool wants_parameters) const;
  // True if the sub-module was registered as an AnyModule. Throws InvalidArgument if it was
  // registered neither as AnyModule nor as `type`.
  bool check_replacement(std::string_view path, const std::type_info& type,
                         bool maps_tensors) const;
  void put_replacement(std::string_view path, const internal::ModuleObject& module);

  std::shared_ptr<State> state_;
  internal::LifeMark life_;
};

std::ostream& operator<<(std::ostream& out, const ModuleBase& module);

namespace internal {

// A module object of any type. Copies share the object.
class ModuleObject {
 public:
  ModuleObject() = default;

  template <class M>

  requires std::derived_from<M, ModuleBase>

  explicit ModuleObject(M module)
      : object_(std::make_shared<M>(std::move(module))), type_(&typeid(M)), copy_(&copy_of<M>) {}

  explicit operator bool() const { return object_ != nullptr; }

  ModuleBase& operator*() const { return *object_; }

  ModuleBase* operator->() const { return object_.get(); }

  const std::type_info& type() const { return *type_; }

  // A second object, by the copy constructor of the type.
  ModuleObject copy() const { return copy_(*object_); }

 private:
  template <class M>
  static ModuleObject copy_of(const ModuleBase& module) {
    return ModuleObject(M(static_cast<const M&>(module)));
  }

  std::shared_ptr<ModuleBase> object_;
  const std::type_info* type_ = nullptr;
  ModuleObject (*copy_)(const ModuleBase& module) = nullptr;
};

template <class... Args>
inline constexpr bool kBeginsWithTensor = false;
template <class First, class... Rest>
inline constexpr bool kBeginsWithTensor<First, Rest...> = std::convertible_to<First, TensorArg>;
}  // namespace internal

// CRTP base that gives Derived its call operator, which runs Derived::forward.
template <class Derived>
class Module : public ModuleBase {
 public:
  Module() : ModuleBase(typeid(Derived)) {}

  // A call whose first argument is a tensor; the site of that argument becomes the module scope.
  // Self delays the check until Derived is complete.
  template <class... Rest, class Self = Derived>

  requires requires(Self& self, const Tensor& x, Rest&&... rest) {
    self.forward(x, std::forward<Rest>(rest)...);
  }

  auto operator()(const TensorArg& x, Rest&&... rest) const {
    if constexpr (std::same_as<Derived, AnyModule>) {
      // It is a handle of the module inside, whose call does everything else, hooks among it.
      note_called(sizeof(Derived));
      const SiteScope site(x.site());
      return target().forward(x.tensor());
    } else {
      return call_checked(x, std::forward<Rest>(rest)...);
    }
  }

  // All other calls: without arguments, or with a tuple, a list or a number first.
  template <class... Args, class Self = Derived>

  requires(!internal::kBeginsWithTensor<Args...> &&
           requires(Self & self, Args&&... args) {
             self.forward(std::forward<Args>(args)...);
           }) auto
  operator()(Args&&... args) const {
    const CallScope scope(*this, {sizeof(Derived), &with_copy}, Site::none());
    return target().forward(std::forward<Args>(args)...);
  }

  // A module of its own with copies of all parameters, buffers and sub-modules, as
  // copy.deepcopy(module) makes: the same names, values, dtypes, layouts, modes and hooks; tensors
  // that are tied stay tied to each other. Gradients are not copied, and neither are tensors that
  // are members without being registered, which both modules share. Throws Unsupported in build()
  // of a graph.
  template <std::copy_constructible Self = Derived>
  Derived clone(Site site = Site::here()) const {
    const Derived& source = target();
    const CloneScope scope(source, site);
    return Derived(source);
  }

 private:
  static void with_copy(const ModuleBase& module, const std::function<void()>& use) {
    [[maybe_unused]] const Derived copy(static_cast<const Derived&>(module));
    use();
  }

  template <class... Rest>
  auto call_checked(const TensorArg& x, Rest&&... rest) const {
    const CallScope scope(*this, {sizeof(Derived), &with_copy}, x.site());
    Derived& self = target();
    if (self.has_graph_options()) [[unlikely]] {
      return call_in_graph(self, self.enter_stage(x.tensor()), std::forward<Rest>(rest)...);
    }
    return call(self, x.tensor(), std::forward<Rest>(rest)...);
  }

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

  // A module is a handle, and a const one can be called, as a const shared_ptr gives access to its
  // object.
  Derived& target() const {
    ModuleBase* other = this->replacement(typeid(Derived));
    return static_cast<Derived&>(other != nullptr ? *other : const_cast<Module&>(*this));
  }
};

// A type-erased module: holds any module that maps a tensor to a tensor.
class AnyModule : public Module<AnyModule> {
 public:
  template <class M>

  requires(std::derived_from<M, ModuleBase> && !std::same_as<M, AnyModule>)
      AnyModule(M module)  // NOLINT(google-explicit-constructor): any module converts
      : module_(module), call_(&call<M>) {
    share_state(module);  // names and mode are those of the wrapped module
  }

  Tensor forward(const Tensor& x) { return call_(module_, x); }

  // The module as what it is:  seq[0].as<nn::Linear>().weight. Throws InvalidArgument, naming both
  // types, if it is another one.
  template <class M>

  requires std::derived_from<M, ModuleBase> M& as(Site site = Site::here()) {
    ModuleBase* other = replacement(typeid(AnyModule));
    std::any& module = other != nullptr ? static_cast<AnyModule&>(*other).module_ : module_;
    M* found = std::any_cast<M>(&module);
    if (found == nullptr) refuse_type(module.type(), typeid(M), site);
    return *found;
  }

 private:
  template <class M>
  static Tensor call(std::any& module, const Tensor& x) {
    // The call of this module has set the site.
    return std::any_cast<M&>(module)(TensorArg(x, Site::none()));
  }

  [[noreturn]] static void refuse_type(const std::type_info& type, const std::type_info& wanted,
                                       Site site);

  std::any module_;
  Tensor (*call_)(std::any& module, const Tensor& x);
};

template <class M>

requires std::derived_from<M, ModuleBase>

void ModuleBase::replace_module(std::string_view path, M module, Site site) {
  const SiteScope scope(site);
  constexpr bool kMapsTensors = std::is_invocable_r_v<Tensor, M&, const Tensor&>;
  const bool is_any = check_replacement(path, typeid(M), kMapsTensors);
  if constexpr (kMapsTensors && !std::same_as<M, AnyModule>) {
    if (is_any) {
      put_replacement(path, internal::ModuleObject(AnyModule(std::move(module))));
      return;
    }
  }
  put_replacement(path, internal::ModuleObject(std::move(module)));
}

}  // namespace flow::nn
