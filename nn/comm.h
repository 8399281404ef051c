// Collectives on local tensors, one tensor per rank. They are differentiable as functions of the
// tensors of all ranks: backward runs the opposite collective, so every rank of the group has to
// run backward.
//
// A group is a list of ranks of the world. The list must be the same, in the same order, on all its
// members; an empty list means all ranks. Roots and peers are ranks of the world. If members differ
// in op, dtype, root or shape (except for the number of rows where that may differ, see below), all
// of them throw DistributedError. Global tensors are InvalidArgument; use to_global to move them.
// Calls in a traced graph, and tensors outside host memory, are Unsupported.
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

// ---- messages and non-blocking calls, which have no gradients

// A running call. After wait() what it writes is available and what it reads may be reused; wait()
// throws if the call failed. Destroying a handle, or assigning another call to it, waits for the
// call, except during the unwinding of an exception.
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
  int num_exceptions_;  // std::uncaught_exceptions() at construction
};

struct MessageOptions {
  int64_t tag = 0;
};

// Sends x to rank `to` of the world. Messages between two ranks match in order and by tag. Both
// sides must give the same number of bytes.
void send(const TensorArg& x, int64_t to, const MessageOptions& options = {});
// Receives into x, which must be contiguous and must not require a gradient.
void recv(const TensorArg& x, int64_t from, const MessageOptions& options = {});
[[nodiscard]] Work isend(const TensorArg& x, int64_t to, const MessageOptions& options = {});
[[nodiscard]] Work irecv(const TensorArg& x, int64_t from, const MessageOptions& options = {});

// All-reduces x in place while the caller continues; x must be contiguous and must not require a
// gradient. Non-blocking calls run in the order in which they were made, on a communicator separate
// from that of the blocking calls.
[[nodiscard]] Work all_reduce_async_(const TensorArg& x, const ReductionOptions& options = {});

// A running collective that returns a new tensor.
class TensorWork {
 public:
  TensorWork(Work work, std::shared_ptr<const Tensor> result)
      : work_(std::move(work)), result_(std::move(result)) {}

  // Waits as Work::wait() and returns the result of the blocking form, without gradient.
  Tensor wait() {
    work_.wait();
    return *result_;
  }

 private:
  Work work_;
  std::shared_ptr<const Tensor> result_;
};

// The non-blocking forms of the collectives above. They run in one order with all_reduce_async_. x
// is read until wait().
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

// Returns after all ranks of the group have called it.
void barrier(const GroupOptions& options = {}, Site site = Site::here());

}  // namespace flow::comm
