// Communicator: collectives and messages among an ordered group of ranks, over any transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "boxing/comm/reduction.h"
#include "boxing/layout.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/site.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// A compiled step. Its runs communicate only with runs of the same step. Interned and never freed,
// because messages refer to it.
struct RunningStep {
  uint64_t hash;       // of what the ranks must agree on
  std::string inputs;  // what it was compiled for, for error messages
};

const RunningStep& running_step(uint64_t hash, const std::string& inputs);

// While it exists, the calling thread's collectives and messages belong to a run of `step`.
class [[nodiscard]] StepScope {
 public:
  explicit StepScope(const RunningStep& step);
  ~StepScope();
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

 private:
  const RunningStep* outer_;
};

// The step of the calling thread's StepScope; null outside of one.
const RunningStep* running_step_here();

// What the members of a group must agree on before data moves. The caller of a collective sets what
// it knows: the op, the tensor, the layouts before and after, and the line of the user's program.
// The collective adds its own part. Everything except the site and the device is compared.
struct Fingerprint {
  const char* op = "";  // static text; empty: the collective's own name
  Shape shape = {};     // logical shape of the tensor, if there is one
  DType dtype = DType::kUInt8;
  Layout from = {};
  Layout to = {};
  Site site = Site::none();
  DeviceType device = DeviceType::kCpu;  // of a message: where this side's data is; not compared
  uint64_t known_hash = 0;               // context_hash() if the caller has stored it; else 0
  // Set by the collective.
  const char* collective = "";
  int64_t count = 0;         // elements or bytes, if all members must pass the same number
  uint64_t counts_hash = 0;  // hash of the counts of all members
  int64_t root = -1;
  ReduceOp reduce = ReduceOp::kSum;
  const RunningStep* step = nullptr;  // of the caller's StepScope

  // The hash of the compiled step that runs; 0 outside of one.
  uint64_t step_hash() const { return step == nullptr ? 0 : step->hash; }

  bool is_in_step() const { return step_hash() != 0; }

  // A hash of the fields that the caller sets, except the site.
  uint64_t context_hash() const;
  // A hash of everything except the site; equal in every process; never 0.
  uint64_t hash() const;
};

// Returns `what` with the fields that the collective or message sets.
Fingerprint mark(const Fingerprint& what, const char* collective, int64_t count, DType dtype,
                 ReduceOp op = ReduceOp::kSum, int64_t root = -1);
Fingerprint mark_counts(const Fingerprint& what, const char* collective,
                        std::span<const int64_t> counts, DType dtype, ReduceOp op = ReduceOp::kSum,
                        int64_t root = -1);

// Prints as "redistribute float32 (4, 3) from S(0) on cpu:(0, 1) to B on cpu:(0, 1) at
// train.cpp:12".
std::ostream& operator<<(std::ostream& out, const Fingerprint& what);

// A message in flight (isend, irecv); null: it has completed. An unfinished one may be destroyed
// only after an error.
struct TransferState {
  virtual ~TransferState() = default;

  // May hold the memory of the message. It is then kept as long as the transport uses that memory,
  // even if the transfer is destroyed earlier.
  std::shared_ptr<const void> memory;
};

using Transfer = std::unique_ptr<TransferState>;

// A group of ranks. All members must call every collective, in the same order, from one thread of
// each rank at a time. A collective blocks until the caller may reuse its buffers. If members
// disagree, all of them get a DistributedError that names both calls. A member that waits for a
// rank that failed, ended or did not arrive within FLOW_TIMEOUT_S gets a DistributedError too. Sums
// are computed in group order on every member, so results do not depend on the transport. Counts
// and bytes may be zero; the pointers are then ignored.
class Communicator {
 public:
  Communicator(std::vector<int64_t> ranks, int64_t position);
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // World ranks in group order.
  const std::vector<int64_t>& ranks() const { return ranks_; }

  int64_t size() const { return static_cast<int64_t>(ranks_.size()); }

  // The caller's index in ranks(). All peers and roots below are such indices.
  int64_t position() const { return position_; }

  virtual void barrier(const Fingerprint& what) = 0;

