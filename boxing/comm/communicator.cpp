#include "boxing/comm/communicator.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <ostream>
#include <string_view>
#include <utility>

#include "boxing/comm/communicator_wrap.h"
#include "boxing/comm/copy_bytes.h"
#include "boxing/comm/process_communicator.h"
#include "boxing/comm/process_world.h"
#include "boxing/comm/thread_communicator.h"
#include "boxing/comm/thread_world.h"
#include "boxing/comm/timed_communicator.h"
#include "core/context.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/timeline/timeline_log.h"

namespace flow::boxing {

namespace {

void hash_text(Hasher& hasher, std::string_view text) {
  for (const char c : text)
    hasher.add(static_cast<uint64_t>(static_cast<unsigned char>(c)));
  hasher.add(text.size());
}

void hash_layout(Hasher& hasher, const Layout& layout) {
  if (!layout.placement.defined()) return hasher.add(uint64_t{1});
  hasher.add(static_cast<uint64_t>(layout.placement.device_type()));
  for (const int64_t size : layout.placement.shape())
    hasher.add(static_cast<uint64_t>(size));
  for (const int64_t rank : layout.placement.ranks())
    hasher.add(static_cast<uint64_t>(rank));
  for (const Sbp& entry : layout.nd_sbp)
    hasher.add(static_cast<uint64_t>(entry.kind()) * 16 + static_cast<uint64_t>(entry.dim()));
}

// The communicator of a group of one rank: every collective is a copy.
class SelfCommunicator final : public Communicator {
 public:
  explicit SelfCommunicator(int64_t rank) : Communicator({rank}, 0) {}

  void barrier(const Fingerprint& /*what*/) override {}

  void all_reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp /*op*/,
                  const Fingerprint& /*what*/) override {
    copy(source, target, count * static_cast<int64_t>(dtype_size(dtype)));
  }

  void reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp /*op*/,
              int64_t /*root*/, const Fingerprint& /*what*/) override {
    copy(source, target, count * static_cast<int64_t>(dtype_size(dtype)));
  }

  void reduce_scatter(const void* source, void* target, std::span<const int64_t> counts,
                      DType dtype, ReduceOp /*op*/, const Fingerprint& /*what*/) override {
    copy(source, target, counts[0] * static_cast<int64_t>(dtype_size(dtype)));
  }

  void all_gather(const void* source, void* target, std::span<const int64_t> bytes,
                  const Fingerprint& /*what*/) override {
    copy(source, target, bytes[0]);
  }

  void gather(const void* source, void* target, std::span<const int64_t> bytes, int64_t /*root*/,
              const Fingerprint& /*what*/) override {
    copy(source, target, bytes[0]);
  }

  void scatter(const void* source, void* target, std::span<const int64_t> bytes, int64_t /*root*/,
               const Fingerprint& /*what*/) override {
    copy(source, target, bytes[0]);
  }

  void all_to_all(const void* source, std::span<const int64_t> send_bytes, void* target,
                  std::span<const int64_t> recv_bytes, const Fingerprint& what) override {
    if (send_bytes[0] != recv_bytes[0]) {
      throw InvalidArgument(str("[all_to_all] this rank sends itself ", send_bytes[0],
                                " bytes but expects ", recv_bytes[0], "; give equal counts"),
                            what.site);
    }
    copy(source, target, send_bytes[0]);
  }

  void broadcast(void* /*data*/, int64_t /*bytes*/, int64_t /*root*/,
                 const Fingerprint& /*what*/) override {}

  Transfer isend(const void* /*source*/, int64_t /*bytes*/, int64_t /*peer*/, int64_t /*tag*/,
                 const Fingerprint& what) override {
    throw_no_peer("send", what);
  }

  Transfer irecv(void* /*target*/, int64_t /*bytes*/, int64_t /*peer*/, int64_t /*tag*/,
                 const Fingerprint& what) override {
    throw_no_peer("recv", what);
  }

  void wait(Transfer /*transfer*/) override {}

  bool shares_memory() const override { return true; }

  std::span<const std::byte* const> open(const void* source, int64_t /*bytes*/,
                                         const Fingerprint& /*what*/) override {
    opened_ = static_cast<const std::byte*>(source);
    return {&opened_, 1};
  }

  void close() override {}

 private:
  static void copy(const void* source, void* target, int64_t bytes) {
    if (source != target && bytes > 0) std::memcpy(target, source, static_cast<size_t>(bytes));
  }

