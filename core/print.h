// flow::print, and how tensors look as text (operator<<, declared in core/tensor.h).
//
// Tensors print as in PyTorch: four digits, aligned columns, scientific notation where the values
// span more than three decades, the first and last three of each dim beyond 1000 elements. Of a
// global tensor the layout and this rank's part are shown; nothing is ever communicated.
//
//   tensor([[1.0000, 2.5000],
//           [3.0000, 4.0000]], dtype=float64, requires_grad=True)
#pragma once

#include <string_view>

#include "core/error.h"

namespace flow {

namespace internal {
// One write, so that lines of ranks that are threads do not mix.
void write_to_stdout(std::string_view text);
}  // namespace internal

// The values, separated by spaces, and a newline, to stdout. Bools print as true and false.
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
