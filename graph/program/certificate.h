// Proves, before anything runs, that the programs of all ranks end: no rank waits forever, and
// ranks agree on every collective. Also states how much memory each rank needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/program/program.h"

namespace flow {
class RankContext;
}

namespace flow::graph {

struct RankCertificate {
  int64_t rank = 0;
  int64_t arena_bytes = 0;
  // The most bytes of values that are alive at once.
  int64_t peak_bytes = 0;
  std::string peak_at;  // the op at which they are alive, and its line
  // The most bytes that a kernel takes from the allocator in addition to the arena, and its op.
  int64_t scratch_bytes = 0;
  std::string scratch_at;
  int64_t num_collectives = 0;
  int64_t num_messages = 0;   // sent
  int64_t longest_queue = 0;  // messages sent to it by one rank and not yet received, at most
};

// The ranks for which scratch memory is stated.
struct RankKind {
  int num_threads = 1;        // compute threads of each
  bool shares_memory = true;  // they are threads of one process

  // The ranks of the context's run.
  static RankKind of(RankContext& context);
};

struct Certificate {
  std::vector<RankCertificate> ranks;
  RankKind rank_kind = {};
};

// `programs` are those of ranks 0, 1, …. Throws InternalError, which names ranks, steps and lines,
// in these cases: members of a group differ in a collective or in their order; messages between two
// ranks are received in another order than they are sent, with another size, or not at all;
// receives end in another order than they start; ranks wait for each other in a circle; a rank may
// skip what another one does, or skips it under a condition that is not one broadcast value; memory
// of the arena is used wrongly (check_memory). A rank's communication thread carries out its
// collectives in the background one after another. Sends count as unbuffered: a send ends when its
// receiver waits for it, however early the receive starts. Starting a message never makes a rank
// wait. Assumed, and compared at run time by FLOW_CHECK=1: ranks hold equal data of a broadcast
// value.
Certificate certify(const Programs& programs, RankKind rank_kind = {});
Certificate certify(std::span<const Program> programs);

// States the scratch memory again for other ranks.
void state_scratch(Certificate& certificate, const Programs& programs, RankKind rank_kind);

// "rank 1: 4 collectives, 2 messages; 12288 bytes, at most 9216 alive at matmul train.cpp:12;
// kernels take up to 4160 more at sum train.cpp:13".
std::string to_string(const Certificate& certificate);

}  // namespace flow::graph
