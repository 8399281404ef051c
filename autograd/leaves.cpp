#include "autograd/leaves.h"

#include <map>
#include <mutex>
#include <set>

#include "core/context.h"

namespace flow::autograd {

namespace {

struct Leaves {
  std::mutex mutex;
  std::map<const RankContext*, std::set<const TensorImpl*>> of_rank;  // guarded by mutex
};

// Static tensors may be destroyed after the static objects of this file.
Leaves& leaves() {
  static Leaves& all = *new Leaves;
  return all;
}

}  // namespace

ListedLeaf::ListedLeaf(const TensorImpl& leaf) : rank_(thread_state().context), leaf_(&leaf) {
  Leaves& all = leaves();
  const std::lock_guard lock(all.mutex);
  all.of_rank[rank_].insert(leaf_);
}

ListedLeaf::~ListedLeaf() {
  Leaves& all = leaves();
  const std::lock_guard lock(all.mutex);
  const auto own = all.of_rank.find(rank_);
  own->second.erase(leaf_);
  if (own->second.empty()) all.of_rank.erase(own);
}

std::vector<LeafHandles> count_leaf_handles() {
  std::vector<LeafHandles> handles;
  Leaves& all = leaves();
  const std::lock_guard lock(all.mutex);
  const auto own = all.of_rank.find(thread_state().context);
  if (own == all.of_rank.end()) return handles;
  for (const TensorImpl* leaf : own->second) {
    if (leaf->requires_grad && !leaf->grad_fn) handles.push_back({leaf, leaf->use_count()});
  }
  return handles;
}

}  // namespace flow::autograd
