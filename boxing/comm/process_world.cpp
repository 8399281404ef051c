#include "boxing/comm/process_world.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include <sched.h>
#include <unistd.h>

#include "boxing/comm/failure_stops.h"
#include "boxing/comm/shared_segment.h"
#include "core/error.h"
#include "core/log.h"

namespace flow::boxing {

namespace {

std::atomic<ProcessWorld*> joined_world{nullptr};

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// The number of cores for all ranks of the host. A rank that is bound to one core has that core for
// itself, if there are enough cores.
int64_t num_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const int own = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
  return own > 1 ? own : sysconf(_SC_NPROCESSORS_ONLN);
}

// Yields the core for longer and longer: a waiting rank must not take time from a working one.
class BackOff {
 public:
  explicit BackOff(Clock::time_point start) : yields_until_(start + microseconds(100)) {}

  void pause(Clock::time_point now) {
    if (now < yields_until_) return std::this_thread::yield();
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(pause_ * 2, microseconds(200));
  }

 private:
  Clock::time_point yields_until_;
  microseconds pause_{1};
};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

ProcessWorld::ProcessWorld(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)),
      shares_cores_(transport_->ranks_on_host() > num_cores()),
      timeout_(time_limit()),
      ended_(static_cast<size_t>(transport_->identity().world_size), false),
      last_sign_of_life_{(identity().rank + identity().world_size - 1) % identity().world_size,
                         Clock::now()} {
  if (SharedSegment* segment = transport_->segment()) {
    mail_ = std::make_unique<SharedMail>(*segment, *transport_);
    pipes_ = std::make_unique<SharedPipes>(*segment, identity().rank);
  }
}

ProcessWorld::~ProcessWorld() = default;

void ProcessWorld::attach(uint64_t group, Receiver& receiver) {
  const std::lock_guard lock(mutex_);
  receivers_[group] = &receiver;
  const auto early = early_.extract(group);
  if (early.empty()) return;
  for (const auto& [from, message] : early.mapped())
    receiver.receive(from, message);
}

void ProcessWorld::detach(uint64_t group, Early unused) {
  const auto found = receivers_.find(group);
  std::erase(advancing_, found->second);
  receivers_.erase(found);
  if (!unused.empty()) early_[group] = std::move(unused);
}

void ProcessWorld::handle(int64_t from, ControlMessage message) {
  switch (message.head.kind) {
    case ControlHead::Kind::kEnd:
      ended_[static_cast<size_t>(from)] = true;
      has_any_ended_ = true;
      return;
    case ControlHead::Kind::kFailure: {
      if (failure_) return;
      const auto text = message.body();
      set_failure({.cause = static_cast<FailureCause>(message.head.bytes),
                   .rank = message.head.tag,
                   .message = {reinterpret_cast<const char*>(text.data()), text.size()}});
      return;
    }
    case ControlHead::Kind::kHeartbeat:
      last_sign_of_life_ = {from, Clock::now()};
      return;
    case ControlHead::Kind::kArrival:
    case ControlHead::Kind::kDescription:
    case ControlHead::Kind::kMessage:
    case ControlHead::Kind::kCredit:
    case ControlHead::Kind::kLink:
    case ControlHead::Kind::kClear:
    case ControlHead::Kind::kSent: {
      const auto found = receivers_.find(message.head.group);
      if (found == receivers_.end()) {
        early_[message.head.group].emplace_back(from, std::move(message));
      } else {
        found->second->receive(from, std::move(message));
      }
      return;
    }
  }
}

// Ranks that meet in shared memory may not process messages for a long time; the alarm makes them
// do so.
void ProcessWorld::set_failure(Failure failure) {
  failure_ = std::move(failure);
  has_failed_.store(true, std::memory_order_release);
  if (SharedSegment* segment = transport_->segment()) segment->raise_alarm();
  run_failure_stops();
}

void ProcessWorld::take_messages() {
  int64_t from = 0;
  ControlMessage message;
  if (mail_) mail_->flush();
  while (take(from, message.data)) {
    FLOW_ASSERT(message.data.size() >= sizeof(ControlHead), "short message from rank ", from);
    std::memcpy(&message.head, message.data.data(), sizeof(ControlHead));
    handle(from, std::move(message));
    message = {};
  }
  // After a failure, the buffers of pending data may have been freed.
  if (failure_) return;
  std::erase_if(dropped_, [](const Dropped& one) { return one.bulk->is_done(); });
  bool has_moved = transport_->has_moved();
  if (pipes_) has_moved |= pipes_->advance();
  for (Receiver* receiver : advancing_)
    has_moved |= receiver->advance();
  if (has_moved) ++num_moves_;
}

