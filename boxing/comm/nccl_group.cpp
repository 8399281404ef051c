#include "boxing/comm/nccl_group.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nccl.h>

#include "boxing/comm/device_point.h"
#include "boxing/comm/fail_world.h"
#include "boxing/comm/failure.h"
#include "boxing/comm/failure_stops.h"
#include "boxing/comm/gathered.h"
#include "boxing/comm/polls.h"
#include "core/context.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/device/cuda_library.h"
#include "core/error.h"
#include "core/log.h"

namespace flow::boxing {

namespace {

struct Library {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&ncclCommGetAsyncError) get_async_error = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  bool is_usable = false;

  Library() {
    std::string reason;
    void* const handle = cuda::load_library({"libnccl.so.2"}, "", reason);
    if (handle == nullptr) {
      log_info(str("[nccl] NCCL 2 cannot be loaded (", reason,
                   "); data between GPUs goes through host memory"));
      return;
    }
    is_usable = true;
    find(handle, "ncclGetVersion", get_version);
    find(handle, "ncclGetUniqueId", get_unique_id);
    find(handle, "ncclGetErrorString", error_string);
    find(handle, "ncclCommInitRankConfig", init_rank);
    find(handle, "ncclCommGetAsyncError", get_async_error);
    find(handle, "ncclCommDestroy", destroy);
    find(handle, "ncclCommAbort", comm_abort);
    find(handle, "ncclGroupStart", group_start);
    find(handle, "ncclGroupEnd", group_end);
    find(handle, "ncclSend", send);
    find(handle, "ncclRecv", recv);
    find(handle, "ncclAllReduce", all_reduce);
    if (!is_usable) log_warning("[nccl] libnccl.so.2 lacks functions that flow uses");
  }

  template <class Function>
  void find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(cuda::find_function(handle, name));
    is_usable = is_usable && function != nullptr;
  }
};

const Library& library() {
  static const Library& instance = *new Library;  // immortal: communicators end late
  return instance;
}

std::optional<ncclDataType_t> data_type(DType dtype) {
  if (dtype == DType::kFloat16) return ncclFloat16;
  if (dtype == DType::kBFloat16) return ncclBfloat16;
  if (dtype == DType::kFloat32) return ncclFloat32;
  if (dtype == DType::kFloat64) return ncclFloat64;
  if (dtype == DType::kInt32) return ncclInt32;
  if (dtype == DType::kInt64) return ncclInt64;
  return {};
}

ncclRedOp_t reduction(ReduceOp op) {
  return op == ReduceOp::kMax   ? ncclMax
         : op == ReduceOp::kMin ? ncclMin
         : op == ReduceOp::kSum ? ncclSum
                                : ncclAvg;
}

// Makes the communicator's device current, on any thread, and again after a call that may leave
// another one current, as the end of a communicator does in some versions of NCCL.
class KeepDevice {
 public:
  explicit KeepDevice(const cuda::RankDevice& device) : index_(device.index()) {
    cuda::warn_if_failed(cuda::set_current(index_), "cudaSetDevice");
  }

  ~KeepDevice() { cuda::warn_if_failed(cudaSetDevice(index_), "cudaSetDevice"); }

  KeepDevice(const KeepDevice&) = delete;
  KeepDevice& operator=(const KeepDevice&) = delete;

 private:
  const int index_;
};

// The failure of a rank in whose queued work NCCL has failed.
using DescribeFailure = std::function<Failure(const std::string& reason)>;

// A communicator that never blocks. If the world fails, it is aborted. NCCL may also fail after a
// call was queued, such as a network does, and only tells who asks: the world fails then, because
// the device, and who waits for it, would wait for ever. Used by one thread at a time.
class Connection {
 public:
  // `describe` is called on another thread, but not during begin().
  Connection(RankContext& rank, cuda::RankDevice& device, int64_t size, int64_t position,
             const ncclUniqueId& id, DescribeFailure describe)
      : device_(device),
        describe_(std::move(describe)),
        fail_(world_failer(rank)),
        tell_(world_teller(rank)),
        stop_([this] { give_up(); }),
        poll_([this] { return ask_for_failure(); }) {
    device_.make_current();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const std::lock_guard lock(mutex_);
    result_ = library().init_rank(&comm_, static_cast<int>(size), id, static_cast<int>(position),
                                  &config);
  }

