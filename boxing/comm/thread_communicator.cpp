#include "boxing/comm/thread_communicator.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "boxing/comm/copy_bytes.h"
#include "boxing/comm/device_copy.h"
#include "boxing/comm/failure.h"
#include "boxing/comm/flight_recorder.h"
#include "boxing/comm/thread_board.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/error.h"
#include "core/tensor_meta.h"

namespace flow::boxing {

// Shared by both sides of a transfer. Guarded by the mailbox's mutex, except `is_done` and, once
// that is true, `end`.
struct ThreadBoard::Message {
  int64_t tag = 0;
  int64_t bytes = 0;
  Fingerprint what;
  CopyEnd data;                     // the caller's memory, or the buffer of a small sent message
  std::vector<std::byte> buffered;  // in host memory
  Ref<Storage> device_buffer = {};
  bool is_awaited = false;  // the sender waits until the data is taken
  DevicePointPtr end = {};  // of the copy; null: it has ended when is_done is true
  std::atomic<bool> is_done{false};
};

namespace {

using Message = ThreadBoard::Message;
using Mailbox = ThreadBoard::Mailbox;

// Copies the data of a sent message, so that the sender need not wait.
void buffer(RankContext& context, Message& sent) {
  if (sent.data.ready == nullptr) {
    sent.buffered.assign(sent.data.data, sent.data.data + sent.bytes);
    sent.data.data = sent.buffered.data();
    return;
  }
  const auto bytes = static_cast<size_t>(sent.bytes);
  sent.device_buffer = allocate_storage(context, DeviceType::kCuda, bytes);
  flow::copy_bytes(context, sent.device_buffer->data(), DeviceType::kCuda, sent.data.data,
                   DeviceType::kCuda, bytes);
  sent.data = {sent.device_buffer->data(), queued_work(context)};
}

// One side of a message, waiting for the other side.
struct PendingTransfer final : TransferState {
  PendingTransfer(RankContext& of, Mailbox& where, std::shared_ptr<Message> what,
                  int64_t other_rank)
      : context(of), mailbox(where), message(std::move(what)), peer_rank(other_rank) {}

  // Ensures that this side's buffer is no longer used; on a device, by what comes before later
  // work.
  ~PendingTransfer() override {
    const std::lock_guard lock(mailbox.mutex);
    const auto sent = std::find(mailbox.sent.begin(), mailbox.sent.end(), message);
    if (sent != mailbox.sent.end() && memory != nullptr && message->data.ready == nullptr) {
      buffer(context, *message);  // it is received later
      return;
    }
    std::erase(mailbox.sent, message);
    std::erase(mailbox.expected, message);
    order_after_transfer(context, message->end);
  }

  RankContext& context;
  Mailbox& mailbox;
  std::shared_ptr<Message> message;
  int64_t peer_rank;
};

// Removes and returns the first message that `other`, the other side of a message, is for; null if
// there is none.
std::shared_ptr<Message> take(std::deque<std::shared_ptr<Message>>& messages,
                              const Message& other) {
  const auto found =
      std::find_if(messages.begin(), messages.end(), [&](const std::shared_ptr<Message>& message) {
        return message->tag == other.tag && message->what.is_in_step() == other.what.is_in_step();
      });
  if (found == messages.end()) return nullptr;
  std::shared_ptr<Message> message = *found;
  messages.erase(found);
  return message;
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(RankContext& context, std::shared_ptr<ThreadWorld> world,
                     const std::vector<int64_t>& ranks, int64_t position, Channel channel)
      : Communicator(ranks, position),
        context_(context),
        world_(std::move(world)),
        recorder_(flight_recorder(context)),
        board_(world_->board(ranks, channel)),
        opened_(ranks.size()) {}

  void barrier(const Fingerprint& what) override {
    begin({}, 0, mark(what, "barrier", 0, DType::kUInt8));
  }

  void all_reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
                  const Fingerprint& what) override;
  void reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
              int64_t root, const Fingerprint& what) override;
  void reduce_scatter(const void* source, void* target, std::span<const int64_t> counts,
                      DType dtype, ReduceOp op, const Fingerprint& what) override;
  void all_gather(const void* source, void* target, std::span<const int64_t> bytes,
                  const Fingerprint& what) override;
  void gather(const void* source, void* target, std::span<const int64_t> bytes, int64_t root,
              const Fingerprint& what) override;
  void scatter(const void* source, void* target, std::span<const int64_t> bytes, int64_t root,
               const Fingerprint& what) override;
  void all_to_all(const void* source, std::span<const int64_t> send_bytes, void* target,
                  std::span<const int64_t> recv_bytes, const Fingerprint& what) override;
  void broadcast(void* data, int64_t bytes, int64_t root, const Fingerprint& what) override;
  Transfer isend(const void* source, int64_t bytes, int64_t peer, int64_t tag,
                 const Fingerprint& what) override;
  Transfer irecv(void* target, int64_t bytes, int64_t peer, int64_t tag,
                 const Fingerprint& what) override;
  void wait(Transfer transfer) override;

