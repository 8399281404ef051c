// Tensors whose values exist only when a program runs, as the folders below the tracer see them.
#pragma once

#include <memory>

#include "core/site.h"
#include "core/tensor.h"
#include "core/tensor_impl.h"

namespace flow {

// A tracer's data of a tensor, with the user's line that made the tensor.
struct SitedTraceSlot : TraceSlot {
  Site made_at = Site::none();
};

// Returns a second tensor that shares the data of `tensor` but has no autograd history. While a
// trace runs, an alias of an outside tensor stands for whatever memory that tensor has at each run.
Tensor alias_of(const Tensor& tensor);

// Returns the user's line that made a traced tensor; it is not known for other tensors.
Site line_that_made(const Tensor& tensor);

// Throws InvalidArgument because a call needs the memory of a traced tensor, or during a trace that
// of an outside tensor. The error has the given line, or the one that made the tensor if that is
// not known.
[[noreturn]] void throw_traced(const char* op, const Tensor& tensor, Site site);

}  // namespace flow
