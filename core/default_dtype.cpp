#include "core/default_dtype.h"

#include <atomic>

#include "core/context.h"
#include "core/error.h"

namespace flow {

namespace {

// The default dtype of one rank; the rank's threads share it.
struct DefaultDType {
  std::atomic<DType> dtype{DType::kFloat32};
};

DefaultDType& of_this_rank() {
  return thread_state().context->slot<DefaultDType>();
}

}  // namespace

void set_default_dtype(DType dtype) {
  if (!is_floating(dtype)) {
    throw InvalidArgument(
        str("[set_default_dtype] ", dtype, " is not floating; give float32 or float64"));
  }
  of_this_rank().dtype = dtype;
}

DType default_dtype() {
  return of_this_rank().dtype;
}

}  // namespace flow
