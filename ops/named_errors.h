// Errors of functions that check arguments before dispatch() or are composed of others: they have
// the line of the call, and name the function that the user called.
#pragma once

#include <string>

#include "core/error.h"
#include "core/op.h"

namespace flow::ops {

// Throws `error` again with "[function] " at the beginning of its text instead of the name there.
[[noreturn]] void throw_as(const std::string& function, Site site, const InvalidArgument& error);

// Calls body(), and gives its errors the line of the call.
template <class Body>
decltype(auto) located(Site site, const Body& body) {
  try {
    return body();
  } catch (Error& error) {
    error.add_place(site);
    throw;
  }
}

// Also reports argument errors of body() as errors of `function`.
template <class Body>
decltype(auto) named(const char* function, Site site, const Body& body) {
  try {
    return located(site, body);
  } catch (const InvalidArgument& error) {
    throw_as(function, site, error);
  }
}

template <class Body>
decltype(auto) named_in_place(const OpDef& op, Site site, const Body& body) {
  try {
    return located(site, body);
  } catch (const InvalidArgument& error) {
    throw_as(in_place_name(op), site, error);
  }
}

}  // namespace flow::ops
