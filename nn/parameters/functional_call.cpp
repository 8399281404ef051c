#include "nn/parameters/functional_call.h"

#include <map>
#include <string>

#include "core/error.h"

namespace flow::nn::internal {

namespace {

// Adds the tensors of a module, which may have several names, under all of them.
void add_tensors(const ModuleBase& module, const std::string& prefix,
                 std::map<std::string, Tensor>& tensors) {
  for (const NamedTensors* own : {&module.own_parameters(), &module.own_buffers()}) {
    for (const auto& [name, tensor] : *own)
      tensors.emplace(prefix + name, tensor);
  }
  for (const auto& [name, child] : module.children())
    add_tensors(child, prefix + name + ".", tensors);
}

}  // namespace

Substitution::Pairs substitutes(const ModuleBase& module, const NamedValuesArg& named) {
  const SiteScope scope(named.site);
  std::map<std::string, Tensor> own;
  add_tensors(module, "", own);
  Substitution::Pairs pairs;
  for (const auto& [name, value] : named.values) {
    const auto found = own.find(name);
    if (found == own.end()) {
      throw InvalidArgument(str("[functional_call] the module has no parameter or buffer '", name,
                                "'; give names that named_parameters() or named_buffers() lists"));
    }
    const Tensor& tensor = found->second;
    if (!value.defined() || !(value.shape() == tensor.shape())) {
      throw InvalidArgument(str("[functional_call] the value of '", name, "' must have the shape ",
                                tensor.shape(), "; received ",
                                value.defined() ? str(value.meta()) : "an undefined tensor"));
    }
    pairs.emplace_back(tensor, value);
  }
  return pairs;
}

}  // namespace flow::nn::internal
