// What the handles of one module share; for the sources of nn/module.h only.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <typeinfo>
#include <vector>

#include "nn/module.h"

namespace flow::nn {

// The one copy of a path, which stays.
const std::string* interned_path(const std::string& path);

struct ModuleBase::State {
  struct Hook {
    int64_t number;
    ForwardPreHook before = {};  // one of the four is set
    ForwardHook after = {};
    FullBackwardPreHook before_backward = {};
    FullBackwardHook after_backward = {};
  };

  struct Joined {
    std::string name;
    std::vector<std::string> parts;
  };

  NamedTensors parameters;
  NamedTensors buffers;
  std::set<std::string> transient;  // buffers that are not persistent
  NamedModules children;
  std::vector<const std::type_info*> child_types;  // as registered
  std::vector<Hook> hooks;
  int64_t num_hooks = 0;
  std::vector<Joined> joined;
  bool is_training = true;
  // In graphs (nn/graph_module.h); -1: of no stage of its own.
  int64_t stage = -1;
  Placement stage_placement;
  bool recomputes = false;
  // Dotted, from the outermost module it was registered in. Interned: what was recorded in a call
  // of the module refers to it, and may be looked at after the module has gone.
  const std::string* path = interned_path("");

  // What took this module's place, and as what type.
  std::shared_ptr<ModuleBase> replacement;
  const std::type_info* replacement_type = nullptr;
};

// "a", "b" → "a.b"; the empty name is the module itself.
std::string join_path(const std::string& prefix, const std::string& name);

}  // namespace flow::nn
