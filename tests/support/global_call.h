// Calls of global tensors on thread ranks: signature choice, redistribution, kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/op_samples.h"
#include "tests/support/sharded_call.h"

namespace flow::contract {

// A value of `constant_inputs` with which no input gets a gradient.
inline constexpr uint32_t kAllConstant = ~0U;

// Random layouts of the inputs; equal draws get equal layouts. Tensors that are written have one
// layout that is not partial. So do leaves, which are the float64 inputs that are not in
// `constant_inputs` (bit i).
std::vector<std::vector<Sbp>> choose_layouts(const Draw& draw, size_t count,
                                             uint32_t constant_inputs);

// Dispatches the call on `num_ranks` ranks with its inputs in each of the layouts, including
// layouts for which the op has no signature, and on the whole inputs. Returns one line for each
// choice that throws, or whose logical results or gradients of the leaves differ.
std::string run_on_ranks(const Draw& draw, int64_t num_ranks,
                         const std::vector<std::vector<Sbp>>& layouts, uint32_t constant_inputs);

// Like run_on_ranks, but compares the call when it is traced, lowered and executed on each rank
// with the call executed directly: parts and layouts of the results must be equal bit for bit.
std::string trace_on_ranks(const Draw& draw, int64_t num_ranks,
                           const std::vector<std::vector<Sbp>>& layouts);

}  // namespace flow::contract
