#include "tests/support/loopback_ranks.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "boxing/comm/comm_thread.h"
#include "boxing/comm/process_world.h"
#include "boxing/comm/shared_segment.h"
#include "boxing/comm/transport.h"
#include "core/context.h"
#include "core/error.h"

namespace flow {

namespace {

// One side of a transfer in flight.
struct Half {
  int64_t from;
  int64_t to;
  int32_t tag;
  std::byte* data;
  int64_t bytes;
  bool is_done = false;
};

// The state that all transports share. Guarded by its mutex.
struct Hub {
  std::unique_ptr<boxing::SharedSegment> segment;  // never changes
  std::mutex mutex;
  std::vector<std::deque<std::pair<int64_t, std::vector<std::byte>>>> inboxes;
  std::list<Half> sends;
  std::list<Half> receives;
};

bool belong_together(const Half& a, const Half& b) {
  return a.from == b.from && a.to == b.to && a.tag == b.tag;
}

class LoopbackBulk final : public boxing::Bulk {
 public:
  LoopbackBulk(Hub& hub, std::list<Half>& mine, std::list<Half>& others, const Half& half)
      : hub_(hub), mine_(mine) {
    const std::lock_guard lock(hub_.mutex);
    place_ = mine_.insert(mine_.end(), half);
    const auto other = std::find_if(others.begin(), others.end(), [&](const Half& candidate) {
      return !candidate.is_done && belong_together(half, candidate);
    });
    if (other == others.end()) return;
    const bool sends = &mine_ == &hub_.sends;
    const Half& source = sends ? *place_ : *other;
    const Half& target = sends ? *other : *place_;
    FLOW_ASSERT(source.bytes == target.bytes, "lengths differ");
    std::memcpy(target.data, source.data, static_cast<size_t>(source.bytes));
    place_->is_done = other->is_done = true;
  }

  ~LoopbackBulk() override {
    const std::lock_guard lock(hub_.mutex);
    mine_.erase(place_);
  }

  bool is_done() override {
    const std::lock_guard lock(hub_.mutex);
    return place_->is_done;
  }

 private:
  Hub& hub_;
  std::list<Half>& mine_;
  std::list<Half>::iterator place_;
};

// The traffic of one rank.
struct Traffic {
  std::atomic<int64_t> bytes_received{0};
};

class LoopbackTransport final : public boxing::Transport {
 public:
  LoopbackTransport(std::shared_ptr<Hub> hub, const RankIdentity& identity,
                    std::shared_ptr<Traffic> traffic)
      : hub_(std::move(hub)), identity_(identity), traffic_(std::move(traffic)) {}

  const RankIdentity& identity() const override { return identity_; }

  int64_t ranks_on_host() const override { return identity_.world_size; }

  int32_t max_tag() const override { return 1000; }

  void post(int64_t rank, std::span<const std::byte> message) override {
    const std::lock_guard lock(hub_->mutex);
    hub_->inboxes[static_cast<size_t>(rank)].emplace_back(
        identity_.rank, std::vector<std::byte>(message.begin(), message.end()));
  }

  bool take(int64_t& from, std::vector<std::byte>& message) override {
    const std::lock_guard lock(hub_->mutex);
    auto& inbox = hub_->inboxes[static_cast<size_t>(identity_.rank)];
    if (inbox.empty()) return false;
    from = inbox.front().first;
    message = std::move(inbox.front().second);
    inbox.pop_front();
    return true;
  }

  std::unique_ptr<boxing::Bulk> send(int64_t rank, int32_t tag, const void* source,
                                     int64_t bytes) override {
    auto* data = static_cast<std::byte*>(const_cast<void*>(source));
    return std::make_unique<LoopbackBulk>(*hub_, hub_->sends, hub_->receives,
                                          Half{identity_.rank, rank, tag, data, bytes});
  }

  std::unique_ptr<boxing::Bulk> receive(int64_t rank, int32_t tag, void* target,
                                        int64_t bytes) override {
    auto* data = static_cast<std::byte*>(target);
    traffic_->bytes_received += bytes;
    return std::make_unique<LoopbackBulk>(*hub_, hub_->receives, hub_->sends,
                                          Half{rank, identity_.rank, tag, data, bytes});
  }

  bool has_moved() override { return false; }  // data moves at once

  boxing::SharedSegment* segment() const override { return hub_->segment.get(); }

  bool shares_with(int64_t /*rank*/) const override { return hub_->segment != nullptr; }

  bool is_own() const override { return true; }

  bool is_open() const override { return true; }

  void close() override {}

 private:
  std::shared_ptr<Hub> hub_;
  RankIdentity identity_;
  std::shared_ptr<Traffic> traffic_;
};

struct LoopbackRank {
  std::shared_ptr<boxing::ProcessWorld> world;
  std::unique_ptr<RankContext> context;
  std::exception_ptr error;

  void run(const std::function<void()>& body) {
    try {
      const RankScope scope(*context);
      body();
    } catch (const std::exception& failure) {
      error = std::current_exception();
      world->fail({.rank = context->rank(), .message = failure.what()});
    }
    boxing::drain_comm_thread(*context);
    context.reset();  // before the world, which its communicators use
    world->finish();
  }
};

void run_on(const std::shared_ptr<Hub>& hub, int64_t ranks, const std::function<void()>& body) {
  hub->inboxes.resize(static_cast<size_t>(ranks));
  std::vector<LoopbackRank> all(static_cast<size_t>(ranks));
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const RankIdentity identity{.rank = rank, .world_size = ranks, .local_rank = rank};
    LoopbackRank& one = all[static_cast<size_t>(rank)];
    const auto traffic = std::make_shared<Traffic>();
    one.world = std::make_shared<boxing::ProcessWorld>(
        std::make_unique<LoopbackTransport>(hub, identity, traffic));
    one.context = std::make_unique<RankContext>(identity, 1);
    one.context->set_slot(one.world);
    one.context->set_slot(traffic);
  }
  std::vector<std::thread> threads;
  for (LoopbackRank& one : all)
    threads.emplace_back([&] { one.run(body); });
  for (std::thread& thread : threads)
    thread.join();
  for (const bool accepts_told : {false, true}) {
    for (const LoopbackRank& one : all) {
      if (one.error && (accepts_told || !one.world->was_told())) std::rethrow_exception(one.error);
    }
  }
}

}  // namespace

void run_loopback_ranks(int64_t ranks, const std::function<void()>& body) {
  run_on(std::make_shared<Hub>(), ranks, body);
}

void run_shared_memory_ranks(int64_t ranks, const std::function<void()>& body) {
  const auto hub = std::make_shared<Hub>();
  std::string reason;
  hub->segment = boxing::SharedSegment::create(reason);
  FLOW_ASSERT(hub->segment != nullptr, reason);
  run_on(hub, ranks, body);
}

int64_t loopback_bytes_received() {
  return thread_state().context->slot_ptr<Traffic>()->bytes_received;
}

}  // namespace flow
