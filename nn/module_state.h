// The state that the handles of one module share; for the sources of nn/module.h only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/calls/substitution.h"
#include "nn/module.h"

namespace flow::nn {

// The interned copy of a path, which is never destroyed.
const std::string* interned_path(const std::string& path);

// The number of changes, in this process, to what calls of modules depend on: modes, hooks, options
// for graphs, registered tensors and modules.
inline constinit std::atomic<uint64_t> num_module_changes{0};

struct ModuleBase::State : std::enable_shared_from_this<ModuleBase::State> {
  State();

  struct Hook {
    int64_t number = 0;
    ForwardPreHook before = {};  // exactly one of the four is set
    ForwardHook after = {};
    FullBackwardPreHook before_backward = {};
    FullBackwardHook after_backward = {};

    bool is_empty() const { return !before && !after && !before_backward && !after_backward; }
  };

  struct Joined {
    std::string name;
    std::vector<std::string> parts;
  };

  // A tensor of the module that is computed, at each call, from other parameters
  // (nn/parameters/parametrize.h).
  struct Computed {
    std::string name;
    Tensor member;  // the tensor that the object holds; ops of its calls take the result instead
    std::function<Tensor(ModuleBase& list)> compute;
    internal::ModuleObject list;  // of parametrizations; holds the other parameters
  };

  // What a call knows of the object: all its members were registered, and these of its bytes point
  // to registered parameters and modules. Another pointer there means that a member was assigned.
  struct CheckedObject {
    void (*type)(const ModuleBase& module, const std::function<void()>& use);  // its with_copy
    uint64_t num_registrations;                            // of the module, at the check
    std::vector<std::pair<size_t, const void*>> pointers;  // by their offsets
  };

  // One for each type as which the module was called. Several threads may call it at once.
  class CheckedObjects {
   public:
    CheckedObjects() = default;

    CheckedObjects(const CheckedObjects& /*other*/) {}  // nothing is known of a copy's object

    // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): what the state knew of its own stays true
    CheckedObjects& operator=(const CheckedObjects& /*other*/) noexcept { return *this; }

    ~CheckedObjects() = default;

    // Whether `is_same` holds for what is known of the object's type.
    template <class Test>
    bool has(decltype(CheckedObject::type) its_type, const Test& is_same) const {
      const std::lock_guard lock(mutex_);
      const auto known =
          std::find_if(objects_.begin(), objects_.end(),
                       [&](const CheckedObject& one) { return one.type == its_type; });
      return known != objects_.end() && is_same(*known);
    }

    void replace(CheckedObject object);

   private:
    mutable std::mutex mutex_;
    std::vector<CheckedObject> objects_;  // guarded by mutex_
  };

  // The computed tensors, each with the member whose place it takes. Outside traces and other
  // substitutions the members get the new values. Throws InvalidArgument if a shape differs.
  Substitution::Pairs compute_members() const;
  // Adds the parameters that the object may hold: those of the module, of its sub-modules, and of
  // modules that these replaced, which the members may still be.
  void add_held(std::set<const TensorImpl*>& parameters_found) const;

  // Returns the hook's number. Throws InvalidArgument if none of its functions is set.
  int64_t add(const char* function, Hook hook);

  // Notes that the module has the parameter; if another module has it too, the parameter has
  // several owners.
  void own(const Tensor& parameter);
  // Whether this module alone has the parameter, under one name.
  bool owns_alone(const Tensor& parameter) const;

  const std::type_info* type = nullptr;  // of the object; null: not known
  std::string extra_repr;
  NamedTensors parameters;
  NamedTensors buffers;
  std::vector<Computed> computed;
  std::set<std::string> transient;  // buffers that are not persistent
  NamedModules children;
  std::vector<const std::type_info*> child_types;  // the types as which they were registered
  std::vector<Hook> hooks;
  std::vector<Joined> joined;
  bool is_training = true;
  CheckedObjects checked;
  // The number of modules that this thread had made before, and the next random stream then.
  uint64_t num_made_before = 0;
  uint64_t first_stream = 0;
  // The pipeline stage in graphs (nn/graph_module.h); -1: none is set.
  int64_t stage = -1;
  Placement stage_placement;
  bool recomputes = false;
  // The dotted path from the outermost module that contains this one. It is interned, because
  // records of a call refer to it and may be read after the module is destroyed.
  const std::string* path = interned_path("");

  // The direct sub-modules that were replaced. The object may still have them; else they end.
  std::vector<std::weak_ptr<State>> replaced;
  // The module that replaced this one, of the type of the member.
  internal::ModuleObject replacement;

  // The number of tensors and modules that were registered or replaced.
  uint64_t num_registrations = 0;

  // Everything above except the mode that the result of a call may depend on. Values of parameters
  // and buffers, which compiled steps read at each run, are not part of it.
  struct Form {
    const State* state = nullptr;
    uint64_t num_registrations = 0;
    std::vector<int64_t> hooks = {};  // their numbers
    int64_t stage = -1;
    Placement stage_placement = {};
    bool recomputes = false;
    friend bool operator==(const Form&, const Form&) = default;
  };

  Form form() const;
};

// Call it after a change of a module's state.
inline void note_module_change() {
  num_module_changes.fetch_add(1, std::memory_order_relaxed);
}

// The name of a type as in C++, with namespaces.
std::string readable(const std::type_info& type);

// Joins "a" and "b" to "a.b". An empty name stands for the module itself.
std::string join_path(const std::string& prefix, const std::string& name);

}  // namespace flow::nn