void ProcessWorld::keep_advancing(uint64_t group) {
  Receiver* const receiver = receivers_.at(group);
  if (std::find(advancing_.begin(), advancing_.end(), receiver) == advancing_.end())
    advancing_.push_back(receiver);
}

bool ProcessWorld::take(int64_t& from, std::vector<std::byte>& message) {
  if (mail_ && mail_->take(from, message)) return true;
  if ((mail_ && mail_->reaches_all()) || !transport_->is_open()) return false;
  return transport_->take(from, message);
}

// Checks the state of the world once, after processing the received messages.
ProcessWorld::Look ProcessWorld::look(const std::function<bool()>& is_done,
                                      const std::function<std::vector<int64_t>()>* missing,
                                      uint64_t& num_moves) {
  const std::lock_guard lock(mutex_);
  take_messages();
  const bool has_moved = std::exchange(num_moves, num_moves_) != num_moves_;
  const Look seen = has_moved ? Look::kMoved : Look::kNothing;
  if (is_done()) return Look::kDone;
  if (missing == nullptr) return seen;
  if (failure_) return Look::kFailed;
  if (!has_any_ended_) return seen;
  const std::vector<int64_t> ranks = (*missing)();
  const bool has_ended = std::any_of(
      ranks.begin(), ranks.end(), [&](int64_t rank) { return ended_[static_cast<size_t>(rank)]; });
  return has_ended ? Look::kPeerEnded : seen;
}

int ProcessWorld::num_spins(Channel channel) const {
  return shares_cores_ || channel == Channel::kBackground ? 20 : 500;
}

void ProcessWorld::relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

void ProcessWorld::wait(const std::function<bool()>& is_done,
                        const std::function<std::vector<int64_t>()>& missing,
                        const Fingerprint& what, int num_spins) {
  uint64_t num_moves = 0;
  for (int i = 0; i < num_spins; ++i) {
    const Look seen = look(is_done, &missing, num_moves);
    if (seen == Look::kDone) return;
    if (seen == Look::kFailed || seen == Look::kPeerEnded) break;
    if (seen == Look::kMoved) i = 0;
  }
  auto start = Clock::now();  // of the time in which nothing has moved
  const auto warn_after =
      std::min<Clock::duration>(std::chrono::seconds(10), Clock::duration(timeout_) / 2);
  bool has_warned = false;
  BackOff back_off(start);
  const auto list_missing = [&] {
    const std::lock_guard lock(mutex_);
    return missing();
  };
  for (;;) {
    const Look seen = look(is_done, &missing, num_moves);
    if (seen == Look::kDone) return;
    const auto now = Clock::now();
    if (seen == Look::kMoved) {
      start = now;
      back_off = BackOff(now);
    }
    const bool has_timed_out = now >= start + timeout_;
    if (seen == Look::kFailed) check(what.site);
    if (seen == Look::kPeerEnded || has_timed_out) {
      const auto waited = seen == Look::kPeerEnded ? std::chrono::seconds(0) : timeout_;
      fail(missing_failure(identity().rank, list_missing(), what, waited));
      check(what.site);
    }
    if (!has_warned && now >= start + warn_after) {
      has_warned = true;
      log_warning(str("waiting for ", list_ranks(list_missing()), " in ", what));
    }
    back_off.pause(now);
  }
}

bool ProcessWorld::wait_for(const std::function<bool()>& is_done, std::chrono::milliseconds limit) {
  const auto start = Clock::now();
  uint64_t num_moves = 0;
  BackOff back_off(start);
  for (auto now = start; now < start + limit; now = Clock::now()) {
    if (look(is_done, nullptr, num_moves) == Look::kDone) return true;
    back_off.pause(now);
  }
  return look(is_done, nullptr, num_moves) == Look::kDone;
}

void ProcessWorld::fail(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  fail_locked(failure);
}

void ProcessWorld::fail_locked(const Failure& failure) {
  if (failure_) return;
  const ControlHead head{.kind = ControlHead::Kind::kFailure,
                         .tag = failure.rank,
                         .bytes = static_cast<int64_t>(failure.cause)};
  for (int64_t rank = 0; rank < identity().world_size; ++rank) {
    if (rank != identity().rank) post(rank, head, bytes_of(failure.message));
  }
  set_failure(failure);
}

bool ProcessWorld::attend() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  if (!transport_->is_open()) return true;
  take_messages();
  const int64_t own = identity().rank;
  const int64_t next = (own + 1) % identity().world_size;
  const bool is_over = ended_[static_cast<size_t>(own)] || ended_[static_cast<size_t>(next)];
  if (!is_over && !failure_) post(next, {.kind = ControlHead::Kind::kHeartbeat}, {});
  return true;
}

void ProcessWorld::advance() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && transport_->is_open() && !failure_) take_messages();
}

