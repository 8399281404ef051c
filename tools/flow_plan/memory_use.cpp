#include "tools/flow_plan/memory_use.h"

#include <algorithm>
#include <map>

#include "graph/program/buffer_uses.h"

namespace flow::tools {

namespace {

using graph::BufferId;
using graph::Lifetime;
using graph::Program;

using OwnerId = size_t;

// Values of one owner that begin or end to be in use.
struct Change {
  OwnerId owner;
  int64_t bytes;
  int64_t num_values;
};

class MemoryStory {
 public:
  explicit MemoryStory(const Program& program)
      : program_(program), uses_(program), makers_(program), runs_(program) {
    for (const Lifetime& life : uses_.lifetimes()) {
      if (life.group >= 0) continue;  // what its blocks use follows from each run
      for (const Change& part : parts_of(life)) {
        changes_[life.first].push_back(part);
        changes_[life.last + 1].push_back({part.owner, -part.bytes, -part.num_values});
      }
    }
  }

  size_t num_owners() const { return origins_.size(); }

  const Origin& origin(OwnerId owner) const { return origins_[owner]; }

  // Calls visit(position, total bytes, changes that hold at this position only) for every position
  // in turn; alive() are the bytes by owner without these changes.
  template <class Visit>
  void tell(const Visit& visit) {
    alive_.assign(origins_.size(), {});
    total_ = 0;
    size_t position = 0;
    auto next = changes_.begin();
    const auto look = [&](const std::vector<Change>& now) {
      for (; next != changes_.end() && next->first <= position; ++next) {
        for (const Change& change : next->second)
          apply(change);
      }
      int64_t total = total_;
      for (const Change& change : now)
        total += change.bytes;
      visit(position++, total, now);
    };
    for (const graph::BlockRun& run : runs_.runs()) {
      const graph::Block& block = runs_.block_of(run);
      if (uses_.times().num_runs(run.block) == 1) {
        for (size_t i = block.first_step; i < block.end_step; ++i)
          look({});
      } else {
        look(transient(run.block));
      }
    }
  }

  struct Alive {
    int64_t bytes = 0;
    int64_t num_values = 0;
  };

  const std::vector<Alive>& alive() const { return alive_; }

 private:
  OwnerId owner_of(const Origin& origin) {
    const auto [known, is_new] = ids_.try_emplace(origin, origins_.size());
    if (is_new) origins_.push_back(origin);
    return known->second;
  }

  int64_t bytes_of(BufferId id) const {
    return static_cast<int64_t>(program_.buffer(id).meta->local_bytes());
  }

  void apply(const Change& change) {
    if (change.owner >= alive_.size()) alive_.resize(change.owner + 1);
    alive_[change.owner].bytes += change.bytes;
    alive_[change.owner].num_values += change.num_values;
    total_ += change.bytes;
  }

  std::vector<Change> parts_of(const Lifetime& life) {
    if (life.frame >= 0) return frame_parts(life.frame);
    return {{owner_of(makers_.origin_of(life.buffer, life.part_begin)), life.bytes, 1}};
  }

