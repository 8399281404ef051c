// NCCL: checks what it is called with, and moves data by copies that events order. As with a real
// communicator that does not block, a call begins when its group ends and makes progress while its
// rank asks for its state. Between processes, data is read from the device when a call begins, and
// passed on in shared memory.
#include "nccl.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

#include "core/error.h"
#include "core/float16.h"
#include "cuda_runtime.h"
#include "emulated_library.h"
#include "emulated_stream.h"
#include "process_mail.h"

using cuda_emulator::ProcessMail;
using cuda_emulator::report_mistake;
using flow::str;

namespace {

struct EventOwner {
  cudaEvent_t event = nullptr;

  EventOwner() { cudaEventCreateWithFlags(&event, cudaEventDisableTiming); }

  ~EventOwner() { cudaEventDestroy(event); }

  EventOwner(const EventOwner&) = delete;
  EventOwner& operator=(const EventOwner&) = delete;
};

struct Sent {
  const void* data = nullptr;
  size_t bytes = 0;
  EventOwner ready;
  std::unique_ptr<EventOwner> taken;  // of the receiver's device; null: not taken yet
};

// One all-reduce; an entry for each rank.
struct Reduction {
  struct Entry {
    const void* source = nullptr;
    void* target = nullptr;
    std::unique_ptr<EventOwner> ready;   // null: the rank has not come yet
    std::unique_ptr<EventOwner> copied;  // null: it has not copied the sources yet
  };

  std::vector<Entry> entries;
};

struct Clique {
  int size = 0;
  bool is_aborted = false;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Sent>>> mail;
  std::map<int64_t, std::shared_ptr<Reduction>> reductions;  // by their number
};

struct Operation {
  enum class Kind { kSend, kReceive, kReduce };

  Kind kind = Kind::kSend;
  const void* source = nullptr;
  void* target = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclUint8;
  int peer = -1;
  ncclRedOp_t op = ncclSum;
  cudaStream_t stream = nullptr;
  std::shared_ptr<Sent> sent;
  std::shared_ptr<Reduction> reduction;
  std::vector<void*> copies;  // of a reduction
  // Between processes.
  std::string piece;                        // of a send or receive
  int64_t number = 0;                       // of a reduction
  std::vector<ProcessMail::Bytes> sources;  // of a reduction; the first ones that have come
  bool is_done = false;
};

// What a rank tells the others while they connect.
struct Presence {
  pid_t process;
  int device;
};

// Guards all communicators.
std::mutex& nccl_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

// Those of this process, by their names.
std::map<std::string, std::shared_ptr<Clique>>& cliques() {
  static auto& all = *new std::map<std::string, std::shared_ptr<Clique>>;
  return all;
}

thread_local int group_depth = 0;
thread_local std::vector<std::pair<ncclComm_t, Operation>> grouped;

}  // namespace

struct EmulatedNccl : cuda_emulator::LibraryObject {
  explicit EmulatedNccl(const std::string& name) : mail(name) {}

  std::shared_ptr<Clique> clique;
  int rank = 0;
  int device = 0;
  int64_t reductions = 0;
  ProcessMail mail;
  std::vector<Presence> present;  // of the first ranks
  bool is_connected = false;
  bool is_refused = false;
  bool is_of_processes = false;           // the ranks are in several processes
  std::map<std::string, int64_t> pieces;  // how many were sent or received, by the pair of ranks
  std::vector<Operation> pending;
  ncclResult_t state = ncclSuccess;
  std::atomic<bool> has_failed = false;  // in work that is queued
  // What the device waits for after that.
  std::shared_ptr<std::atomic<bool>> is_over = std::make_shared<std::atomic<bool>>(false);
};

namespace {

size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclFloat64:
      return 8;
  }
  return 1;
}

template <class T>
void reduce_typed(const std::vector<void*>& copies, void* target, size_t count, ncclRedOp_t op) {
  using Sum = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
  for (size_t i = 0; i < count; ++i) {
    auto sum = static_cast<Sum>(static_cast<const T*>(copies.back())[i]);
    for (size_t k = copies.size() - 1; k-- > 0;) {
      const auto next = static_cast<Sum>(static_cast<const T*>(copies[k])[i]);
      if (op == ncclMax) {
        sum = std::max(sum, next);
      } else if (op == ncclMin) {
        sum = std::min(sum, next);
      } else {
        sum = static_cast<Sum>(sum + next);
      }
    }
    if (op == ncclAvg) sum = static_cast<Sum>(sum / static_cast<Sum>(copies.size()));
    static_cast<T*>(target)[i] = static_cast<T>(sum);
  }
}

