#include "core/version.h"

namespace flow {

std::string_view version() {
  return FLOW_VERSION;
}

std::string_view build_configuration() {
  return "flow " FLOW_VERSION ", " FLOW_BUILD_CONFIGURATION;
}

}  // namespace flow