  // Requires: the work that uses it has ended, or it is not connected.
  ~Connection() {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return;
    const KeepDevice current(device_);
    if (result_ == ncclSuccess) {
      library().destroy(comm_);
    } else {
      library().comm_abort(comm_);
    }
    comm_ = nullptr;
  }

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Whether it can be used: neither a call is in progress, nor has one failed.
  bool is_connected() {
    const std::lock_guard lock(mutex_);
    return comm_ != nullptr && result_ == ncclSuccess;
  }

  bool is_aborted() {
    const std::lock_guard lock(mutex_);
    return comm_ == nullptr;
  }

  // Whether another member has ended or was aborted.
  bool has_lost_member() {
    const std::lock_guard lock(mutex_);
    return result_ == ncclRemoteError;
  }

  // Asks NCCL for the state of the last call.
  bool is_in_progress() {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr || result_ != ncclInProgress) return false;
    const ncclResult_t asked = library().get_async_error(comm_, &result_);
    if (asked != ncclSuccess) result_ = asked;
    return result_ == ncclInProgress;
  }

  std::string reason() const { return library().error_string(result_); }

  // Makes the calls of body(communicator) as one group, and notes what describe() needs to know.
  template <class Body>
  void begin(const Body& body) {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return;
    result_ = ncclSuccess;
    take(library().group_start());
    body(comm_);
    take(library().group_end());
  }

  // Keeps the first result that is an error. Called by the body of begin().
  void take(ncclResult_t result) {
    if (result_ == ncclSuccess || result_ == ncclInProgress) result_ = result;
  }

  // Aborts the communicator; no other member waits for it. Who waits for the device goes on then,
  // and must not take what it reads for results.
  void give_up() {
    const std::lock_guard lock(mutex_);
    result_ = ncclRemoteError;
    if (comm_ == nullptr) return;
    device_.lose_results(tell_);
    const KeepDevice current(device_);
    library().comm_abort(comm_);
    comm_ = nullptr;
  }

 private:
  // Whether NCCL has failed in work that is queued. That a member is lost is no failure: it may
  // have ended after the work, and else the world learns of it and why.
  Poll::Answer ask_for_failure() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || comm_ == nullptr || result_ != ncclSuccess) return {};
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = library().get_async_error(comm_, &state);
    if (asked != ncclSuccess) state = asked;
    if (state == ncclSuccess || state == ncclInProgress || state == ncclRemoteError) return {};
    result_ = state;
    return [fail = fail_, failure = describe_(reason())] { fail(failure); };
  }

  cuda::RankDevice& device_;
  const DescribeFailure describe_;
  const std::function<void(const Failure&)> fail_;
  const std::function<void()> tell_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;          // null: aborted, or not made; guarded by mutex_
  ncclResult_t result_ = ncclSuccess;  // of the last call; guarded by mutex_
  FailureStop stop_;                   // the last members: they end first
  Poll poll_;
};

std::string advice_after(const std::string& reason) {
  return reason + "; NCCL_DEBUG=WARN prints more";
}

class Group final : public NcclGroup {
 public:
  Group(RankContext& rank, Communicator& group, const ncclUniqueId& id)
      : device_(cuda::rank_device(rank)),
        group_(group),
        connection_(rank, device_, group.size(), group.position(), id,
                    [this](const std::string& reason) { return queued_failure(reason); }) {}

  // Ends after the work that uses the communicator; a failure meanwhile still aborts it.
  ~Group() override {
    if (!connection_.is_connected()) return;
    device_.make_current();
    for (const cudaStream_t stream : {device_.compute_stream(), device_.communication_stream()})
      cuda::warn_if_failed(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }

  Connection& connection() { return connection_; }

  void exchange(std::span<const std::span<const std::byte>> sends,
                std::span<const std::span<std::byte>> receives, const Fingerprint& what) override {
    run(what, [&](ncclComm_t comm, cudaStream_t stream) {
      for (size_t i = 0; i < sends.size(); ++i) {
        const int peer = static_cast<int>(i);
        if (!sends[i].empty()) {
          connection_.take(
              library().send(sends[i].data(), sends[i].size(), ncclUint8, peer, comm, stream));
        }
        if (!receives[i].empty()) {
          connection_.take(library().recv(receives[i].data(), receives[i].size(), ncclUint8, peer,
                                          comm, stream));
        }
      }
    });
  }

  bool can_reduce(DType dtype) const override { return data_type(dtype).has_value(); }

  void all_reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
                  const Fingerprint& what) override {
    const ncclDataType_t type = data_type(dtype).value();
    run(what, [&](ncclComm_t comm, cudaStream_t stream) {
      connection_.take(library().all_reduce(source, target, static_cast<size_t>(count), type,
                                            reduction(op), comm, stream));
    });
  }

