// The leaves of a rank: the tensors of which the user wants gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor_impl.h"

namespace flow {
class RankContext;
}

namespace flow::autograd {

// While it exists, its tensor is one of the leaves of the rank that made it.
class ListedLeaf {
 public:
  explicit ListedLeaf(const TensorImpl& leaf);
  ~ListedLeaf();
  ListedLeaf(const ListedLeaf&) = delete;
  ListedLeaf& operator=(const ListedLeaf&) = delete;

 private:
  const RankContext* rank_;
  const TensorImpl* leaf_;
};

// A leaf and the number of its handles. The pointer is a name: another thread may destroy the leaf.
struct LeafHandles {
  const TensorImpl* leaf;
  uint32_t count;
};

// The leaves of the calling thread's rank that require grad now, in ascending order.
std::vector<LeafHandles> count_leaf_handles();

}  // namespace flow::autograd
