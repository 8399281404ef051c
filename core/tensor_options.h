// What creation functions take besides the shape.
#pragma once

#include <optional>
#include <string>

#include "core/dtype.h"
#include "core/placement.h"
#include "core/sbp.h"

namespace flow {

// Layout and dtype of a tensor to be made. Fields stand in PyTorch's order.
struct TensorOptions {
  std::optional<DType> dtype = std::nullopt;  // unset: from the data, else float32
  std::string device = {};                    // "cpu", "cuda"; empty: the placement's, else cpu
  Placement placement = {};                   // undefined: local, or PlacementGuard's
  NdSbp sbp = {};
  bool requires_grad = false;
};

}  // namespace flow
