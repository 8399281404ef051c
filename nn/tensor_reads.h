// What a trace read of outside tensors besides their values, and whether it would still read the
// same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "graph/trace/tracer.h"

namespace flow::nn {

class TensorReads {
 public:
  TensorReads() = default;
  // `members`: the bytes of the object with build(), which outlives this one at the same address.
  TensorReads(const std::vector<graph::CapturedHandle>& handles,
              std::span<const std::byte> members);

  // True if the tensors record gradients and have hooks as during the trace, if those that showed
  // the same memory still do and no others do, and if the tensors among the members are the same.
  bool fits() const;

 private:
  struct Read {
    Tensor tensor;
    bool tracks_grad;
    int64_t last_hook;  // the number of the tensor's last hook; -1: it has none
    size_t first;       // the index of the first read of the same capture
  };

  // A tensor among the members.
  struct Member {
    const std::byte* at;
    const TensorImpl* impl;
  };

  // Where the elements of a tensor begin.
  using Place = std::pair<const Storage*, int64_t>;

  static Place place_of(const Tensor& tensor);
  size_t num_memories() const;
  bool share_as_traced() const;

  std::vector<Read> reads_;
  std::vector<Member> members_;
  size_t num_memories_ = 0;             // different ones, of first reads
  mutable std::vector<Place> checked_;  // for which share_as_traced() was true
};

}  // namespace flow::nn