void reduce_copies(const Operation& operation) {
  const auto run = [&]<class T>() {
    reduce_typed<T>(operation.copies, operation.target, operation.count, operation.op);
  };
  switch (operation.type) {
    case ncclInt8:
      return run.operator()<int8_t>();
    case ncclUint8:
      return run.operator()<uint8_t>();
    case ncclInt32:
      return run.operator()<int32_t>();
    case ncclInt64:
      return run.operator()<int64_t>();
    case ncclFloat16:
      return run.operator()<flow::Float16>();
    case ncclFloat32:
      return run.operator()<float>();
    case ncclFloat64:
      return run.operator()<double>();
    case ncclBfloat16:
      return run.operator()<flow::BFloat16>();
  }
}

ncclResult_t wrong(const std::string& text) {
  report_mistake("NCCL: " + text);
  return ncclInvalidUsage;
}

bool holds(const void* data, size_t bytes) {
  return bytes == 0 || cuda_emulator::is_allocated(data, bytes);
}

// These require nccl_mutex().

std::string name_of_presence(int rank, int reader) {
  return str("rank", rank, "-for-", reader);
}

// As for two slices of one GPU, which NCCL takes for one device.
bool refuses_connections() {
  const char* const can_connect = std::getenv("CUDA_EMULATOR_CONNECT");
  return can_connect != nullptr && *can_connect == '0';
}

// Learns of the other ranks; of two with one device, too.
ncclResult_t connect(EmulatedNccl& comm) {
  if (comm.is_refused) return ncclSystemError;
  std::set<int> devices;
  std::set<pid_t> processes;
  while (static_cast<int>(comm.present.size()) < comm.clique->size) {
    const int next = static_cast<int>(comm.present.size());
    const auto shown = comm.mail.take(name_of_presence(next, comm.rank));
    if (!shown) return ncclInProgress;
    std::memcpy(&comm.present.emplace_back(), shown->data(), sizeof(Presence));
  }
  for (const Presence& rank : comm.present) {
    devices.insert(rank.device);
    processes.insert(rank.process);
  }
  if (static_cast<int>(devices.size()) < comm.clique->size) return ncclInvalidUsage;
  if (refuses_connections()) return ncclInvalidUsage;
  comm.is_of_processes = processes.size() > 1;
  comm.is_connected = true;
  return ncclSuccess;
}

std::string next_piece(EmulatedNccl& comm, int from, int to) {
  const std::string pair = str(from, '-', to);
  return str(pair, '-', comm.pieces[pair]++);
}

std::string piece_of_reduction(int64_t number, int from, int to) {
  return str("reduction", number, '-', from, '-', to);
}

ncclResult_t begin_between_processes(EmulatedNccl& comm, Operation& operation) {
  if (operation.kind == Operation::Kind::kReceive) {
    operation.piece = next_piece(comm, operation.peer, comm.rank);
    return ncclSuccess;
  }
  ProcessMail::Bytes data(operation.count * size_of(operation.type));
  cudaMemcpyAsync(data.data(), operation.source, data.size(), cudaMemcpyDefault, operation.stream);
  bool has_room = true;
  if (operation.kind == Operation::Kind::kSend) {
    operation.piece = next_piece(comm, comm.rank, operation.peer);
    has_room = comm.mail.put(operation.piece, data);
  } else {
    operation.number = comm.reductions++;
    for (int rank = 0; rank < comm.clique->size; ++rank)
      has_room &= comm.mail.put(piece_of_reduction(operation.number, comm.rank, rank), data);
  }
  return has_room ? ncclSuccess : ncclSystemError;
}

