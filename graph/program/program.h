// The executable form of a step on one rank: buffers and steps, as pure data. A program is made
// once and runs many times (graph/run/executor.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "boxing/route.h"
#include "core/kernel_call.h"
#include "graph/ir/ir.h"

namespace flow::graph {

using BufferId = int32_t;
inline constexpr BufferId kNoBuffer = -1;  // an optional input that was not given

// The memory of one value on this rank. It is exactly one of these: a view of another buffer, an
// external tensor bound at each run, a slice of the arena, or nothing (this rank holds no part).
struct Buffer {
  MetaPtr meta = nullptr;
  BufferId base = kNoBuffer;
  int64_t offset = 0;  // of a view, in elements from the base's first
  int32_t external = -1;
  int64_t arena_offset = -1;  // bytes
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

enum class StepKind : uint8_t {
  // Op on inputs → outputs; a redistribution communicates with the other ranks of its route.
  kKernel,
  kToStrided,  // inputs[0] in a blocked layout → outputs[0]
  kSend,       // starts sending inputs[0], contiguous, to rank `peer` under `tag`
  kRecv,       // outputs[0], contiguous, from rank `peer` under `tag`
  kWait        // ends the send started by step `peer`, which read inputs[0]
};

struct Step {
  StepKind kind = StepKind::kKernel;
  std::vector<BufferId> inputs;
  std::vector<BufferId> outputs;
  // kKernel
  const OpDef* op = nullptr;
  std::vector<std::byte> attrs = {};
  // The route of a redistribution. Each rank makes its kernel when it loads the program.
  std::shared_ptr<const boxing::Route> route = nullptr;
  // The kernel call on the program's rank; null: decided when the program is loaded.
  std::shared_ptr<const KernelCall> call = nullptr;
  KernelScratch scratch = {};   // what the kernel takes in addition to the arena while it runs
  bool on_parts = false;        // the kernel sees local parts: copies and sums that programs add
  BufferId guard = kNoBuffer;   // a bool scalar; the step is skipped if it is false
  int64_t draw = -1;            // of a random op: which draw of the run
  bool draws_globally = false;  // all ranks draw the same values
  // kSend, kRecv, kWait
  int64_t peer = -1;
  int64_t tag = 0;
  // The line of user code.
  std::string file = {};
  uint32_t line = 0;

  const void* raw_attrs() const { return attrs.empty() ? nullptr : attrs.data(); }
};

// A group of steps, from first_step to the next part: an action of a pipeline ("1F0"), or what
// comes before or after all actions.
struct ProgramPart {
  size_t first_step = 0;
  std::string name;
  friend bool operator==(const ProgramPart&, const ProgramPart&) = default;
};

// The program of one rank, or of a class of ranks whose programs differ only in the positions of
// their parts in the logical tensors.
struct Program {
  int64_t rank = 0;  // the rank of the class whose metas the program has
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<ProgramPart> parts = {};  // for timelines; empty: all steps are one part
  // External i is passed at each run: first graph inputs, then captures, then results.
  std::vector<BufferId> externals;
  int64_t arena_bytes = 0;
  int64_t num_draws = 0;  // random streams that a run uses; the same number on every rank

  const Buffer& buffer(BufferId id) const { return buffers[static_cast<size_t>(id)]; }

  Buffer& buffer(BufferId id) { return buffers[static_cast<size_t>(id)]; }
};

// By rank. Ranks of one class share a program.
using Programs = std::vector<std::shared_ptr<const Program>>;

// The program as `rank`, which is the program's or one of its class, runs it.
std::string to_string(const Program& program, int64_t rank);
std::string to_string(const Program& program);

// Returns the meta of a program's buffer on `rank`, which is the program's or one of its class.
// Returns null if its part there has another shape.
MetaPtr local_meta_on(MetaPtr meta, int64_t rank);

// Returns whether `b` is the program `a` for b's rank.
bool same_program_up_to_rank(const Program& a, const Program& b);

// Assigns offsets in the arena by lifetime: buffers whose lifetimes do not overlap may share bytes.
// Sets arena_offset and arena_bytes. First fit with 64-byte alignment.
void plan_memory(Program& program);

}  // namespace flow::graph
