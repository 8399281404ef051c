// The models of training specs, and their tensors as files name them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "nn/layers/container.h"
#include "tools/flow_conform/attrs.h"

namespace flow::conform {

// The model that a spec's "model" describes, with the weights of `init`. Throws NotSupported for
// another kind, BadSpec where the weights do not fit.
nn::AnyModule make_model(const Json& spec, DType floating, const nn::StateDict& init);

// Which of the model's own names files have as one, joined along dim 0: GPT's three projections.
std::map<std::string, std::vector<std::string>> joined_names(const std::vector<std::string>& names);
// Tensors by the model's own names as files have them.
nn::StateDict as_in_files(const nn::StateDict& tensors);

}  // namespace flow::conform
