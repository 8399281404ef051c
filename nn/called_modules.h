// Which modules a piece of code calls.
#pragma once

#include <vector>

#include "nn/module.h"

namespace flow::nn {

// While it lives, notes every module that this thread calls. Not nested.
class CalledModules {
 public:
  // `recomputes_blocks`: what stages, and elements of lists of modules outside any, save for
  // backward is computed again.
  explicit CalledModules(bool recomputes_blocks = false);
  ~CalledModules();
  CalledModules(const CalledModules&) = delete;
  CalledModules& operator=(const CalledModules&) = delete;

  // In order of their first call; each state once.
  const std::vector<ModuleBase>& modules() const { return modules_; }

 private:
  std::vector<ModuleBase> modules_;
};

// Whether the thread is in a CalledModules that recomputes blocks.
bool recomputes_blocks();

}  // namespace flow::nn