ncclResult_t begin(EmulatedNccl& comm, Operation& operation) {
  if (comm.is_of_processes) return begin_between_processes(comm, operation);
  Clique& clique = *comm.clique;
  if (operation.kind == Operation::Kind::kSend) {
    operation.sent = std::make_shared<Sent>();
    operation.sent->data = operation.source;
    operation.sent->bytes = operation.count * size_of(operation.type);
    cudaEventRecord(operation.sent->ready.event, operation.stream);
    clique.mail[{comm.rank, operation.peer}].push_back(operation.sent);
  } else if (operation.kind == Operation::Kind::kReduce) {
    auto& reduction = clique.reductions[comm.reductions++];
    if (reduction == nullptr) {
      reduction = std::make_shared<Reduction>();
      reduction->entries.resize(static_cast<size_t>(clique.size));
    }
    operation.reduction = reduction;
    auto& own = reduction->entries[static_cast<size_t>(comm.rank)];
    own.source = operation.source;
    own.target = operation.target;
    own.ready = std::make_unique<EventOwner>();
    cudaEventRecord(own.ready->event, operation.stream);
  }
  return ncclSuccess;
}

ncclResult_t wrong_size(const EmulatedNccl& comm, const Operation& operation, size_t sent) {
  return wrong(str("rank ", operation.peer, " sends ", sent, " bytes, of which rank ", comm.rank,
                   " receives ", operation.count * size_of(operation.type)));
}

ncclResult_t receive_from_process(EmulatedNccl& comm, Operation& operation) {
  const auto data = comm.mail.take(operation.piece);
  if (!data) return ncclInProgress;
  if (data->size() != operation.count * size_of(operation.type))
    return wrong_size(comm, operation, data->size());
  cudaMemcpyAsync(operation.target, data->data(), data->size(), cudaMemcpyDefault,
                  operation.stream);
  operation.is_done = true;
  return ncclSuccess;
}

ncclResult_t reduce_of_processes(EmulatedNccl& comm, Operation& operation) {
  while (static_cast<int>(operation.sources.size()) < comm.clique->size) {
    const int from = static_cast<int>(operation.sources.size());
    auto data = comm.mail.take(piece_of_reduction(operation.number, from, comm.rank));
    if (!data) return ncclInProgress;
    operation.sources.push_back(std::move(*data));
  }
  // What a rank has put is removed at its end.
  for (int reader = 0; reader < comm.clique->size; ++reader) {
    if (comm.mail.is_there(piece_of_reduction(operation.number, comm.rank, reader)))
      return ncclInProgress;
  }
  operation.is_done = true;
  cuda_emulator::enqueue(operation.stream, [operation]() mutable {
    for (ProcessMail::Bytes& source : operation.sources)
      operation.copies.push_back(source.data());
    reduce_copies(operation);
  });
  return ncclSuccess;
}

ncclResult_t advance_between_processes(EmulatedNccl& comm, Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::kReceive:
      return receive_from_process(comm, operation);
    case Operation::Kind::kReduce:
      return reduce_of_processes(comm, operation);
    case Operation::Kind::kSend:
      operation.is_done = !comm.mail.is_there(operation.piece);
      return operation.is_done ? ncclSuccess : ncclInProgress;
  }
  return ncclInternalError;
}

ncclResult_t receive(EmulatedNccl& comm, Operation& operation) {
  auto& mail = comm.clique->mail[{operation.peer, comm.rank}];
  if (mail.empty()) return ncclInProgress;
  Sent& sent = *mail.front();
  const size_t bytes = operation.count * size_of(operation.type);
  if (sent.bytes != bytes) return wrong_size(comm, operation, sent.bytes);
  cudaStreamWaitEvent(operation.stream, sent.ready.event, 0);
  if (bytes > 0)
    cudaMemcpyAsync(operation.target, sent.data, bytes, cudaMemcpyDefault, operation.stream);
  sent.taken = std::make_unique<EventOwner>();
  cudaEventRecord(sent.taken->event, operation.stream);
  mail.pop_front();
  operation.is_done = true;
  return ncclSuccess;
}

