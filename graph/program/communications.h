// What a program does together with other ranks: its collectives, messages and waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/program/program.h"

namespace flow::graph {

// One thing that a program does together with other ranks.
struct Communication {
  // kSend and kRecv start a message. kWait: for a send. kArrival: the wait for a receive. kEnd: for
  // a collective in the background.
  enum class Kind : uint8_t { kCollective, kSend, kRecv, kWait, kArrival, kEnd };

  Kind kind = Kind::kCollective;
  size_t step = 0;             // of the program
  size_t run = 0;              // of the step's block
  std::vector<int64_t> ranks;  // the group in order; of a message: sender, receiver
  std::string what;            // of a collective: what its members must agree on
  // Of a message; of a collective: received by the rank that receives most.
  int64_t bytes = 0;
  double time_us = 0;       // predicted, of a collective
  int64_t tag = 0;          // of a message, and of a wait for it
  bool is_guarded = false;  // the step may be skipped
  bool in_background = false;
};

// What a program does together with other ranks, run by run.
class CommunicationList {
 public:
  CommunicationList(const Program& program, int64_t rank);

  bool at_end() const { return run_ == runs_->runs().size(); }

  const Program& program() const { return *program_; }

  // The next one. Its tag is that of micro-batch 0.
  const Communication& current() const { return of_block()[next_]; }

  int64_t current_tag() const;

  // The run of the current one's block.
  size_t current_run() const { return run_; }

  void advance() {
    ++next_;
    skip_empty();
  }

  // By block.
  const std::vector<std::vector<Communication>>& blocks() const { return blocks_; }

 private:
  const std::vector<Communication>& of_block() const {
    return blocks_[static_cast<size_t>(runs_->runs()[run_].block)];
  }

  void skip_empty();

  const Program* program_;
  std::unique_ptr<ProgramRuns> runs_;
  std::vector<std::vector<Communication>> blocks_;
  size_t run_ = 0;
  size_t next_ = 0;  // in the block
};

// The communications of a program, in the order of its runs, as `rank` takes part in them. `rank`
// is the program's or one of its class. The result follows only from op, attrs and layouts.
std::vector<Communication> communications_of(const Program& program, int64_t rank);

}  // namespace flow::graph
