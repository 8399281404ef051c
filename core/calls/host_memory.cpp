#include "core/calls/host_memory.h"

#include "core/error.h"

namespace flow {

void throw_out_of_host_memory(std::string_view function, Site site) {
  throw OutOfMemory(str("[", function,
                        "] the host has no memory for lists as long as the sizes of "
                        "this call; give smaller sizes"),
                    site);
}

}  // namespace flow
