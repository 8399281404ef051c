// flow::print, and the text form of tensors (operator<<, declared in core/tensor.h).
//
// Tensors print as in PyTorch: four digits, aligned columns, scientific notation if the values span
// more than three decades, and only the first and last three entries of each dim above 1000
// elements. set_printoptions changes these numbers. A global tensor prints its layout and this
// rank's part. Printing never communicates.
//
//   tensor([[1.0000, 2.5000],
//           [3.0000, 4.0000]], dtype=float64, requires_grad=True)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace flow {

namespace internal {
// Writes all of `text` with one call, so that lines of thread ranks do not mix.
void write_to_stdout(std::string_view text);
}  // namespace internal

struct PrintOptions {
  std::optional<int64_t> precision = {};  // digits after the point
  std::optional<int64_t> threshold = {};  // tensors of up to this many elements print in full
  std::optional<int64_t> edgeitems = {};  // printed at both ends of each dim of a larger tensor
  std::optional<int64_t> linewidth = {};  // characters in a line
  std::string profile = {};               // "default", "short" (2 digits, 2 items) or "full"
  std::optional<bool> sci_mode = {};      // scientific notation; unset: where the values need it
};

// Changes how this rank prints tensors from now on. Numbers that are unset stay as they are, or as
// `profile` sets them; sci_mode is set by each call. Throws InvalidArgument for another profile, a
// negative number, and more than 30 digits.
void set_printoptions(const PrintOptions& options);

// Prints the values, separated by spaces, and a newline to stdout. Bools print as true and false.
template <class... Values>
void print(const Values&... values) {
  internal::TextStream stream;
  std::ostream& out = stream.out();
  out << std::boolalpha;
  std::string_view separator;
  ((out << separator << values, separator = " "), ...);
  out << '\n';
  internal::write_to_stdout(stream.text());
}

}  // namespace flow