  bool shares_memory() const override { return true; }

  std::span<const std::byte* const> open(const void* source, int64_t bytes,
                                         const Fingerprint& what) override {
    const bool is_marked = *what.collective != 0;
    begin({.source = static_cast<const std::byte*>(source)}, bytes,
          is_marked ? what : mark(what, "exchange", 0, DType::kUInt8));
    for (int64_t peer = 0; peer < size(); ++peer)
      opened_[static_cast<size_t>(peer)] = source_of(peer);
    return opened_;
  }

  void close() override { end(); }

 private:
  // Every collective begins when all members have published their data, and ends when no member
  // reads this member's buffers any more.
  void begin(const Shown& shown, int64_t bytes, const Fingerprint& what) {
    current_ = what;
    const uint64_t number = recorder_.begin(what);
    board_.meet(position(), current_, shown, bytes);
    recorder_.met(number);
  }

  void end() {
    if (board_.anybody_must_stay(position())) board_.meet_again(position(), current_);
  }

  const Shown& shown(int64_t peer) const { return board_.shown(position(), peer); }

  const std::byte* source_of(int64_t peer) const { return shown(peer).source; }

  // Reduces elements [begin, begin + count) of all members' sources.
  void reduce_range(std::byte* target, int64_t begin, int64_t count, DType dtype, ReduceOp op) {
    if (count == 0) return;
    const auto offset = begin * static_cast<int64_t>(dtype_size(dtype));
    for (int64_t peer = 0; peer < size(); ++peer)
      opened_[static_cast<size_t>(peer)] = source_of(peer) + offset;
    reduce_in_order(dtype, op, opened_, target, count);
  }

  int64_t rank_of(int64_t member) const { return ranks()[static_cast<size_t>(member)]; }

  std::shared_ptr<Message> make_message(const char* name, void* data, int64_t bytes, int64_t peer,
                                        int64_t tag, const Fingerprint& what) const;
  void check_message(int64_t peer, const Fingerprint& what) const;
  // Throws unless both sides have the same size and belong to the same step.
  void check_match(const Message& sent, const Message& expected, int64_t peer);
  void move(Message& sent, Message& expected) const;

  RankContext& context_;
  std::shared_ptr<ThreadWorld> world_;
  FlightRecorder& recorder_;
  ThreadBoard& board_;
  Fingerprint current_;
  std::vector<const std::byte*> opened_;
};

// For small data, every member computes the whole result. For large data, each member first reduces
// its own chunk and then fetches the chunks of the others.
void ThreadCommunicator::all_reduce(const void* source, void* target, int64_t count, DType dtype,
                                    ReduceOp op, const Fingerprint& what) {
  constexpr int64_t kWholeBytes = 64 << 10;  // read by one member
  const int64_t bytes = bytes_of(count, dtype);
  auto* out = static_cast<std::byte*>(target);
  const auto* in = static_cast<const std::byte*>(source);
  if (bytes <= ThreadBoard::kCopiedBytes) {
    begin({.source = in}, bytes, mark(what, "all_reduce", count, dtype, op));
    reduce_range(out, 0, count, dtype, op);
    return end();
  }
  begin({.source = in, .target = out}, bytes, mark(what, "all_reduce", count, dtype, op));
  bool is_in_place = false;
  for (int64_t peer = 0; peer < size(); ++peer)
    is_in_place |= shown(peer).source == shown(peer).target;
  if (bytes * size() <= kWholeBytes && !is_in_place) {
    reduce_range(out, 0, count, dtype, op);
    return end();
  }
  // This is also correct in place: only its owner writes a chunk, and no other member reads it
  // before.
  const Range own = balanced_part(count, size(), position());
  reduce_range(out + bytes_of(own.begin, dtype), own.begin, own.size, dtype, op);
  board_.meet_again(position(), current_);
  for (int64_t step = 1; step < size(); ++step) {
    const int64_t peer = (position() + step) % size();
    const Range part = balanced_part(count, size(), peer);
    const int64_t offset = bytes_of(part.begin, dtype);
    copy_bytes(out + offset, shown(peer).target + offset, bytes_of(part.size, dtype));
  }
  end();
}

void ThreadCommunicator::reduce(const void* source, void* target, int64_t count, DType dtype,
                                ReduceOp op, int64_t root, const Fingerprint& what) {
  begin({.source = static_cast<const std::byte*>(source)}, bytes_of(count, dtype),
        mark(what, "reduce", count, dtype, op, root));
  if (position() == root) reduce_range(static_cast<std::byte*>(target), 0, count, dtype, op);
  end();
}

