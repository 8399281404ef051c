#include "graph/program/certificate.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "boxing/route.h"
#include "boxing/routed_kernel.h"
#include "core/context.h"
#include "core/error.h"
#include "graph/program/memory_plan.h"

namespace flow::graph {

namespace {

// Lists the communications of a program step by step.
class Listing {
 public:
  Listing(const Program& program, int64_t rank) : program_(program), rank_(rank) {}

  std::vector<Communication> list() {
    for (index_ = 0; index_ < program_.steps.size(); ++index_)
      std::visit([this](const auto& body) { add(body); }, step().body);
    return std::move(all_);
  }

 private:
  const Step& step() const { return program_.steps[index_]; }

  void add(const KernelStep&) {}

  void add(const ConvertStep&) {}

  void add(const CollectiveStep& collective) {
    const boxing::Route& route = *collective.route;
    for (const boxing::RouteStep& part : route.steps) {
      const std::vector<int64_t> group = boxing::group_of(part, rank_);
      if (group.size() < 2) continue;
      const boxing::Route alone{route.shape, route.dtype, part.from, part.to, {part}};
      all_.push_back({.kind = Communication::Kind::kCollective,
                      .step = index_,
                      .ranks = group,
                      .what = str(boxing::step_names(alone), " of ", route.dtype, ' ', route.shape,
                                  " from ", part.from, " to ", part.to),
                      .bytes = static_cast<int64_t>(part.bytes),
                      .time_us = part.time_us,
                      .is_guarded = step().guard != kNoBuffer});
    }
  }

  void add(const SendStep& send) {
    add_message(Communication::Kind::kSend, step().inputs[0], rank_, send.peer, send.tag);
  }

  void add(const ReceiveStep& receive) {
    add_message(Communication::Kind::kRecv, step().outputs[0], receive.peer, rank_, receive.tag);
  }

  void add(const WaitStep& wait) {
    const SendStep& send = *program_.steps[wait.send].as<SendStep>();
    // The tag of a wait is the step it waits for.
    add_message(Communication::Kind::kWait, step().inputs[0], rank_, send.peer,
                static_cast<int64_t>(wait.send));
  }

  void add_message(Communication::Kind kind, BufferId buffer, int64_t from, int64_t to,
                   int64_t tag) {
    const TensorMeta& meta = *program_.buffer(buffer).meta;
    all_.push_back({.kind = kind,
                    .step = index_,
                    .ranks = {from, to},
                    .what = {},
                    .bytes = static_cast<int64_t>(meta.local_bytes()),
                    .tag = tag,
                    .is_guarded = step().guard != kNoBuffer});
  }

  const Program& program_;
  int64_t rank_;
  size_t index_ = 0;
  std::vector<Communication> all_;
};

}  // namespace

std::vector<Communication> communications_of(const Program& program, int64_t rank) {
  return Listing(program, rank).list();
}

namespace {

using Kind = Communication::Kind;

// Simulates the communications of all programs in the order that they allow. The programs contain
// no choices, so simulating one order is enough.
class Rehearsal {
 public:
  explicit Rehearsal(const Programs& programs) : programs_(programs) {
    for (size_t rank = 0; rank < programs.size(); ++rank)
      todo_.push_back(communications_of(*programs[rank], static_cast<int64_t>(rank)));
    next_.resize(programs.size(), 0);
    longest_queue_.resize(programs.size(), 0);
  }

  void run() {
    bool goes_on = true;
    while (goes_on) {
      goes_on = false;
      for (size_t rank = 0; rank < programs_.size(); ++rank) {
        while (!is_done(rank) && advance(rank))
          goes_on = true;
      }
    }
    check_end();
  }

  int64_t longest_queue(size_t rank) const { return longest_queue_[rank]; }

  const std::vector<Communication>& all_of(size_t rank) const { return todo_[rank]; }

 private:
  struct Message {
    size_t step;
    int64_t bytes;
    int64_t tag;
    bool is_guarded;
  };

  struct Edge {
    std::deque<Message> under_way;
    std::vector<size_t> received;  // steps of the sender
  };

  bool is_done(size_t rank) const { return next_[rank] == todo_[rank].size(); }

  const Communication& current(size_t rank) const { return todo_[rank][next_[rank]]; }

  std::string describe(size_t rank, const Communication& it) const {
    static constexpr const char* kVerbs[] = {"", "send to", "receive from", "wait for its send to"};
    const Step& step = programs_[rank]->steps[it.step];
    std::string text = str("rank ", rank, " step ", it.step, ": ");
    if (it.kind == Kind::kCollective) {
      text += it.what;
    } else {
      text += str(kVerbs[static_cast<size_t>(it.kind)], " rank ",
                  it.ranks[it.kind == Kind::kRecv ? 0 : 1], " of ", it.bytes, " bytes");
      if (it.kind != Kind::kWait) text += str(" under tag ", it.tag);
    }
    if (step.line != 0) text += str(" at ", step.file, ":", step.line);
    return text;
  }

