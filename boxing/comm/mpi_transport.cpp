#include "boxing/comm/mpi_transport.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <utility>

// Excludes the C++ bindings, which MPI has removed.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include "boxing/comm/shared_segment.h"
#include "core/env.h"
#include "core/error.h"
#include "core/log.h"

namespace flow::boxing {

namespace {

[[noreturn]] void throw_mpi_error(const char* call, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw DistributedError(
      str("[mpi] ", call, " failed: ", text,
          "; read the output of mpirun and of the other ranks, then start the job again"));
}

#define FLOW_MPI_CALL(call)                                        \
  do {                                                             \
    if (const int code = (call); code != MPI_SUCCESS) [[unlikely]] \
      throw_mpi_error(#call, code);                                \
  } while (false)

constexpr int kMessageTag = 0;
// Longer data is sent in several messages: MPI counts with int, and tells of whole messages only.
constexpr int64_t kLongestMessage = int64_t{64} << 20;

bool is_finalized() {
  int is = 0;
  MPI_Finalized(&is);
  return is != 0;
}

// Data in one or several messages. Handles in static objects outlive MPI.
class MpiBulk final : public Bulk {
 public:
  using Start = std::function<void(int64_t begin, int size, MPI_Request* request)>;

  // At most `most_at_once` messages are started before the first one is complete. Each complete one
  // sets `has_moved`.
  MpiBulk(int64_t bytes, int64_t longest_message, size_t most_at_once, Start start, bool& has_moved)
      : bytes_(bytes),
        longest_message_(longest_message),
        most_at_once_(most_at_once),
        start_(std::move(start)),
        has_moved_(has_moved) {
    start_messages();
  }

  ~MpiBulk() override {
    if (is_finalized()) return;
    for (MPI_Request& request : requests_) {
      MPI_Cancel(&request);  // only after an error; a failure here is ignored
      MPI_Request_free(&request);
    }
  }

  bool is_done() override {
    while (!requests_.empty() && !is_finalized()) {
      int is_complete = 0;
      FLOW_MPI_CALL(MPI_Test(&requests_.front(), &is_complete, MPI_STATUS_IGNORE));
      if (is_complete == 0) return false;
      requests_.pop_front();
      has_moved_ = true;
      start_messages();
    }
    return requests_.empty();
  }

 private:
  void start_messages() {
    while (started_ < bytes_ && requests_.size() < most_at_once_) {
      const int64_t size = std::min(longest_message_, bytes_ - started_);
      start_(started_, static_cast<int>(size), &requests_.emplace_back(MPI_REQUEST_NULL));
      started_ += size;
    }
  }

  int64_t bytes_;
  int64_t longest_message_;
  size_t most_at_once_;
  Start start_;
  bool& has_moved_;
  int64_t started_ = 0;               // bytes
  std::deque<MPI_Request> requests_;  // of the messages that are not complete
};

class MpiTransport final : public Transport {
 public:
  MpiTransport(bool owns_mpi, int64_t longest_message, bool shares_memory)
      : owns_mpi_(owns_mpi), longest_message_(longest_message) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FLOW_MPI_CALL(MPI_Comm_dup(MPI_COMM_WORLD, &messages_));
    FLOW_MPI_CALL(MPI_Comm_dup(MPI_COMM_WORLD, &bulks_));
    for (MPI_Comm* made : {&messages_, &bulks_})
      FLOW_MPI_CALL(MPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN));
    find_identity(shares_memory);
    void* value = nullptr;
    int is_set = 0;
    FLOW_MPI_CALL(MPI_Comm_get_attr(bulks_, MPI_TAG_UB, &value, &is_set));
    constexpr int kLeastByStandard = 32767;
    max_tag_ = is_set != 0 ? *static_cast<int*>(value) : kLeastByStandard;
  }

  const RankIdentity& identity() const override { return identity_; }

  int64_t ranks_on_host() const override { return ranks_on_host_; }

  int32_t max_tag() const override { return max_tag_; }

  void post(int64_t rank, std::span<const std::byte> message) override {
    forget_sent();
    Outgoing& outgoing = outgoing_.emplace_back();
    outgoing.bytes.assign(message.begin(), message.end());
    FLOW_MPI_CALL(MPI_Isend(outgoing.bytes.data(), static_cast<int>(message.size()), MPI_BYTE,
                            static_cast<int>(rank), kMessageTag, messages_, &outgoing.request));
  }

