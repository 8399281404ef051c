#include "core/error.h"

#include <sstream>
#include <string_view>

#include "core/calls/site_scope.h"
#include "core/context.h"
#include "core/log.h"

namespace flow {

namespace {
// An error may occur on a thread of the library, which belongs to no rank.
const std::string* running_module() {
  const ThreadState* state = internal::current_thread_state;
  return state == nullptr ? nullptr : state->module_path;
}

bool is_users(Site site) {
  return site.is_known() && !site.is_inside_library();
}
}  // namespace

Error::Error(const std::string& message, Site site)
    : std::runtime_error(message),
      site_(site),
      module_path_(running_module()),
      is_site_of_call_(is_users(site)) {
  if (!is_site_of_call_) {
    // A line of a standard header, such as <optional>, that converts an argument tells nothing.
    const bool is_librarys = std::string_view(site.file()).starts_with("flow:");
    const Site scope = SiteScope::current();
    if (scope.is_known() || !is_librarys) site_ = scope;
  }
  set_what(message);
}

void Error::add_place(Site site, const std::string* module_path) {
  const bool knows_more = !is_site_of_call_ && (is_users(site) || !site_.is_known());
  if (!knows_more && module_path_ != nullptr) return;
  const std::string text = message();
  if (knows_more) {
    site_ = site;
    is_site_of_call_ = is_users(site);
    if (module_path != nullptr) module_path_ = module_path;
  }
  if (module_path_ == nullptr)
    module_path_ = module_path != nullptr ? module_path : running_module();
  set_what(text);
}

void Error::add_text(const std::string& text) {
  set_what(message() + text);
}

// Copies of a std::runtime_error share its text.
void Error::set_what(const std::string& message) {
  const std::string place = place_text(site_, module_path_);
  place_size_ = place.size();
  static_cast<std::runtime_error&>(*this) = std::runtime_error(place + message);
}

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
