// The models of training specs, and the names of their tensors in files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "nn/layers/container.h"
#include "tools/flow_conform/attrs.h"

namespace flow::conform {

// Makes the model that a spec's "model" describes, with the weights of `init`. Throws NotSupported
// for an unknown kind, and BadSpec if the weights do not fit.
nn::AnyModule make_model(const Json& spec, DType floating, const nn::StateDict& init);

// The tensors of the model that files store as one, joined along dim 0: GPT's three projections.
std::map<std::string, std::vector<std::string>> joined_names(const std::vector<std::string>& names);
// Renames and joins tensors from the model's names to those of files.
nn::StateDict as_in_files(const nn::StateDict& tensors);

}  // namespace flow::conform