  [[noreturn]] void fail(const std::string& why, size_t a, const Communication& of_a, size_t b,
                         const Communication& of_b) const {
    throw InternalError(
        str("[certificate] ", why, ": ", describe(a, of_a), "; ", describe(b, of_b)));
  }

  bool advance(size_t rank) {
    const Communication& it = current(rank);
    const bool moves = it.kind == Kind::kCollective ? meet(rank, it)
                       : it.kind == Kind::kSend     ? send(it)
                       : it.kind == Kind::kRecv     ? receive(rank, it)
                                                    : has_been_received(it);
    if (moves && it.kind != Kind::kCollective) ++next_[rank];
    return moves;
  }

  bool meet(size_t rank, const Communication& it) {
    for (const int64_t other : it.ranks) {
      const auto peer = static_cast<size_t>(other);
      if (peer >= programs_.size() || is_done(peer)) return false;
      const Communication& its = current(peer);
      if (its.kind != Kind::kCollective || its.ranks != it.ranks) return false;
      if (its.what != it.what) fail("members of a group differ", rank, it, peer, its);
      if (its.is_guarded != it.is_guarded)
        fail("one member of a group may skip what the others do", rank, it, peer, its);
    }
    for (const int64_t member : it.ranks)
      ++next_[static_cast<size_t>(member)];
    return true;
  }

  bool send(const Communication& it) {
    Edge& edge = edges_[it.ranks];
    edge.under_way.push_back({it.step, it.bytes, it.tag, it.is_guarded});
    const auto to = static_cast<size_t>(it.ranks[1]);
    if (to < longest_queue_.size()) {
      longest_queue_[to] =
          std::max(longest_queue_[to], static_cast<int64_t>(edge.under_way.size()));
    }
    return true;
  }

  bool receive(size_t rank, const Communication& it) {
    Edge& edge = edges_[it.ranks];
    if (edge.under_way.empty()) return false;
    const Message message = edge.under_way.front();
    if (message.tag != it.tag || message.bytes != it.bytes || message.is_guarded != it.is_guarded) {
      const auto from = static_cast<size_t>(it.ranks[0]);
      const auto sent = std::find_if(todo_[from].begin(), todo_[from].end(), [&](const auto& c) {
        return c.kind == Kind::kSend && c.step == message.step;
      });
      fail(message.is_guarded != it.is_guarded
               ? "one side of a message may skip it"
               : "messages arrive in another order or with another size than expected",
           rank, it, from, *sent);
    }
    edge.under_way.pop_front();
    edge.received.push_back(message.step);
    return true;
  }

  bool has_been_received(const Communication& it) {
    const std::vector<size_t>& received = edges_[it.ranks].received;
    return std::find(received.begin(), received.end(), static_cast<size_t>(it.tag)) !=
           received.end();
  }

  void check_end() const {
    std::string stuck;
    for (size_t rank = 0; rank < programs_.size(); ++rank) {
      if (!is_done(rank)) stuck += str(stuck.empty() ? "" : "; ", describe(rank, current(rank)));
    }
    if (!stuck.empty()) throw InternalError(str("[certificate] ranks wait for ever: ", stuck));
    for (const auto& [ranks, edge] : edges_) {
      if (edge.under_way.empty()) continue;
      throw InternalError(str("[certificate] ", edge.under_way.size(), " messages from rank ",
                              ranks[0], " to rank ", ranks[1], " are never received"));
    }
  }

  const Programs& programs_;
  std::vector<std::vector<Communication>> todo_;
  std::vector<size_t> next_;
  std::vector<int64_t> longest_queue_;
  std::map<std::vector<int64_t>, Edge> edges_;
};

std::string place_of(const Step& step) {
  std::string place = step.op_call() == nullptr ? "a copy" : std::string(step.name());
  if (step.line != 0) place += str(" ", step.file, ":", step.line);
  return place;
}

// Ranks skip a communication together only if its condition is one value of all of them.
void check_guards(const Program& program, const std::vector<Communication>& all) {
  for (const Communication& it : all) {
    const Step& step = program.steps[it.step];
    if (step.guard == kNoBuffer) continue;
    const TensorMeta& guard = *program.buffer(step.guard).meta;
    const bool is_whole =
        guard.is_global() && std::all_of(guard.nd_sbp.begin(), guard.nd_sbp.end(),
                                         [](Sbp entry) { return entry.is_broadcast(); });
    if (is_whole) continue;
    throw InternalError(str("[certificate] rank ", program.rank, " step ", it.step, " (",
                            place_of(step), ") communicates under the condition ", guard,
                            ", which may differ between ranks"));
  }
}

// Sets the most bytes that are alive at once, and the step at which they are.
void find_peak(const Program& program, RankCertificate& certificate) {
  std::vector<int64_t> change(program.steps.size() + 1, 0);
  for (const Lifetime& life : lifetimes_of(program)) {
    change[life.first] += life.bytes;
    change[life.last + 1] -= life.bytes;
  }
  int64_t alive = 0;
  const Step* peak = nullptr;
  for (size_t step = 0; step < program.steps.size(); ++step) {
    alive += change[step];
    if (alive <= certificate.peak_bytes) continue;
    certificate.peak_bytes = alive;
    peak = &program.steps[step];
  }
  if (peak != nullptr) certificate.peak_at = place_of(*peak);
}

// The scratch memory of steps. That of a collective depends on the rank, also within a class.
class ScratchBytes {
 public:
  explicit ScratchBytes(RankKind rank_kind) : rank_kind_(rank_kind) {}

