#include "graph/program/certificate.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "boxing/route.h"
#include "boxing/routed_kernel.h"
#include "core/context.h"
#include "core/error.h"
#include "graph/program/communications.h"
#include "graph/program/memory_check.h"

namespace flow::graph {

namespace {

using Kind = Communication::Kind;

// Simulates the communications of all programs in the order that they allow. The programs contain
// no choices, so simulating one order is enough.
class Rehearsal {
 public:
  explicit Rehearsal(const Programs& programs) : programs_(programs) {
    for (size_t rank = 0; rank < programs.size(); ++rank)
      todo_.emplace_back(*programs[rank], static_cast<int64_t>(rank));
    background_.resize(programs.size());
    longest_queue_.resize(programs.size(), 0);
    num_collectives_.resize(programs.size(), 0);
    num_messages_.resize(programs.size(), 0);
  }

  void run() {
    bool goes_on = true;
    while (goes_on) {
      goes_on = false;
      for (size_t rank = 0; rank < programs_.size(); ++rank) {
        while ((!is_done(rank) && advance(rank)) || advance_background(rank))
          goes_on = true;
      }
    }
    check_end();
  }

  int64_t longest_queue(size_t rank) const { return longest_queue_[rank]; }

  int64_t num_collectives(size_t rank) const { return num_collectives_[rank]; }

  int64_t num_messages(size_t rank) const { return num_messages_[rank]; }

  const CommunicationList& all_of(size_t rank) const { return todo_[rank]; }

 private:
  struct Message {
    const Communication* sent;
    int64_t tag;
  };

  // From one rank to another.
  struct Edge {
    std::deque<Message> under_way;
    std::deque<int64_t> expected;          // tags of receives that have started and not ended
    std::unordered_set<int64_t> received;  // tags of messages whose sender has not waited for them
  };

  // What a rank's communication thread does.
  struct Background {
    std::deque<const Communication*> todo;
    std::unordered_set<size_t> done;  // steps for which the rank has not waited
  };

  bool is_done(size_t rank) const { return todo_[rank].at_end(); }

  const Communication& current(size_t rank) const { return todo_[rank].current(); }

  Edge& edge_of(const Communication& it) { return edges_[{it.ranks[0], it.ranks[1]}]; }

  // `tag`: of a message that is sent or received.
  std::string describe(size_t rank, const Communication& it, int64_t tag = 0) const {
    static constexpr const char* kVerbs[] = {"", "send to", "start to receive from",
                                             "wait for its send to", "receive from"};
    const Step& step = programs_[rank]->steps[it.step];
    std::string text = str("rank ", rank, " step ", it.step, ": ");
    if (it.kind == Kind::kCollective) {
      text += str(it.what, it.in_background ? " in the background" : "");
    } else if (it.kind == Kind::kEnd) {
      text += "wait for its end";
    } else {
      const bool receives = it.kind == Kind::kRecv || it.kind == Kind::kArrival;
      text += str(kVerbs[static_cast<size_t>(it.kind)], " rank ", it.ranks[receives ? 0 : 1],
                  " of ", it.bytes, " bytes");
      if (it.kind != Kind::kWait) text += str(" under tag ", tag);
    }
    if (step.line != 0) text += str(" at ", step.file, ":", step.line);
    return text;
  }

  std::string describe_current(size_t rank) const {
    return describe(rank, current(rank), todo_[rank].current_tag());
  }

  // `one` and `other` describe what two ranks do.
  [[noreturn]] static void fail(const std::string& why, const std::string& one,
                                const std::string& other) {
    throw InternalError(str("[certificate] ", why, ": ", one, "; ", other));
  }

  bool advance(size_t rank) {
    const Communication& it = current(rank);
    if (it.kind == Kind::kCollective && !it.in_background) return meet(rank);
    const bool moves = carry_out(rank, it);
    if (moves) todo_[rank].advance();
    return moves;
  }

  // Returns false if the rank has to wait. What it starts never makes it wait.
  bool carry_out(size_t rank, const Communication& it) {
    switch (it.kind) {
      case Kind::kCollective:
        background_[rank].todo.push_back(&it);
        return true;
      case Kind::kSend:
        send(rank, it);
        return true;
      case Kind::kRecv:
        edge_of(it).expected.push_back(todo_[rank].current_tag());
        return true;
      case Kind::kWait:
        return has_been_received(rank, it);
      case Kind::kArrival:
        return receive(rank, it);
      case Kind::kEnd:
        return background_[rank].done.erase(it.step) > 0;
    }
    return false;
  }

  // The collective that a rank's own thread waits in; null if there is none.
  const Communication* waits_in(size_t rank) const {
    if (is_done(rank)) return nullptr;
    const Communication& it = current(rank);
    return it.kind == Kind::kCollective && !it.in_background ? &it : nullptr;
  }

  // The same for its communication thread.
  const Communication* background_of(size_t rank) const {
    return background_[rank].todo.empty() ? nullptr : background_[rank].todo.front();
  }

