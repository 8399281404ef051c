#include "nn/comm_work.h"

#include <exception>
#include <utility>

#include "boxing/comm/background_work.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/error.h"
#include "core/strided_twin.h"
#include "core/tensor_impl.h"
#include "core/tensor_meta.h"
#include "nn/comm_call.h"

namespace flow::comm {

using internal::call;
using internal::Channel;
using internal::check;
using internal::check_rows;
using internal::Communicator;
using internal::data;
using internal::Fingerprint;
using internal::group_for;
using internal::group_of;
using internal::member_of;
using internal::reduce_op;
using internal::rows_to_send;
using internal::source_of;

namespace {

int64_t bytes_of(const Tensor& x) {
  return x.numel() * static_cast<int64_t>(x.element_size());
}

void check_target(const Tensor& x, const char* op, Site site) {
  check(x, op, site);
  if (!x.is_contiguous() || x.requires_grad()) {
    throw InvalidArgument(str("[", op, "] x must be contiguous and must not require a gradient; ",
                              "received ", x.meta(), "; pass x.detach() or a clone"),
                          site);
  }
  if (is_of_other_rank(*thread_state().context, x.impl())) {
    throw InvalidArgument(str("[", op, "] x is in the device memory of another rank; received ",
                              x.meta(), "; pass a tensor that this rank has made"),
                          site);
  }
}

// Counts the write for what has saved x. The write may happen at any time until wait().
void begin_write(const Tensor& x) {
  make_writable(x.impl());
  x.impl().storage->bump_version();
}

// A message, which keeps x alive as long as it reads or writes it.
class TransferWork final : public Work::State {
 public:
  TransferWork(Communicator& group, boxing::Transfer transfer, Tensor x)
      : group_(group), transfer_(std::move(transfer)) {
    if (transfer_ != nullptr) transfer_->memory = std::make_shared<const Tensor>(std::move(x));
  }

  void wait() override { group_.wait(std::move(transfer_)); }

 private:
  Communicator& group_;
  boxing::Transfer transfer_;
};

class TaskWork final : public Work::State {
 public:
  explicit TaskWork(boxing::BackgroundWork task) : task_(std::move(task)) {}

  void wait() override { task_.wait(); }

 private:
  boxing::BackgroundWork task_;
};

// A task that makes a tensor. Its memory is taken on the communication stream.
class TensorTaskWork final : public Work::State {
 public:
  TensorTaskWork(boxing::BackgroundWork task, std::shared_ptr<Tensor> result)
      : task_(std::move(task)), result_(std::move(result)) {}

  void wait() override {
    task_.wait();
    TensorImpl& made = result_->impl();
    made.storage = taken_over(*thread_state().context, std::move(made.storage));
  }

