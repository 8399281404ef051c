#include "ops/named_errors.h"

namespace flow::ops {

void throw_as(const std::string& function, Site site, const InvalidArgument& error) {
  std::string text = error.message();
  const size_t end = text.find("] ");
  if (text.starts_with("[") && end != std::string::npos) text.erase(0, end + 2);
  InvalidArgument renamed(str("[", function, "] ", text), error.site());
  renamed.add_place(site);
  throw renamed;
}

}  // namespace flow::ops
