// Looking at values while a program runs: in eager mode and, at each run, in compiled steps.
//
//   h = flow::graph_print(blocks(h), "h");     // prints a line and goes on with the same values
//   flow::check_finite(logits, "logits");      // the result need not be used
//
// Both return a tensor with the values and the layout of `x`, through which gradients pass
// unchanged. Graphs run them whether or not the result is used, once for each micro-batch; what
// recompute() runs a second time, they skip. Ranks look at their own part and never communicate.
// They cost a copy of `x`.
#pragma once

#include <string_view>

#include "core/tensor.h"

namespace flow {

// Prints to stdout, as flow::print does, a line with name, rank, shape, dtype and layout, minimum,
// maximum and mean of the finite values of this rank's part, and the first and last values. Without
// a name, the line shows the call's place in the program. Names are cut after 95 bytes.
Tensor graph_print(const TensorArg& x, std::string_view name = "");

// Throws InvalidArgument if a value of this rank's part is infinite or NaN: with the name, the
// module and line of the call, and the index of the first bad value. All ranks of a step get the
// error.
Tensor check_finite(const TensorArg& x, std::string_view name = "");

}  // namespace flow
