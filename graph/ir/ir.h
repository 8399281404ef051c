// The intermediate representation of a traced step: SSA values with logical metas and the nodes
// that make them, in program order. Pure data with a text form that parses back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/context.h"
#include "core/op.h"

namespace flow::graph {

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;  // an optional input that was not given

// A logical tensor: what every rank agrees on.
struct Value {
  Shape shape;
  DType dtype = DType::kFloat32;
  DeviceType device = DeviceType::kCpu;
  Placement placement;  // undefined: each rank has its own local tensor
  NdSbp nd_sbp;

  static Value of(const TensorMeta& meta);
  // The meta of `rank`'s part.
  MetaPtr meta_on(int64_t rank) const;
  friend bool operator==(const Value&, const Value&) = default;
};

// How a redistribution is carried out. A sum over ranks waits until its result, or that of another
// waiting sum of the same group of ranks, is needed; then all of these become one transfer, a
// bucket.
enum class TransferStart : uint8_t {
  kInOrder,
  kWithBucket,  // a sum: it and those of its group that wait start in the background
  kAtOnce,      // starts where the node stands, in the background
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<std::byte> attrs;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  int64_t stage = 0;
  Phase phase = Phase::kForward;
  // For a random op, the number of its draw in the step; -1 for other ops. A recomputed node draws
  // the same values again.
  int64_t draw = -1;
  // The result is for the next readers only and is not kept: no pass merges the node with an equal
  // one, and it runs for each micro-batch even if the result is always the same.
  bool is_transient = false;
  TransferStart transfer_start = TransferStart::kInOrder;
  // The index of a step output, a bool scalar: the node runs only if it is true, and a tensor that
  // a skipped node writes keeps its value. -1: the node always runs.
  int64_t guard = -1;
  // The position of an input over which the kernel may write the result; -1: none. It does if the
  // input has the same memory layout.
  int64_t overwrites = -1;
  // The user's line that called the op.
  std::string file;
  uint32_t line = 0;
  std::string module = {};  // path of the innermost module that called it

  const void* raw_attrs() const { return attrs.empty() ? nullptr : attrs.data(); }

  friend bool operator==(const Node& a, const Node& b);
};

// Whether two nodes run at the same times: in one stage and phase, under the same condition, and
// both for their next readers only or neither.
bool runs_alike(const Node& a, const Node& b);

// A tensor from outside that the step reads and perhaps writes: `initial` is its value when the
// step starts, `final_value` when it ends (the same for a tensor that is only read).
struct Capture {
  ValueId initial = kNoValue;
  ValueId final_value = kNoValue;
  friend bool operator==(const Capture&, const Capture&) = default;
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;
  std::vector<Capture> captures;
  std::vector<ValueId> outputs;
  int64_t num_draws = 0;  // random streams that a step consumes

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }

  Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }

  ValueId add_value(Value value) {
    values.push_back(std::move(value));
    return static_cast<ValueId>(values.size() - 1);
  }

  friend bool operator==(const Graph&, const Graph&) = default;
};

// Throws InternalError naming the node when: a value is used before it is made or made twice, an id
// is out of range, the number of inputs or outputs is not the op's, or an inferred shape or dtype
// differs from the value's. Run after every pass.
void verify(const Graph& graph);

}  // namespace flow::graph