ncclResult_t reduce(EmulatedNccl& comm, Operation& operation) {
  auto& entries = operation.reduction->entries;
  auto& own = entries[static_cast<size_t>(comm.rank)];
  const auto all = [&](std::unique_ptr<EventOwner> Reduction::Entry::*event) {
    return std::all_of(entries.begin(), entries.end(),
                       [&](const auto& entry) { return entry.*event != nullptr; });
  };
  if (!all(&Reduction::Entry::ready)) return ncclInProgress;
  if (own.copied == nullptr) {
    const size_t bytes = operation.count * size_of(operation.type);
    for (auto& entry : entries) {
      void* copy = nullptr;
      cudaMalloc(&copy, bytes);
      operation.copies.push_back(copy);
      cudaStreamWaitEvent(operation.stream, entry.ready->event, 0);
      cudaMemcpyAsync(copy, entry.source, bytes, cudaMemcpyDefault, operation.stream);
    }
    own.copied = std::make_unique<EventOwner>();
    cudaEventRecord(own.copied->event, operation.stream);
  }
  if (!all(&Reduction::Entry::copied)) return ncclInProgress;
  for (auto& entry : entries)
    cudaStreamWaitEvent(operation.stream, entry.copied->event, 0);
  cuda_emulator::enqueue(operation.stream, [operation] { reduce_copies(operation); });
  operation.is_done = true;
  return ncclSuccess;
}

ncclResult_t advance(EmulatedNccl& comm, Operation& operation) {
  if (comm.is_of_processes) return advance_between_processes(comm, operation);
  switch (operation.kind) {
    case Operation::Kind::kReceive:
      return receive(comm, operation);
    case Operation::Kind::kReduce:
      return reduce(comm, operation);
    case Operation::Kind::kSend:
      if (operation.sent->taken == nullptr) return ncclInProgress;
      cudaStreamWaitEvent(operation.stream, operation.sent->taken->event, 0);
      operation.is_done = true;
      return ncclSuccess;
  }
  return ncclInternalError;
}

// The device waits after the last operation until the communicator is aborted.
void fail_queued_work(EmulatedNccl& comm) {
  comm.has_failed = true;
  const std::lock_guard lock(cuda_emulator::device_mutex());
  cuda_emulator::queue(comm.pending.back().stream,
                       {[] {}, 0, [is_over = comm.is_over] { return is_over->load(); }});
}

ncclResult_t add(ncclComm_t comm, Operation operation) {
  const size_t bytes = operation.count * size_of(operation.type);
  if (group_depth == 0) return wrong("a call outside a group");
  if (comm == nullptr || operation.stream == nullptr) return wrong("no communicator or no stream");
  if (operation.kind != Operation::Kind::kReduce &&
      (operation.peer < 0 || operation.peer >= comm->clique->size)) {
    return wrong(str("no rank ", operation.peer));
  }
  if ((operation.kind != Operation::Kind::kReceive && !holds(operation.source, bytes)) ||
      (operation.kind != Operation::Kind::kSend && !holds(operation.target, bytes))) {
    return wrong(str("the ", bytes, " bytes are not in device memory"));
  }
  grouped.emplace_back(comm, std::move(operation));
  return ncclSuccess;
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  const char* const stated = std::getenv("CUDA_EMULATOR_NCCL_VERSION");
  *version = stated == nullptr ? 22800 : std::atoi(stated);
  return ncclSuccess;
}

// The process, and a number that no earlier process with its id has used.
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int64_t last = 0;
  const std::lock_guard lock(nccl_mutex());
  last = std::max<int64_t>(last + 1, std::chrono::system_clock::now().time_since_epoch().count());
  const int64_t numbers[] = {static_cast<int64_t>(getpid()), last};
  std::memset(id->internal, 0, sizeof(id->internal));
  std::memcpy(id->internal, numbers, sizeof(numbers));
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  if (result == ncclSuccess) return "no error";
  if (result == ncclRemoteError) return "remote process exited";
  return result == ncclSystemError ? "system error" : "invalid usage";
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int num_ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  int64_t numbers[2] = {};
  std::memcpy(numbers, id.internal, sizeof(numbers));
  *comm = nullptr;
  if (config == nullptr || config->blocking != 0) {
    return wrong("a communicator that blocks cannot be aborted");
  }
  if (rank < 0 || rank >= num_ranks) return wrong(str("rank ", rank, " of ", num_ranks));
  const std::lock_guard lock(nccl_mutex());
  const std::string name = str(numbers[0], '-', numbers[1]);
  auto& clique = cliques()[name];
  if (clique == nullptr) clique = std::make_shared<Clique>();
  clique->size = num_ranks;
  Presence own{getpid(), -1};
  cudaGetDevice(&own.device);
  ProcessMail::Bytes shown(sizeof(own));
  std::memcpy(shown.data(), &own, sizeof(own));
  auto made = std::make_unique<EmulatedNccl>(name);
  made->is_refused = rank == cuda_emulator::refused_nccl_rank();
  for (int reader = 0; reader < (made->is_refused ? 0 : num_ranks); ++reader) {
    if (!made->mail.put(name_of_presence(rank, reader), shown)) return ncclSystemError;
  }
  made->clique = clique;
  made->rank = rank;
  made->device = own.device;
  made->state = ncclInProgress;
  *comm = made.release();
  return ncclInProgress;
}

