// Ranks run a compiled step together only if they compiled the same step.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "boxing/comm/communicator.h"
#include "graph/program/compiled_artifact.h"

namespace flow::graph {

// What the ranks of a step must agree on: the global inputs and captures, the nodes after the
// passes that read or make global tensors, the passes and their settings. Call sites, kernels and
// what a rank computes with its local tensors may differ between ranks; if there are local tensors,
// ranks also compare the communications of all their programs. A step of local tensors concerns no
// other rank.
class RankAgreement {
 public:
  // `step` must outlive this object.
  explicit RankAgreement(const CompiledArtifact& step);

  // Compares a 128-bit key with the other ranks of the step's placements, unless they have agreed
  // on this key before. Collective over these ranks. Throws InvalidArgument on all of them if they
  // differ; the error names two ranks and the first difference.
  void reach(RankContext& rank);

  // True if an error of this rank in a run need not be an error of all ranks of the step: some
  // values are on some of the ranks only, or are local.
  bool has_errors_of_one_rank() const { return has_errors_of_one_rank_; }

  const std::vector<int64_t>& ranks() const { return ranks_; }

  // True if this rank is one of several ranks.
  bool concerns_others() const { return concerns_others_; }

  // The step that messages of a run belong to.
  const boxing::RunningStep& step() const { return *running_; }

 private:
  const CompiledArtifact& step_;
  std::vector<int64_t> ranks_;  // of all placements, ascending; empty: all tensors are local
  bool concerns_others_;
  std::pair<uint64_t, uint64_t> key_;
  const boxing::RunningStep* running_;
  bool is_reached_;
  bool has_errors_of_one_rank_;
};

// The lines whose hash is the key, each with its call site after a tab.
std::vector<std::string> agreement_lines(const CompiledArtifact& step);

}  // namespace flow::graph
