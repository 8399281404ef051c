#include "tools/flow_plan/forecast.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "boxing/cost.h"
#include "boxing/route.h"
#include "core/error.h"
#include "core/op.h"
#include "graph/passes/node_cost.h"
#include "graph/program/buffer_uses.h"

namespace flow::tools {

namespace {

using graph::BlockRun;
using graph::BufferId;
using graph::Program;
using graph::Step;

int64_t bytes_of(const Program& program, BufferId id) {
  return id == graph::kNoBuffer ? 0 : static_cast<int64_t>(program.buffer(id).meta->local_bytes());
}

double message_us(int64_t bytes) {
  const boxing::CostTable& costs = boxing::cost_table();
  return costs.meeting_us + static_cast<double>(bytes) / costs.bytes_per_us;
}

// Arithmetic of the local parts; zero if the op has no rule for them.
double flops_of(const Program& program, const Step& step) {
  const graph::OpCall* call = step.op_call();
  if (call == nullptr || call->op->cost == nullptr) return 0;
  std::vector<MetaPtr> metas;
  for (const BufferId id : step.inputs) {
    const MetaPtr meta = id == graph::kNoBuffer ? nullptr : program.buffer(id).meta;
    if (meta != nullptr && !meta->is_held) return 0;
    metas.push_back(meta == nullptr ? nullptr
                                    : local_meta(meta->local_shape, meta->dtype, meta->device));
  }
  try {
    InferContext infer(*call->op, metas, call->raw_attrs());
    call->op->infer(infer);
    return call->op->cost(SbpContext(*call->op, metas, call->raw_attrs(), infer.outputs())).flops;
  } catch (const Error&) {  // attributes that hold only for the whole tensor
    return 0;
  }
}

// A message or collective that comes up in a block.
struct Meeting {
  enum class Kind : uint8_t { kGroup, kStart, kEndOfStarted, kSend, kReceive, kEndOfSend };

  Kind kind = Kind::kGroup;
  std::vector<int64_t> group = {};
  int64_t peer = -1;
  int64_t tag = 0;
  double time_us = 0;
  size_t started = 0;  // the step whose collective in the background starts or ends
};

// A step of a block: its own time, then what it does together with others.
struct Piece {
  size_t step = 0;
  double compute_us = 0;
  std::vector<Meeting> meetings = {};
};

// The pieces of a block are those of its steps.
class Pieces {
 public:
  // `costs_us` are the predicted times of the program's steps.
  Pieces(const Program& program, int64_t rank, const std::vector<double>& costs_us)
      : program_(program), rank_(rank), costs_us_(costs_us) {}

  Piece piece_of(size_t index) const {
    const Step& step = program_.steps[index];
    Piece piece{.step = index};
    if (const boxing::Route* route = step.route()) {
      for (const boxing::RouteStep& part : route->steps) {
        std::vector<int64_t> group = boxing::group_of(part, rank_);
        if (group.size() < 2) {
          piece.compute_us += sane(part.time_us);
        } else {
          piece.meetings.push_back(
              {.kind = step.in_background ? Meeting::Kind::kStart : Meeting::Kind::kGroup,
               .group = std::move(group),
               .time_us = sane(part.time_us),
               .started = index});
        }
      }
    } else if (const auto* send = step.as<graph::SendStep>()) {
      piece.meetings.push_back({.kind = Meeting::Kind::kSend,
                                .peer = send->peer,
                                .tag = send->tag,
                                .time_us = message_us(bytes_of(program_, step.inputs[0]))});
    } else if (step.as<graph::ReceiveStep>() != nullptr) {
      return piece;  // starts it, and does not wait
    } else if (const auto* wait = step.as<graph::WaitStep>()) {
      const Step& started = program_.steps[wait->started];
      const boxing::Route* route_of_started = started.route();
      if (const auto* sent = started.as<graph::SendStep>()) {
        piece.meetings.push_back(
            {.kind = Meeting::Kind::kEndOfSend, .peer = sent->peer, .tag = sent->tag});
      } else if (const auto* receive = started.as<graph::ReceiveStep>()) {
        piece.meetings.push_back(
            {.kind = Meeting::Kind::kReceive, .peer = receive->peer, .tag = receive->tag});
      } else if (route_of_started != nullptr && !route_of_started->steps.empty() &&
                 boxing::group_of(route_of_started->steps[0], rank_).size() > 1) {
        piece.meetings.push_back({.kind = Meeting::Kind::kEndOfStarted, .started = wait->started});
      }
    } else {
      piece.compute_us = costs_us_[index];
    }
    return piece;
  }

 private:
  const Program& program_;
  int64_t rank_;
  const std::vector<double>& costs_us_;
};

// What happens between ranks, by name and by how often it has happened.
class Meetings {
 public:
  // The end of the group's next collective on this member; none until all members have come.
  std::optional<double> join(const std::vector<int64_t>& group, bool in_background, int64_t rank,
                             double now, double time_us) {
    Group& all = groups_[{in_background, group}];
    size_t& number = all.joined[rank];
    if (all.waiting.insert(rank).second) {
      if (all.ends.size() <= number) all.ends.resize(number + 1);
      End& end = all.ends[number];
      end.time = std::max(end.time, now + time_us);
      ++end.count;
    }
    if (all.ends[number].count < group.size()) return std::nullopt;
    all.waiting.erase(rank);
    return all.ends[number++].time;
  }

