// Communicator: collectives and messages among an ordered group of ranks, whatever carries them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <vector>

#include "boxing/comm/reduction.h"
#include "boxing/layout.h"
#include "core/dtype.h"
#include "core/site.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// What the members of a group must agree on before data moves. The caller of a collective sets what
// it knows (on whose behalf, which tensor, from and to which layout, where in the user's program);
// the collective adds its own part. All but the site is compared.
struct Fingerprint {
  const char* op = "";  // static text; empty: the collective's own name
  Shape shape = {};     // logical shape of the tensor, if one is meant
  DType dtype = DType::kUInt8;
  Layout from = {};
  Layout to = {};
  Site site = Site::none();
  uint64_t known_hash = 0;  // context_hash(), where the caller keeps it; else 0
  // Set by the collective.
  const char* collective = "";
  int64_t count = 0;         // elements or bytes, where all must pass the same
  uint64_t counts_hash = 0;  // of the counts of all members
  int64_t root = -1;
  ReduceOp reduce = ReduceOp::kSum;

  // Of what the caller sets but the site.
  uint64_t context_hash() const;
  // Of everything but the site; equal in every process; never 0.
  uint64_t hash() const;
};

// `what` with what a collective itself knows.
Fingerprint mark(const Fingerprint& what, const char* collective, int64_t count, DType dtype,
                 ReduceOp op = ReduceOp::kSum, int64_t root = -1);
Fingerprint mark_counts(const Fingerprint& what, const char* collective,
                        std::span<const int64_t> counts, DType dtype, ReduceOp op = ReduceOp::kSum,
                        int64_t root = -1);

// "redistribute float32 (4, 3) from S(0) on cpu:(0, 1) to B on cpu:(0, 1) at train.cpp:12".
std::ostream& operator<<(std::ostream& out, const Fingerprint& what);

// A message under way (isend, irecv); null: it has completed. Dropping it unfinished is only right
// while an error unwinds.
struct TransferState {
  virtual ~TransferState() = default;
};

using Transfer = std::unique_ptr<TransferState>;

// A group of ranks. Every collective is called by all members in the same order, from one thread of
// each rank at a time, and returns when the caller's buffers may be used again. Members that
// disagree all get a DistributedError naming both calls; so does everybody who waits for a rank
// that failed, ended or did not come within FLOW_TIMEOUT_S. Sums run in group order on every
// member, so results do not depend on the transport. Counts and bytes may be zero, pointers are
// then not read.
class Communicator {
 public:
  Communicator(std::vector<int64_t> ranks, int64_t position);
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // World ranks in group order.
  const std::vector<int64_t>& ranks() const { return ranks_; }

  int64_t size() const { return static_cast<int64_t>(ranks_.size()); }

  // The caller's index in ranks(). Peers and roots below are such indices.
  int64_t position() const { return position_; }

  virtual void barrier(const Fingerprint& what) = 0;

  // target[i] = source of member 0 op … op source of the last. source may be target.
  virtual void all_reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
                          const Fingerprint& what) = 0;

  // A source of all_reduce that lies in parts.
  struct SourcePart {
    const void* data;
    int64_t count;
  };

  // As all_reduce of what the parts hold, one after another. A part may be where it belongs in
  // target; else none may overlap it.
  virtual void all_reduce_parts(std::span<const SourcePart> parts, void* target, DType dtype,
                                ReduceOp op, const Fingerprint& what);
  // As all_reduce; only the root's target is written.
  virtual void reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
                      int64_t root, const Fingerprint& what) = 0;
  // The reduced sequence is cut: member i receives counts[i] elements. source holds all of them.
  virtual void reduce_scatter(const void* source, void* target, std::span<const int64_t> counts,
                              DType dtype, ReduceOp op, const Fingerprint& what) = 0;
  // Member i gives bytes[i]; all receive all, in group order.
  virtual void all_gather(const void* source, void* target, std::span<const int64_t> bytes,
                          const Fingerprint& what) = 0;
  // As all_gather; only the root's target is written.
  virtual void gather(const void* source, void* target, std::span<const int64_t> bytes,
                      int64_t root, const Fingerprint& what) = 0;
  // The root gives the parts in group order; member i receives bytes[i].
  virtual void scatter(const void* source, void* target, std::span<const int64_t> bytes,
                       int64_t root, const Fingerprint& what) = 0;
  // send_bytes[i] go to member i, recv_bytes[i] come from it; both sides lie in group order.
  virtual void all_to_all(const void* source, std::span<const int64_t> send_bytes, void* target,
                          std::span<const int64_t> recv_bytes, const Fingerprint& what) = 0;
  // Moves bytes [offset, offset + bytes) of what goes to or comes from a member, which lie packed
  // in the last argument.
  using Pack = std::function<void(int64_t member, int64_t offset, int64_t bytes, std::byte*)>;
  using Unpack =
      std::function<void(int64_t member, int64_t offset, int64_t bytes, const std::byte*)>;

  // As all_to_all with the other members of data that is packed and unpacked bit by bit, each
  // member's in ascending order. The caller's own counts are zero.
  virtual void all_to_all_packed(std::span<const int64_t> send_bytes, const Pack& pack,
                                 std::span<const int64_t> recv_bytes, const Unpack& unpack,
                                 const Fingerprint& what);
  virtual void broadcast(void* data, int64_t bytes, int64_t root, const Fingerprint& what) = 0;

  // Messages between two members, matched in order by tag; both sides give the same number of
  // bytes. `source` stays as it is and `target` untouched until wait().
  virtual Transfer isend(const void* source, int64_t bytes, int64_t peer, int64_t tag,
                         const Fingerprint& what) = 0;
  virtual Transfer irecv(void* target, int64_t bytes, int64_t peer, int64_t tag,
                         const Fingerprint& what) = 0;
  virtual void wait(Transfer transfer) = 0;

  // Blocking forms. Messages up to kBufferedBytes are buffered: two ranks may both send first.
  static constexpr int64_t kBufferedBytes = 64 << 10;

  void send(const void* source, int64_t bytes, int64_t peer, int64_t tag, const Fingerprint& what) {
    wait(isend(source, bytes, peer, tag, what));
  }

  void recv(void* target, int64_t bytes, int64_t peer, int64_t tag, const Fingerprint& what) {
    wait(irecv(target, bytes, peer, tag, what));
  }

  // Whether members can read each other's memory; then open() and close() may be used.
  virtual bool shares_memory() const { return false; }

  // Collective: every member shows `bytes` at `source` and gets the pointers of all, in group
  // order, valid until its close(), which is collective too.
  virtual std::span<const std::byte* const> open(const void* source, int64_t bytes,
                                                 const Fingerprint& what);
  virtual void close();

 protected:
  // InvalidArgument unless `peer` is another member.
  void check_peer(int64_t peer, const Fingerprint& what) const;

 private:
  std::vector<int64_t> ranks_;
  int64_t position_;
};

// Who calls: collectives of different channels never meet, so that each has an order of its own.
enum class Channel : uint8_t { kCaller, kBackground };

// The communicator of `ranks` (in this order) on this rank, made at first use by its members only
// and kept by the context. Throws InvalidArgument when this rank is no member or a rank does not
// exist.
Communicator& communicator_for(RankContext& context, std::span<const int64_t> ranks,
                               Channel channel = Channel::kCaller);

// Of all ranks of the world.
Communicator& world_communicator(RankContext& context, Channel channel = Channel::kCaller);

}  // namespace flow::boxing
