#include "nn/parameters/functional_call.h"

#include <map>
#include <string>

#include "core/error.h"

namespace flow::nn::internal {

Substitution::Pairs substitutes(const ModuleBase& module, const NamedValuesArg& named) {
  const SiteScope scope(named.site);
  std::map<std::string, Tensor> own;
  // Tied parameters have several names.
  for (const auto& [prefix, inner] : module.named_modules()) {
    const std::string dot = prefix.empty() ? "" : prefix + ".";
    for (const auto& tensors : {inner.own_parameters(), inner.own_buffers()}) {
      for (const auto& [name, tensor] : tensors)
        own.emplace(dot + name, tensor);
    }
  }
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
