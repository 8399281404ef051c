// Proof, before anything runs, that the programs of all ranks end: nobody waits for ever, ranks
// agree on every collective, and how much memory each takes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/program/program.h"

namespace flow::graph {

// One thing that a program does together with other ranks.
struct Communication {
  enum class Kind : uint8_t { kCollective, kSend, kRecv, kWait };

  Kind kind = Kind::kCollective;
  size_t step = 0;             // of the program
  std::vector<int64_t> ranks;  // the group in order; of a message: from, to
  std::string what;            // of a collective: what its members must agree on
  int64_t bytes = 0;           // of a message, or received by the rank that receives most
  double time_us = 0;          // predicted, of a collective
  int64_t tag = 0;             // of a message
};

// Those of a program in its order, as `rank`, the program's or one alike, takes part in them.
// Derived from op, attrs and layouts alone.
std::vector<Communication> communications_of(const Program& program, int64_t rank);

struct RankCertificate {
  int64_t rank = 0;
  int64_t arena_bytes = 0;
  // Values alive at once, at most, and the step at which they are.
  int64_t peak_bytes = 0;
  std::string peak_at;  // the op at which they are, and its line
  // What kernels take from the allocator beside, at most, and the op that does.
  int64_t scratch_bytes = 0;
  std::string scratch_at;
  int64_t num_collectives = 0;
  int64_t num_messages = 0;   // sent
  int64_t longest_queue = 0;  // messages sent to it by one rank and not yet received, at most
};

struct Certificate {
  std::vector<RankCertificate> ranks;
  int num_threads = 1;  // of a rank, for which scratch is stated
};

// `programs` are those of ranks 0, 1, …. Throws InternalError, naming ranks, steps and lines, when
// members of a group differ in a collective or in their order; when messages between two ranks are
// received in another order than they are sent, or with another size, or not at all; or when ranks
// wait for each other in a circle. Sends count as unbuffered: one ends when it is received.
// Scratch is stated for ranks of so many compute threads.
Certificate certify(const Programs& programs, int num_threads = 1);
Certificate certify(std::span<const Program> programs);

// States it anew, for another number of threads.
void state_scratch(Certificate& certificate, const Programs& programs, int num_threads);

// "rank 1: 4 collectives, 2 messages; 12288 bytes, at most 9216 alive at matmul
// train.cpp:12; kernels take up to 4160 beside, sum train.cpp:13".
std::string to_string(const Certificate& certificate);

}  // namespace flow::graph
