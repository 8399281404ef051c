// Signature choice: how the inputs of a call must lie before its kernel runs, and how its outputs
// lie afterwards. Pure: a function of logical metas, attrs and the committed cost table, so every
// rank decides the same.
#pragma once

#include <cstdint>
#include <span>

#include "core/dispatch.h"
#include "core/op.h"

namespace flow::boxing {

// Fills op, inputs, outputs and redistributes of `out` for a call whose shape rule gave `outputs`.
// `inputs` has null for an optional tensor not given; bit i of `mutates` says that input i is
// written in place, so that its layout is kept and becomes that of the matching output.
//
// Local inputs give local outputs. An output with has_layout keeps it, and the inputs of such a
// call stay as they are (creation, redistribution). Otherwise the 1-D signatures of op.sbp are
// expanded over the placement axes, outermost first, with the shapes left after the outer axes have
// split; the signatures with the least predicted redistribution time win, then the least memory,
// then those earlier in the table ("all B" comes last). An op with data-dependent shape gathers.
// Throws InvalidArgument naming both when local and global inputs, placements or devices mix.
void choose_layouts(const OpDef& op, std::span<const MetaPtr> inputs, const void* attrs,
                    std::span<const OutputSpec> outputs, uint32_t mutates, int64_t rank,
                    Decision& out);

}  // namespace flow::boxing
