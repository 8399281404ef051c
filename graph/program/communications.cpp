#include "graph/program/communications.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "boxing/route.h"
#include "core/error.h"

namespace flow::graph {

namespace {

// Lists the communications of a block step by step. The tags are those of micro-batch 0.
class Listing {
 public:
  Listing(const Program& program, int64_t rank) : program_(program), rank_(rank) {}

  std::vector<Communication> list(const Block& block) {
    for (index_ = block.first_step; index_ < block.end_step; ++index_)
      std::visit([this](const auto& body) { add(body); }, step().body);
    return std::move(all_);
  }

 private:
  const Step& step() const { return program_.steps[index_]; }

  void add(const KernelStep&) {}

  void add(const ConvertStep&) {}

  void add(const CollectiveStep& collective) { add_route(*collective.route); }

  void add(const BucketStep& bucket) { add_route(*bucket.route); }

  void add_route(const boxing::Route& route) {
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
                      .is_guarded = step().guard != kNoBuffer,
                      .in_background = step().in_background});
    }
  }

  void add(const SendStep& send) {
    add_message(Communication::Kind::kSend, step().inputs[0], rank_, send.peer, send.tag);
  }

  void add(const ReceiveStep& receive) {
    add_message(Communication::Kind::kRecv, step().outputs[0], receive.peer, rank_, receive.tag);
  }

  void add(const WaitStep& wait) {
    const Step& started = program_.steps[wait.started];
    if (const auto* send = started.as<SendStep>()) {
      return add_message(Communication::Kind::kWait, step().inputs[0], rank_, send->peer,
                         send->tag);
    }
    if (const auto* receive = started.as<ReceiveStep>()) {
      return add_message(Communication::Kind::kArrival, step().outputs[0], receive->peer, rank_,
                         receive->tag);
    }
    const std::vector<int64_t> group = boxing::group_of(started.route()->steps[0], rank_);
    if (group.size() < 2) return;
    all_.push_back(
        {.kind = Communication::Kind::kEnd, .step = wait.started, .ranks = group, .what = {}});
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

CommunicationList::CommunicationList(const Program& program, int64_t rank)
    : program_(&program), runs_(std::make_unique<ProgramRuns>(program)) {
  for (const Block& block : runs_->blocks())
    blocks_.push_back(Listing(program, rank).list(block));
  skip_empty();
}

int64_t CommunicationList::current_tag() const {
  using Kind = Communication::Kind;
  const bool is_message = current().kind != Kind::kCollective && current().kind != Kind::kEnd;
  return current().tag + (is_message ? std::max(runs_->runs()[run_].micro_batch, 0) : 0);
}

void CommunicationList::skip_empty() {
  while (!at_end() && next_ == of_block().size()) {
    ++run_;
    next_ = 0;
  }
}

std::vector<Communication> communications_of(const Program& program, int64_t rank) {
  std::vector<Communication> all;
  for (CommunicationList list(program, rank); !list.at_end(); list.advance()) {
    all.push_back(list.current());
    all.back().tag = list.current_tag();
    all.back().run = list.current_run();
  }
  return all;
}

}  // namespace flow::graph
