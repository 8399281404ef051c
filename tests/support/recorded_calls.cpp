#include "tests/support/recorded_calls.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>

#include <gtest/gtest.h>

#include "boxing/comm/comm_thread.h"
#include "boxing/comm/communicator_wrap.h"
#include "core/context.h"
#include "core/env.h"
#include "core/error.h"
#include "graph/program/communications.h"

namespace flow {

namespace {

using boxing::Communicator;
using boxing::Fingerprint;
using boxing::ReduceOp;
using boxing::Transfer;
using graph::Communication;

// The calls of the rank's own thread and of its communication thread.
struct Calls {
  std::vector<RecordedCall> own = {};
  std::mutex mutex = {};
  std::vector<RecordedCall> background = {};  // guarded by mutex
};

int64_t sum(std::span<const int64_t> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{0});
}

// A transfer together with the index of the isend that started it.
struct RecordedTransfer final : boxing::TransferState {
  Transfer inner;
  std::optional<size_t> sent_by = {};
};

// Calls outside of runs are not recorded.
class RecordingCommunicator final : public Communicator {
 public:
  RecordingCommunicator(std::unique_ptr<Communicator> inner, Calls& calls)
      : Communicator(inner->ranks(), inner->position()), inner_(std::move(inner)), calls_(calls) {}

  void barrier(const Fingerprint& what) override {
    add("barrier", what, 0, 0);
    inner_->barrier(what);
  }

  void all_reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
                  const Fingerprint& what) override {
    add(name_of(op), what, bytes_of(count, dtype), all_reduced(bytes_of(count, dtype)));
    inner_->all_reduce(source, target, count, dtype, op, what);
  }

  void all_reduce_parts(std::span<const SourcePart> parts, void* target, DType dtype, ReduceOp op,
                        const Fingerprint& what) override {
    int64_t count = 0;
    for (const SourcePart& part : parts)
      count += part.count;
    add(name_of(op), what, bytes_of(count, dtype), all_reduced(bytes_of(count, dtype)));
    inner_->all_reduce_parts(parts, target, dtype, op, what);
  }

  void reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
              int64_t root, const Fingerprint& what) override {
    add("reduce", what, bytes_of(count, dtype), {});
    inner_->reduce(source, target, count, dtype, op, root, what);
  }

  void reduce_scatter(const void* source, void* target, std::span<const int64_t> counts,
                      DType dtype, ReduceOp op, const Fingerprint& what) override {
    add("reduce_scatter", what, bytes_of(sum(counts), dtype),
        (size() - 1) * bytes_of(counts[me()], dtype));
    inner_->reduce_scatter(source, target, counts, dtype, op, what);
  }

  void all_gather(const void* source, void* target, std::span<const int64_t> bytes,
                  const Fingerprint& what) override {
    add("all_gather", what, bytes[me()], sum(bytes) - bytes[me()]);
    inner_->all_gather(source, target, bytes, what);
  }

  void gather(const void* source, void* target, std::span<const int64_t> bytes, int64_t root,
              const Fingerprint& what) override {
    add("gather", what, bytes[me()], {});
    inner_->gather(source, target, bytes, root, what);
  }

  void scatter(const void* source, void* target, std::span<const int64_t> bytes, int64_t root,
               const Fingerprint& what) override {
    add("scatter", what, 0, {});
    inner_->scatter(source, target, bytes, root, what);
  }

  void all_to_all(const void* source, std::span<const int64_t> send_bytes, void* target,
                  std::span<const int64_t> recv_bytes, const Fingerprint& what) override {
    add("all_to_all", what, sum(send_bytes), sum(recv_bytes) - recv_bytes[me()]);
    inner_->all_to_all(source, send_bytes, target, recv_bytes, what);
  }

  void all_to_all_packed(std::span<const int64_t> send_bytes, const Pack& pack,
                         std::span<const int64_t> recv_bytes, const Unpack& unpack,
                         const Fingerprint& what) override {
    add("all_to_all", what, sum(send_bytes), sum(recv_bytes));
    inner_->all_to_all_packed(send_bytes, pack, recv_bytes, unpack, what);
  }

  void broadcast(void* data, int64_t bytes, int64_t root, const Fingerprint& what) override {
    add("broadcast", what, bytes, {});
    inner_->broadcast(data, bytes, root, what);
  }

  Transfer isend(const void* source, int64_t bytes, int64_t peer, int64_t tag,
                 const Fingerprint& what) override {
    auto transfer = std::make_unique<RecordedTransfer>();
    if (add("send", what, bytes, {})) {
      calls_.own.back().ranks = {rank_of(position()), rank_of(peer)};
      calls_.own.back().tag = tag;
      transfer->sent_by = calls_.own.size() - 1;
    }
    transfer->inner = inner_->isend(source, bytes, peer, tag, what);
    return transfer;
  }

  Transfer irecv(void* target, int64_t bytes, int64_t peer, int64_t tag,
                 const Fingerprint& what) override {
    auto transfer = std::make_unique<RecordedTransfer>();
    if (add("receive", what, bytes, {})) {
      calls_.own.back().ranks = {rank_of(peer), rank_of(position())};
      calls_.own.back().tag = tag;
    }
    transfer->inner = inner_->irecv(target, bytes, peer, tag, what);
    return transfer;
  }

  // The wait of a receive counts as a part of the receive.
  void wait(Transfer transfer) override {
    auto& recorded = dynamic_cast<RecordedTransfer&>(*transfer);
    if (recorded.sent_by && add("wait", {}, 0, {})) {
      calls_.own.back().ranks = calls_.own[*recorded.sent_by].ranks;
      calls_.own.back().bytes = calls_.own[*recorded.sent_by].bytes;
      calls_.own.back().sent_by = *recorded.sent_by;
    }
    inner_->wait(std::move(recorded.inner));
  }

  bool shares_memory() const override { return inner_->shares_memory(); }

  std::span<const std::byte* const> open(const void* source, int64_t bytes,
                                         const Fingerprint& what) override {
    add("open", what, bytes, {});
    return inner_->open(source, bytes, what);
  }

  void close() override { inner_->close(); }

 private:
  static int64_t bytes_of(int64_t count, DType dtype) {
    return count * static_cast<int64_t>(dtype_size(dtype));
  }

  static const char* name_of(ReduceOp op) {
    return op == ReduceOp::kMean ? "all_reduce_mean" : "all_reduce";
  }

  size_t me() const { return static_cast<size_t>(position()); }

  int64_t rank_of(int64_t member) const { return ranks()[static_cast<size_t>(member)]; }

  // A member reads the data of all others, or reduces a chunk and then fetches the other chunks.
  int64_t all_reduced(int64_t bytes) const {
    return std::min((size() - 1) * bytes, 2 * (size() - 1) * bytes / size());
  }

  bool add(const char* name, const Fingerprint& what, int64_t bytes,
           std::optional<int64_t> received) {
    if (boxing::mark(what, "", 0, DType::kUInt8).step == nullptr) return false;
    const RecordedCall call{name, ranks(), what, bytes, received};
    if (boxing::is_comm_thread()) {
      const std::lock_guard lock(calls_.mutex);
      calls_.background.push_back(call);
    } else {
      calls_.own.push_back(call);
    }
    return true;
  }

  std::unique_ptr<Communicator> inner_;
  Calls& calls_;
};