  // Whether all members of a collective have come to it. `of` gives what a member waits in.
  template <class Of>
  bool is_complete(size_t rank, const Communication& it, const Of& of) const {
    for (const int64_t other : it.ranks) {
      const auto peer = static_cast<size_t>(other);
      const Communication* its = peer < programs_.size() ? of(peer) : nullptr;
      if (its == nullptr || its->ranks != it.ranks) return false;
      const bool skips = its->is_guarded != it.is_guarded;
      if (its->what != it.what || skips) {
        fail(skips ? "one member of a group may skip what the others do"
                   : "members of a group differ",
             describe(rank, it), describe(peer, *its));
      }
    }
    return true;
  }

  bool meet(size_t rank) {
    const Communication& it = current(rank);
    if (!is_complete(rank, it, [&](size_t peer) { return waits_in(peer); })) return false;
    const std::vector<int64_t> members = it.ranks;
    for (const int64_t member : members) {
      ++num_collectives_[static_cast<size_t>(member)];
      todo_[static_cast<size_t>(member)].advance();
    }
    return true;
  }

  bool advance_background(size_t rank) {
    const Communication* it = background_of(rank);
    if (it == nullptr) return false;
    if (!is_complete(rank, *it, [&](size_t peer) { return background_of(peer); })) return false;
    for (const int64_t member : it->ranks) {
      Background& background = background_[static_cast<size_t>(member)];
      background.done.insert(background.todo.front()->step);
      background.todo.pop_front();
      ++num_collectives_[static_cast<size_t>(member)];
    }
    return true;
  }

  void send(size_t rank, const Communication& it) {
    Edge& edge = edge_of(it);
    edge.under_way.push_back({&it, todo_[rank].current_tag()});
    ++num_messages_[rank];
    const auto to = static_cast<size_t>(it.ranks[1]);
    if (to < longest_queue_.size()) {
      longest_queue_[to] =
          std::max(longest_queue_[to], static_cast<int64_t>(edge.under_way.size()));
    }
  }

  bool receive(size_t rank, const Communication& it) {
    Edge& edge = edge_of(it);
    if (edge.expected.empty() || edge.expected.front() != todo_[rank].current_tag()) {
      throw InternalError(str("[certificate] receives end in another order than they start: ",
                              describe_current(rank)));
    }
    if (edge.under_way.empty()) return false;
    const Message message = edge.under_way.front();
    const bool skips = message.sent->is_guarded != it.is_guarded;
    if (message.tag != todo_[rank].current_tag() || message.sent->bytes != it.bytes || skips) {
      fail(skips ? "one side of a message may skip it"
                 : "messages arrive in another order or with another size than expected",
           describe_current(rank),
           describe(static_cast<size_t>(it.ranks[0]), *message.sent, message.tag));
    }
    edge.under_way.pop_front();
    edge.expected.pop_front();
    edge.received.insert(message.tag);
    return true;
  }

  bool has_been_received(size_t rank, const Communication& it) {
    return edge_of(it).received.erase(todo_[rank].current_tag()) > 0;
  }

  void check_end() const {
    std::string stuck;
    for (size_t rank = 0; rank < programs_.size(); ++rank) {
      if (!is_done(rank)) stuck += str(stuck.empty() ? "" : "; ", describe_current(rank));
    }
    if (!stuck.empty()) throw InternalError(str("[certificate] ranks wait for ever: ", stuck));
    for (const auto& [ranks, edge] : edges_) {
      if (!edge.expected.empty()) {
        throw InternalError(str("[certificate] rank ", ranks.second, " starts ",
                                edge.expected.size(), " receives from rank ", ranks.first,
                                " for which it never waits"));
      }
      if (edge.under_way.empty()) continue;
      throw InternalError(str("[certificate] ", edge.under_way.size(), " messages from rank ",
                              ranks.first, " to rank ", ranks.second, " are never received"));
    }
  }

  const Programs& programs_;
  std::vector<CommunicationList> todo_;
  std::vector<Background> background_;                                   // by rank
  std::vector<int64_t> longest_queue_, num_collectives_, num_messages_;  // by rank
  std::map<std::pair<int64_t, int64_t>, Edge> edges_;
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
    } else {
      const BufferUses uses(*programs[rank]);
      check_memory(uses);
      for (const std::vector<Communication>& block : rehearsal.all_of(rank).blocks())
        check_guards(*programs[rank], block);
      const MemoryPeak peak = memory_peak(uses);
      own.peak_bytes = peak.bytes;
      if (peak.step != nullptr) own.peak_at = place_of(*peak.step);
    }
    own.rank = static_cast<int64_t>(rank);
    own.arena_bytes = programs[rank]->arena_bytes;
    own.longest_queue = rehearsal.longest_queue(rank);
    own.num_collectives = rehearsal.num_collectives(rank);
    own.num_messages = rehearsal.num_messages(rank);
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
