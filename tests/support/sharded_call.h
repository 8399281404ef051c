// A call computed on simulated ranks, on parts of its inputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/op.h"
#include "tests/support/closeness.h"
#include "tests/support/op_samples.h"
#include "tests/support/raw_call.h"

namespace flow::contract {

// A call with its result on one rank.
struct Draw {
  RawCall call;
  std::vector<Tensor> expected;
  uint64_t seed = 0;

  bool is_mutated(size_t input) const { return (call.mutates >> input & 1U) != 0; }
};

Draw make_draw(const OpSample& sample, DType dtype, uint64_t seed);

// How far ranks may be off together: that of the coarsest input.
Tolerance tolerance_of(const RawCall& call);

// One call on a number of ranks. Parts of inputs are cut once for each layout.
class ShardedCall {
 public:
  ShardedCall(const Draw& draw, int64_t num_ranks);

  const Draw& draw() const { return *draw_; }

  int64_t num_ranks() const { return placement_.num_ranks(); }

  // What the ranks compute: [output][rank]. Throws what the kernel throws, and Unsupported when it
  // does not apply.
  std::vector<std::vector<Tensor>> run(const SbpSignature& signature, const KernelRun& run);

  // A rank's parts as its parts of global tensors; copies of those the op writes.
  Inputs own_inputs(const std::vector<Sbp>& layouts, int64_t rank);

  // The metas of a rank's part.
  MetaPtr input_meta(size_t i, Sbp sbp, int64_t rank);
  MetaPtr output_meta(size_t i, Sbp sbp, int64_t rank);

 private:
  // What is known of one tensor in one layout: [rank].
  struct Parts {
    std::vector<MetaPtr> metas;
    std::vector<Tensor> tensors;  // inputs only, when first asked for
  };

  const Parts& parts(std::vector<Parts>& layouts, const Tensor& tensor, Sbp sbp);
  const std::vector<Tensor>& input_parts(size_t i, Sbp sbp);

  const Draw* draw_;
  Placement placement_;
  std::vector<std::vector<Parts>> inputs_;   // [input][layout]
  std::vector<std::vector<Parts>> outputs_;  // [output][layout]
};

}  // namespace flow::contract