  int64_t of(const Program& program, const Step& step, int64_t rank) {
    if (const auto* collective = step.as<CollectiveStep>())
      return of_route(*program.buffer(step.inputs[0]).meta, *collective->route, rank);
    const OpCall* call = step.op_call();
    return call == nullptr ? 0 : scratch_block_bytes(call->scratch, rank_kind_.num_threads);
  }

 private:
  int64_t of_route(const TensorMeta& input, const boxing::Route& route, int64_t rank) {
    if (rank_kind_.shares_memory) return compute(input, route, rank);
    // Many steps have equal routes, and to list the messages of a large group takes long.
    const std::string key = str(rank, ' ', input.is_contiguous, ' ', route.steps.size(), ' ',
                                route.dtype, route.shape, route.from, route.to);
    const auto [at, is_new] = of_routes_.try_emplace(key, 0);
    if (is_new) at->second = compute(input, route, rank);
    return at->second;
  }

  int64_t compute(const TensorMeta& input, const boxing::Route& route, int64_t rank) const {
    return scratch_block_bytes(
        boxing::scratch_of_route(input, route, rank, rank_kind_.shares_memory),
        rank_kind_.num_threads);
  }

  RankKind rank_kind_;
  std::unordered_map<std::string, int64_t> of_routes_;
};

void find_scratch(const Program& program, ScratchBytes& scratch, RankCertificate& certificate) {
  certificate.scratch_bytes = 0;
  certificate.scratch_at.clear();
  for (const Step& step : program.steps) {
    const int64_t bytes = scratch.of(program, step, certificate.rank);
    if (bytes <= certificate.scratch_bytes) continue;
    certificate.scratch_bytes = bytes;
    certificate.scratch_at = place_of(step);
  }
}

}  // namespace

RankKind RankKind::of(RankContext& context) {
  return {.num_threads = context.thread_pool().num_threads(),
          .shares_memory = boxing::ranks_share_memory(context)};
}

void state_scratch(Certificate& certificate, const Programs& programs, RankKind rank_kind) {
  certificate.rank_kind = rank_kind;
  ScratchBytes scratch(rank_kind);
  for (size_t i = 0; i < programs.size(); ++i)
    find_scratch(*programs[i], scratch, certificate.ranks[i]);
}

Certificate certify(const Programs& programs, RankKind rank_kind) {
  Rehearsal rehearsal(programs);
  rehearsal.run();
  Certificate certificate;
  for (size_t rank = 0; rank < programs.size(); ++rank) {
    RankCertificate own;
    const auto same = static_cast<size_t>(
        std::find(programs.begin(), programs.end(), programs[rank]) - programs.begin());
    if (same < rank) {
      own = certificate.ranks[same];
      own.num_collectives = own.num_messages = 0;
    } else {
      check_memory(*programs[rank]);
      check_guards(*programs[rank], rehearsal.all_of(rank));
      find_peak(*programs[rank], own);
    }
    own.rank = static_cast<int64_t>(rank);
    own.arena_bytes = programs[rank]->arena_bytes;
    own.longest_queue = rehearsal.longest_queue(rank);
    for (const Communication& it : rehearsal.all_of(rank)) {
      own.num_collectives += it.kind == Kind::kCollective ? 1 : 0;
      own.num_messages += it.kind == Kind::kSend ? 1 : 0;
    }
    certificate.ranks.push_back(std::move(own));
  }
  state_scratch(certificate, programs, rank_kind);
  return certificate;
}

Certificate certify(std::span<const Program> programs) {
  Programs borrowed;
  for (const Program& program : programs)
    borrowed.emplace_back(std::shared_ptr<const void>(), &program);
  return certify(borrowed);
}

std::string to_string(const Certificate& certificate) {
  std::string text;
  for (const RankCertificate& rank : certificate.ranks) {
    text += str("rank ", rank.rank, ": ", rank.num_collectives, " collectives, ", rank.num_messages,
                " messages; ", rank.arena_bytes, " bytes");
    if (rank.peak_bytes > 0) {
      text += str(", at most ", rank.peak_bytes, " alive at ", rank.peak_at);
    }
    if (rank.scratch_bytes > 0) {
      text += str("; kernels take up to ", rank.scratch_bytes, " more at ", rank.scratch_at);
    }
    text += '\n';
  }
  return text;
}

}  // namespace flow::graph
