#include "graph/program/buffer_uses.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace flow::graph {

BlockTimes::BlockTimes(const Program& program) {
  const ProgramRuns all(program);
  times_.resize(all.blocks().size());
  for (const BlockRun& run : all.runs()) {
    ++times_[static_cast<size_t>(run.block)].num_runs;
    num_micro_batches_ = std::max(num_micro_batches_, run.micro_batch + 1);
  }
  size_t position = 0;
  for (const BlockRun& run : all.runs()) {
    Times& times = times_[static_cast<size_t>(run.block)];
    times.first = std::min(times.first, position);
    times.last = position;
    if (run.micro_batch != kNoMicroBatch)
      times.by_micro_batch.emplace_back(run.micro_batch, position);
    const Block& block = all.block_of(run);
    position += times.num_runs == 1 ? block.end_step - block.first_step : 1;
  }
  for (Times& times : times_)
    std::sort(times.by_micro_batch.begin(), times.by_micro_batch.end());
}

size_t BlockTimes::at(BlockIndex block, int32_t micro_batch) const {
  const auto& times = of(block).by_micro_batch;
  const auto found =
      std::lower_bound(times.begin(), times.end(), std::pair(micro_batch, size_t{0}));
  return found == times.end() || found->first != micro_batch ? kNever : found->second;
}

BufferUses::BufferUses(const Program& program)
    : program_(program),
      runs_(program),
      times_(program),
      uses_(program.buffers.size()),
      is_kept_(program.buffers.size(), false),
      is_transient_(program.buffers.size(), false) {
  find_parts();
  find_uses();
  classify();
  find_groups();
}

void BufferUses::find_parts() {
  for (const Step& step : program_.steps) {
    if (step.as<BucketStep>() == nullptr) continue;
    for (const BufferId id : step.outputs) {
      const Buffer& part = program_.buffer(id);
      const auto size = static_cast<int64_t>(dtype_size(part.meta->dtype));
      parts_[program_.root_of(id)][part.offset * size];
    }
  }
}

void BufferUses::use(BufferId id, BlockIndex block, size_t step) {
  if (id == kNoBuffer) return;
  const auto note = [&](std::vector<BufferUse>& uses) {
    if (uses.empty() || uses.back().block != block) uses.push_back({block, step, step});
    uses.back().last_step = step;
  };
  int64_t begin = 0;  // of the view, in bytes
  BufferId root = id;
  for (; program_.buffer(root).base != kNoBuffer; root = program_.buffer(root).base) {
    const Buffer& view = program_.buffer(root);
    begin += view.offset * static_cast<int64_t>(dtype_size(view.meta->dtype));
  }
  note(uses_[root]);
  const auto parts = parts_.find(root);
  if (parts != parts_.end()) note(std::prev(parts->second.upper_bound(begin))->second);
}

void BufferUses::find_uses() {
  for (size_t b = 0; b < runs_.blocks().size(); ++b) {
    const auto block = static_cast<BlockIndex>(b);
    if (times_.num_runs(block) == 0) continue;
    for (size_t i = runs_.blocks()[b].first_step; i < runs_.blocks()[b].end_step; ++i) {
      for (const BufferId id : program_.steps[i].inputs)
        use(id, block, i);
      for (const BufferId id : program_.steps[i].outputs)
        use(id, block, i);
      use(program_.steps[i].guard, block, i);
    }
  }
}

void BufferUses::classify() {
  for (BufferId id = 0; uses_.contains(id); ++id) {
    const Buffer& buffer = program_.buffer(id);
    const std::vector<BufferUse>& uses = uses_[id];
    if (uses.empty() || buffer.external >= 0 || !buffer.meta->is_held) continue;
    const bool is_repeated = std::any_of(uses.begin(), uses.end(), [&](const BufferUse& use) {
      return times_.num_runs(use.block) > 1;
    });
    if (!buffer.is_per_micro_batch || !is_repeated) {
      fixed_.push_back(id);
    } else if (uses.size() > 1) {
      kept_.push_back(id);
      is_kept_[id] = true;
    } else {
      transient_.push_back(id);
      is_transient_[id] = true;
    }
  }
}

