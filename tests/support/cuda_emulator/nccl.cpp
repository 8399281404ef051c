// NCCL: checks what it is called with, and moves data by copies that events order. As with a real
// communicator that does not block, a call begins when its group ends and makes progress while its
// rank asks for its state.
#include "nccl.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <unistd.h>

#include "core/error.h"
#include "core/float16.h"
#include "cuda_runtime.h"
#include "emulated_library.h"

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
  std::vector<ncclComm_t> members;
  bool is_aborted = false;
  bool is_broken = false;  // two ranks have one device
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
  bool is_done = false;
};

// Guards all communicators.
std::mutex& nccl_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

std::map<int64_t, std::shared_ptr<Clique>>& cliques() {
  static auto& all = *new std::map<int64_t, std::shared_ptr<Clique>>;
  return all;
}

thread_local int group_depth = 0;
thread_local std::vector<std::pair<ncclComm_t, Operation>> grouped;

}  // namespace

struct EmulatedNccl : cuda_emulator::LibraryObject {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int device = 0;
  int64_t reductions = 0;
  std::vector<Operation> pending;
  ncclResult_t state = ncclSuccess;
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

void begin(EmulatedNccl& comm, Operation& operation) {
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
}

ncclResult_t receive(EmulatedNccl& comm, Operation& operation) {
  auto& mail = comm.clique->mail[{operation.peer, comm.rank}];
  if (mail.empty()) return ncclInProgress;
  Sent& sent = *mail.front();
  const size_t bytes = operation.count * size_of(operation.type);
  if (sent.bytes != bytes) {
    return wrong(str("rank ", operation.peer, " sends ", sent.bytes, " bytes, of which rank ",
                     comm.rank, " receives ", bytes));
  }
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
  *version = 22800;
  return ncclSuccess;
}

// The process and a number.
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int64_t next = 0;
  const std::lock_guard lock(nccl_mutex());
  const int64_t numbers[] = {static_cast<int64_t>(getpid()), next++};
  std::memset(id->internal, 0, sizeof(id->internal));
  std::memcpy(id->internal, numbers, sizeof(numbers));
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  if (result == ncclSuccess) return "no error";
  return result == ncclSystemError ? "system error" : "invalid usage";
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int num_ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  int64_t numbers[2] = {};
  std::memcpy(numbers, id.internal, sizeof(numbers));
  *comm = nullptr;
  if (numbers[0] != static_cast<int64_t>(getpid())) return ncclSystemError;
  if (config == nullptr || config->blocking != 0) {
    return wrong("a communicator that blocks cannot be aborted");
  }
  if (rank < 0 || rank >= num_ranks) return wrong(str("rank ", rank, " of ", num_ranks));
  const std::lock_guard lock(nccl_mutex());
  auto& clique = cliques()[numbers[1]];
  if (clique == nullptr) clique = std::make_shared<Clique>();
  clique->size = num_ranks;
  *comm = new EmulatedNccl;
  (*comm)->clique = clique;
  (*comm)->rank = rank;
  cudaGetDevice(&(*comm)->device);
  (*comm)->state = ncclInProgress;
  for (const ncclComm_t other : clique->members)
    clique->is_broken = clique->is_broken || other->device == (*comm)->device;
  clique->members.push_back(*comm);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(nccl_mutex());
  Clique& clique = *comm->clique;
  *state = ncclSuccess;
  if (clique.is_aborted) {
    *state = ncclRemoteError;
  } else if (clique.is_broken) {
    *state = ncclInvalidUsage;
  } else if (static_cast<int>(clique.members.size()) < clique.size) {
    *state = ncclInProgress;
  } else {
    for (Operation& operation : comm->pending) {
      const ncclResult_t result = operation.is_done ? ncclSuccess : advance(*comm, operation);
      if (result != ncclSuccess) *state = result;
      if (result != ncclSuccess && result != ncclInProgress) break;
    }
    if (*state == ncclSuccess) comm->pending.clear();
  }
  comm->state = *state;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::lock_guard lock(nccl_mutex());
  if (!comm->pending.empty()) return wrong("a communicator ends before its calls");
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard lock(nccl_mutex());
  comm->clique->is_aborted = true;
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
    begin(*comm, operation);
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
