#include "graph/program/memory_check.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "graph/program/buffer_uses.h"
#include "ops/creation/copy_op.h"

namespace flow::graph {

namespace {

std::string describe(const Program& program, size_t index) {
  const Step& step = program.steps[index];
  std::string text = str("step ", index, " (", step.name(), ")");
  if (step.line != 0) text += str(" at ", step.file, ":", step.line);
  return text;
}

[[noreturn]] void fail(const Program& program, const std::string& why) {
  throw InternalError(str("[certificate] memory of rank ", program.rank, ": ", why));
}

// A piece of memory in use for some time.
struct InUse {
  int64_t begin = 0;
  int64_t end = 0;
  size_t first = 0;
  size_t last = 0;
  size_t what = 0;  // for the one who describes it
};

// Returns two pieces that overlap and are in use at the same time, the later one first; none if
// there are no such pieces. Sorts the pieces by first use.
std::optional<std::pair<InUse, InUse>> find_overlap(std::vector<InUse>& all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const InUse& a, const InUse& b) { return a.first < b.first; });
  std::map<int64_t, const InUse*> in_use;  // by begin
  using End = std::pair<size_t, int64_t>;  // the last use, the begin
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  for (const InUse& piece : all) {
    for (; !ends.empty() && ends.top().first < piece.first; ends.pop())
      in_use.erase(ends.top().second);
    const auto after = in_use.lower_bound(piece.begin);
    if (after != in_use.end() && after->second->begin < piece.end)
      return std::pair(piece, *after->second);
    if (after != in_use.begin() && std::prev(after)->second->end > piece.begin)
      return std::pair(piece, *std::prev(after)->second);
    in_use.emplace(piece.begin, &piece);
    ends.emplace(piece.last, piece.begin);
  }
  return std::nullopt;
}

class MemoryCheck {
 public:
  explicit MemoryCheck(const BufferUses& uses) : program_(uses.program()), uses_(uses) {}

  void run(const std::vector<Lifetime>& lives) {
    check_arena(lives);
    const ProgramRuns runs(program_);
    for (size_t block = 0; block < runs.blocks().size(); ++block)
      check_block(static_cast<BlockIndex>(block));
  }

 private:
  int64_t bytes_of(BufferId id) const {
    return std::max<int64_t>(static_cast<int64_t>(program_.buffer(id).meta->local_bytes()), 1);
  }

  std::string name_of(const Lifetime& life) const {
    if (life.buffer != kNoBuffer) return str("buffer ", life.buffer);
    if (life.frame >= 0) return str("frame ", life.frame, " of micro-batch ", life.micro_batch);
    return str("what the runs of blocks need (group ", life.group, ")");
  }

  // A step that uses the buffer of a lifetime at its begin or end.
  std::string at(const Lifetime& life, bool is_end) const {
    if (life.buffer == kNoBuffer) return str("position ", is_end ? life.last : life.first);
    const std::vector<BufferUse>& uses = uses_.of(life.buffer);
    return describe(program_, is_end ? uses.back().last_step : uses.front().first_step);
  }

  void check_arena(const std::vector<Lifetime>& lives) const {
    std::vector<InUse> all;
    for (const Lifetime& life : lives) {
      const int64_t end = life.begin + std::max<int64_t>(life.bytes, 1);
      const bool is_aligned = (life.begin - life.part_begin) % kArenaAlignment == 0;
      if (life.begin < 0 || !is_aligned || end > program_.arena_bytes) {
        fail(program_, str(name_of(life), " of ", at(life, false), " is at ", life.begin, " to ",
                           end, " of ", program_.arena_bytes, " bytes"));
      }
      all.push_back(
          {life.begin, end, life.first, life.last, static_cast<size_t>(&life - lives.data())});
    }
    const auto overlap = find_overlap(all);
    if (!overlap) return;
    const Lifetime &later = lives[overlap->first.what], &earlier = lives[overlap->second.what];
    fail(program_, str(name_of(later), ", used from ", at(later, false), " on, overlaps ",
                       name_of(earlier), ", used until ", at(earlier, true)));
  }

