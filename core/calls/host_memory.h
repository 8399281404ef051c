// Sizes that the host's memory cannot hold.
#pragma once

#include <new>
#include <stdexcept>
#include <string_view>

#include "core/site.h"

namespace flow {

// Throws OutOfMemory "[function] …" with the user's line.
[[noreturn]] void throw_out_of_host_memory(std::string_view function, Site site);

// Calls body(). What the C++ library throws where a container cannot have the size that it is to
// get becomes an OutOfMemory of name(), which is asked for then only.
template <class Name, class Body>
decltype(auto) in_host_memory(const Name& name, Site site, const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    throw_out_of_host_memory(name(), site);
  } catch (const std::length_error&) {
    throw_out_of_host_memory(name(), site);
  }
}

}  // namespace flow
