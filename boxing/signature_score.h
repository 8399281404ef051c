// What a signature costs: what it moves, what that makes backward move, the work it leaves to each
// rank, and what its outputs are likely to cost the ops that use them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "boxing/sbp_select.h"
#include "core/op.h"

namespace flow::boxing {

// How much of a call's inputs has to move; the least that some signature needs is all that is
// considered. Calls whose inputs fit move nothing. Next come those that need no communication, as
// every rank has what it cuts or pads, be it of a result. With a partial input among several this
// does not count: passing it on is a choice like reducing it, which may have to be done for each
// further use.
enum class Reach : uint8_t { kFits, kLocal, kMoves };

// Smaller is better, member by member.
struct Score {
  double time_us = 0;
  int64_t moved = 0;  // inputs
  int64_t bytes = 0;  // of moved inputs and of outputs, where the parts are largest

  friend bool operator<(const Score& a, const Score& b) {
    return std::tie(a.time_us, a.moved, a.bytes) < std::tie(b.time_us, b.moved, b.bytes);
  }
};

// Scores the signatures of one call by the time predicted for
//   moving its inputs, and in backward their gradients the way back;
//   its arithmetic, divided along the axes that cut it;
//   what its outputs are expected to cost the ops that use them (CostTable's cut_use, partial_use).
// Pure. Arguments outlive it.
class SignatureScorer {
 public:
  SignatureScorer(const OpDef& op, std::span<const MetaPtr> inputs, const void* attrs,
                  std::span<const OutputSpec> outputs, const Placement& placement);

  // Costs no planning.
  Reach reach(const NdSignature& signature) const;
  // No score has less time. Costs no planning.
  double least_us(const NdSignature& signature);
  // Null as soon as the time is known to be above `limit_us`.
  std::optional<Score> score(const NdSignature& signature, double limit_us);

 private:
  // Redistributions of tensors of one shape and dtype. Many signatures and tensors ask for the
  // same.
  struct Routes {
    Shape shape;
    DType dtype;
    // By both layouts.
    std::unordered_map<uint64_t, double> predicted_us = {};
    std::unordered_map<uint64_t, double> least_us = {};
  };

  enum class Precision : uint8_t { kRouted, kLeast };

  size_t routes_of(const Shape& shape, DType dtype);
  double route_time(size_t routes, const NdSbp& from, const NdSbp& to, Precision precision);
  // Of moving an input there and its gradient back.
  double move_time(size_t input, const NdSbp& wanted, Precision precision);
  double use_time(size_t output, const NdSbp& nd_sbp, Precision precision);
  double work_time(const NdSignature& signature) const;

  const OpDef& op_;
  std::span<const MetaPtr> inputs_;
  std::span<const OutputSpec> outputs_;
  const Placement& placement_;
  double flops_;
  bool may_defer_;  // a partial input among several: reach does not count
  std::vector<Routes> routes_;
  std::vector<size_t> input_routes_;  // indices in routes_
  std::vector<size_t> output_routes_;
};

}  // namespace flow::boxing
