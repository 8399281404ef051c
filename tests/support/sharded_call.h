// A call that is computed on simulated ranks, with parts of its inputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/op.h"
#include "tests/support/closeness.h"
#include "tests/support/op_samples.h"
#include "tests/support/raw_call.h"

namespace flow::contract {

// A call and its result on one rank.
struct Draw {
  RawCall call;
  std::vector<Tensor> expected;
  uint64_t seed = 0;

  bool is_mutated(size_t input) const { return (call.mutates >> input & 1U) != 0; }
};

Draw make_draw(const OpSample& sample, DType dtype, uint64_t seed);

// How far the ranks' results may be off: the tolerance of the least precise input.
Tolerance tolerance_of(const RawCall& call);

// One call on a number of ranks. The parts of an input are made once for each layout.
class ShardedCall {
 public:
  ShardedCall(const Draw& draw, int64_t num_ranks);

  const Draw& draw() const { return *draw_; }

  int64_t num_ranks() const { return placement_.num_ranks(); }

  // The results of the ranks: [output][rank]. Throws what the kernel throws, and Unsupported if the
  // kernel does not apply.
  std::vector<std::vector<Tensor>> run(const SbpSignature& signature, const KernelRun& run);

  // A rank's inputs as parts of global tensors; inputs that the op writes are copied.
  Inputs own_inputs(const std::vector<Sbp>& layouts, int64_t rank);

  // The metas of a rank's part.
  MetaPtr input_meta(size_t i, Sbp sbp, int64_t rank);
  MetaPtr output_meta(size_t i, Sbp sbp, int64_t rank);

 private:
  // One tensor in one layout: [rank].
  struct Parts {
    std::vector<MetaPtr> metas;
    std::vector<Tensor> tensors;  // inputs only; made when first needed
  };

  const Parts& parts(std::vector<Parts>& layouts, const Tensor& tensor, Sbp sbp);
  const std::vector<Tensor>& input_parts(size_t i, Sbp sbp);

  const Draw* draw_;
  Placement placement_;
  std::vector<std::vector<Parts>> inputs_;   // [input][layout]
  std::vector<std::vector<Parts>> outputs_;  // [output][layout]
};

}  // namespace flow::contract
