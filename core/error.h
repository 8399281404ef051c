// The exceptions of the library. A message reads `[op] what was wrong; what was received; what to
// do`.
#pragma once

#include <cstddef>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>

#include "core/site.h"

namespace flow {

// The base of all exceptions that the library throws deliberately. An error says where it occurred:
// what() begins with the user's line and the dotted path of the module whose call was running,
// `train.cpp:41, in blocks.3.mlp.c_fc: [linear] …`.
class Error : public std::runtime_error {
 public:
  // Without a site of the user's program, the site is that of the enclosing scope: the line that
  // called the running module, or in backward the line of the forward.
  explicit Error(const std::string& message, Site site = Site::none());

  // The user's line, if known.
  Site site() const { return site_; }

  // Empty outside modules.
  std::string module_path() const { return module_path_ == nullptr ? "" : *module_path_; }

  // what() without the place.
  std::string message() const { return what() + place_size_; }

  // For code that an error passes on its way to the user. The site of the first call that names a
  // line of the user's program is kept, and so is the first module path. The path must live for
  // ever; null: that of the running module.
  void add_place(Site site, const std::string* module_path = nullptr);
  // Adds to the end of the message.
  void add_text(const std::string& text);

 private:
  void set_what(const std::string& message);

  Site site_;
  const std::string* module_path_;
  size_t place_size_ = 0;  // of the part of what() that says where
  bool is_site_of_call_;   // not only that of the enclosing scope
};

// The caller made an error: wrong shape, dtype, dim, index, option or order of calls.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

// The request is valid, but this build, device or release does not support it.
class Unsupported : public Error {
 public:
  using Error::Error;
};

class OutOfMemory : public Error {
 public:
  using Error::Error;
};

// A file is missing, cannot be read or written, or is damaged (BadFile).
class IoError : public Error {
 public:
  using Error::Error;
};

// A file can be read, but its content does not match its format.
class BadFile : public IoError {
 public:
  using IoError::IoError;
};

// A rank was lost, a time limit passed, or ranks disagree.
class DistributedError : public Error {
 public:
  using Error::Error;
};

// An invariant of the library is broken: a bug in flow.
class InternalError : public Error {
 public:
  using Error::Error;
};

namespace internal {
// A stream that writes to a string. Including <sstream> here instead would lengthen the compilation
// of every file that includes this header by about 5%.
class TextStream {
 public:
  TextStream();
  ~TextStream();

  std::ostream& out() { return *out_; }

  std::string text() const;

 private:
  std::unique_ptr<std::ostream> out_;
};
}  // namespace internal

// Streams all parts into one string: str("dim ", 3, " of ", shape).
template <class... Parts>
std::string str(const Parts&... parts) {
  internal::TextStream stream;
  (stream.out() << ... << parts);
  return stream.text();
}

namespace internal {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line,
                                   const std::string& message);
}  // namespace internal

}  // namespace flow

// Checks an invariant of the library, never user input. Throws InternalError, in all builds.
#define FLOW_ASSERT(condition, ...)                                      \
  do {                                                                   \
    if (!(condition)) [[unlikely]]                                       \
      ::flow::internal::assertion_failed(#condition, __FILE__, __LINE__, \
                                         ::flow::str(__VA_ARGS__));      \
  } while (false)
