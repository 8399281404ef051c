// What compiling makes of a traced step: immutable, for all ranks, shared by the thread ranks of a
// process.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "graph/certificate.h"
#include "graph/lower_all.h"
#include "graph/passes/pass.h"

namespace flow::graph {

struct CompiledStep {
  Graph graph;  // after the passes
  std::vector<PassResult> passes;
  Programs programs;  // by rank; only the calling rank's where all tensors are local
  Certificate certificate;

  bool is_global() const { return programs.size() > 1; }

  const Program& program_of(int64_t rank) const {
    return *programs[is_global() ? static_cast<size_t>(rank) : 0];
  }
};

// Runs the passes, makes the programs and certifies them. Throws what certify() throws.
CompiledStep compile_step(Graph traced, PassSet passes, const Lowering& lowering);

// The same step is made once by the first thread rank that asks for it; others wait for it and
// share it, as long as one of them has it. Elsewhere it is made at each call.
std::shared_ptr<const CompiledStep> compile_once(Graph traced, PassSet passes,
                                                 const Lowering& lowering);

}  // namespace flow::graph