 private:
  boxing::BackgroundWork task_;
  std::shared_ptr<Tensor> result_;
};

// Runs a collective on the communication thread, which calls `run` with x. Errors in x that this
// rank can find have been reported before.
template <class Run>
TensorWork in_background(const TensorArg& x, const Run& run) {
  const auto result = std::make_shared<Tensor>();
  const Site site = user_site(x.site());
  boxing::BackgroundWork task(*thread_state().context, x->device(),
                              [x = strided_form(x->detach()), site, run, result] {
                                *result = run({x, site});
                              });
  return {Work(std::make_unique<TensorTaskWork>(std::move(task), result)), result};
}

void check_root(const Ranks& ranks, int64_t root, const char* op) {
  member_of(group_of(ranks, Channel::kBackground), root, op);
}

}  // namespace

Work::Work(std::unique_ptr<State> state)
    : state_(std::move(state)), num_exceptions_(std::uncaught_exceptions()) {}

Work::Work(Work&& other) noexcept = default;

Work& Work::operator=(Work&& other) noexcept {
  if (this == &other) return *this;
  drop();
  state_ = std::move(other.state_);
  num_exceptions_ = other.num_exceptions_;
  return *this;
}

Work::~Work() {
  drop();
}

void Work::drop() noexcept {
  if (std::uncaught_exceptions() > num_exceptions_) return;
  try {
    wait();
  } catch (const std::exception&) {
    // A destructor cannot throw. The next call of this rank throws, because the world has failed.
  }
}

void Work::wait() {
  if (const std::unique_ptr<State> state = std::move(state_)) state->wait();
}

Tensor TensorWork::wait() {
  work_.wait();
  if (!result_->defined()) {
    throw DistributedError("[comm] this call has failed, as an earlier wait() said");
  }
  return *result_;
}

void send(const TensorArg& x, int64_t to, const MessageOptions& options) {
  isend(x, to, options).wait();
}

void recv(const TensorArg& x, int64_t from, const MessageOptions& options) {
  irecv(x, from, options).wait();
}

Work isend(const TensorArg& x, int64_t to, const MessageOptions& options) {
  check(x, "comm::send", x.site());
  Communicator& group = group_for(x, group_of({}));
  Tensor source = source_of(x->detach());
  auto transfer = group.isend(data(source), bytes_of(source), to, options.tag,
                              call("comm::send", x->shape(), x->dtype(), x.site()));
  return Work(std::make_unique<TransferWork>(group, std::move(transfer), std::move(source)));
}

Work irecv(const TensorArg& x, int64_t from, const MessageOptions& options) {
  check_target(x, "comm::recv", x.site());
  Communicator& group = group_for(x, group_of({}));
  begin_write(x);
  auto transfer = group.irecv(data(x), bytes_of(x), from, options.tag,
                              call("comm::recv", x->shape(), x->dtype(), x.site()));
  return Work(std::make_unique<TransferWork>(group, std::move(transfer), x));
}

Work all_reduce_async_(const TensorArg& x, const ReductionOptions& options) {
  check_target(x, "comm::all_reduce_async_", x.site());
  Communicator& group = group_for(x, group_of(options.ranks, Channel::kBackground));
  const Tensor& target = x;
  begin_write(target);
  const Fingerprint what = call("comm::all_reduce_async_", x->shape(), x->dtype(), x.site());
  const auto op = reduce_op(options.op);
  return Work(std::make_unique<TaskWork>(
      boxing::BackgroundWork(*thread_state().context, target.device(), [&group, target, what, op] {
        group.all_reduce(data(target), data(target), target.numel(), target.dtype(), op, what);
      })));
}

TensorWork all_reduce_async(const TensorArg& x, const ReductionOptions& options) {
  check(x, "comm::all_reduce_async", x.site());
  return in_background(x, [options](const TensorArg& own) { return all_reduce(own, options); });
}

TensorWork reduce_async(const TensorArg& x, int64_t root, const ReductionOptions& options) {
  check(x, "comm::reduce_async", x.site());
  check_root(options.ranks, root, "comm::reduce_async");
  return in_background(x, [=](const TensorArg& own) { return reduce(own, root, options); });
}

TensorWork reduce_scatter_async(const TensorArg& x, const ReductionOptions& options) {
  check_rows(x, "comm::reduce_scatter_async", x.site());
  return in_background(x, [options](const TensorArg& own) { return reduce_scatter(own, options); });
}

TensorWork all_gather_async(const TensorArg& x, const GroupOptions& options) {
  check_rows(x, "comm::all_gather_async", x.site());
  return in_background(x, [options](const TensorArg& own) { return all_gather(own, options); });
}

TensorWork gather_async(const TensorArg& x, int64_t root, const GroupOptions& options) {
  check_rows(x, "comm::gather_async", x.site());
  check_root(options.ranks, root, "comm::gather_async");
  return in_background(x, [=](const TensorArg& own) { return gather(own, root, options); });
}

TensorWork scatter_async(const TensorArg& x, int64_t root, const GroupOptions& options) {
  check(x, "comm::scatter_async", x.site());
  check_root(options.ranks, root, "comm::scatter_async");
  if (env::rank() == root) check_rows(x, "comm::scatter_async", x.site());
  return in_background(x, [=](const TensorArg& own) { return scatter(own, root, options); });
}

TensorWork broadcast_async(const TensorArg& x, int64_t root, const GroupOptions& options) {
  check(x, "comm::broadcast_async", x.site());
  check_root(options.ranks, root, "comm::broadcast_async");
  return in_background(x, [=](const TensorArg& own) { return broadcast(own, root, options); });
}

TensorWork all_to_all_async(const TensorArg& x, const AllToAllOptions& options) {
  check_rows(x, "comm::all_to_all_async", x.site());
  rows_to_send(x, options, group_of(options.ranks, Channel::kBackground), x.site());
  return in_background(x, [options](const TensorArg& own) { return all_to_all(own, options); });
}

}  // namespace flow::comm
