// Messages between ranks and non-blocking collectives on local tensors. They have no gradients; the
// rules of nn/comm.h apply to them.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "core/tensor.h"
#include "nn/comm.h"

namespace flow::comm {

// A running call. After wait() what it writes is available and what it reads may be reused; wait()
// throws if the call failed. Destroying a handle, or assigning another call to it, waits for the
// call. During the unwinding of an exception, it does not wait for a message, which may then arrive
// or not.
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

// Sends x to rank `to` of the world. Messages between two ranks match in order and by tag; those of
// compiled steps match among themselves. Both sides must give the same number of bytes.
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

  // Waits as Work::wait() and returns the result of the blocking form, without gradient. Throws
  // DistributedError if an earlier wait() threw.
  Tensor wait();

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

}  // namespace flow::comm
