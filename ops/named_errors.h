// Errors of functions that are made of others: the user reads the name of the one that was called.
#pragma once

#include <string>

#include "core/error.h"
#include "core/op.h"

namespace flow::ops {

// Throws `error` anew with "[function] " in front of its text in place of the name there.
[[noreturn]] void throw_as(const std::string& function, const InvalidArgument& error);

// body(), whose argument errors are those of `function`.
template <class Body>
decltype(auto) named(const char* function, const Body& body) {
  try {
    return body();
  } catch (const InvalidArgument& error) {
    throw_as(function, error);
  }
}

// The function that writes `op` over its input: "exp_".
std::string in_place_name(const OpDef& op);

template <class Body>
decltype(auto) named_in_place(const OpDef& op, const Body& body) {
  try {
    return body();
  } catch (const InvalidArgument& error) {
    throw_as(in_place_name(op), error);
  }
}

}  // namespace flow::ops
