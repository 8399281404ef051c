// Modules made of modules.
#pragma once

#include <string>
#include <vector>

#include "nn/module.h"

namespace flow::nn {

// Calls its modules one after another; they are named 0, 1, ….
class Sequential : public Module<Sequential> {
 public:
  Sequential() = default;
  template <class... M>

  requires(sizeof...(M) > 0 &&
           (std::derived_from<M, ModuleBase> && ...)) explicit Sequential(M... modules) {
    (push_back(std::move(modules)), ...);
  }

  template <class M>
  requires std::derived_from<M, ModuleBase>

  void push_back(M module) {
    modules_.push_back(register_module(std::to_string(modules_.size()), AnyModule(module)));
  }

  Tensor forward(const Tensor& x);

  int64_t size() const { return static_cast<int64_t>(modules_.size()); }

 private:
  std::vector<AnyModule> modules_;
};

// A list of modules of one type, named 0, 1, …; it has no forward.
template <class M>
class ModuleList : public Module<ModuleList<M>> {
 public:
  void push_back(M module) {
    modules_.push_back(this->register_module(std::to_string(modules_.size()), std::move(module)));
  }

  M& operator[](int64_t i) { return modules_.at(static_cast<size_t>(i)); }

  auto begin() { return modules_.begin(); }

  auto end() { return modules_.end(); }

  int64_t size() const { return static_cast<int64_t>(modules_.size()); }

 private:
  std::vector<M> modules_;
};

}  // namespace flow::nn