 private:
  // Makes the calls of `body` as one group and waits until they are queued.
  template <class Body>
  void run(const Fingerprint& what, const Body& body) {
    device_.make_current();
    const cudaStream_t stream = device_.stream();  // may throw, which would leave the group open
    connection_.begin([&](ncclComm_t comm) {
      last_ = what;
      body(comm, stream);
    });
    const auto end = std::chrono::steady_clock::now() + time_limit();
    bool is_late = false;
    while (!is_late && connection_.is_in_progress()) {
      std::this_thread::yield();
      is_late = std::chrono::steady_clock::now() > end;
    }
    if (connection_.is_connected()) return;
    // Throws what the world fails with. NCCL may notice before this rank that another one does; a
    // member that has met the others but did not make its call is missing here too.
    if (is_late || connection_.is_aborted() || connection_.has_lost_member()) group_.barrier(what);
    throw DistributedError(str("[", what.op, "] NCCL failed: ", advice_after(connection_.reason())),
                           what.site);
  }

  Failure queued_failure(const std::string& reason) const {
    const int64_t own = group_.ranks()[static_cast<size_t>(group_.position())];
    return {.rank = own,
            .message = str("[nccl] NCCL failed on rank ", own, " in queued work of ",
                           list_ranks(group_.ranks()), ", in ", last_,
                           " or a call before it: ", advice_after(reason)),
            .op = std::string(last_.op).empty() ? last_.collective : last_.op,
            .site = site_text(last_)};
  }

  cuda::RankDevice& device_;
  Communicator& group_;
  Fingerprint last_;  // the last call; written during begin()
  Connection connection_;
};

class Link final : public NcclLink {
 public:
  Link(RankContext& rank, int64_t peer, const ncclUniqueId& id, bool is_sender)
      : device_(cuda::rank_device(rank)),
        own_(rank.rank()),
        peer_(peer),
        is_sender_(is_sender),
        stream_(device_),
        connection_(rank, device_, 2, is_sender ? 0 : 1, id,
                    [this](const std::string& reason) { return queued_failure(reason); }) {}

  // Ends after the work that uses the communicator; a failure meanwhile still aborts it.
  ~Link() override {
    if (!connection_.is_connected()) return;
    device_.make_current();
    cuda::warn_if_failed(cudaStreamSynchronize(stream_.raw), "cudaStreamSynchronize");
  }

  bool is_refused() override {
    return !was_connected_ && !is_open() && !connection_.is_connected();
  }

  bool is_idle() override {
    if (is_open()) return false;
    if (connection_.is_connected()) return was_connected_ = true;
    if (is_refused() && !is_sender_) return false;
    throw DistributedError(str("NCCL failed: ", advice_after(connection_.reason())));
  }

  void send(const std::byte* data, int64_t bytes, const DevicePoint& ready) override {
    begin(ready, bytes, [&](ncclComm_t comm) {
      return library().send(data, static_cast<size_t>(bytes), ncclUint8, 1, comm, stream_.raw);
    });
  }

  void receive(std::byte* target, int64_t bytes, const DevicePoint& ready) override {
    begin(ready, bytes, [&](ncclComm_t comm) {
      return library().recv(target, static_cast<size_t>(bytes), ncclUint8, 0, comm, stream_.raw);
    });
  }

  DevicePointPtr end() override {
    device_.make_current();
    return std::make_shared<const DevicePoint>(stream_.raw, device_.index());
  }

 private:
  // Whether NCCL has not answered yet, or will not.
  bool is_open() {
    device_.make_current();
    return connection_.is_in_progress() || connection_.is_aborted();
  }

  struct Stream {
    const int index;
    cudaStream_t raw = nullptr;

    explicit Stream(const cuda::RankDevice& device) : index(device.index()) {
      device.make_current();
      FLOW_CUDA_CALL(cudaStreamCreateWithFlags(&raw, cudaStreamNonBlocking));
    }

    ~Stream() {
      const cuda::OnDevice scope(index);
      cuda::warn_if_failed(cudaStreamDestroy(raw), "cudaStreamDestroy");
    }

    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
  };

