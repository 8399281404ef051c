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

// The layouts of a call's inputs.
using Layouts = std::vector<NdSbp>;

// True if the call takes inputs whose layouts may be chosen, and has a result to compare.
bool has_layouts(const OpSample& sample, const Draw& draw);

// Random layouts of the inputs along each of `num_axes` placement axes; equal draws get equal
// layouts. Tensors that are written have one layout that is not partial. So do leaves, which are
// the inputs of the draw's floating dtype that are not in `constant_inputs` (bit i).
std::vector<Layouts> choose_layouts(const Draw& draw, int64_t num_axes, size_t count,
                                    uint32_t constant_inputs);

// Dispatches the call on the ranks of `placement` (0, 1, …) with its inputs in each of the layouts,
// including layouts for which the op has no signature, and on the whole inputs. Returns one line
// for each choice that throws, or whose logical results or gradients of the leaves differ.
std::string run_on_ranks(const Draw& draw, const Placement& placement,
                         const std::vector<Layouts>& layouts, uint32_t constant_inputs);

// Like run_on_ranks, but compares the call when it is traced, lowered and executed on each rank
// with the call executed directly: parts and layouts of the results must be equal bit for bit.
std::string trace_on_ranks(const Draw& draw, const Placement& placement,
                           const std::vector<Layouts>& layouts);

}  // namespace flow::contract
