// Windows for signals: vectors of weights that fall towards both ends.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

struct WindowOptions {
  // Whether the window is one period of a function, for spectra; else its two halves mirror each
  // other, for filters.
  bool periodic = true;
};

// `length` weights w[i] with t = i / (length if periodic, else length - 1). The dtype is float32
// unless options give another floating one. Throws InvalidArgument for a negative length.
//   bartlett   1 - |2 t - 1|
//   hann       0.5 - 0.5 cos(2 π t)
//   hamming    0.54 - 0.46 cos(2 π t)
//   blackman   0.42 - 0.5 cos(2 π t) + 0.08 cos(4 π t)
//
//   Tensor w = hann_window(400);
Tensor bartlett_window(int64_t length, const WindowOptions& window = {},
                       const TensorOptions& options = {}, Site site = Site::here());
Tensor hann_window(int64_t length, const WindowOptions& window = {},
                   const TensorOptions& options = {}, Site site = Site::here());
Tensor hamming_window(int64_t length, const WindowOptions& window = {},
                      const TensorOptions& options = {}, Site site = Site::here());
Tensor blackman_window(int64_t length, const WindowOptions& window = {},
                       const TensorOptions& options = {}, Site site = Site::here());

}  // namespace flow