  bool take(int64_t& from, std::vector<std::byte>& message) override {
    int has_come = 0;
    MPI_Message handle = MPI_MESSAGE_NULL;
    MPI_Status status;
    FLOW_MPI_CALL(MPI_Improbe(MPI_ANY_SOURCE, kMessageTag, messages_, &has_come, &handle, &status));
    if (has_come == 0) return false;
    int count = 0;
    FLOW_MPI_CALL(MPI_Get_count(&status, MPI_BYTE, &count));
    message.resize(static_cast<size_t>(count));
    from = status.MPI_SOURCE;
    FLOW_MPI_CALL(MPI_Mrecv(message.data(), count, MPI_BYTE, &handle, MPI_STATUS_IGNORE));
    return true;
  }

  std::unique_ptr<Bulk> send(int64_t rank, int32_t tag, const void* source,
                             int64_t bytes) override {
    const auto* data = static_cast<const std::byte*>(source);
    const auto start = [=, this](int64_t begin, int size, MPI_Request* request) {
      FLOW_MPI_CALL(
          MPI_Isend(data + begin, size, MPI_BYTE, static_cast<int>(rank), tag, bulks_, request));
    };
    constexpr size_t kAll = std::numeric_limits<size_t>::max();
    return std::make_unique<MpiBulk>(bytes, longest_message_, kAll, start, has_moved_);
  }

  std::unique_ptr<Bulk> receive(int64_t rank, int32_t tag, void* target, int64_t bytes) override {
    auto* data = static_cast<std::byte*>(target);
    const auto start = [=, this](int64_t begin, int size, MPI_Request* request) {
      FLOW_MPI_CALL(
          MPI_Irecv(data + begin, size, MPI_BYTE, static_cast<int>(rank), tag, bulks_, request));
    };
    // All messages that have been started move side by side, and few complete ones would show that
    // data moves.
    constexpr size_t kFew = 2;
    return std::make_unique<MpiBulk>(bytes, longest_message_, kFew, start, has_moved_);
  }

  bool has_moved() override { return std::exchange(has_moved_, false); }

  SharedSegment* segment() const override { return segment_.get(); }

  bool shares_with(int64_t rank) const override {
    return segment_ != nullptr && hosts_[static_cast<size_t>(rank)] == identity_.node_rank;
  }

  HostProcess process_of(int64_t rank) const override {
    const bool is_here = hosts_[static_cast<size_t>(rank)] == identity_.node_rank;
    return is_here ? processes_[static_cast<size_t>(rank)] : HostProcess();
  }

  bool is_open() const override { return !is_finalized(); }

  bool is_own() const override { return owns_mpi_; }

  // A program that initialised MPI also finalizes it.
  void close() override {
    for (Outgoing& outgoing : outgoing_)
      FLOW_MPI_CALL(MPI_Wait(&outgoing.request, MPI_STATUS_IGNORE));
    outgoing_.clear();
    if (owns_mpi_) FLOW_MPI_CALL(MPI_Finalize());
  }

 private:
  struct Outgoing {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<std::byte> bytes;
  };

  void forget_sent() {
    while (!outgoing_.empty()) {
      int is_sent = 0;
      FLOW_MPI_CALL(MPI_Test(&outgoing_.front().request, &is_sent, MPI_STATUS_IGNORE));
      if (is_sent == 0) return;
      outgoing_.pop_front();
    }
  }

