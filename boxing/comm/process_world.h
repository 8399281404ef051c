// The state that ranks share when they are processes: control messages, failures and ends of ranks,
// and how a rank waits.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "boxing/comm/communicator.h"
#include "boxing/comm/failure.h"
#include "boxing/comm/shared_mail.h"
#include "boxing/comm/shared_pipes.h"
#include "boxing/comm/transport.h"
#include "core/site.h"

namespace flow::boxing {

// The header of every control message; a body may follow. All processes of a job run the same
// build.
struct ControlHead {
  enum class Kind : uint32_t {
    kFailure,
    kEnd,
    kArrival,
    kDescription,
    kMessage,
    kCredit,
    kLink,  // this and the next two: boxing/comm/device_messages.h
    kClear,
    kSent,
    kHeartbeat
  };

  Kind kind = Kind::kEnd;
  int32_t bulk_tag = 0;  // negative: of a message on a device
  uint64_t group = 0;
  uint64_t step = 0;  // of a group; of a message on a device, its number
  uint64_t hash = 0;
  int64_t tag = 0;  // of a message; in a failure, the failed rank
  // The size of a message or of its bulk data; how much a credit is; in a failure, the cause.
  int64_t bytes = 0;
};

// A control message that was received.
struct ControlMessage {
  ControlHead head;
  std::vector<std::byte> data;  // header included

  std::span<const std::byte> body() const { return std::span(data).subspan(sizeof(ControlHead)); }
};

// Thread safe. There is one per process, which outlives its communicators. A process receives
// messages only while one of its threads executes a function of this class.
class ProcessWorld {
 public:
  // Handles the messages for one group of ranks. Called with the world's lock held.
  struct Receiver {
    virtual ~Receiver() = default;
    virtual void receive(int64_t from, ControlMessage message) = 0;

    // Called often after keep_advancing(), with the world's lock held. Returns true if something
    // has changed.
    virtual bool advance() { return false; }
  };

  explicit ProcessWorld(std::unique_ptr<Transport> transport);
  ~ProcessWorld();
  ProcessWorld(const ProcessWorld&) = delete;
  ProcessWorld& operator=(const ProcessWorld&) = delete;

  const RankIdentity& identity() const { return transport_->identity(); }

  using Early = std::vector<std::pair<int64_t, ControlMessage>>;

  // Makes `receiver` handle all messages of the group, including those that arrived before.
  void attach(uint64_t group, Receiver& receiver);
  // Requires lock(). `unused` holds the messages for the group's next receiver.
  void detach(uint64_t group, Early unused);

  // How often a group checks a condition before it yields the core. The number is small if ranks
  // share cores, and for the background channel, where the rank's own thread probably computes.
  int num_spins(Channel channel) const;

  // Waits briefly without the lock for a condition that needs no message. Returns is_done().
  template <class IsDone>
  static bool spin(const IsDone& is_done, int num_spins) {
    for (int i = 0; i < num_spins; ++i) {
      if (is_done()) return true;
      relax();
    }
    return is_done();
  }

  // Blocks until is_done() is true. is_done() is called with the lock held whenever a message may
  // have arrived. Throws DistributedError if the world has failed, if missing() (the world ranks
  // waited for) contains a rank that has ended, or after FLOW_TIMEOUT_S in which this process has
  // neither sent nor received data. `what` is the caller's operation, for the report.
  void wait(const std::function<bool()>& is_done,
            const std::function<std::vector<int64_t>()>& missing, const Fingerprint& what,
            int num_spins);
  // Like wait(), but does not throw when the world has failed, and returns after `limit` at the
  // latest. Returns is_done().
  bool wait_for(const std::function<bool()>& is_done, std::chrono::milliseconds limit);