  // What is in the frames, and in the memory that runs of blocks share, while a block runs.
  void check_block(BlockIndex block) const {
    std::map<int32_t, std::vector<InUse>> by_frame;
    for (BufferId id = 0; static_cast<size_t>(id) < program_.buffers.size(); ++id) {
      if (!uses_.is_moving(id)) continue;
      const Buffer& buffer = program_.buffer(id);
      const std::vector<BufferUse>& uses = uses_.of(id);
      if (std::none_of(uses.begin(), uses.end(),
                       [&](const BufferUse& use) { return use.block == block; })) {
        continue;
      }
      const auto [first, last] = uses_.is_kept(id)
                                     ? uses_.steps_in(id, block)
                                     : std::pair(uses[0].first_step, uses[0].last_step);
      const int64_t end = buffer.arena_offset + bytes_of(id);
      const bool is_inside =
          buffer.frame < 0 || end <= program_.frames[static_cast<size_t>(buffer.frame)].bytes;
      if ((buffer.frame < 0 && uses_.is_kept(id)) || buffer.arena_offset % kArenaAlignment != 0 ||
          !is_inside) {
        fail(program_, str("buffer ", id, " of ", describe(program_, first),
                           " is outside of its frame or not aligned"));
      }
      by_frame[buffer.frame].push_back(
          {buffer.arena_offset, end, first, last, static_cast<size_t>(id)});
    }
    for (auto& [frame, pieces] : by_frame) {
      const auto overlap = find_overlap(pieces);
      if (!overlap) continue;
      const auto& [later, earlier] = *overlap;
      fail(program_, str("buffer ", later.what, ", used from ", describe(program_, later.first),
                         " on, overlaps buffer ", earlier.what, ", used until ",
                         describe(program_, earlier.last)));
    }
  }

  const Program& program_;
  const BufferUses& uses_;
};

// Goes through the runs in order and marks what has been written.
class DataCheck {
 public:
  explicit DataCheck(const BufferUses& uses)
      : program_(uses.program()),
        uses_(uses),
        written_(uses.program().buffers.size()),
        num_started_(uses.program().buffers.size(), 0) {
    const auto num_micro_batches = static_cast<size_t>(uses_.times().num_micro_batches());
    for (BufferId id = 0; written_.contains(id); ++id)
      written_[id].assign(uses_.is_kept(id) ? num_micro_batches : 1, false);
  }

  void run() {
    const ProgramRuns runs(program_);
    for (const BlockRun& run : runs.runs()) {
      const Block& block = runs.block_of(run);
      run_ = &run;
      for (size_t i = block.first_step; i < block.end_step; ++i) {
        if (takes_turn(program_.steps[i].turn, run)) check_step(i);
      }
      for (const BufferId id : transient_)
        written_[id][0] = false;
      transient_.clear();
    }
    for (const auto& [step, micro_batch] : started_)
      fail(program_, str("no step waits for the end of ", describe(program_, step)));
  }

 private:
  std::vector<bool>::reference is_written(BufferId root) {
    return written_[root][uses_.is_kept(root) ? static_cast<size_t>(run_->micro_batch) : 0];
  }

  void check_written(size_t step, BufferId id) {
    if (id == kNoBuffer) return;
    const BufferId root = program_.root_of(id);
    const Buffer& buffer = program_.buffer(root);
    if (buffer.external >= 0 || !buffer.meta->is_held || buffer.meta->local_bytes() == 0 ||
        is_written(root)) {
      return;
    }
    fail(program_,
         str(describe(program_, step), " reads buffer ", id, ", which no step has written before"));
  }

  // True if the buffers share memory. Views of different parts of a buffer do not.
  bool overlap(BufferId a, BufferId b) const {
    if (a == kNoBuffer || b == kNoBuffer || program_.root_of(a) != program_.root_of(b))
      return false;
    const auto [a_begin, a_end] = bytes_of(a);
    const auto [b_begin, b_end] = bytes_of(b);
    return a_begin < b_end && b_begin < a_end;
  }

  // Begin and end in the buffer that a view shows; all of it for what moves between micro-batches.
  std::pair<int64_t, int64_t> bytes_of(BufferId id) const {
    const TensorMeta& meta = *program_.buffer(id).meta;
    const auto size = static_cast<int64_t>(dtype_size(meta.dtype));
    int64_t begin = 0, elements = meta.is_contiguous ? meta.local_numel : -1;
    for (; program_.buffer(id).base != kNoBuffer; id = program_.buffer(id).base) {
      if (program_.buffer(id).begins != kNoTable) elements = -1;
      begin += program_.buffer(id).offset *
               static_cast<int64_t>(dtype_size(program_.buffer(id).meta->dtype));
    }
    if (elements < 0) return {0, INT64_MAX};
    return {begin, begin + elements * size};
  }

