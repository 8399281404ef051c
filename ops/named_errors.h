// Errors of functions that are composed of others: the message names the function that the user
// called.
#pragma once

#include <string>

#include "core/error.h"
#include "core/op.h"

namespace flow::ops {

// Throws `error` again with "[function] " at the beginning of its text instead of the name there.
[[noreturn]] void throw_as(const std::string& function, const InvalidArgument& error);

// Calls body(), and reports its argument errors as errors of `function`.
template <class Body>
decltype(auto) named(const char* function, const Body& body) {
  try {
    return body();
  } catch (const InvalidArgument& error) {
    throw_as(function, error);
  }
}

template <class Body>
decltype(auto) named_in_place(const OpDef& op, const Body& body) {
  try {
    return body();
  } catch (const InvalidArgument& error) {
    throw_as(in_place_name(op), error);
  }
}

}  // namespace flow::ops
