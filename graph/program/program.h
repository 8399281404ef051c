// The executable form of a step on one rank: buffers and steps, as pure data. A program is made
// once and runs many times (graph/run/executor.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
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

inline constexpr int64_t kArenaAlignment = 64;  // bytes, of slices of the arena

// A number for each micro-batch: an index into Program::tables.
using TableId = int32_t;
inline constexpr TableId kNoTable = -1;

// The memory of one value on this rank. It is exactly one of these: a view of another buffer, an
// external tensor bound at each run, a slice of the arena, or nothing (this rank holds no part).
struct Buffer {
  MetaPtr meta = nullptr;
  BufferId base = kNoBuffer;
  int64_t offset = 0;  // of a view, in elements from the base's first
  // Of a view: elements to add to the offset in each micro-batch.
  TableId begins = kNoTable;
  int32_t external = -1;
  int64_t arena_offset = -1;  // bytes; in a frame, from its start
  int32_t frame = -1;         // the frame of a slice of the arena; -1: the slice does not move
  // Each micro-batch has a value of its own here.
  bool is_per_micro_batch = false;
  // Of a positional kernel's operand: the rank whose part the meta is in each micro-batch, where
  // micro-batches count as ranks. The meta is the one in the first micro-batch that uses it.
  TableId holders = kNoTable;
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// The slices of the arena that keep what a micro-batch makes in one block and needs in another: one
// for each micro-batch, at places that are free while it is in flight.
struct Frame {
  int64_t bytes = 0;
  std::vector<int64_t> arena_offsets = {};  // by micro-batch; -1: it does not use the frame
  friend bool operator==(const Frame&, const Frame&) = default;
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

// Adds up what the ranks of a group have: outputs[i] becomes the sum of their inputs[i], or the
// mean if that is what the route computes. Inputs are contiguous; outputs are views of one buffer,
// in order and without gaps. One transfer of many gradients takes much less time than many
// transfers.
struct BucketStep {
  std::shared_ptr<const boxing::Route> route;  // of all elements, as a tensor of one dim
};

// Converts inputs[0], in a blocked layout, to outputs[0], which is strided.
struct ConvertStep {};

// Starts sending inputs[0], contiguous, to a rank. The tag of micro-batch m's message is tag + m.
struct SendStep {
  int64_t peer = -1;
  int64_t tag = 0;
};

// Starts receiving outputs[0], contiguous, from a rank. Its tags are those of a SendStep.
struct ReceiveStep {
  int64_t peer = -1;
  int64_t tag = 0;
};

// Ends what a step started, and has the buffers of that step: the send or the receive of the same
// micro-batch, or a collective in the background of the same run of the block.
struct WaitStep {
  size_t started = 0;  // the step that started it
};

using StepBody = std::variant<KernelStep, CollectiveStep, BucketStep, ConvertStep, SendStep,
                              ReceiveStep, WaitStep>;

// In which runs of its block a step runs.
enum class StepTurn : uint8_t { kEvery, kFirst, kLater };

struct Step {
  StepBody body = {};
  std::vector<BufferId> inputs = {};
  std::vector<BufferId> outputs = {};
  BufferId guard = kNoBuffer;  // a bool scalar; the step is skipped if it is false
  // Of a collective or a bucket: the communication thread carries it out while the next steps run,
  // until a WaitStep ends it. Its route has one step.
  bool in_background = false;
  StepTurn turn = StepTurn::kEvery;
  // The line of user code, the module that called the op there, and the part of the training step.
  // Empty for copies, sums and conversions that the program adds.
  std::string file = {};
  uint32_t line = 0;
  std::string module = {};
  Phase phase = Phase::kForward;

  // Returns the step's body if it is a `Body`, otherwise null.
  template <class Body>
  const Body* as() const {
    return std::get_if<Body>(&body);
  }

  template <class Body>
  Body* as() {
    return std::get_if<Body>(&body);
  }