// The part of the route that a stated collective is, of a rank that communicates in all of
// `earlier` parts before.
const boxing::RouteStep* part_of(const boxing::Route& route, int64_t rank, int earlier) {
  for (const boxing::RouteStep& part : route.steps) {
    if (boxing::group_of(part, rank).size() >= 2 && earlier-- == 0) return &part;
  }
  return nullptr;
}

bool starts_with(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}

// What the rank gives to a part of a route. The route of a bucket is that of the rank whose parts
// of the addends are the largest.
int64_t elements_given(const graph::Program& program, const graph::Step& step,
                       const boxing::Route& route, const boxing::RouteStep& part, int64_t rank) {
  if (step.as<graph::BucketStep>() != nullptr) {
    int64_t elements = 0;
    for (const graph::BufferId addend : step.inputs)
      elements += program.buffer(addend).meta->local_numel;
    return elements;
  }
  const boxing::Layout& held = part.from;
  const int64_t position = held.placement.position(rank);
  return position < 0 ? 0 : box_of(route.shape, held.placement, held.nd_sbp, position).size.numel();
}

void expect_collective(const RecordedCall& call, const Communication& stated,
                       const graph::Program& program, const boxing::RouteStep& part, int64_t rank,
                       const std::string& where) {
  const graph::Step& step = program.steps[stated.step];
  const boxing::Route& route = *step.route();
  EXPECT_EQ(call.ranks, stated.ranks) << where;
  EXPECT_STREQ(call.what.op, "redistribute") << where;
  const std::string kind = stated.what.substr(0, stated.what.find(" of "));
  if (starts_with(call.name, "all_reduce") || call.name == "all_gather" ||
      call.name == "reduce_scatter") {
    EXPECT_EQ(call.name, kind) << where;
  } else {
    EXPECT_TRUE(call.name == "open" || call.name == "all_to_all") << call.name << where;
    EXPECT_FALSE(starts_with(kind, "all_reduce")) << where;
  }
  EXPECT_TRUE(starts_with(stated.what, str(kind, " of ", call.what.dtype, ' ', call.what.shape,
                                           " from ", part.from, " to ", part.to)))
      << stated.what << where;
  EXPECT_EQ(str(call.what.from, ' ', call.what.to), str(route.from, ' ', route.to)) << where;
  if (call.name == "all_to_all") return;  // sends only what others lack, or to each what it reads
  EXPECT_EQ(call.bytes, elements_given(program, step, route, part, rank) *
                            static_cast<int64_t>(dtype_size(route.dtype)))
      << where;
}