void BufferUses::find_groups() {
  std::vector<BufferId> by_time = transient_;
  const auto block_of = [&](BufferId id) { return uses_[id][0].block; };
  std::stable_sort(by_time.begin(), by_time.end(), [&](BufferId a, BufferId b) {
    return times_.first(block_of(a)) < times_.first(block_of(b));
  });
  for (const BufferId id : by_time) {
    const size_t first = times_.first(block_of(id)), last = times_.last(block_of(id));
    if (groups_.empty() || group_times_.back().second < first) {
      groups_.emplace_back();
      group_times_.emplace_back(first, last);
    }
    groups_.back().push_back(id);
    group_times_.back().second = std::max(group_times_.back().second, last);
  }
}

bool BufferUses::precedes(BlockIndex a, BlockIndex b) const {
  const auto [known, is_new] = precedes_.try_emplace({a, b}, true);
  if (!is_new) return known->second;
  for (int32_t m = 0; m < times_.num_micro_batches(); ++m) {
    const size_t time = times_.at(a, m);
    if (time != BlockTimes::kNever && time > times_.at(b, m)) known->second = false;
  }
  return known->second;
}

std::pair<size_t, size_t> BufferUses::steps_in(BufferId id, BlockIndex block) const {
  const Block& whole = runs_.blocks()[static_cast<size_t>(block)];
  std::pair<size_t, size_t> steps{whole.first_step, whole.end_step - 1};
  bool is_first = true, is_last = true;
  for (const BufferUse& use : uses_[id]) {
    is_first = is_first && precedes(block, use.block);
    is_last = is_last && precedes(use.block, block);
  }
  for (const BufferUse& use : uses_[id]) {
    if (use.block != block) continue;
    if (is_first) steps.first = use.first_step;
    if (is_last) steps.second = use.last_step;
  }
  return steps;
}

Lifetime BufferUses::lifetime_of(BufferId id, const std::vector<BufferUse>& uses) const {
  Lifetime life{.buffer = id,
                .bytes = bytes_of(id),
                .first = SIZE_MAX,
                .last = 0,
                .begin = program_.buffer(id).arena_offset};
  for (const BufferUse& use : uses) {
    size_t first = times_.first(use.block), last = times_.last(use.block);
    if (times_.num_runs(use.block) == 1) {
      const size_t begin = runs_.blocks()[static_cast<size_t>(use.block)].first_step;
      first += use.first_step - begin;
      last += use.last_step - begin;
    }
    life.first = std::min(life.first, first);
    life.last = std::max(life.last, last);
  }
  return life;
}

void BufferUses::add_part_lifetimes(BufferId id, std::vector<Lifetime>& lives) const {
  const auto& parts = parts_.at(id);
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    Lifetime life = lifetime_of(id, part->second);
    life.is_part = true;
    life.part_begin = part->first;
    life.bytes =
        (std::next(part) == parts.end() ? bytes_of(id) : std::next(part)->first) - part->first;
    if (life.begin >= 0) life.begin += part->first;
    lives.push_back(life);
  }
}

void BufferUses::add_frame_lifetimes(std::vector<Lifetime>& lives) const {
  std::vector<std::vector<BlockIndex>> blocks(program_.frames.size());
  for (BufferId id = 0; uses_.contains(id); ++id) {
    if (!is_moving(id) || program_.buffer(id).frame < 0) continue;
    for (const BufferUse& use : uses_[id])
      blocks[static_cast<size_t>(program_.buffer(id).frame)].push_back(use.block);
  }
  for (size_t i = 0; i < program_.frames.size(); ++i) {
    const Frame& frame = program_.frames[i];
    std::sort(blocks[i].begin(), blocks[i].end());
    blocks[i].erase(std::unique(blocks[i].begin(), blocks[i].end()), blocks[i].end());
    for (int32_t m = 0; m < times_.num_micro_batches(); ++m) {
      Lifetime life{.buffer = kNoBuffer,
                    .bytes = frame.bytes,
                    .first = SIZE_MAX,
                    .last = 0,
                    .frame = static_cast<int32_t>(i),
                    .micro_batch = m};
      if (!frame.arena_offsets.empty()) life.begin = frame.arena_offsets[static_cast<size_t>(m)];
      for (const BlockIndex block : blocks[i]) {
        const size_t time = times_.at(block, m);
        if (time == BlockTimes::kNever) continue;
        life.first = std::min(life.first, time);
        life.last = std::max(life.last, time);
      }
      if (life.first != SIZE_MAX) lives.push_back(life);
    }
  }
}

