// Signature choice: how the inputs of a call must lie before its kernel runs, and how its outputs
// lie afterwards. Pure: a function of logical metas, attrs and the committed cost table, so every
// rank decides the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boxing/layout.h"
#include "core/dispatch.h"
#include "core/op.h"

namespace flow::boxing {

// Fills op, inputs, outputs and redistributes of `out` for a call whose shape rule gave `outputs`.
// `inputs` has null for an optional tensor not given; bit i of `mutates` says that input i is
// written in place, so that its layout is kept and becomes that of the matching output.
//
// Local inputs give local outputs. An output with has_layout keeps it, and the inputs of such a
// call stay as they are (creation, redistribution). Otherwise the signature with the best score
// (boxing/signature_score.h) wins: what fits as it is, then what needs no communication, then the
// least predicted time; ties go to the fewest moved inputs, the least memory, the earlier in the
// table ("all B" comes last). An op without an SBP rule gathers,
// with a warning that names it once; one with data-dependent shape gathers too.
// Throws InvalidArgument naming both when local and global inputs, placements or devices mix, when
// a placement names a rank that does not exist, or when no signature can write in place.
void choose_layouts(const OpDef& op, std::span<const MetaPtr> inputs, const void* attrs,
                    std::span<const OutputSpec> outputs, uint32_t mutates, int64_t rank,
                    Decision& out);

// One legal combination of layouts on all placement axes.
struct NdSignature {
  std::vector<NdSbp> inputs;
  std::vector<NdSbp> outputs;
  friend bool operator==(const NdSignature&, const NdSignature&) = default;
};

// The op's 1-D signatures, "all B" added last, expanded over the axes of the placement, outermost
// first. A rule sees the shapes left after the outer axes have split; where ranks differ in them by
// one, a signature must be legal for both.
std::vector<NdSignature> nd_signatures(const OpDef& op, std::span<const MetaPtr> inputs,
                                       const void* attrs, std::span<const OutputSpec> outputs,
                                       const Placement& placement);

}  // namespace flow::boxing
