// Which modules a piece of code calls.
#pragma once

#include <vector>

#include "nn/module.h"

namespace flow::nn {

// While it lives, notes every module that this thread calls. Not nested.
class CalledModules {
 public:
  CalledModules();
  ~CalledModules();
  CalledModules(const CalledModules&) = delete;
  CalledModules& operator=(const CalledModules&) = delete;

  // In order of their first call; each state once.
  const std::vector<ModuleBase>& modules() const { return modules_; }

 private:
  std::vector<ModuleBase> modules_;
};

}  // namespace flow::nn
