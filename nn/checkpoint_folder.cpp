#include "nn/checkpoint_folder.h"

#include <cstdio>

#include "core/error.h"

namespace flow::nn {

std::string step_name(int64_t step) {
  char digits[32];
  std::snprintf(digits, sizeof(digits), "%09lld", static_cast<long long>(step));
  return str(kStepPrefix, digits);
}

}  // namespace flow::nn