  void note_started(const Step& step, int32_t change) {
    for (const auto* ids : {&step.inputs, &step.outputs}) {
      for (const BufferId id : *ids)
        num_started_[program_.root_of(id)] += change;
    }
  }

  // True if a step that was started uses one of the step's buffers, in any micro-batch.
  bool meets_started(const Step& step) const {
    const auto is_used = [&](BufferId id) {
      return id != kNoBuffer && num_started_[program_.root_of(id)] > 0;
    };
    return is_used(step.guard) || std::any_of(step.inputs.begin(), step.inputs.end(), is_used) ||
           std::any_of(step.outputs.begin(), step.outputs.end(), is_used);
  }

  // What was started reads its inputs and writes its outputs until it ends.
  void check_started(size_t index) const {
    const Step& step = program_.steps[index];
    if (!meets_started(step)) return;
    for (const auto& [started, micro_batch] : started_) {
      const bool is_same_part = micro_batch == run_->micro_batch;
      const auto shares = [&](BufferId id, const std::vector<BufferId>& with) {
        return std::any_of(with.begin(), with.end(), [&](BufferId it) {
          return overlap(id, it) && (is_same_part || !uses_.is_kept(program_.root_of(id)));
        });
      };
      const Step& other = program_.steps[started];
      bool is_wrong = shares(step.guard, other.outputs);
      for (const BufferId id : step.inputs)
        is_wrong = is_wrong || shares(id, other.outputs);
      for (const BufferId id : step.outputs)
        is_wrong = is_wrong || shares(id, other.outputs) || shares(id, other.inputs);
      if (!is_wrong) continue;
      fail(program_, str(describe(program_, index), " uses a buffer before ",
                         describe(program_, started), " has ended"));
    }
  }

  void check_waits(size_t index, const WaitStep& wait) {
    if (started_.erase({wait.started, run_->micro_batch}) == 0)
      fail(program_, str(describe(program_, index), " waits for a step that has not begun"));
    note_started(program_.steps[wait.started], -1);
  }

  // The sums of a bucket are written while addends of other sums are still to be read.
  void check_addends(size_t index) const {
    const Step& step = program_.steps[index];
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      for (size_t k = 0; k < step.outputs.size(); ++k) {
        const BufferId addend = step.inputs[i], sum = step.outputs[k];
        if (!overlap(addend, sum) || (i == k && bytes_of(addend) == bytes_of(sum))) continue;
        fail(program_, str(describe(program_, index), " writes sum ", k, " over addend ", i,
                           ", which it may not have read yet"));
      }
    }
  }

  void check_step(size_t index) {
    const Step& step = program_.steps[index];
    if (const auto* wait = step.as<WaitStep>()) check_waits(index, *wait);
    if (step.as<BucketStep>() != nullptr) check_addends(index);
    check_started(index);
    const bool only_writes_first = step.op_call() != nullptr && step.op_call()->op == &ops::kCopy;
    for (size_t k = only_writes_first ? 1 : 0; k < step.inputs.size(); ++k)
      check_written(index, step.inputs[k]);
    check_written(index, step.guard);
    for (const BufferId id : step.outputs) {
      if (id == kNoBuffer) continue;
      const BufferId root = program_.root_of(id);
      is_written(root) = true;
      if (uses_.is_moving(root) && !uses_.is_kept(root)) transient_.push_back(root);
    }
    if (!step.starts()) return;
    started_.insert({index, run_->micro_batch});
    note_started(step, 1);
  }

  const Program& program_;
  const BufferUses& uses_;
  const BlockRun* run_ = nullptr;
  // By buffer; of a kept one by micro-batch.
  IdMap<BufferId, std::vector<bool>> written_;
  std::vector<BufferId> transient_;  // written in this run
  // The steps whose end no step has waited for, each with its micro-batch.
  std::set<std::pair<size_t, int32_t>> started_;
  IdMap<BufferId, int32_t> num_started_;  // that use the memory, by root
};

}  // namespace

void check_memory(const BufferUses& uses) {
  const std::vector<Lifetime> lives = uses.lifetimes();
  const bool is_planned =
      std::any_of(lives.begin(), lives.end(), [](const Lifetime& life) { return life.begin >= 0; });
  if (!is_planned) return;
  MemoryCheck(uses).run(lives);
  DataCheck(uses).run();
}

}  // namespace flow::graph
