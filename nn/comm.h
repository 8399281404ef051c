// Collectives on local tensors, one tensor per rank. They are differentiable as functions of the
// tensors of all ranks: backward runs the opposite collective, so every rank of the group has to
// run backward.
//
// A group is a list of ranks of the world. The list must be the same, in the same order, on all its
// members; an empty list means all ranks. Roots and peers are ranks of the world. If members differ
// in op, dtype, root or shape (except for the number of rows where that may differ, see below), all
// of them throw DistributedError. Global tensors are InvalidArgument; use to_global to move them.
// Calls in a traced graph are Unsupported. The tensors of a call are all in host memory or all on
// devices. On devices, calls return when their work is queued if the ranks are threads that share a
// device; other data, and messages, go through pinned host memory. Sums have the same bits.
//
//   flow::Tensor mean = flow::comm::all_reduce(x) / flow::env::world_size();
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace flow::comm {

using Ranks = std::vector<int64_t>;

enum class Reduction : uint8_t { kSum, kMax, kMin };

struct ReductionOptions {
  Reduction op = Reduction::kSum;
  Ranks ranks = {};
};

struct GroupOptions {
  Ranks ranks = {};
};

// Every member gets the reduction of x over all members, computed in the order of the list. The
// gradient of a maximum or minimum goes to the elements equal to the result; ties share it equally.
Tensor all_reduce(const TensorArg& x, const ReductionOptions& options = {});
// The root gets the result of all_reduce, the other members zeros. Differentiable for sums only.
Tensor reduce(const TensorArg& x, int64_t root, const ReductionOptions& options = {});
// Reduces x and splits the rows (dim 0) of the result into balanced parts, one for each member.
// Differentiable for sums only.
Tensor reduce_scatter(const TensorArg& x, const ReductionOptions& options = {});
// Concatenates the x of all members along dim 0, whose size may differ between members.
Tensor all_gather(const TensorArg& x, const GroupOptions& options = {});
// The root gets the result of all_gather, the other members a tensor with 0 rows.
Tensor gather(const TensorArg& x, int64_t root, const GroupOptions& options = {});
// Splits the root's x along dim 0 into balanced parts, one for each member. The shape of x on the
// other members is ignored.
Tensor scatter(const TensorArg& x, int64_t root, const GroupOptions& options = {});
// Every member gets the root's x.
Tensor broadcast(const TensorArg& x, int64_t root, const GroupOptions& options = {});

struct AllToAllOptions {
  // Number of rows of x for each member, in their order; empty: balanced parts.
  std::vector<int64_t> rows = {};
  Ranks ranks = {};
};

// Sends rows of x to the members in order. The result concatenates the rows received from the
// members, in order. Throws InvalidArgument if `rows` does not add up to the rows of x.
Tensor all_to_all(const TensorArg& x, const AllToAllOptions& options = {});

// Returns after all ranks of the group have called it.
void barrier(const GroupOptions& options = {}, Site site = Site::here());

// all_reduce and all_gather of each of the tensors, in their order.
std::vector<Tensor> all_reduce_coalesced(const TensorListArg& tensors,
                                         const ReductionOptions& options = {});
std::vector<Tensor> all_gather_coalesced(const TensorListArg& tensors,
                                         const GroupOptions& options = {});

}  // namespace flow::comm

namespace flow {

// Calls manual_seed with a number that the operating system draws, on every rank the one of rank 0,
// and returns it. All ranks must call it.
uint64_t seed(Site site = Site::here());

}  // namespace flow