  void send(int64_t from, int64_t to, int64_t tag, double arrival) {
    sent_[{from, to, tag}].push_back(arrival);
  }

  std::optional<double> receive(int64_t from, int64_t to, int64_t tag, double now) {
    std::deque<double>& messages = sent_[{from, to, tag}];
    if (messages.empty()) return std::nullopt;
    const double end = std::max(now, messages.front());
    messages.pop_front();
    received_[{from, to, tag}].push_back(end);
    return end;
  }

  std::optional<double> end_of_send(int64_t from, int64_t to, int64_t tag, double now) {
    std::deque<double>& ends = received_[{from, to, tag}];
    if (ends.empty()) return std::nullopt;
    const double end = std::max(now, ends.front());
    ends.pop_front();
    return end;
  }

 private:
  struct End {
    double time = 0;
    size_t count = 0;
  };

  struct Group {
    std::map<int64_t, size_t> joined = {};  // by member
    std::set<int64_t> waiting = {};
    std::vector<End> ends = {};
  };

  std::map<std::pair<bool, std::vector<int64_t>>, Group> groups_;
  std::map<std::tuple<int64_t, int64_t, int64_t>, std::deque<double>> sent_, received_;
};

// One rank in the simulation.
class Walker {
 public:
  Walker(const Program& program, int64_t rank, const std::vector<double>& costs_us,
         bool is_recorded)
      : runs_(std::make_unique<graph::ProgramRuns>(program)),
        times_(program),
        is_recorded_(is_recorded) {
    result_.rank = rank;
    for (const Step& step : program.steps)
      turns_.push_back(step.turn);
    const Pieces pieces(program, rank, costs_us);
    const auto is_plain = [&](const Piece& piece) {
      return piece.meetings.empty() && turns_[piece.step] == graph::StepTurn::kEvery;
    };
    for (const graph::Block& block : runs_->blocks()) {
      std::vector<Piece>& list = blocks_.emplace_back();
      for (size_t i = block.first_step; i < block.end_step; ++i) {
        Piece piece = pieces.piece_of(i);
        if (!is_recorded && !list.empty() && is_plain(list.back()) && is_plain(piece)) {
          list.back().compute_us += piece.compute_us;
        } else {
          list.push_back(std::move(piece));
        }
      }
    }
  }

  bool is_done() const { return run_ == runs_->runs().size(); }

  // Goes on until another rank is needed; returns whether anything happened.
  bool advance(Meetings& meetings) {
    bool moved = advance_background(meetings);
    while (!is_done()) {
      if (!walk_block(meetings, moved)) return moved;
      end_position(false);
      ++run_;
      piece_ = 0;
    }
    return moved;
  }

  double now() const { return now_; }

  RankForecast take() { return std::move(result_); }

 private:
  bool is_once() const { return times_.num_runs(runs_->runs()[run_].block) == 1; }

  // Returns false where the rank has to wait for another.
  bool walk_block(Meetings& meetings, bool& moved) {
    const BlockRun& run = runs_->runs()[run_];
    const std::vector<Piece>& pieces = blocks_[static_cast<size_t>(run.block)];
    for (; piece_ < pieces.size(); ++piece_, meeting_ = 0, has_computed_ = false) {
      const Piece& piece = pieces[piece_];
      if (graph::takes_turn(turns_[piece.step], run)) {
        if (!has_computed_) {
          now_ += piece.compute_us;
          result_.busy_us += piece.compute_us;
          has_computed_ = moved = true;
        }
        for (; meeting_ < piece.meetings.size(); ++meeting_, moved = true) {
          const std::optional<double> end = meet(meetings, piece.meetings[meeting_], run);
          if (!end) return false;
          if (is_recorded_ && is_drawn(piece.meetings[meeting_].kind))
            result_.exchanges.push_back({{now_, *end}, piece.step, run.micro_batch});
          result_.exchange_us += *end - now_;
          now_ = *end;
        }
      }
      if (is_once()) end_position(true);
    }
    return true;
  }

  // Collectives in the background are drawn where the communication thread carries them out.
  static bool is_drawn(Meeting::Kind kind) {
    return kind == Meeting::Kind::kGroup || kind == Meeting::Kind::kReceive ||
           kind == Meeting::Kind::kEndOfSend;
  }