void ThreadCommunicator::reduce_scatter(const void* source, void* target,
                                        std::span<const int64_t> counts, DType dtype, ReduceOp op,
                                        const Fingerprint& what) {
  int64_t total = 0;
  int64_t before = 0;
  for (int64_t peer = 0; peer < size(); ++peer) {
    if (peer == position()) before = total;
    total += counts[static_cast<size_t>(peer)];
  }
  begin({.source = static_cast<const std::byte*>(source)}, bytes_of(total, dtype),
        mark_counts(what, "reduce_scatter", counts, dtype, op));
  reduce_range(static_cast<std::byte*>(target), before, counts[static_cast<size_t>(position())],
               dtype, op);
  end();
}

void ThreadCommunicator::all_gather(const void* source, void* target,
                                    std::span<const int64_t> bytes, const Fingerprint& what) {
  const int64_t own = bytes[static_cast<size_t>(position())];
  begin({.source = static_cast<const std::byte*>(source)}, own,
        mark_counts(what, "all_gather", bytes, what.dtype));
  auto* out = static_cast<std::byte*>(target);
  for (int64_t peer = 0; peer < size(); ++peer) {
    copy_bytes(out, source_of(peer), bytes[static_cast<size_t>(peer)]);
    out += bytes[static_cast<size_t>(peer)];
  }
  end();
}

void ThreadCommunicator::gather(const void* source, void* target, std::span<const int64_t> bytes,
                                int64_t root, const Fingerprint& what) {
  const int64_t own = bytes[static_cast<size_t>(position())];
  begin({.source = static_cast<const std::byte*>(source)}, own,
        mark_counts(what, "gather", bytes, what.dtype, ReduceOp::kSum, root));
  if (position() == root) {
    auto* out = static_cast<std::byte*>(target);
    for (int64_t peer = 0; peer < size(); ++peer) {
      copy_bytes(out, source_of(peer), bytes[static_cast<size_t>(peer)]);
      out += bytes[static_cast<size_t>(peer)];
    }
  }
  end();
}

void ThreadCommunicator::scatter(const void* source, void* target, std::span<const int64_t> bytes,
                                 int64_t root, const Fingerprint& what) {
  int64_t total = 0;
  int64_t before = 0;
  for (int64_t peer = 0; peer < size(); ++peer) {
    if (peer == position()) before = total;
    total += bytes[static_cast<size_t>(peer)];
  }
  const bool is_root = position() == root;
  begin({.source = is_root ? static_cast<const std::byte*>(source) : nullptr}, is_root ? total : 0,
        mark_counts(what, "scatter", bytes, what.dtype, ReduceOp::kSum, root));
  const int64_t own = bytes[static_cast<size_t>(position())];
  if (own > 0) copy_bytes(static_cast<std::byte*>(target), source_of(root) + before, own);
  end();
}

void ThreadCommunicator::all_to_all(const void* source, std::span<const int64_t> send_bytes,
                                    void* target, std::span<const int64_t> recv_bytes,
                                    const Fingerprint& what) {
  begin({.source = static_cast<const std::byte*>(source), .counts = send_bytes.data()}, 0,
        mark(what, "all_to_all", 0, what.dtype));
  auto* out = static_cast<std::byte*>(target);
  std::optional<Failure> failure;
  for (int64_t peer = 0; peer < size(); ++peer) {
    const Shown& other = shown(peer);
    const int64_t sent = other.counts[position()];
    const int64_t expected = recv_bytes[static_cast<size_t>(peer)];
    if (sent != expected) {
      failure = all_to_all_failure(rank_of(peer), sent, rank_of(position()), expected, current_);
      break;
    }
    int64_t before = 0;
    for (int64_t i = 0; i < position(); ++i)
      before += other.counts[i];
    if (sent > 0) copy_bytes(out, other.source + before, sent);
    out += expected;
  }
  end();  // also after a failure: others may still read this member's data
  if (!failure) return;
  world_->fail(*failure);
  world_->throw_failure(what.site);
}

void ThreadCommunicator::broadcast(void* data, int64_t bytes, int64_t root,
                                   const Fingerprint& what) {
  auto* own = static_cast<std::byte*>(data);
  const bool is_root = position() == root;
  begin({.source = is_root ? own : nullptr}, is_root ? bytes : 0,
        mark(what, "broadcast", bytes, what.dtype, ReduceOp::kSum, root));
  if (!is_root) copy_bytes(own, source_of(root), bytes);
  end();
}

void ThreadCommunicator::check_message(int64_t peer, const Fingerprint& what) const {
  check_peer(peer, what);
  if (world_->has_failed()) world_->throw_failure(what.site);
}