  // Hosts are numbered in the order of their first ranks.
  void find_identity(bool shares_memory) {
    int rank = 0;
    int size = 1;
    FLOW_MPI_CALL(MPI_Comm_rank(messages_, &rank));
    FLOW_MPI_CALL(MPI_Comm_size(messages_, &size));
    MPI_Comm host = MPI_COMM_NULL;
    FLOW_MPI_CALL(MPI_Comm_split_type(messages_, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host));
    int local_rank = 0;
    int local_size = 1;
    FLOW_MPI_CALL(MPI_Comm_rank(host, &local_rank));
    FLOW_MPI_CALL(MPI_Comm_size(host, &local_size));
    int first = rank;
    FLOW_MPI_CALL(MPI_Bcast(&first, 1, MPI_INT, 0, host));
    if (shares_memory && local_size > 1) share_memory(host);
    FLOW_MPI_CALL(MPI_Comm_free(&host));
    std::vector<int> firsts(static_cast<size_t>(size));
    FLOW_MPI_CALL(MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, messages_));
    std::vector<int> nodes = firsts;
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    for (const int one : firsts)
      hosts_.push_back(std::find(nodes.begin(), nodes.end(), one) - nodes.begin());
    const HostProcess self = own_process();
    processes_.resize(static_cast<size_t>(size));
    FLOW_MPI_CALL(MPI_Allgather(&self, sizeof(self), MPI_BYTE, processes_.data(), sizeof(self),
                                MPI_BYTE, messages_));
    const int64_t node = hosts_[static_cast<size_t>(rank)];
    identity_ = {.rank = rank, .world_size = size, .local_rank = local_rank, .node_rank = node};
    ranks_on_host_ = local_size;
  }

  // Either all ranks of the host share one segment, or none does.
  void share_memory(MPI_Comm host) {
    int rank = 0;
    FLOW_MPI_CALL(MPI_Comm_rank(host, &rank));
    std::string reason = "FLOW_SHARED_MEMORY is 0";
    const bool is_wanted = env_int("FLOW_SHARED_MEMORY", 1) != 0;
    SharedSegment::Address address;
    if (rank == 0 && is_wanted) segment_ = SharedSegment::create(reason);
    if (segment_) address = segment_->address();
    FLOW_MPI_CALL(MPI_Bcast(&address, sizeof(address), MPI_BYTE, 0, host));
    if (rank != 0 && is_wanted) segment_ = SharedSegment::open(address, reason);
    int has_segment = segment_ != nullptr ? 1 : 0;
    if (is_wanted && has_segment == 0 && (rank == 0 || address.token != 0)) {
      log_warning(str("ranks of this host cannot share memory (", reason,
                      "); they send messages instead, which is slower"));
    }
    FLOW_MPI_CALL(MPI_Allreduce(MPI_IN_PLACE, &has_segment, 1, MPI_INT, MPI_MIN, host));
    if (has_segment == 0) segment_.reset();
    if (segment_) segment_->close();
  }

  bool owns_mpi_;
  int64_t longest_message_;
  MPI_Comm messages_ = MPI_COMM_NULL;
  MPI_Comm bulks_ = MPI_COMM_NULL;
  int32_t max_tag_ = 0;
  bool has_moved_ = false;
  RankIdentity identity_;
  int64_t ranks_on_host_ = 1;
  std::vector<int64_t> hosts_;  // the host of each rank
  std::vector<HostProcess> processes_;
  std::unique_ptr<SharedSegment> segment_;
  std::deque<Outgoing> outgoing_;  // references to entries stay valid
};

// Returns true if MPI was initialised here. Threads of a rank take turns, so that their calls never
// overlap.
bool initialise() {
  int is_initialized = 0;
  MPI_Initialized(&is_initialized);
  int provided = MPI_THREAD_SINGLE;
  if (is_initialized == 0) {
    FLOW_MPI_CALL(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
  } else {
    FLOW_MPI_CALL(MPI_Query_thread(&provided));
  }
  if (provided < MPI_THREAD_SERIALIZED) {
    throw Unsupported(
        "[ranks] the program initialised MPI for one thread only; call MPI_Init_thread with "
        "MPI_THREAD_MULTIPLE, or leave it to flow");
  }
  return is_initialized == 0;
}

}  // namespace

bool has_mpi() {
  return true;
}

std::unique_ptr<Transport> connect_mpi() {
  const bool owns_mpi = initialise();
  return std::make_unique<MpiTransport>(owns_mpi, kLongestMessage, true);
}

namespace internal {
std::unique_ptr<Transport> connect_mpi_by_messages(int64_t longest_message) {
  const bool owns_mpi = initialise();
  return std::make_unique<MpiTransport>(owns_mpi, longest_message, false);
}
}  // namespace internal

}  // namespace flow::boxing
