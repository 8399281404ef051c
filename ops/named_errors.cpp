#include "ops/named_errors.h"

namespace flow::ops {

namespace {
template <class Kind>
[[noreturn]] void throw_renamed(const std::string& function, Site site, const Kind& error) {
  std::string text = error.message();
  const size_t end = text.find("] ");
  if (text.starts_with("[") && end != std::string::npos) text.erase(0, end + 2);
  Kind renamed(str("[", function, "] ", text), error.site());
  renamed.add_place(site);
  throw Kind(renamed);
}
}  // namespace

void throw_as(const std::string& function, Site site, const InvalidArgument& error) {
  throw_renamed(function, site, error);
}

void throw_as(const std::string& function, Site site, const OutOfMemory& error) {
  throw_renamed(function, site, error);
}

}  // namespace flow::ops
