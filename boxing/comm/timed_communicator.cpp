#include "boxing/comm/timed_communicator.h"

#include <numeric>
#include <utility>

#include "core/context.h"
#include "core/error.h"
#include "core/timeline/timeline_log.h"

namespace flow::boxing {

namespace {

using timeline::Event;
using timeline::EventKind;
using timeline::TimelineLog;
using timeline::TimelineSpan;

int64_t sum_of(std::span<const int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

int64_t bytes_of(int64_t count, DType dtype) {
  return count * static_cast<int64_t>(dtype_size(dtype));
}

// A message in flight, with what is known of it.
struct TimedTransfer : TransferState {
  ~TimedTransfer() override {
    if (inner != nullptr) inner->memory = std::move(memory);
  }

  Transfer inner;
  Event event = {};
};

class TimedCommunicator final : public Communicator {
 public:
  TimedCommunicator(std::unique_ptr<Communicator> inner, TimelineLog& log)
      : Communicator(inner->ranks(), inner->position()), inner_(std::move(inner)), log_(log) {}

  void barrier(const Fingerprint& what) override {
    const TimelineSpan span = collective("barrier", 0, what);
    inner_->barrier(what);
  }

  void all_reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
                  const Fingerprint& what) override {
    const TimelineSpan span = collective("all_reduce", bytes_of(count, dtype), what);
    inner_->all_reduce(source, target, count, dtype, op, what);
  }

  void all_reduce_parts(std::span<const SourcePart> parts, void* target, DType dtype, ReduceOp op,
                        const Fingerprint& what) override {
    int64_t count = 0;
    for (const SourcePart& part : parts)
      count += part.count;
    const TimelineSpan span = collective("all_reduce", bytes_of(count, dtype), what);
    inner_->all_reduce_parts(parts, target, dtype, op, what);
  }

  void reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
              int64_t root, const Fingerprint& what) override {
    const TimelineSpan span = collective("reduce", bytes_of(count, dtype), what);
    inner_->reduce(source, target, count, dtype, op, root, what);
  }

  void reduce_scatter(const void* source, void* target, std::span<const int64_t> counts,
                      DType dtype, ReduceOp op, const Fingerprint& what) override {
    const TimelineSpan span = collective("reduce_scatter", bytes_of(sum_of(counts), dtype), what);
    inner_->reduce_scatter(source, target, counts, dtype, op, what);
  }

  void all_gather(const void* source, void* target, std::span<const int64_t> bytes,
                  const Fingerprint& what) override {
    const TimelineSpan span = collective("all_gather", sum_of(bytes), what);
    inner_->all_gather(source, target, bytes, what);
  }

  void gather(const void* source, void* target, std::span<const int64_t> bytes, int64_t root,
              const Fingerprint& what) override {
    const TimelineSpan span = collective("gather", sum_of(bytes), what);
    inner_->gather(source, target, bytes, root, what);
  }

  void scatter(const void* source, void* target, std::span<const int64_t> bytes, int64_t root,
               const Fingerprint& what) override {
    const TimelineSpan span = collective("scatter", sum_of(bytes), what);
    inner_->scatter(source, target, bytes, root, what);
  }

  void all_to_all(const void* source, std::span<const int64_t> send_bytes, void* target,
                  std::span<const int64_t> recv_bytes, const Fingerprint& what) override {
    const TimelineSpan span = collective("all_to_all", sum_of(recv_bytes), what);
    inner_->all_to_all(source, send_bytes, target, recv_bytes, what);
  }

  void all_to_all_packed(std::span<const int64_t> send_bytes, const Pack& pack,
                         std::span<const int64_t> recv_bytes, const Unpack& unpack,
                         const Fingerprint& what) override {
    const TimelineSpan span = collective("all_to_all", sum_of(recv_bytes), what);
    inner_->all_to_all_packed(send_bytes, pack, recv_bytes, unpack, what);
  }

