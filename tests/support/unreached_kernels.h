// The kernels that a facet of the contract does not reach, with the reasons.
#pragma once

#include <array>
#include <string_view>

namespace flow::contract {

struct UnreachedKernel {
  std::string_view facet;
  std::string_view op;
  // Its name and position among those of the same name (number_name); "isa 2": the second one of
  // every instruction set.
  std::string_view kernel;
  std::string_view reason;
};

inline constexpr std::string_view kTakesBlocked =
    "takes blocked inputs only, which a step does not get from outside";
inline constexpr std::string_view kPartsAreStrided =
    "takes blocked inputs only; simulated ranks hold strided parts";
inline constexpr std::string_view kIsView = "a step makes a view instead";
inline constexpr std::string_view kWritesAnyway = "every call of the op writes its first input";

inline constexpr std::array kUnreachedKernels = {
    UnreachedKernel{"traced", "batch_norm", "isa 2", kTakesBlocked},
    UnreachedKernel{"traced", "batch_norm_backward", "isa 2", kTakesBlocked},
    UnreachedKernel{"traced", "batch_norm_hardtanh", "isa 1", kTakesBlocked},
    UnreachedKernel{"traced", "batch_norm_hardtanh_backward", "isa 1", kTakesBlocked},
    UnreachedKernel{"traced", "conv_backward_weight", "isa 1", kTakesBlocked},
    UnreachedKernel{"traced", "fused_elementwise", "blocked 1", kTakesBlocked},
    UnreachedKernel{"traced", "max_pool", "isa 2", kTakesBlocked},
    UnreachedKernel{"traced", "max_pool_backward", "isa 2", kTakesBlocked},
    UnreachedKernel{"signatures", "batch_norm", "isa 2", kPartsAreStrided},
    UnreachedKernel{"signatures", "batch_norm_backward", "isa 2", kPartsAreStrided},
    UnreachedKernel{"signatures", "batch_norm_hardtanh", "isa 1", kPartsAreStrided},
    UnreachedKernel{"signatures", "batch_norm_hardtanh_backward", "isa 1", kPartsAreStrided},
    UnreachedKernel{"signatures", "conv_backward_weight", "isa 1", kPartsAreStrided},
    UnreachedKernel{"signatures", "fused_elementwise", "blocked 1", kPartsAreStrided},
    UnreachedKernel{"signatures", "max_pool", "isa 2", kPartsAreStrided},
    UnreachedKernel{"signatures", "max_pool_backward", "isa 2", kPartsAreStrided},
    UnreachedKernel{"signatures", "empty", "reference 1", "its result has no values to compare"},
    UnreachedKernel{"traced", "diagonal", "reference 1", kIsView},
    UnreachedKernel{"traced", "expand", "reference 1", kIsView},
    UnreachedKernel{"traced", "permute", "reference 1", kIsView},
    UnreachedKernel{"traced", "reshape", "reference 1", kIsView},
    UnreachedKernel{"traced", "select", "reference 1", kIsView},
    UnreachedKernel{"traced", "slice", "reference 1", kIsView},
    UnreachedKernel{"in place", "index_put", "reference 1", kWritesAnyway},
    UnreachedKernel{"in place", "index_put", "isa 1", kWritesAnyway},
    UnreachedKernel{"in place", "normal_fill", "reference 1", kWritesAnyway},
    UnreachedKernel{"in place", "normal_fill", "isa 1", kWritesAnyway},
    UnreachedKernel{"in place", "uniform_fill", "reference 1", kWritesAnyway},
    UnreachedKernel{"in place", "uniform_fill", "isa 1", kWritesAnyway},
};

}  // namespace flow::contract