void expect_message(const RecordedCall& call, const Communication& stated,
                    const std::vector<Communication>& all, const std::string& where) {
  static constexpr const char* kNames[] = {"", "send", "receive", "wait"};
  EXPECT_EQ(call.name, kNames[static_cast<size_t>(stated.kind)]) << where;
  EXPECT_EQ(call.ranks, stated.ranks) << where;
  EXPECT_EQ(call.bytes, stated.bytes) << where;
  if (stated.kind != Communication::Kind::kWait) {
    EXPECT_EQ(call.tag, stated.tag) << where;
    EXPECT_STREQ(call.what.op, "pipeline edge") << where;
    return;
  }
  ASSERT_LT(call.sent_by, all.size()) << where;
  EXPECT_EQ(all[call.sent_by].tag, stated.tag) << where;
}

}  // namespace

void record_calls() {
  RankContext& context = *thread_state().context;
  context.slot<boxing::internal::CommunicatorWrap>().wrap =
      [&context](std::unique_ptr<Communicator> inner) {
        return std::make_unique<RecordingCommunicator>(std::move(inner), context.slot<Calls>());
      };
}

std::vector<RecordedCall> take_recorded_calls() {
  auto& calls = thread_state().context->slot<Calls>();
  std::vector<RecordedCall> all = std::exchange(calls.own, {});
  const std::lock_guard lock(calls.mutex);
  all.insert(all.end(), calls.background.begin(), calls.background.end());
  calls.background.clear();
  return all;
}

BytesOfCollectives expect_as_certified(const graph::CompiledStep& step,
                                       const std::vector<RecordedCall>& calls,
                                       const std::string& what) {
  const int64_t rank = env::rank();
  std::vector<Communication> all = graph::communications_of(step.program(), rank);
  std::erase_if(all, [](const Communication& it) {
    return it.kind == Communication::Kind::kEnd || it.kind == Communication::Kind::kArrival;
  });
  std::stable_partition(all.begin(), all.end(),
                        [](const Communication& it) { return !it.in_background; });
  BytesOfCollectives bytes;
  std::map<std::string, int> times;  // how often each collective has run
  int64_t num_collectives = 0, num_messages = 0;
  std::pair<size_t, size_t> last(SIZE_MAX, 0);  // run and step
  int earlier = 0;                              // parts of the same route
  EXPECT_EQ(calls.size(), all.size()) << what << ", rank " << rank;
  for (size_t i = 0; i < std::min(calls.size(), all.size()); ++i) {
    const Communication& stated = all[i];
    const std::string where = str("\n", what, ", rank ", rank, ", call ", i, " of ", all.size());
    if (stated.kind != Communication::Kind::kCollective) {
      num_messages += stated.kind == Communication::Kind::kSend ? 1 : 0;
      expect_message(calls[i], stated, all, where);
      continue;
    }
    ++num_collectives;
    const std::pair<size_t, size_t> here(stated.run, stated.step);
    earlier = here == last ? earlier + 1 : 0;
    last = here;
    const boxing::RouteStep* part =
        part_of(*step.program().steps[stated.step].route(), rank, earlier);
    if (part == nullptr) {
      ADD_FAILURE() << "the route has fewer parts" << where;
      continue;
    }
    expect_collective(calls[i], stated, step.program(), *part, rank, where);
    bytes[{stated.what, times[stated.what]++}] = {stated.bytes, calls[i].received};
  }
  const graph::RankCertificate& own =
      step.certificate().ranks[static_cast<size_t>(step.certificate().ranks.size() > 1 ? rank : 0)];
  EXPECT_EQ(own.num_collectives, num_collectives) << what << ", rank " << rank;
  EXPECT_EQ(own.num_messages, num_messages) << what << ", rank " << rank;
  return bytes;
}

int expect_stated_bytes(const std::vector<BytesOfCollectives>& ranks, const std::string& what) {
  BytesOfCollectives most;
  for (const BytesOfCollectives& rank : ranks) {
    for (const auto& [collective, bytes] : rank) {
      const auto [at, is_new] = most.try_emplace(collective, bytes);
      if (is_new) continue;
      EXPECT_EQ(at->second.stated, bytes.stated) << what << ": " << collective.first;
      at->second.received = std::max(at->second.received, bytes.received);
    }
  }
  int num_known = 0;
  for (const auto& [collective, bytes] : most) {
    if (!bytes.received) continue;
    ++num_known;
    EXPECT_EQ(*bytes.received, bytes.stated) << what << ": " << collective.first;
  }
  return num_known;
}

}  // namespace flow
