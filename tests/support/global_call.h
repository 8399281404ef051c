// A call of global tensors among thread ranks: choice of a signature, redistribution, kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/op_samples.h"
#include "tests/support/sharded_call.h"

namespace flow::contract {

// A `constant_inputs` that leaves no input for gradients.
inline constexpr uint32_t kAllConstant = ~0U;

// Random layouts of the inputs, the same for the same draw. Tensors that are written have one
// layout, which is not partial, and so are leaves: float64 inputs that are not in `constant_inputs`
// (bit i).
std::vector<std::vector<Sbp>> choose_layouts(const Draw& draw, size_t count,
                                             uint32_t constant_inputs);

// Dispatches the call on `num_ranks` ranks with its inputs in each of the layouts, whether the op
// has a signature for them or not, and on the whole inputs. One line for each whose logical
// results, or whose gradients by the leaves, differ from those, or that throws.
std::string run_on_ranks(const Draw& draw, int64_t num_ranks,
                         const std::vector<std::vector<Sbp>>& layouts, uint32_t constant_inputs);

// The same for the call traced, lowered and executed on each rank, beside the call at once: parts
// and layouts of the results are equal bit by bit.
std::string trace_on_ranks(const Draw& draw, int64_t num_ranks,
                           const std::vector<std::vector<Sbp>>& layouts);

}  // namespace flow::contract