  // A frame is in use as a whole. Each of its bytes counts for the largest value that has it; what
  // no value has is padding.
  const std::vector<Change>& frame_parts(int32_t frame) {
    std::vector<Change>& parts = frames_[frame];
    if (!parts.empty()) return parts;
    std::vector<BufferId> values;
    for (const BufferId id : uses_.kept()) {
      if (program_.buffer(id).frame == frame) values.push_back(id);
    }
    std::stable_sort(values.begin(), values.end(),
                     [&](BufferId a, BufferId b) { return bytes_of(a) > bytes_of(b); });
    std::vector<int64_t> cuts;  // where values begin and end
    for (const BufferId id : values) {
      const int64_t begin = program_.buffer(id).arena_offset;
      cuts.insert(cuts.end(), {begin, begin + bytes_of(id)});
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<bool> is_taken(cuts.size(), false);  // by the piece that begins there
    int64_t rest = program_.frames[static_cast<size_t>(frame)].bytes;
    for (const BufferId id : values) {
      const int64_t begin = program_.buffer(id).arena_offset, end = begin + bytes_of(id);
      int64_t own = 0;
      auto cut = std::lower_bound(cuts.begin(), cuts.end(), begin);
      for (; cut != cuts.end() && *cut < end; ++cut) {
        const auto piece = static_cast<size_t>(cut - cuts.begin());
        if (!is_taken[piece]) own += cuts[piece + 1] - *cut;
        is_taken[piece] = true;
      }
      own = std::min(own, rest);
      if (own > 0) parts.push_back({owner_of(makers_.origin_of(id)), own, 1});
      rest -= own;
    }
    if (rest > 0)
      parts.push_back({owner_of({.op = "unused in frames", .module = {}, .line = {}}), rest, 0});
    return parts;
  }

  // What does not outlive a run of the block, at the step at which it is most.
  const std::vector<Change>& transient(graph::BlockIndex block) {
    const auto [known, is_new] = transient_.try_emplace(block);
    if (!is_new) return known->second;
    const size_t peak = uses_.transient_peak(block).second;
    for (const BufferId id : uses_.transient()) {
      const graph::BufferUse& use = uses_.of(id)[0];
      if (use.block != block || program_.buffer(id).frame >= 0) continue;
      if (use.first_step > peak || use.last_step < peak) continue;
      known->second.push_back({owner_of(makers_.origin_of(id)), bytes_of(id), 1});
    }
    return known->second;
  }

  const Program& program_;
  graph::BufferUses uses_;
  Makers makers_;
  graph::ProgramRuns runs_;
  std::map<Origin, OwnerId> ids_;
  std::vector<Origin> origins_;
  std::map<size_t, std::vector<Change>> changes_;  // by position
  std::map<int32_t, std::vector<Change>> frames_;
  std::map<graph::BlockIndex, std::vector<Change>> transient_;
  std::vector<Alive> alive_;
  int64_t total_ = 0;
};

}  // namespace

MemoryUse memory_use(const Program& program, size_t most_columns, size_t most_owners) {
  MemoryStory story(program);
  MemoryUse use;
  story.tell([&](size_t position, int64_t bytes, const auto&) {
    use.num_positions = position + 1;
    if (bytes <= use.peak_bytes) return;
    use.peak_bytes = bytes;
    use.peak_position = position;
  });
  std::map<OwnerId, MemoryStory::Alive> at_peak;
  story.tell([&](size_t position, int64_t, const auto& now) {
    if (position != use.peak_position) return;
    for (OwnerId owner = 0; owner < story.alive().size(); ++owner) {
      if (story.alive()[owner].bytes > 0) at_peak[owner] = story.alive()[owner];
    }
    for (const auto& change : now) {
      at_peak[change.owner].bytes += change.bytes;
      at_peak[change.owner].num_values += change.num_values;
    }
  });
  std::vector<OwnerId> owners;
  for (const auto& [owner, alive] : at_peak)
    owners.push_back(owner);
  std::stable_sort(owners.begin(), owners.end(),
                   [&](OwnerId a, OwnerId b) { return at_peak[a].bytes > at_peak[b].bytes; });
  for (const OwnerId owner : owners)
    use.at_peak.push_back({story.origin(owner), at_peak[owner].bytes, at_peak[owner].num_values});
  use.shown = std::min(most_owners, owners.size());
  if (use.num_positions == 0 || most_columns == 0) return use;
  const size_t wide = (use.num_positions + most_columns - 1) / most_columns;
  std::map<OwnerId, size_t> shown;
  for (size_t i = 0; i < use.shown; ++i)
    shown[owners[i]] = i;
  story.tell([&](size_t position, int64_t bytes, const auto& now) {
    if (position / wide == use.columns.size())
      use.columns.push_back({position, -1, std::vector<int64_t>(use.shown, 0)});
    MemoryColumn& column = use.columns.back();
    if (bytes <= column.bytes) return;
    column.position = position;
    column.bytes = bytes;
    for (const auto& [owner, index] : shown)
      column.by_owner[index] = story.alive().size() > owner ? story.alive()[owner].bytes : 0;
    for (const auto& change : now) {
      const auto found = shown.find(change.owner);
      if (found != shown.end()) column.by_owner[found->second] += change.bytes;
    }
  });
  return use;
}

}  // namespace flow::tools
