#include "core/error.h"

#include <sstream>

namespace flow {

namespace {
std::string with_site(const std::string& message, Site site) {
  return site.is_known() ? str(message, " (at ", site.file(), ":", site.line(), ")") : message;
}
}  // namespace

Error::Error(const std::string& message, Site site)
    : std::runtime_error(with_site(message, site)), site_(site) {}

namespace internal {
TextStream::TextStream() : out_(std::make_unique<std::ostringstream>()) {}

TextStream::~TextStream() = default;

std::string TextStream::text() const {
  return static_cast<const std::ostringstream&>(*out_).str();
}

void assertion_failed(const char* condition, const char* file, int line,
                      const std::string& message) {
  throw InternalError(str("[", file, ":", line, "] broken invariant: ", condition,
                          message.empty() ? "" : "; ", message,
                          "; this is a bug in flow, please report it"));
}
}  // namespace internal

}  // namespace flow