std::optional<ProcessWorld::SignOfLife> ProcessWorld::last_sign_of_life() const {
  const std::lock_guard lock(mutex_);
  const bool is_over = ended_[static_cast<size_t>(identity().rank)] ||
                       ended_[static_cast<size_t>(last_sign_of_life_.rank)];
  return is_over ? std::nullopt : std::optional(last_sign_of_life_);
}

void ProcessWorld::check(Site site) {
  const SharedSegment* segment = transport_->segment();
  const bool is_alarmed = segment != nullptr && segment->is_alarmed();
  if (!has_failed() && !is_alarmed) [[likely]]
    return;
  const std::lock_guard lock(mutex_);
  if (!failure_) take_messages();
  if (!failure_) return;
  has_thrown_ = true;
  throw DistributedError(error_text(*failure_), site);
}

void ProcessWorld::tell() {
  {
    const std::lock_guard lock(mutex_);
    if (has_thrown_) return;
  }
  check(Site::none());
}

bool ProcessWorld::was_told() const {
  const std::lock_guard lock(mutex_);
  return has_thrown_ && failure_->rank >= 0 && failure_->rank != identity().rank;
}

std::optional<Failure> ProcessWorld::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::unique_ptr<Bulk> ProcessWorld::send(int64_t rank, int32_t tag, const void* source,
                                         int64_t bytes) {
  std::unique_ptr<Bulk> bulk;
  if (transport_->shares_with(rank)) bulk = pipes_->send(rank, tag, source, bytes);
  return bulk ? std::move(bulk) : transport_->send(rank, tag, source, bytes);
}

std::unique_ptr<Bulk> ProcessWorld::receive(int64_t rank, int32_t tag, void* target,
                                            int64_t bytes) {
  std::unique_ptr<Bulk> bulk;
  if (transport_->shares_with(rank)) bulk = pipes_->receive(rank, tag, target, bytes);
  return bulk ? std::move(bulk) : transport_->receive(rank, tag, target, bytes);
}

// The other side may already have been told of the transfer, and may take part in it later.
void ProcessWorld::drop(std::unique_ptr<Bulk> bulk, std::shared_ptr<const void> memory) {
  const bool ends_here =
      bulk == nullptr || memory == nullptr || failure_ || bulk->frees_buffer() || bulk->is_done();
  if (ends_here) {
    bulk.reset();  // before the memory, which it may still read or write
  } else {
    dropped_.push_back({std::move(memory), std::move(bulk)});
  }
}

int32_t ProcessWorld::next_bulk_tag() {
  const auto limit = static_cast<uint64_t>(transport_->max_tag());
  return static_cast<int32_t>(num_bulk_tags_.fetch_add(1, std::memory_order_relaxed) % limit) + 1;
}

void ProcessWorld::post(int64_t rank, const ControlHead& head, std::span<const std::byte> body) {
  if (mail_ && mail_->reaches(rank)) {
    mail_->post(rank, std::as_bytes(std::span(&head, 1)), body);
    return;
  }
  if (has_ended(rank) && !transport_->is_open()) return;
  std::vector<std::byte> message(sizeof(head) + body.size());
  std::memcpy(message.data(), &head, sizeof(head));
  if (!body.empty()) std::memcpy(message.data() + sizeof(head), body.data(), body.size());
  transport_->post(rank, message);
}

bool ProcessWorld::is_open() const {
  const std::lock_guard lock(mutex_);
  return transport_->is_open();
}

bool ProcessWorld::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (!transport_->is_open()) return true;
    ended_[static_cast<size_t>(identity().rank)] = true;
    for (int64_t rank = 0; rank < identity().world_size; ++rank) {
      if (rank != identity().rank) post(rank, {.kind = ControlHead::Kind::kEnd}, {});
    }
  }
  const auto all_have_ended = [&] {
    const bool all = std::find(ended_.begin(), ended_.end(), false) == ended_.end();
    return all && (mail_ == nullptr || mail_->flush());
  };
  // Other ranks may work for hours after this one has ended. A rank that failed may never announce
  // its end.
  bool has_ended = false;
  const auto is_over = [&] {
    has_ended = all_have_ended();
    return has_ended || failure_.has_value();
  };
  while (!wait_for(is_over, std::chrono::hours(1)))
    continue;
  constexpr std::chrono::seconds kAfterFailure(1);
  if (!has_ended && !wait_for(all_have_ended, kAfterFailure)) return false;
  const std::lock_guard lock(mutex_);
  transport_->close();
  return true;
}

ProcessWorld* process_world() {
  return joined_world.load();
}

ProcessWorld& set_process_world(std::unique_ptr<ProcessWorld> world) {
  joined_world.store(world.get());
  return *world.release();
}

void forget_process_world() {
  joined_world.store(nullptr);
}

}  // namespace flow::boxing