void ThreadCommunicator::check_match(const Message& sent, const Message& expected, int64_t peer) {
  if (sent.what.step_hash() != expected.what.step_hash()) {
    world_->fail(
        step_failure(rank_of(position()), sent.what, rank_of(peer), describe_call(expected.what)));
    world_->throw_failure(sent.what.site);
  }
  if (sent.bytes == expected.bytes) return;
  world_->fail(message_failure(rank_of(position()), sent.bytes, sent.what, rank_of(peer),
                               expected.bytes, describe_call(expected.what), sent.tag));
  world_->throw_failure(sent.what.site);
}

std::shared_ptr<Message> ThreadCommunicator::make_message(const char* name, void* data,
                                                          int64_t bytes, int64_t peer, int64_t tag,
                                                          const Fingerprint& what) const {
  auto message = std::make_shared<Message>();
  message->tag = tag;
  message->bytes = bytes;
  message->what = mark(what, name, bytes, what.dtype);
  message->data.data = static_cast<std::byte*>(data);
  check_message(peer, message->what);
  if (what.device != DeviceType::kCpu) message->data.ready = queued_work(context_);
  return message;
}

void ThreadCommunicator::move(Message& sent, Message& expected) const {
  if (sent.data.ready == nullptr && expected.data.ready == nullptr) {
    return copy_bytes(expected.data.data, sent.data.data, sent.bytes);
  }
  const DevicePointPtr end = copy_after(context_, expected.data, sent.data, sent.bytes);
  sent.end = expected.end = end;
  // The buffer returns to the rank that has sent it.
  if (end != nullptr && sent.device_buffer) order_after(*sent.data.ready, *end);
}

Transfer ThreadCommunicator::isend(const void* source, int64_t bytes, int64_t peer, int64_t tag,
                                   const Fingerprint& what) {
  const auto message = make_message("send", const_cast<void*>(source), bytes, peer, tag, what);
  Mailbox& mailbox = board_.mailbox(position(), peer);
  {
    const std::lock_guard lock(mailbox.mutex);
    const std::shared_ptr<Message> expected = take(mailbox.expected, *message);
    if (!expected) {
      const bool is_buffered = bytes <= kBufferedBytes &&
                               mailbox.buffered_bytes + buffered_cost(bytes) <= kMostBufferedBytes;
      if (is_buffered) {
        buffer(context_, *message);
        mailbox.buffered_bytes += buffered_cost(bytes);
      }
      message->is_awaited = !is_buffered;
      mailbox.sent.push_back(message);
      if (is_buffered) return nullptr;
      return std::make_unique<PendingTransfer>(context_, mailbox, message, rank_of(peer));
    }
    check_match(*message, *expected, peer);
    move(*message, *expected);
    message->is_done.store(true);
    expected->is_done.store(true);
  }
  world_->inbox(rank_of(peer)).notify();
  if (message->end == nullptr) return nullptr;
  return std::make_unique<PendingTransfer>(context_, mailbox, message, rank_of(peer));
}

Transfer ThreadCommunicator::irecv(void* target, int64_t bytes, int64_t peer, int64_t tag,
                                   const Fingerprint& what) {
  const auto message = make_message("recv", target, bytes, peer, tag, what);
  Mailbox& mailbox = board_.mailbox(peer, position());
  bool is_sender_waiting = false;
  {
    const std::lock_guard lock(mailbox.mutex);
    const std::shared_ptr<Message> sent = take(mailbox.sent, *message);
    if (!sent) {
      mailbox.expected.push_back(message);
      return std::make_unique<PendingTransfer>(context_, mailbox, message, rank_of(peer));
    }
    check_match(*sent, *message, peer);
    is_sender_waiting = sent->is_awaited;
    if (!is_sender_waiting) mailbox.buffered_bytes -= buffered_cost(bytes);
    move(*sent, *message);
    message->is_done.store(true);
    sent->is_done.store(true);
  }
  if (is_sender_waiting) world_->inbox(rank_of(peer)).notify();
  if (message->end == nullptr) return nullptr;
  return std::make_unique<PendingTransfer>(context_, mailbox, message, rank_of(peer));
}

void ThreadCommunicator::wait(Transfer transfer) {
  if (!transfer) return;
  const auto& pending = static_cast<const PendingTransfer&>(*transfer);
  const Message& message = *pending.message;
  world_->inbox(rank_of(position()))
      .wait([&] { return message.is_done.load(); },
            [&] { return std::vector<int64_t>{pending.peer_rank}; }, message.what);
}

}  // namespace

std::unique_ptr<Communicator> make_thread_communicator(RankContext& context,
                                                       const std::vector<int64_t>& ranks,
                                                       int64_t position, Channel channel) {
  const std::shared_ptr<ThreadWorld>& world = context.slot_ptr<ThreadWorld>();
  if (!world) return nullptr;
  return std::make_unique<ThreadCommunicator>(context, world, ranks, position, channel);
}

}  // namespace flow::boxing