  [[noreturn]] static void throw_no_peer(const char* name, const Fingerprint& what) {
    throw InvalidArgument(
        str("[", name, "] this group has only one rank; use a group that contains the peer"),
        what.site);
  }

  const std::byte* opened_ = nullptr;
};

struct CommunicatorCache {
  std::mutex mutex;
  // Guarded by mutex.
  std::map<std::pair<Channel, std::vector<int64_t>>, std::unique_ptr<Communicator>> by_ranks;
};

struct PlannedRank {
  bool is_planned = false;
};

std::unique_ptr<Communicator> make_communicator(RankContext& context,
                                                const std::vector<int64_t>& ranks,
                                                Channel channel) {
  int64_t position = -1;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == context.rank()) position = static_cast<int64_t>(i);
    if (ranks[i] < 0 || ranks[i] >= context.world_size()) {
      throw InvalidArgument(str("[communicator] rank ", ranks[i], " does not exist; there are ",
                                context.world_size(), " ranks, counted from 0"));
    }
    if (std::count(ranks.begin(), ranks.end(), ranks[i]) > 1) {
      throw InvalidArgument(str("[communicator] a group names rank ", ranks[i],
                                " more than once; name each of its ranks once"));
    }
  }
  if (position < 0) {
    throw InvalidArgument(
        str("[communicator] rank ", context.rank(),
            " is not a member of the group it requested; only members may use a group"));
  }
  if (ranks.size() == 1) return std::make_unique<SelfCommunicator>(ranks[0]);
  if (!context.slot<PlannedRank>().is_planned) {
    if (auto made = make_thread_communicator(context, ranks, position, channel)) return made;
    if (auto made = make_process_communicator(context, ranks, position, channel)) return made;
  }
  throw InvalidArgument(str("[communicator] rank ", context.rank(), " of ", context.world_size(),
                            " exists for planning only (flow::PlanningWorld); data can move only "
                            "between running ranks: start the program with flowrun -n ",
                            context.world_size()));
}

constinit thread_local const RunningStep* current_step = nullptr;

}  // namespace

bool has_running_peers(RankContext& context) {
  if (context.world_size() == 1) return false;
  if (context.slot<PlannedRank>().is_planned) return false;
  return context.slot_ptr<ThreadWorld>() != nullptr ||
         context.slot_ptr<ProcessWorld>() != nullptr || process_world() != nullptr;
}

RankContext& for_planning(RankContext& context) {
  context.slot<PlannedRank>().is_planned = true;
  return context;
}

const RunningStep& running_step(uint64_t hash, const std::string& inputs) {
  static std::mutex mutex;
  static auto& steps = *new std::map<uint64_t, RunningStep>;  // guarded by mutex
  const std::lock_guard lock(mutex);
  return steps.try_emplace(hash, RunningStep{hash, inputs}).first->second;
}

const RunningStep* running_step_here() {
  return current_step;
}

StepScope::StepScope(const RunningStep& step) : outer_(std::exchange(current_step, &step)) {}

StepScope::~StepScope() {
  current_step = outer_;
}

uint64_t Fingerprint::context_hash() const {
  Hasher hasher;
  hash_text(hasher, op);
  for (const int64_t size : shape)
    hasher.add(static_cast<uint64_t>(size));
  hash_layout(hasher, from);
  hash_layout(hasher, to);
  return hasher.value() | 1;
}

uint64_t Fingerprint::hash() const {
  Hasher hasher(known_hash != 0 ? known_hash : context_hash());
  hash_text(hasher, collective);
  hasher.add(static_cast<uint64_t>(dtype));
  hasher.add(static_cast<uint64_t>(count));
  hasher.add(counts_hash);
  hasher.add(static_cast<uint64_t>(root));
  hasher.add(static_cast<uint64_t>(reduce));
  hasher.add(step_hash());
  return hasher.value() | 1;
}

Fingerprint mark(const Fingerprint& what, const char* collective, int64_t count, DType dtype,
                 ReduceOp op, int64_t root) {
  Fingerprint result = what;
  result.collective = collective;
  result.count = count;
  result.reduce = op;
  result.root = root;
  result.step = current_step;
  if (count != 0) result.dtype = dtype;
  return result;
}

