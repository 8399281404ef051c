// What the op table says of each op: dtypes, layouts, devices, gradient, limits.
#pragma once

#include <nlohmann/json.hpp>

#include "core/op.h"

namespace flow::tools {

// The facts of one op. Its layouts are those of the sample call that has the most of them, which
// the field "call" describes.
nlohmann::json facts_of(const OpDef& op);

}  // namespace flow::tools
