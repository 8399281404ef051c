// The models of training specs, and their tensors as files name them.
#pragma once

#include "core/dtype.h"
#include "nn/layers/container.h"
#include "tools/flow_conform/attrs.h"

namespace flow::conform {

// The model that a spec's "model" describes, with the weights of `init`. Throws NotSupported for
// another kind, BadSpec where the weights do not fit.
nn::AnyModule make_model(const Json& spec, DType floating, const nn::StateDict& init);

// Tensors by the model's own names as files have them: GPT's three projections are joined there.
nn::StateDict as_in_files(const nn::StateDict& tensors);

}  // namespace flow::conform