Fingerprint mark_counts(const Fingerprint& what, const char* collective,
                        std::span<const int64_t> counts, DType dtype, ReduceOp op, int64_t root) {
  int64_t total = 0;
  Hasher hasher;
  for (const int64_t count : counts) {
    total += count;
    hasher.add(static_cast<uint64_t>(count));
  }
  Fingerprint result = mark(what, collective, total, dtype, op, root);
  result.counts_hash = hasher.value();
  return result;
}

std::ostream& operator<<(std::ostream& out, const Fingerprint& what) {
  const std::string_view op = what.op;
  out << (op.empty() ? what.collective : what.op);
  if (what.to.placement.defined()) {
    if (what.from.placement.defined()) {
      out << ' ' << what.dtype << ' ' << what.shape << " from " << what.from;
    }
    out << " to " << what.to;
  } else {
    if (!what.shape.empty()) {
      out << " of " << what.dtype << ' ' << what.shape;
    } else if (what.count != 0) {
      out << " of " << what.count << ' ' << what.dtype;
    }
    if (what.reduce != ReduceOp::kSum) out << ' ' << what.reduce;
    if (what.root >= 0) out << " with root " << what.root;
  }
  if (!op.empty() && op != what.collective) out << " (" << what.collective << ')';
  if (what.site.is_known()) out << " at " << what.site.file() << ':' << what.site.line();
  return out;
}

Communicator::Communicator(std::vector<int64_t> ranks, int64_t position)
    : ranks_(std::move(ranks)), position_(position) {}

void Communicator::all_reduce_parts(std::span<const SourcePart> parts, void* target, DType dtype,
                                    ReduceOp op, const Fingerprint& what) {
  int64_t count = 0;
  for (const SourcePart& part : parts) {
    copy_bytes(static_cast<std::byte*>(target) + bytes_of(count, dtype),
               static_cast<const std::byte*>(part.data), bytes_of(part.count, dtype));
    count += part.count;
  }
  all_reduce(target, target, count, dtype, op, what);
}

void Communicator::all_to_all_packed(std::span<const int64_t> send_bytes, const Pack& pack,
                                     std::span<const int64_t> recv_bytes, const Unpack& unpack,
                                     const Fingerprint& what) {
  const auto make = [](std::span<const int64_t> bytes) {
    const int64_t all = std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
    return std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(all));
  };
  const auto outgoing = make(send_bytes);
  const auto incoming = make(recv_bytes);
  std::byte* out = outgoing.get();
  for (int64_t member = 0; member < size(); ++member) {
    const int64_t bytes = send_bytes[static_cast<size_t>(member)];
    if (bytes > 0) pack(member, 0, bytes, out);
    out += bytes;
  }
  all_to_all(outgoing.get(), send_bytes, incoming.get(), recv_bytes, what);
  const std::byte* in = incoming.get();
  for (int64_t member = 0; member < size(); ++member) {
    const int64_t bytes = recv_bytes[static_cast<size_t>(member)];
    if (bytes > 0) unpack(member, 0, bytes, in);
    in += bytes;
  }
}

std::span<const std::byte* const> Communicator::open(const void* /*source*/, int64_t /*bytes*/,
                                                     const Fingerprint& /*what*/) {
  throw InternalError("[communicator] members do not share memory");
}

void Communicator::close() {}

void Communicator::check_peer(int64_t peer, const Fingerprint& what) const {
  if (peer >= 0 && peer < size() && peer != position_) return;
  throw InvalidArgument(
      str("[", what.collective, "] peer ", peer, " is not another member of the group of ", size(),
          " ranks; pass the position of another member"),
      what.site);
}

Communicator& communicator_for(RankContext& context, std::span<const int64_t> ranks,
                               Channel channel) {
  auto& cache = context.slot<CommunicatorCache>();
  const std::pair key(channel, std::vector<int64_t>(ranks.begin(), ranks.end()));
  const std::lock_guard lock(cache.mutex);
  auto& entry = cache.by_ranks[key];
  if (!entry) {
    entry = make_communicator(context, key.second, channel);
    if (timeline::TimelineLog* log = timeline::timeline_log(context))
      entry = with_timeline(std::move(entry), *log);
    const auto& wrap = context.slot<internal::CommunicatorWrap>().wrap;
    if (wrap) entry = wrap(std::move(entry));
  }
  return *entry;
}

Communicator& world_communicator(RankContext& context, Channel channel) {
  std::vector<int64_t> ranks(static_cast<size_t>(context.world_size()));
  std::iota(ranks.begin(), ranks.end(), int64_t{0});
  return communicator_for(context, ranks, channel);
}

}  // namespace flow::boxing