  void broadcast(void* data, int64_t bytes, int64_t root, const Fingerprint& what) override {
    const TimelineSpan span = collective("broadcast", bytes, what);
    inner_->broadcast(data, bytes, root, what);
  }

  Transfer isend(const void* source, int64_t bytes, int64_t peer, int64_t tag,
                 const Fingerprint& what) override {
    const TimelineSpan span(&log_, message("send to ", bytes, peer, tag, what));
    return timed(inner_->isend(source, bytes, peer, tag, what), "wait for send to ", bytes, peer,
                 tag, what);
  }

  Transfer irecv(void* target, int64_t bytes, int64_t peer, int64_t tag,
                 const Fingerprint& what) override {
    const TimelineSpan span(&log_, message("receive from ", bytes, peer, tag, what));
    return timed(inner_->irecv(target, bytes, peer, tag, what), "wait for ", bytes, peer, tag,
                 what);
  }

  void wait(Transfer transfer) override {
    if (transfer == nullptr) return inner_->wait(nullptr);
    auto& known = static_cast<TimedTransfer&>(*transfer);
    const TimelineSpan span(&log_, known.event);
    inner_->wait(std::move(known.inner));
  }

  bool shares_memory() const override { return inner_->shares_memory(); }

  std::span<const std::byte* const> open(const void* source, int64_t bytes,
                                         const Fingerprint& what) override {
    Event it = event(EventKind::kCollective, what);
    it.name = log_.static_text("exchange");
    it.bytes = bytes;
    const uint64_t number = log_.begin(it);
    try {
      const auto pointers = inner_->open(source, bytes, what);
      open_ = number;
      return pointers;
    } catch (...) {  // noted, and passed on
      log_.end(number, true);
      throw;
    }
  }

  // Between open() and close() the members read each other's memory.
  void close() override {
    inner_->close();
    log_.end(open_, false);
  }

 private:
  Event event(EventKind kind, const Fingerprint& what) const {
    const Site site = user_site(what.site);
    return {.detail = detail_of(what),
            .file = site.is_known() ? log_.static_text(site.file()) : 0,
            .line = site.line(),
            .kind = kind};
  }

  // The op for which data moves, and the layouts.
  uint32_t detail_of(const Fingerprint& what) const {
    if (!what.to.placement.defined() || !what.from.placement.defined())
      return log_.static_text(what.op);
    return log_.text(
        str(what.op, ' ', what.dtype, ' ', what.shape, " from ", what.from, " to ", what.to));
  }

  TimelineSpan collective(const char* name, int64_t bytes, const Fingerprint& what) const {
    Event it = event(EventKind::kCollective, what);
    it.name = log_.static_text(name);
    it.bytes = bytes;
    return {&log_, it};
  }

  Event message(const char* name, int64_t bytes, int64_t peer, int64_t tag,
                const Fingerprint& what) const {
    Event it = event(EventKind::kMessage, what);
    const bool is_member = peer >= 0 && peer < size();
    const int64_t rank = is_member ? ranks()[static_cast<size_t>(peer)] : peer;
    it.name = log_.text(str(name, rank));
    it.bytes = bytes;
    it.peer = static_cast<int32_t>(rank);
    it.number_in = static_cast<int32_t>(tag);
    return it;
  }

  Transfer timed(Transfer inner, const char* name, int64_t bytes, int64_t peer, int64_t tag,
                 const Fingerprint& what) const {
    if (inner == nullptr) return nullptr;
    auto transfer = std::make_unique<TimedTransfer>();
    transfer->inner = std::move(inner);
    transfer->event = message(name, bytes, peer, tag, what);
    return transfer;
  }

  std::unique_ptr<Communicator> inner_;
  TimelineLog& log_;
  uint64_t open_ = 0;  // the event of the memory that is open
};

}  // namespace

std::unique_ptr<Communicator> with_timeline(std::unique_ptr<Communicator> communicator,
                                            TimelineLog& log) {
  return std::make_unique<TimedCommunicator>(std::move(communicator), log);
}

}  // namespace flow::boxing
