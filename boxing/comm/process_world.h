// What ranks that are processes know of each other: control messages, who has failed or ended, and
// how to wait.
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

// Head of every control message; a body may follow. Processes of one job run the same build.
struct ControlHead {
  enum class Kind : uint32_t { kFailure, kEnd, kArrival, kDescription, kMessage, kHeartbeat };

  Kind kind = Kind::kEnd;
  int32_t bulk_tag = 0;
  uint64_t group = 0;
  uint64_t step = 0;
  uint64_t hash = 0;
  int64_t tag = 0;    // of a message; the failed rank
  int64_t bytes = 0;  // of a message or of what comes by its bulk; the cause of a failure
};

// A control message that has come.
struct ControlMessage {
  ControlHead head;
  std::vector<std::byte> data;  // head included

  std::span<const std::byte> body() const { return std::span(data).subspan(sizeof(ControlHead)); }
};

// Thread safe. There is one per process, which outlives its communicators. A process only hears
// the others while one of its threads waits here.
class ProcessWorld {
 public:
  // Handles what comes for one group of ranks. Called under the world's lock.
  struct Receiver {
    virtual ~Receiver() = default;
    virtual void receive(int64_t from, ControlMessage message) = 0;
  };

  explicit ProcessWorld(std::unique_ptr<Transport> transport);
  ~ProcessWorld();
  ProcessWorld(const ProcessWorld&) = delete;
  ProcessWorld& operator=(const ProcessWorld&) = delete;

  const RankIdentity& identity() const { return transport_->identity(); }

  using Early = std::vector<std::pair<int64_t, ControlMessage>>;

  // The receiver of a group from now on, also of what came before.
  void attach(uint64_t group, Receiver& receiver);
  // Under lock(). `unused`: what the next receiver of the group is to get.
  void detach(uint64_t group, Early unused);

  // How often a group looks before it lets others have the core: seldom where ranks share cores,
  // and in the background, where the rank's own thread is likely to compute.
  int num_spins(Channel channel) const;

  // A short wait without the lock for what needs no message; whether is_done().
  template <class IsDone>
  static bool spin(const IsDone& is_done, int num_spins) {
    for (int i = 0; i < num_spins; ++i) {
      if (is_done()) return true;
      relax();
    }
    return is_done();
  }

  // Returns when is_done() is true, which is evaluated under the lock whenever something may have
  // come. Throws DistributedError when the world has failed, when missing() (world ranks waited
  // for) names one that has ended, or after FLOW_TIMEOUT_S. `what` is the caller's operation, for
  // the report.
  void wait(const std::function<bool()>& is_done,
            const std::function<std::vector<int64_t>()>& missing, const Fingerprint& what,
            int num_spins);
  // As wait(), but gives up in silence after `limit`; whether is_done().
  bool wait_for(const std::function<bool()>& is_done, std::chrono::milliseconds limit);

  // The first counts. All other ranks are told and throw at their next operation.
  void fail(const Failure& failure);
  void check(Site site);
  // Whether this rank was told of a failure that another rank caused.
  bool was_told() const;
  // For a thread that waits for nothing: takes in what has come, and tells the next rank that this
  // one lives. False where another thread is in here.
  bool attend();
  // For a thread that computes: moves what other ranks ask for. Nothing where another thread is in
  // here, or after a failure.
  void advance();

  struct SignOfLife {
    int64_t rank;  // the one before this, in a ring
    std::chrono::steady_clock::time_point at;
  };

  // The connection is the first. Nothing when either rank has ended.
  std::optional<SignOfLife> last_sign_of_life() const;
  // Nothing unless the world has failed.
  std::optional<Failure> failure() const;

  // Tells the others that this rank takes part in nothing any more, waits for all of them to end
  // (after a failure for a few seconds only) and closes the transport; false where they did not.
  bool finish();

  // For groups: under lock().
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  const Transport& transport() const { return *transport_; }

  // As the transport's, or through memory that both ranks share.
  std::unique_ptr<Bulk> send(int64_t rank, int32_t tag, const void* source, int64_t bytes);
  std::unique_ptr<Bulk> receive(int64_t rank, int32_t tag, void* target, int64_t bytes);

  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }

  // Without the lock.
  int32_t next_bulk_tag();
  void post(int64_t rank, const ControlHead& head, std::span<const std::byte> body);
  void fail_locked(const Failure& failure);

 private:
  enum class Look { kDone, kNothing, kMoved, kFailed, kPeerEnded };

  static void relax();
  // Whether data has moved on.
  bool take_messages();
  bool take(int64_t& from, std::vector<std::byte>& message);
  Look look(const std::function<bool()>& is_done,
            const std::function<std::vector<int64_t>()>* missing);
  void handle(int64_t from, ControlMessage message);
  void set_failure(Failure failure);

  std::unique_ptr<Transport> transport_;
  // Null without shared memory; guarded by mutex_.
  std::unique_ptr<SharedMail> mail_;
  std::unique_ptr<SharedPipes> pipes_;
  bool shares_cores_;
  std::chrono::seconds timeout_;
  mutable std::mutex mutex_;
  // Guarded by mutex_, as are the receivers.
  std::vector<bool> ended_;
  bool has_any_ended_ = false;
  bool was_told_ = false;
  std::optional<Failure> failure_;
  SignOfLife last_sign_of_life_;
  std::map<uint64_t, Receiver*> receivers_;
  std::map<uint64_t, Early> early_;  // without a receiver

  std::atomic<bool> has_failed_{false};  // whether there is a failure_
  std::atomic<uint32_t> num_bulk_tags_{0};
};

// The world that this process has joined (boxing/ranks/process_ranks.h); null before.
ProcessWorld* process_world();

// At most once; the world lives until the process ends, as static tensors may use it.
ProcessWorld& set_process_world(std::unique_ptr<ProcessWorld> world);

}  // namespace flow::boxing
