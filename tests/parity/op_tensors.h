// The tensors of one op case.
#pragma once

#include <string>

#include "nn/module.h"

namespace flow::parity {

// The tensors of a case in the golden file, by their names in the case.
inline nn::StateDict tensors_of(const nn::StateDict& golden, const std::string& id) {
  nn::StateDict tensors;
  const std::string prefix = id + '/';
  for (auto it = golden.lower_bound(prefix); it != golden.end() && it->first.starts_with(prefix);
       ++it) {
    tensors.emplace(it->first.substr(prefix.size()), it->second);
  }
  return tensors;
}

}  // namespace flow::parity