void BufferUses::add_group_lifetimes(std::vector<Lifetime>& lives) const {
  for (size_t i = 0; i < groups_.size(); ++i) {
    int64_t begin = INT64_MAX, end = 0;
    for (const BufferId id : groups_[i]) {
      const Buffer& buffer = program_.buffer(id);
      if (buffer.frame >= 0) continue;
      begin = std::min(begin, buffer.arena_offset);
      end = std::max(end, buffer.arena_offset + std::max<int64_t>(bytes_of(id), 1));
    }
    if (begin >= end) continue;
    lives.push_back({.buffer = kNoBuffer,
                     .bytes = end - begin,
                     .first = group_times_[i].first,
                     .last = group_times_[i].second,
                     .group = static_cast<int32_t>(i),
                     .begin = begin});
  }
}

std::vector<Lifetime> BufferUses::lifetimes() const {
  std::vector<Lifetime> all;
  for (const BufferId id : fixed_) {
    if (parts_.contains(id)) {
      add_part_lifetimes(id, all);
    } else {
      all.push_back(lifetime_of(id, uses_[id]));
    }
  }
  add_frame_lifetimes(all);
  add_group_lifetimes(all);
  std::stable_sort(all.begin(), all.end(), [](const Lifetime& a, const Lifetime& b) {
    return std::tuple(a.first, a.buffer) < std::tuple(b.first, b.buffer);
  });
  return all;
}

std::pair<int64_t, size_t> BufferUses::transient_peak(BlockIndex block) const {
  const Block& whole = runs_.blocks()[static_cast<size_t>(block)];
  std::vector<int64_t> change(whole.end_step - whole.first_step + 1, 0);
  for (const BufferId id : transient_) {
    const BufferUse& use = uses_[id][0];
    if (use.block != block || program_.buffer(id).frame >= 0) continue;
    change[use.first_step - whole.first_step] += bytes_of(id);
    change[use.last_step + 1 - whole.first_step] -= bytes_of(id);
  }
  std::pair<int64_t, size_t> peak{0, whole.first_step};
  int64_t alive = 0;
  for (size_t i = 0; i + 1 < change.size(); ++i) {
    alive += change[i];
    if (alive > peak.first) peak = {alive, whole.first_step + i};
  }
  return peak;
}

MemoryPeak memory_peak(const BufferUses& uses) {
  const Program& program = uses.program();
  const ProgramRuns runs(program);
  std::map<size_t, int64_t> changes;
  for (const Lifetime& life : uses.lifetimes()) {
    if (life.group >= 0) continue;
    changes[life.first] += life.bytes;
    changes[life.last + 1] -= life.bytes;
  }
  MemoryPeak peak;
  int64_t alive = 0;
  size_t position = 0;
  auto change = changes.begin();
  // At a position where nothing changes, as much is alive as before.
  const auto look = [&](int64_t more, size_t step) {
    for (; change != changes.end() && change->first <= position; ++change)
      alive += change->second;
    ++position;
    if (alive + more > peak.bytes) peak = {alive + more, &program.steps[step]};
  };
  std::map<BlockIndex, std::pair<int64_t, size_t>> transient;
  for (const BlockRun& run : runs.runs()) {
    const Block& block = runs.block_of(run);
    if (uses.times().num_runs(run.block) == 1) {
      for (size_t step = block.first_step; step < block.end_step; ++step)
        look(0, step);
      continue;
    }
    const auto [known, is_new] = transient.try_emplace(run.block);
    if (is_new) known->second = uses.transient_peak(run.block);
    look(known->second.first, known->second.second);
  }
  return peak;
}

}  // namespace flow::graph
