// Signature choice: selects the layouts that the inputs of a call must have before its kernel runs,
// and the layouts that its outputs then have. Pure: a function of logical metas, attrs and the cost
// table, so every rank decides the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boxing/layout.h"
#include "core/dispatch.h"
#include "core/op.h"

namespace flow::boxing {

// Fills op, inputs, outputs and redistributes of `out` for a call whose shape rule returned
// `outputs`. `inputs` has null for an omitted optional tensor. Bit i of `mutates` means that input
// i is written in place: it keeps its layout, and the matching output gets the same layout.
//
// Local inputs give local outputs. An output with has_layout keeps its layout, and the inputs of
// such a call stay unchanged (creation, redistribution). Otherwise the signature with the best
// score wins (boxing/signature_score.h): first those that match the inputs, then those that need no
// communication, then those with the shortest predicted time. Ties go to the fewest moved inputs,
// then the least memory, then the earlier entry of the table; "all B" is the last entry. An op
// without an SBP rule gathers its inputs, with one warning that names it; so does an op with
// data-dependent shape. If no signature allows writing in place to a partial tensor, the result is
// copied into it (Decision::writes_copy). Throws InvalidArgument, naming both operands, if local
// and global inputs, placements or devices are mixed; if a placement names a rank that does not
// exist; or if no signature allows writing in place to a tensor in another layout.
void choose_layouts(const OpDef& op, std::span<const MetaPtr> inputs, const void* attrs,
                    std::span<const OutputSpec> outputs, uint32_t mutates, int64_t rank,
                    Decision& out);

// Returns whether the output of a view op shares no memory with the input on some rank. `input` is
// the first input of the call.
bool copies_view(const Decision& decision, const TensorMeta& input, const void* attrs);

// One valid combination of layouts on all placement axes.
struct NdSignature {
  std::vector<NdSbp> inputs;
  std::vector<NdSbp> outputs;
  friend bool operator==(const NdSignature&, const NdSignature&) = default;
};

// The op's 1-D signatures, with "all B" appended, expanded over the axes of the placement,
// outermost axis first. The rule for an inner axis sees the shapes that remain after the outer axes
// have split. If these differ by one between ranks, a signature must be valid for both sizes.
std::vector<NdSignature> nd_signatures(const OpDef& op, std::span<const MetaPtr> inputs,
                                       const void* attrs, std::span<const OutputSpec> outputs,
                                       const Placement& placement);

}  // namespace flow::boxing
