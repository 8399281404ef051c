// The predicted cost of a signature: moving the inputs, the transfers that backward then needs, the
// arithmetic of each rank, and the transfers that the ops that use the outputs are likely to need.
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

// How far the inputs of a call have to move. Only signatures with the smallest reach are
// considered. kFits: the inputs match and nothing moves. kLocal: no communication is needed,
// because every rank already holds the data that it slices or pads. kMoves: data travels. A call
// with a partial input among several ignores the reach: passing the partial values on competes with
// reducing them, because a later use may have to reduce them again.
enum class Reach : uint8_t { kFits, kLocal, kMoves };

// Compared member by member; smaller is better.
struct Score {
  double time_us = 0;
  int64_t moved = 0;  // number of moved inputs
  int64_t bytes = 0;  // of moved inputs and of outputs, on the rank with the largest parts

  friend bool operator<(const Score& a, const Score& b) {
    return std::tie(a.time_us, a.moved, a.bytes) < std::tie(b.time_us, b.moved, b.bytes);
  }
};

// Scores the signatures of one call by the predicted time of
//   moving its inputs, and moving their gradients back in backward;
//   its arithmetic, divided along the axes that split it;
//   redistributing its outputs for the ops that use them (cut_use and partial_use of CostTable).
// Pure. The constructor's arguments must outlive the object.
class SignatureScorer {
 public:
  SignatureScorer(const OpDef& op, std::span<const MetaPtr> inputs, const void* attrs,
                  std::span<const OutputSpec> outputs, const Placement& placement);

  // Does not plan any route.
  Reach reach(const NdSignature& signature) const;
  // A lower bound of the score's time. Does not plan any route.
  double least_us(const NdSignature& signature);
  // Empty as soon as the time is known to exceed `limit_us`.
  std::optional<Score> score(const NdSignature& signature, double limit_us);

 private:
  // Predicted times of redistributions of tensors of one shape and dtype; many signatures and
  // tensors need the same ones.
  struct Routes {
    Shape shape;
    DType dtype;
    // The key is made of both layouts.
    std::unordered_map<uint64_t, double> predicted_us = {};
    std::unordered_map<uint64_t, double> least_us = {};
  };

  enum class Precision : uint8_t { kRouted, kLeast };

  size_t routes_of(const Shape& shape, DType dtype);
  double route_time(size_t routes, const NdSbp& from, const NdSbp& to, Precision precision);
  // The time to move an input and to move its gradient back.
  double move_time(size_t input, const NdSbp& wanted, Precision precision);
  double use_time(size_t output, const NdSbp& nd_sbp, Precision precision);
  double work_time(const NdSignature& signature) const;

  const OpDef& op_;
  std::span<const MetaPtr> inputs_;
  std::span<const OutputSpec> outputs_;
  const Placement& placement_;
  double flops_;
  bool may_defer_;  // a partial input among several, so the reach is ignored
  std::vector<Routes> routes_;
  std::vector<size_t> input_routes_;  // indices in routes_
  std::vector<size_t> output_routes_;
};

}  // namespace flow::boxing