// Answers at once after a failure: a rank that holds the mutex may wait for the device, which waits
// until the communicator is aborted.
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  if (comm->has_failed) {
    *state = ncclSystemError;
    return ncclSuccess;
  }
  const std::lock_guard lock(nccl_mutex());
  Clique& clique = *comm->clique;
  *state = ncclSuccess;
  if (clique.is_aborted) {
    *state = ncclRemoteError;
  } else if (!comm->is_connected) {
    *state = connect(*comm);
  } else {
    for (Operation& operation : comm->pending) {
      const ncclResult_t result = operation.is_done ? ncclSuccess : advance(*comm, operation);
      if (result != ncclSuccess) *state = result;
      if (result != ncclSuccess && result != ncclInProgress) break;
    }
    if (*state == ncclSuccess && !comm->pending.empty()) {
      if (comm->rank == cuda_emulator::failing_queued_nccl_rank()) fail_queued_work(*comm);
      comm->pending.clear();
    }
  }
  comm->state = *state;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::lock_guard lock(nccl_mutex());
  if (!comm->pending.empty()) return wrong("a communicator ends before its calls");
  cudaSetDevice(comm->device);  // NCCL may leave it so
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  *comm->is_over = true;  // at once, as above
  const std::lock_guard lock(nccl_mutex());
  comm->clique->is_aborted = true;
  cudaSetDevice(comm->device);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return wrong("no group to end");
  if (--group_depth > 0) return ncclSuccess;
  const std::lock_guard lock(nccl_mutex());
  ncclResult_t result = ncclSuccess;
  for (auto& [comm, operation] : grouped) {
    if (comm->state != ncclSuccess && comm->pending.empty()) {
      result = wrong("a call before the communicator is ready");
      break;
    }
    if (comm->rank == cuda_emulator::failing_nccl_rank()) {
      result = ncclSystemError;
      break;
    }
    result = begin(*comm, operation);
    if (result != ncclSuccess) break;
    comm->state = ncclInProgress;
    comm->pending.push_back(std::move(operation));
    cuda_emulator::count_call(&cuda_emulator::LibraryCalls::nccl);
    result = ncclInProgress;
  }
  grouped.clear();
  return result;
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  Operation operation;
  operation.kind = Operation::Kind::kSend;
  operation.source = data;
  operation.count = count;
  operation.type = type;
  operation.peer = peer;
  operation.stream = stream;
  return add(comm, std::move(operation));
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  Operation operation;
  operation.kind = Operation::Kind::kReceive;
  operation.target = data;
  operation.count = count;
  operation.type = type;
  operation.peer = peer;
  operation.stream = stream;
  return add(comm, std::move(operation));
}

ncclResult_t ncclAllReduce(const void* source, void* target, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  Operation operation;
  operation.kind = Operation::Kind::kReduce;
  operation.source = source;
  operation.target = target;
  operation.count = count;
  operation.type = type;
  operation.op = op;
  operation.stream = stream;
  return add(comm, std::move(operation));
}

std::span<const cuda_emulator::LibraryFunction> cuda_emulator::nccl_functions() {
#define EMULATED_NCCL(name) library_function("nccl" #name, nccl##name)
  static const LibraryFunction functions[] = {
      EMULATED_NCCL(GetVersion),
      EMULATED_NCCL(GetUniqueId),
      EMULATED_NCCL(GetErrorString),
      EMULATED_NCCL(CommInitRankConfig),
      EMULATED_NCCL(CommGetAsyncError),
      EMULATED_NCCL(CommDestroy),
      EMULATED_NCCL(CommAbort),
      EMULATED_NCCL(GroupStart),
      EMULATED_NCCL(GroupEnd),
      EMULATED_NCCL(Send),
      EMULATED_NCCL(Recv),
      EMULATED_NCCL(AllReduce),
  };
#undef EMULATED_NCCL
  return functions;
}
