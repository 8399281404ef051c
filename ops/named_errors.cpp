#include "ops/named_errors.h"

namespace flow::ops {

void throw_as(const std::string& function, const InvalidArgument& error) {
  std::string text = error.what();
  if (error.site().is_known()) {  // the constructor adds it again
    const std::string place = str(" (at ", error.site().file(), ":", error.site().line(), ")");
    if (text.ends_with(place)) text.resize(text.size() - place.size());
  }
  const size_t end = text.find("] ");
  if (text.starts_with("[") && end != std::string::npos) text.erase(0, end + 2);
  throw InvalidArgument(str("[", function, "] ", text), error.site());
}

}  // namespace flow::ops