  // The communication thread carries out one collective after another. Returns whether one ended.
  bool advance_background(Meetings& meetings) {
    bool moved = false;
    while (!background_.empty()) {
      const Started& next = background_.front();
      const double begin = std::max(next.at, background_free_at_);
      const std::optional<double> end =
          meetings.join(next.what->group, true, result_.rank, begin, next.what->time_us);
      if (!end) return moved;
      if (is_recorded_)
        result_.exchanges.push_back({{begin, *end}, next.what->started, next.micro_batch});
      background_free_at_ = *end;
      ended_[next.what->started] = *end;
      background_.pop_front();
      moved = true;
    }
    return moved;
  }

  std::optional<double> meet(Meetings& meetings, const Meeting& it, const BlockRun& run) {
    const int64_t me = result_.rank;
    const int64_t tag = it.tag + std::max(run.micro_batch, 0);
    switch (it.kind) {
      case Meeting::Kind::kGroup:
        return meetings.join(it.group, false, me, now_, it.time_us);
      case Meeting::Kind::kStart:
        background_.push_back({&it, now_, run.micro_batch});
        advance_background(meetings);
        return now_;
      case Meeting::Kind::kEndOfStarted: {
        advance_background(meetings);
        const auto ended = ended_.find(it.started);
        if (ended == ended_.end()) return std::nullopt;
        const double end = std::max(now_, ended->second);
        ended_.erase(ended);
        return end;
      }
      case Meeting::Kind::kSend:
        meetings.send(me, it.peer, tag, now_ + it.time_us);
        return now_;
      case Meeting::Kind::kReceive:
        return meetings.receive(it.peer, me, tag, now_);
      case Meeting::Kind::kEndOfSend:
        return meetings.end_of_send(me, it.peer, tag, now_);
    }
    return now_;
  }

  void end_position(bool is_step) {
    if (!is_recorded_ || (!is_step && is_once())) return;
    result_.positions.push_back({position_begin_, now_});
    position_begin_ = now_;
  }

  std::unique_ptr<graph::ProgramRuns> runs_;
  graph::BlockTimes times_;
  bool is_recorded_;
  std::vector<std::vector<Piece>> blocks_;
  std::vector<graph::StepTurn> turns_;  // by step

  // A collective in the background, and when the rank started it.
  struct Started {
    const Meeting* what;  // in blocks_, whose pieces do not move
    double at;
    int32_t micro_batch;
  };

  std::deque<Started> background_;  // those that have not ended
  std::map<size_t, double> ended_;  // by the step that started it; not yet waited for
  double background_free_at_ = 0;
  RankForecast result_;
  double now_ = 0;
  double position_begin_ = 0;
  size_t run_ = 0;
  size_t piece_ = 0;
  size_t meeting_ = 0;
  bool has_computed_ = false;
};

size_t num_steps_run(const Program& program) {
  const graph::ProgramRuns runs(program);
  size_t count = 0;
  for (const BlockRun& run : runs.runs())
    count += runs.block_of(run).end_step - runs.block_of(run).first_step;
  return count;
}

}  // namespace

double sane(double number) {
  constexpr double kMost = 0x1p62;
  return number > 0 ? std::min(number, kMost) : 0;  // also if it is no number
}

double predicted_us(const Program& program, const Step& step) {
  double bytes = 0;
  for (const auto* ids : {&step.inputs, &step.outputs}) {
    for (const BufferId id : *ids)
      bytes += static_cast<double>(bytes_of(program, id));
  }
  return graph::kernel_us(sane(flops_of(program, step)), bytes);
}

Forecast forecast(const graph::Programs& programs, const std::vector<int64_t>& ranks) {
  size_t num_steps = 0;
  for (const auto& program : programs)
    num_steps += num_steps_run(*program);
  if (num_steps > kMostForecastSteps) {
    return {.ranks = {},
            .obstacle = str("the ranks run ", num_steps, " steps, and at most ", kMostForecastSteps,
                            " are simulated")};
  }
  std::map<const Program*, std::vector<double>> costs_us;  // by step
  for (const auto& program : programs) {
    const auto [costs, is_new] = costs_us.try_emplace(program.get());
    for (size_t i = 0; is_new && i < program->steps.size(); ++i)
      costs->second.push_back(predicted_us(*program, program->steps[i]));
  }
  std::vector<Walker> walkers;
  for (size_t rank = 0; rank < programs.size(); ++rank) {
    const auto number = static_cast<int64_t>(rank);
    const bool is_wanted = std::find(ranks.begin(), ranks.end(), number) != ranks.end();
    walkers.emplace_back(*programs[rank], number, costs_us.at(programs[rank].get()), is_wanted);
  }
  Meetings meetings;
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (Walker& walker : walkers)
      goes_on = (!walker.is_done() && walker.advance(meetings)) || goes_on;
  }
  Forecast result;
  for (Walker& walker : walkers) {
    if (!walker.is_done()) {
      return {.ranks = {},
              .obstacle =
                  "a rank waits forever, so the programs of the file contradict its "
                  "certificate; flow-plan --check says where"};
    }
    result.span_us = std::max(result.span_us, walker.now());
  }
  for (const int64_t rank : ranks)
    result.ranks.push_back(walkers[static_cast<size_t>(rank)].take());
  return result;
}

}  // namespace flow::tools