  // True if a WaitStep must end what the step starts: of a send, a receive, and in the background.
  bool starts() const;
  // Returns the op that a kernel or a collective runs, otherwise null.
  const OpCall* op_call() const;
  // Returns the route that a collective or a bucket takes, otherwise null.
  const boxing::Route* route() const;
  // Returns the name of the op, or sum_bucket, mean_bucket, to_strided, send, recv or wait.
  std::string_view name() const;
};

// Steps that run together: what a stage does of one kind (forward, backward, gradients of weights)
// for a micro-batch, the start or the end of a receive, the wait for a send, or what comes before
// or after all of them.
// Micro-batches of equal sizes share a block.
struct Block {
  size_t first_step = 0;
  size_t end_step = 0;
  friend bool operator==(const Block&, const Block&) = default;
};

using BlockIndex = int32_t;
inline constexpr int32_t kNoMicroBatch = -1;

struct BlockRun {
  BlockIndex block = 0;
  int32_t micro_batch = kNoMicroBatch;
  bool is_first = true;  // of the runs that add to the same sums
  friend bool operator==(const BlockRun&, const BlockRun&) = default;
};

// A group of runs, from first_run to the next part: an action of a pipeline ("1F0") with the
// receives and waits around it, or what comes before or after all actions.
struct ProgramPart {
  size_t first_run = 0;
  std::string name;
  friend bool operator==(const ProgramPart&, const ProgramPart&) = default;
};

// The program of one rank, or of a class of ranks whose programs differ only in the positions of
// their parts in the logical tensors.
struct Program {
  int64_t rank = 0;  // the rank of the class whose metas the program has
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<Block> blocks = {};   // in order of their steps
  std::vector<BlockRun> runs = {};  // in the order in which they happen; empty: all steps run once
  std::vector<std::vector<int64_t>> tables = {};  // by micro-batch
  std::vector<Frame> frames = {};
  std::vector<ProgramPart> parts = {};  // for timelines; empty: all runs are one part
  // External i is passed at each run: first graph inputs, then captures, then results.
  std::vector<BufferId> externals;
  int64_t arena_bytes = 0;
  int64_t num_draws = 0;  // random streams that a run uses; the same number on every rank

  const Buffer& buffer(BufferId id) const { return buffers[static_cast<size_t>(id)]; }

  Buffer& buffer(BufferId id) { return buffers[static_cast<size_t>(id)]; }

  const Block& block(BlockIndex index) const { return blocks[static_cast<size_t>(index)]; }

  // Returns a table's number for a micro-batch.
  int64_t number(TableId table, int32_t micro_batch) const {
    return tables[static_cast<size_t>(table)][static_cast<size_t>(micro_batch)];
  }

  // Returns the buffer whose memory a buffer shows.
  BufferId root_of(BufferId id) const {
    while (buffer(id).base != kNoBuffer)
      id = buffer(id).base;
    return id;
  }
};

// The runs of a program; the one run of all steps if the program has no blocks.
class ProgramRuns {
 public:
  // The program must outlive it.
  explicit ProgramRuns(const Program& program);
  ProgramRuns(const ProgramRuns&) = delete;
  ProgramRuns& operator=(const ProgramRuns&) = delete;

  std::span<const Block> blocks() const { return blocks_; }

  std::span<const BlockRun> runs() const { return runs_; }

  const Block& block_of(const BlockRun& run) const {
    return blocks_[static_cast<size_t>(run.block)];
  }

 private:
  // Of a program without blocks.
  Block whole_;
  BlockRun once_;
  std::span<const Block> blocks_;
  std::span<const BlockRun> runs_;
};

// Whether a step with this turn runs in a run of its block.
inline bool takes_turn(StepTurn turn, const BlockRun& run) {
  return turn == StepTurn::kEvery || (turn == StepTurn::kFirst) == run.is_first;
}

// By rank. Ranks of one class share a program.
using Programs = std::vector<std::shared_ptr<const Program>>;

// The program as `rank`, which is the program's or one of its class, runs it.
std::string to_string(const Program& program, int64_t rank);
std::string to_string(const Program& program);

}  // namespace flow::graph
