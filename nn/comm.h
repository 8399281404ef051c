// Collectives on local tensors, one tensor a rank; differentiable as functions of the tensors of
// all ranks: backward runs the opposite collective, so every rank of the group has to run it.
//
// A group is a list of ranks of the world in an order of the caller's, the same on all of them;
// empty: all ranks. Roots and peers are ranks of the world. Members that differ in op, shape (but
// for rows that may differ, see below), dtype or root all get a DistributedError. Not for global
// tensors, which to_global moves, nor inside a graph.
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

// y = x of the first member op … op x of the last, in this order, on every member. Gradients of
// maxima and minima go to the elements equal to the result, ties shared equally.
Tensor all_reduce(const TensorArg& x, const ReductionOptions& options = {});
// As all_reduce at the root; zeros elsewhere. Differentiable for sums.
Tensor reduce(const TensorArg& x, int64_t root, const ReductionOptions& options = {});
// The reduced rows (dim 0) are cut into balanced parts, one a member. Differentiable for sums.
Tensor reduce_scatter(const TensorArg& x, const ReductionOptions& options = {});
// The x of all members along dim 0, of which they may have different sizes.
Tensor all_gather(const TensorArg& x, const GroupOptions& options = {});
// As all_gather at the root; no rows elsewhere.
Tensor gather(const TensorArg& x, int64_t root, const GroupOptions& options = {});
// The root's x, cut along dim 0 into balanced parts, one a member. The shape of the others' x is
// not looked at.
Tensor scatter(const TensorArg& x, int64_t root, const GroupOptions& options = {});
// The root's x on every member.
Tensor broadcast(const TensorArg& x, int64_t root, const GroupOptions& options = {});

struct AllToAllOptions {
  std::vector<int64_t> rows = {};  // of x for each member, in their order; empty: balanced parts
  Ranks ranks = {};
};

// Rows of x go to the members in order; the result is what they sent here, in their order.
Tensor all_to_all(const TensorArg& x, const AllToAllOptions& options = {});

// ---- messages and non-blocking calls: no gradients

// A call under way. What it writes is there, and what it reads is free again, after wait(), which
// throws what went wrong. A handle that is dropped, or gets another call, waits, unless an
// exception unwinds.
class Work {
 public:
  struct State {
    virtual ~State() = default;
    virtual void wait() = 0;
  };

  explicit Work(std::unique_ptr<State> state);
  ~Work();
  Work(Work&& other) noexcept;
  Work& operator=(Work&& other) noexcept;

  void wait();

 private:
  void drop() noexcept;

  std::unique_ptr<State> state_;
  int num_exceptions_;  // under way where it was made
};

struct MessageOptions {
  int64_t tag = 0;
};

// Messages of one pair match in order by tag; both sides give the same number of bytes.
void send(const TensorArg& x, int64_t to, const MessageOptions& options = {});
// Writes into x.
void recv(const TensorArg& x, int64_t from, const MessageOptions& options = {});
[[nodiscard]] Work isend(const TensorArg& x, int64_t to, const MessageOptions& options = {});
[[nodiscard]] Work irecv(const TensorArg& x, int64_t from, const MessageOptions& options = {});

// All-reduces x in place while the caller goes on. Calls of all ranks run in the order in which
// they were made, beside and apart from the blocking ones.
[[nodiscard]] Work all_reduce_async_(const TensorArg& x, const ReductionOptions& options = {});

// A collective under way whose result is a tensor of its own.
class TensorWork {
 public:
  TensorWork(Work work, std::shared_ptr<const Tensor> result)
      : work_(std::move(work)), result_(std::move(result)) {}

  // As Work's; what the blocking form returns, without gradient.
  Tensor wait() {
    work_.wait();
    return *result_;
  }

 private:
  Work work_;
  std::shared_ptr<const Tensor> result_;
};

// The collectives above while the caller goes on, in one order with all_reduce_async_. x is read
// until wait().
[[nodiscard]] TensorWork all_reduce_async(const TensorArg& x, const ReductionOptions& options = {});
[[nodiscard]] TensorWork reduce_async(const TensorArg& x, int64_t root,
                                      const ReductionOptions& options = {});
[[nodiscard]] TensorWork reduce_scatter_async(const TensorArg& x,
                                              const ReductionOptions& options = {});
[[nodiscard]] TensorWork all_gather_async(const TensorArg& x, const GroupOptions& options = {});
[[nodiscard]] TensorWork gather_async(const TensorArg& x, int64_t root,
                                      const GroupOptions& options = {});
[[nodiscard]] TensorWork scatter_async(const TensorArg& x, int64_t root,
                                       const GroupOptions& options = {});
[[nodiscard]] TensorWork broadcast_async(const TensorArg& x, int64_t root,
                                         const GroupOptions& options = {});
[[nodiscard]] TensorWork all_to_all_async(const TensorArg& x, const AllToAllOptions& options = {});

// Returns when all ranks of the group have called it.
void barrier(const GroupOptions& options = {}, Site site = Site::here());

}  // namespace flow::comm
