#include "graph/program/compiled_artifact.h"

#include <map>
#include <utility>

#include "core/context.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "graph/program/kernel_binding.h"
#include "graph/program/program_classes.h"

namespace flow::graph {

void load_programs(CompiledArtifact& step, bool for_all_ranks) {
  const Program* own = &step.program_of(env::rank());
  if (!may_run(*own, step.graph))
    throw BadFile("[plan] it is for other local tensors; compile the step again");
  std::map<const Program*, std::shared_ptr<const Program>> loaded;
  for (std::shared_ptr<const Program>& program : step.programs) {
    if (!for_all_ranks && program.get() != own) continue;
    if (!may_run(*program, step.graph)) continue;
    std::shared_ptr<const Program>& ready = loaded[program.get()];
    if (ready == nullptr) {
      auto copy = std::make_shared<Program>(*program);
      bind_kernel_calls(*copy, kernel_table());
      ready = std::move(copy);
    }
    program = ready;
  }
  if (!step.is_global()) step.certificate.ranks[0].rank = env::rank();
  state_scratch(step.certificate, step.programs, RankKind::of(*thread_state().context));
}

int64_t peak_bytes_of(const CompiledArtifact& step, int64_t rank) {
  const RankCertificate& own =
      step.certificate.ranks[step.is_global() ? static_cast<size_t>(rank) : 0];
  int64_t bytes = Storage::block_bytes(own.arena_bytes) + own.scratch_bytes;
  for (const ValueId output : step.graph.outputs) {
    const MetaPtr meta = step.graph.value(output).meta_on(rank);
    bytes += Storage::block_bytes(meta->is_held ? static_cast<int64_t>(meta->local_bytes()) : 0);
  }
  return bytes;
}

}  // namespace flow::graph
