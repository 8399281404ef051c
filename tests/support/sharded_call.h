// A call that is computed on simulated ranks, with parts of its inputs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
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
  DType dtype = DType::kFloat64;  // under test

  bool is_mutated(size_t input) const { return (call.mutates >> input & 1U) != 0; }
};

Draw make_draw(const OpSample& sample, DType dtype, uint64_t seed);

// How far the ranks' results may be off: the tolerance of the least precise input.
Tolerance tolerance_of(const RawCall& call);

// One call on the ranks of a placement. The parts of an input are made once for each layout.
class ShardedCall {
 public:
  ShardedCall(const Draw& draw, const Placement& placement);
  // On ranks 0 … num_ranks - 1 of one axis.
  ShardedCall(const Draw& draw, int64_t num_ranks);

  const Draw& draw() const { return *draw_; }

  const Placement& placement() const { return placement_; }

  int64_t num_ranks() const { return placement_.num_ranks(); }

  // The results of the ranks: [output][rank]. Throws what the kernel throws, and Unsupported if the
  // kernel does not apply.
  // Signature: SbpSignature or boxing::NdSignature.
  template <class Signature>
  std::vector<std::vector<Tensor>> run(const Signature& signature, const KernelRun& run) {
    std::vector<std::vector<Tensor>> results(draw_->expected.size());
    for (int64_t r = 0; r < num_ranks(); ++r) {
      std::vector<MetaPtr> metas;
      for (size_t i = 0; i < results.size(); ++i)
        metas.push_back(output_meta(i, signature.outputs[i], r));
      auto outputs = run_kernel(draw_->call, own_inputs(signature.inputs, r), metas, run);
      if (!outputs) throw Unsupported("the kernel does not apply");
      for (size_t i = 0; i < outputs->size(); ++i)
        results[i].push_back(std::move((*outputs)[i]));
    }
    return results;
  }

  // A rank's inputs as parts of global tensors; inputs that the op writes are copied.
  // Layout: Sbp or NdSbp.
  template <class Layout>
  Inputs own_inputs(const std::vector<Layout>& layouts, int64_t rank) {
    Inputs own;
    for (size_t i = 0; i < layouts.size(); ++i)
      own.push_back(own_input(i, layouts[i], rank));
    return own;
  }

  // The metas of a rank's part.
  MetaPtr input_meta(size_t i, const NdSbp& nd_sbp, int64_t rank);
  MetaPtr output_meta(size_t i, const NdSbp& nd_sbp, int64_t rank);

 private:
  // One tensor in one layout: [rank].
  struct Parts {
    std::vector<MetaPtr> metas;
    std::vector<Tensor> tensors;  // inputs only; made when first needed
  };

  const Parts& parts(std::vector<Parts>& layouts, const Tensor& tensor, const NdSbp& nd_sbp);
  Tensor own_input(size_t i, const NdSbp& nd_sbp, int64_t rank);
  const std::vector<Tensor>& input_parts(size_t i, const NdSbp& nd_sbp);

  const Draw* draw_;
  Placement placement_;
  std::vector<std::vector<Parts>> inputs_;   // [input][layout]
  std::vector<std::vector<Parts>> outputs_;  // [output][layout]
};

}  // namespace flow::contract
