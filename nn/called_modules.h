// Records which modules a piece of code calls.
#pragma once

#include <vector>

#include "nn/module.h"

namespace flow::nn {

// While an instance lives, records every module that this thread calls. Instances cannot be nested.
class CalledModules {
 public:
  // `recomputes_blocks`: recompute in backward, instead of saving, the activations of stages and of
  // those elements of module lists that are outside any stage.
  explicit CalledModules(bool recomputes_blocks = false);
  ~CalledModules();
  CalledModules(const CalledModules&) = delete;
  CalledModules& operator=(const CalledModules&) = delete;

  // In the order of the first calls. Handles of one module appear once.
  const std::vector<ModuleBase>& modules() const { return modules_; }

 private:
  std::vector<ModuleBase> modules_;
};

// True if this thread is in a CalledModules that recomputes blocks.
bool recomputes_blocks();

}  // namespace flow::nn
