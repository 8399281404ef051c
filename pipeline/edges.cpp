#include "pipeline/edges.h"

#include <algorithm>

namespace flow::pipeline {

namespace {

using graph::Value;

// The ranks that hold the same box, in the order of their positions.
struct Holders {
  Box box;
  std::vector<int64_t> ranks;
};

std::vector<Holders> holders_of(const Value& value) {
  std::vector<Holders> all;
  for (int64_t position = 0; position < value.placement.num_ranks(); ++position) {
    const Box box = box_of(value.shape, value.placement, value.nd_sbp, position);
    if (box.size.numel() == 0) continue;
    auto known =
        std::find_if(all.begin(), all.end(), [&](const Holders& h) { return h.box == box; });
    if (known == all.end()) known = all.insert(all.end(), {box, {}});
    known->ranks.push_back(value.placement.ranks()[static_cast<size_t>(position)]);
  }
  return all;
}

Box intersection(const Box& a, const Box& b) {
  Box common = a;
  for (int64_t d = 0; d < a.begin.size(); ++d) {
    const int64_t end = std::min(a.begin[d] + a.size[d], b.begin[d] + b.size[d]);
    common.begin[d] = std::max(a.begin[d], b.begin[d]);
    common.size[d] = std::max<int64_t>(0, end - common.begin[d]);
  }
  return common;
}

}  // namespace

std::vector<Message> messages_between(const Value& from, const Value& to) {
  const std::vector<Holders> sources = holders_of(from);
  std::vector<Message> messages;
  for (int64_t position = 0; position < to.placement.num_ranks(); ++position) {
    const int64_t rank = to.placement.ranks()[static_cast<size_t>(position)];
    const Box wanted = box_of(to.shape, to.placement, to.nd_sbp, position);
    for (const Holders& source : sources) {
      const Box common = intersection(wanted, source.box);
      if (common.size.numel() == 0) continue;
      const bool has_it =
          std::find(source.ranks.begin(), source.ranks.end(), rank) != source.ranks.end();
      const size_t turn = static_cast<size_t>(position) % source.ranks.size();
      messages.push_back({has_it ? rank : source.ranks[turn], rank, common});
    }
  }
  return messages;
}

}  // namespace flow::pipeline
