// A call of a module with other parameters (torch.func.functional_call).
#pragma once

#include <concepts>
#include <initializer_list>
#include <utility>

#include "core/calls/substitution.h"
#include "nn/module.h"

namespace flow::nn {

// The values of a call, and its line.
struct NamedValuesArg {
  NamedValuesArg(const StateDict& named,  // NOLINT(google-explicit-constructor)
                 Site where = Site::here())
      : values(named), site(where) {}

  NamedValuesArg(std::initializer_list<StateDict::value_type> named, Site where = Site::here())
      : values(named), site(where) {}

  StateDict values;
  Site site;
};

namespace internal {
// The tensors of the module that `values` names, each with its value.
Substitution::Pairs substitutes(const ModuleBase& module, const NamedValuesArg& named);
}  // namespace internal

// Returns module(args…), computed with `values` in place of the parameters and buffers that they
// name; the others are the module's own. Gradients go to the values, which may be results of other
// ops. The module does not change, except for buffers that forward writes and that have no value
// here. Names are those of named_parameters() and named_buffers(). Throws InvalidArgument for a
// name that the module does not have and for a value of another shape. A forward that reads the
// elements of a parameter itself (item(), to_vector(), data()) reads the module's own.
//   const Tensor loss = mse_loss(nn::functional_call(model, {{"weight", w}, {"bias", b}}, x), y);
template <class M, class... Args>

requires std::derived_from<M, ModuleBase>

auto functional_call(M module, const NamedValuesArg& values, Args&&... args) {
  const Substitution scope(internal::substitutes(module, values));
  return module(std::forward<Args>(args)...);
}

}  // namespace flow::nn
