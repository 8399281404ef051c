// A call site is the line of the user's program that called an op. Default arguments capture it,
// because some compilers that the project supports lack a usable std::source_location.
#pragma once

#include <cstdint>
#include <string_view>

namespace flow {

// A file and a line. A list of numbers does not convert to a Site, so `x.sum({0, 1})` cannot mean a
// site.
class Site {
 public:
  static constexpr Site here(const char* file = __builtin_FILE(),
                             uint32_t line = __builtin_LINE()) {
    return Site(Key(), file, line);
  }

  static constexpr Site none() { return Site(Key(), "", 0); }

  constexpr const char* file() const { return file_; }

  constexpr uint32_t line() const { return line_; }

  constexpr bool is_known() const { return line_ != 0; }

  // True for a line of the library (compiled with its root mapped to "flow:") or of a standard
  // header. Reports replace such a site with the site of the enclosing scope.
  bool is_inside_library() const {
    const std::string_view name = file_;
    return name.starts_with("flow:") || name.starts_with("/usr/include/c++/") ||
           name.starts_with("/usr/lib/");
  }

 private:
  friend class TensorArg;

  struct Key {
    explicit Key() = default;
  };

  constexpr Site(Key, const char* file, uint32_t line) : file_(file), line_(line) {}

  const char* file_;
  uint32_t line_;
};

}  // namespace flow
