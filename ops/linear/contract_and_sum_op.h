// The gradients of a weight and of its bias as one op, which the compiler of graphs makes of
// contract_leading and the sum of one of its operands (graph/passes/join_bias_gradients.h).
#pragma once

#include <cstdint>
#include <tuple>

#include "core/kernel.h"
#include "core/op.h"

namespace flow::ops {

// `operand` is the input that is summed over its leading dims, 0 or 1.
struct ContractAndSumAttrs {
  int64_t operand = 0;

  static constexpr auto fields() {
    return std::tuple(key_field("operand", &ContractAndSumAttrs::operand));
  }
};

// y[i, j] = sum over all leading dims of a[..., i] b[..., j], and the sum of a or b over the same
// dims; a: (..., m), b: (..., n), floating -> (m, n), and (m) or (n).
extern const OpDef kContractLeadingAndSum;

// The kernel that runs the kernels of contract_leading and sum_to of `device` one after the other;
// `only` restricts both to one name, as in KernelTable::select.
KernelChoice select_contract_then_sum(const KernelQuery& query, DeviceType device,
                                      std::string_view only = {});

}  // namespace flow::ops
