// Errors of functions that check arguments before dispatch() or are composed of others: they have
// the line of the call, and name the function that the user called.
#pragma once

#include <string>

#include "core/calls/host_memory.h"
#include "core/error.h"
#include "core/op.h"

namespace flow::ops {

// Throw `error` again with "[function] " at the beginning of its text instead of the name there.
[[noreturn]] void throw_as(const std::string& function, Site site, const InvalidArgument& error);
[[noreturn]] void throw_as(const std::string& function, Site site, const OutOfMemory& error);

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

// Also reports errors of body() in its arguments, and sizes that memory cannot hold, as errors of
// the function name().
template <class Name, class Body>
decltype(auto) named_by(const Name& name, Site site, const Body& body) {
  try {
    return located(site, [&]() -> decltype(auto) { return in_host_memory(name, site, body); });
  } catch (const InvalidArgument& error) {
    throw_as(name(), site, error);
  } catch (const OutOfMemory& error) {
    throw_as(name(), site, error);
  }
}

template <class Body>
decltype(auto) named(const char* function, Site site, const Body& body) {
  return named_by([&] { return function; }, site, body);
}

template <class Body>
decltype(auto) named_in_place(const OpDef& op, Site site, const Body& body) {
  return named_by([&] { return in_place_name(op); }, site, body);
}

}  // namespace flow::ops