  template <class Call>
  void begin(const DevicePoint& ready, int64_t bytes, const Call& call) {
    device_.make_current();
    FLOW_CUDA_CALL(cudaStreamWaitEvent(stream_.raw, ready.event, 0));
    connection_.begin([&](ncclComm_t comm) {
      last_bytes_ = bytes;
      connection_.take(call(comm));
    });
  }

  Failure queued_failure(const std::string& reason) const {
    return {.rank = own_,
            .message = str("[nccl] NCCL failed on rank ", own_, " in a queued message from rank ",
                           is_sender_ ? own_ : peer_, " to rank ", is_sender_ ? peer_ : own_,
                           ", in the one of ", last_bytes_,
                           " bytes or one before it: ", advice_after(reason)),
            .op = is_sender_ ? "send" : "recv"};
  }

  cuda::RankDevice& device_;
  const int64_t own_;
  const int64_t peer_;
  const bool is_sender_;
  int64_t last_bytes_ = 0;  // of the last message; written during begin()
  Stream stream_;           // ends after the connection
  Connection connection_;
  bool was_connected_ = false;
};

bool can_connect_all(const std::vector<NcclOffer>& offers) {
  for (size_t i = 0; i < offers.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!can_connect(offers[i], offers[j])) return false;
    }
  }
  return true;
}

// Collective: waits until the members are connected. False: they cannot be. Nobody waits for a
// member whom NCCL has refused.
bool connect_all(Connection& connection, Communicator& group, const Fingerprint& what) {
  const auto end = std::chrono::steady_clock::now() + time_limit();
  enum class State : char { kWaits, kConnected, kRefused };
  for (;;) {
    const bool waits = connection.is_in_progress() && std::chrono::steady_clock::now() < end;
    const State own = waits                       ? State::kWaits
                      : connection.is_connected() ? State::kConnected
                                                  : State::kRefused;
    const std::vector<State> all = gathered(group, own, what);
    const auto has = [&](State state) {
      return std::find(all.begin(), all.end(), state) != all.end();
    };
    if (has(State::kRefused)) return false;
    if (!has(State::kWaits)) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace

NcclOffer nccl_offer(RankContext& rank) {
  NcclOffer own;
  if (!library().is_usable || library().get_version(&own.version) != ncclSuccess) return {};
  own.device = cuda::device_uuid(rank);
  return own;
}

bool can_connect(const NcclOffer& a, const NcclOffer& b) {
  return a.version != 0 && a.version == b.version && a.device != b.device;
}

std::optional<NcclInvitation> invite() {
  // Before this version a thread has one group of calls in progress at most. The calls of several
  // links are.
  constexpr int kLeastVersion = 22700;
  int version = 0;
  ncclUniqueId id{};
  if (library().get_version(&version) != ncclSuccess || version < kLeastVersion ||
      library().get_unique_id(&id) != ncclSuccess) {
    return {};
  }
  NcclInvitation invitation;
  static_assert(sizeof(invitation.id) == sizeof(id.internal));
  std::memcpy(invitation.id, id.internal, sizeof(id.internal));
  return invitation;
}

std::unique_ptr<NcclLink> make_nccl_link(RankContext& rank, int64_t peer,
                                         const NcclInvitation& invitation, bool is_sender) {
  ncclUniqueId id{};
  std::memcpy(id.internal, invitation.id, sizeof(id.internal));
  return std::make_unique<Link>(rank, peer, id, is_sender);
}

std::unique_ptr<NcclGroup> make_nccl_group(RankContext& rank, Communicator& group,
                                           const Fingerprint& what) {
  if (group.size() < 2) return nullptr;
  if (!can_connect_all(gathered(group, nccl_offer(rank), what))) return nullptr;

  struct Invitation {
    ncclUniqueId id;
    bool is_valid;
  };

  Invitation invitation{};
  if (group.position() == 0)
    invitation.is_valid = library().get_unique_id(&invitation.id) == ncclSuccess;
  group.broadcast(&invitation, static_cast<int64_t>(sizeof(invitation)), 0, what);
  if (!invitation.is_valid) return nullptr;
  auto made = std::make_unique<Group>(rank, group, invitation.id);
  Connection& connection = made->connection();
  if (connect_all(connection, group, what)) return made;
  log_info(str("[nccl] NCCL could not connect ranks of a group (", connection.reason(),
               "); their data goes through host memory"));
  connection.give_up();  // the end of a connected member could wait for those that are not
  return nullptr;
}

}  // namespace flow::boxing
