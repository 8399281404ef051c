// The executable form of a step on one rank: buffers and steps, as pure data. A program is made
// once and runs many times (graph/run/executor.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
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

// The op that a step runs.
struct OpCall {
  const OpDef* op = nullptr;
  std::vector<std::byte> attrs = {};
  // What a kernel takes in addition to the arena while it runs; not stored for collectives.
  KernelScratch scratch = {};

  const void* raw_attrs() const { return attrs.empty() ? nullptr : attrs.data(); }
};

// Runs a kernel on inputs → outputs.
struct KernelStep {
  OpCall op_call = {};
  // The kernel call on the program's rank; null: decided when the program is loaded.
  std::shared_ptr<const KernelCall> kernel_call = nullptr;
  bool on_parts = false;        // the kernel sees local parts: copies and sums that programs add
  int64_t draw = -1;            // of a random op: which draw of the run
  bool draws_globally = false;  // all ranks draw the same values
};

// Moves inputs[0] to the layout of outputs[0], together with the other ranks of the route. Each
// rank makes its kernel when it loads the program.
struct CollectiveStep {
  OpCall op_call = {};
  std::shared_ptr<const boxing::Route> route = nullptr;
};

// Converts inputs[0], in a blocked layout, to outputs[0], which is strided.
struct ConvertStep {};

// Starts sending inputs[0], contiguous, to a rank.
struct SendStep {
  int64_t peer = -1;
  int64_t tag = 0;
};

// Receives outputs[0], contiguous, from a rank.
struct ReceiveStep {
  int64_t peer = -1;
  int64_t tag = 0;
};

// Ends a send, which read inputs[0].
struct WaitStep {
  size_t send = 0;  // the step that started it
};

using StepBody =
    std::variant<KernelStep, CollectiveStep, ConvertStep, SendStep, ReceiveStep, WaitStep>;

struct Step {
  StepBody body = {};
  std::vector<BufferId> inputs = {};
  std::vector<BufferId> outputs = {};
  BufferId guard = kNoBuffer;  // a bool scalar; the step is skipped if it is false
  // The line of user code.
  std::string file = {};
  uint32_t line = 0;

  // Returns the step's body if it is a `Body`, otherwise null.
  template <class Body>
  const Body* as() const {
    return std::get_if<Body>(&body);
  }

  template <class Body>
  Body* as() {
    return std::get_if<Body>(&body);
  }

  // Returns the op that a kernel or a collective runs, otherwise null.
  const OpCall* op_call() const;
  // Returns the name of the op, or to_strided, send, recv or wait.
  std::string_view name() const;
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

}  // namespace flow::graph