  // target[i] = source[i] of member 0 op … op source[i] of the last member. source and target may
  // be the same buffer.
  virtual void all_reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
                          const Fingerprint& what) = 0;

  // One piece of a source of all_reduce that is stored in pieces.
  struct SourcePart {
    const void* data;
    int64_t count;
  };

  // Like all_reduce of the concatenated pieces. A piece may be stored at its own position in
  // target; otherwise no piece may overlap target.
  virtual void all_reduce_parts(std::span<const SourcePart> parts, void* target, DType dtype,
                                ReduceOp op, const Fingerprint& what);
  // Like all_reduce, but only the root's target is written.
  virtual void reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
                      int64_t root, const Fingerprint& what) = 0;
  // Splits the reduced sequence: member i receives counts[i] elements. source holds all elements.
  virtual void reduce_scatter(const void* source, void* target, std::span<const int64_t> counts,
                              DType dtype, ReduceOp op, const Fingerprint& what) = 0;
  // Member i contributes bytes[i]; all members receive all contributions in group order.
  virtual void all_gather(const void* source, void* target, std::span<const int64_t> bytes,
                          const Fingerprint& what) = 0;
  // Like all_gather, but only the root's target is written.
  virtual void gather(const void* source, void* target, std::span<const int64_t> bytes,
                      int64_t root, const Fingerprint& what) = 0;
  // The root passes all parts in group order; member i receives bytes[i].
  virtual void scatter(const void* source, void* target, std::span<const int64_t> bytes,
                       int64_t root, const Fingerprint& what) = 0;
  // send_bytes[i] go to member i and recv_bytes[i] come from it; source and target are in group
  // order.
  virtual void all_to_all(const void* source, std::span<const int64_t> send_bytes, void* target,
                          std::span<const int64_t> recv_bytes, const Fingerprint& what) = 0;
  // Packs or unpacks the bytes [offset, offset + bytes) of the data sent to or received from
  // `member`; the last argument is the packed piece.
  using Pack = std::function<void(int64_t member, int64_t offset, int64_t bytes, std::byte*)>;
  using Unpack =
      std::function<void(int64_t member, int64_t offset, int64_t bytes, const std::byte*)>;

  // Like all_to_all with the other members, for data that is packed and unpacked piece by piece;
  // the pieces of each member come in ascending order. The caller's own counts must be zero.
  virtual void all_to_all_packed(std::span<const int64_t> send_bytes, const Pack& pack,
                                 std::span<const int64_t> recv_bytes, const Unpack& unpack,
                                 const Fingerprint& what);
  virtual void broadcast(void* data, int64_t bytes, int64_t root, const Fingerprint& what) = 0;

  // Messages between two members, matched in order by tag. A step's messages match its receives
  // only, because the tags of its edges may be those that the program uses outside. Both sides must
  // pass the same number of bytes and run the same step. Until wait() returns, `source` must not
  // change and `target` must not be read or written. On either side the data may be in the memory
  // of the rank's CUDA device (what.device). It is then ordered with the work of the calling
  // thread: a message has what was queued before isend(), and after wait() the rank may queue work
  // that uses its memory.
  virtual Transfer isend(const void* source, int64_t bytes, int64_t peer, int64_t tag,
                         const Fingerprint& what) = 0;
  virtual Transfer irecv(void* target, int64_t bytes, int64_t peer, int64_t tag,
                         const Fingerprint& what) = 0;
  virtual void wait(Transfer transfer) = 0;

  // Blocking versions. Messages of up to kBufferedBytes are buffered, so two ranks may both send
  // first. While about kMostBufferedBytes of one rank wait for the receives of another one, further
  // messages are not buffered, so a fast rank cannot fill the memory.
  static constexpr int64_t kBufferedBytes = 64 << 10;
  static constexpr int64_t kMostBufferedBytes = 4 << 20;

  // What a buffered message counts for in kMostBufferedBytes.
  static constexpr int64_t buffered_cost(int64_t bytes) { return bytes + 256; }

  void send(const void* source, int64_t bytes, int64_t peer, int64_t tag, const Fingerprint& what) {
    wait(isend(source, bytes, peer, tag, what));
  }

  void recv(void* target, int64_t bytes, int64_t peer, int64_t tag, const Fingerprint& what) {
    wait(irecv(target, bytes, peer, tag, what));
  }

  // True if members can read each other's memory; open() and close() may then be used.
  virtual bool shares_memory() const { return false; }

  // Collective: every member publishes `bytes` bytes at `source` and gets the pointers of all
  // members in group order. They are valid until the member calls close(), which is collective too.
  // If what.collective is set, it names the collective of which this is a part.
  virtual std::span<const std::byte* const> open(const void* source, int64_t bytes,
                                                 const Fingerprint& what);
  virtual void close();

 protected:
  // Throws InvalidArgument unless `peer` is another member.
  void check_peer(int64_t peer, const Fingerprint& what) const;

 private:
  std::vector<int64_t> ranks_;
  int64_t position_;
};

// Separates callers: collectives of different channels never mix, so each channel has its own
// order.
enum class Channel : uint8_t { kCaller, kBackground };

// The communicator of `ranks` (in this order) on this rank. Its members make it at first use, and
// the context keeps it. Throws InvalidArgument if this rank is not a member or a rank does not
// exist.
Communicator& communicator_for(RankContext& context, std::span<const int64_t> ranks,
                               Channel channel = Channel::kCaller);

// False if the other ranks do not run, as in a PlanningWorld; there is no communicator then.
bool has_running_peers(RankContext& context);
// Says that a rank exists for planning only, also in a process that is a rank of a job, and returns
// it. Call it before a thread attaches to the rank.
RankContext& for_planning(RankContext& context);

// The communicator of all ranks of the world.
Communicator& world_communicator(RankContext& context, Channel channel = Channel::kCaller);

}  // namespace flow::boxing
