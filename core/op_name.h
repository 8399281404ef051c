// Names of ops in messages.
#pragma once

#include <string>

namespace flow {

struct OpDef;

// The name under which users know a call of `op` that writes over its input: "exp_" of exp and of
// exp_scalar, "normal_" of normal_fill.
std::string in_place_name(const OpDef& op);

}  // namespace flow