  // Records a failure; the first one counts. All other ranks are told and throw at their next
  // operation.
  void fail(const Failure& failure);
  // Throws the failure, if there is one.
  void check(Site site);
  // Throws the failure, if there is one, unless check() has thrown it.
  void tell();
  // True if this rank was told of a failure that another rank caused.
  bool was_told() const;
  // For a thread that does not wait: processes received messages and sends the next rank a sign of
  // life. Returns false, without doing so, if another thread is active in this class.
  bool attend();
  // For a thread that computes: sends the data that other ranks have requested. Does nothing if
  // another thread is active in this class, or after a failure.
  void advance();

  struct SignOfLife {
    int64_t rank;  // the previous rank of the ring
    std::chrono::steady_clock::time_point at;
  };

  // The connection counts as the first sign of life. Empty if either rank has ended.
  std::optional<SignOfLife> last_sign_of_life() const;
  // Empty unless the world has failed.
  std::optional<Failure> failure() const;

  // False once the connection has ended. Waits for a finish() that is ending it.
  bool is_open() const;

  // Tells the other ranks that this rank takes part in nothing more, waits until all of them have
  // ended (after a failure, one second only), and closes the transport. Returns false if some rank
  // did not end.
  bool finish();

  // For groups, which call the functions that require the lock.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  const Transport& transport() const { return *transport_; }

  // Like the transport's functions, but use shared memory if both ranks share some.
  std::unique_ptr<Bulk> send(int64_t rank, int32_t tag, const void* source, int64_t bytes);
  std::unique_ptr<Bulk> receive(int64_t rank, int32_t tag, void* target, int64_t bytes);

  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }

  int32_t next_bulk_tag();
  // These require lock().
  // Ends the caller's part in a transfer that nobody waits for. `memory` is its buffer, or null.
  void drop(std::unique_ptr<Bulk> bulk, std::shared_ptr<const void> memory);
  // Lets the group's receiver advance from now on, whatever thread uses the world.
  void keep_advancing(uint64_t group);
  void post(int64_t rank, const ControlHead& head, std::span<const std::byte> body);
  void fail_locked(const Failure& failure);

  bool has_ended(int64_t rank) const { return ended_[static_cast<size_t>(rank)]; }

 private:
  enum class Look { kDone, kNothing, kMoved, kFailed, kPeerEnded };

  static void relax();
  void take_messages();
  bool take(int64_t& from, std::vector<std::byte>& message);
  // `num_moves`: the caller's count of moves of data, which is brought up to date.
  Look look(const std::function<bool()>& is_done,
            const std::function<std::vector<int64_t>()>* missing, uint64_t& num_moves);
  void handle(int64_t from, ControlMessage message);
  void set_failure(Failure failure);

  std::unique_ptr<Transport> transport_;
  // Null without shared memory; guarded by mutex_.
  std::unique_ptr<SharedMail> mail_;
  std::unique_ptr<SharedPipes> pipes_;
  bool shares_cores_;
  std::chrono::seconds timeout_;
  mutable std::mutex mutex_;
  // Guarded by mutex_, as the receivers are.
  std::vector<bool> ended_;
  bool has_any_ended_ = false;
  bool has_thrown_ = false;  // failure_
  uint64_t num_moves_ = 0;   // how often data has moved
  std::optional<Failure> failure_;
  SignOfLife last_sign_of_life_;
  std::map<uint64_t, Receiver*> receivers_;
  std::map<uint64_t, Early> early_;  // messages of groups without a receiver
  std::vector<Receiver*> advancing_;

  // A transfer that was dropped before its end, and its buffer, which ends after it.
  struct Dropped {
    std::shared_ptr<const void> memory;
    std::unique_ptr<Bulk> bulk;
  };

  std::vector<Dropped> dropped_;

  std::atomic<bool> has_failed_{false};  // true once failure_ is set
  std::atomic<uint64_t> num_bulk_tags_{0};
};

// The world that this process has joined (boxing/ranks/process_ranks.h); null if it has not joined
// one.
ProcessWorld* process_world();

// May be called once. The world is never destroyed, because static tensors may use it until the
// process ends.
ProcessWorld& set_process_world(std::unique_ptr<ProcessWorld> world);

// For a forked child, which is not a rank: process_world() is null from now on.
void forget_process_world();

}  // namespace flow::boxing
