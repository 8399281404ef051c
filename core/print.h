// flow::print, and the text form of tensors (operator<<, declared in core/tensor.h).
//
// Tensors print as in PyTorch: four digits, aligned columns, scientific notation if the values span
// more than three decades, and only the first and last three entries of each dim above 1000
// elements. A global tensor prints its layout and this rank's part. Printing never communicates.
//
//   tensor([[1.0000, 2.5000],
//           [3.0000, 4.0000]], dtype=float64, requires_grad=True)
#pragma once

#include <string_view>

#include "core/error.h"

namespace flow {

namespace internal {
// Writes all of `text` with one call, so that lines of thread ranks do not mix.
void write_to_stdout(std::string_view text);
}  // namespace internal

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
