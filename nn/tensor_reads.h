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
  // The hooks of a tensor: their ids ascend, so every change alters one of the two.
  struct Hooks {
    size_t number;
    int64_t last;  // the id of the last one; -1: there is none

    bool operator==(const Hooks& other) const = default;
  };

  struct Read {
    Tensor tensor;
    bool tracks_grad;
    Hooks hooks;
    size_t first;  // the index of the first read of the same capture
  };

  // A tensor among the members.
  struct Member {
    const std::byte* at;
    const TensorImpl* impl;
  };

  // Where the elements of a tensor begin.
  using Place = std::pair<const Storage*, int64_t>;

  static Hooks hooks_of(const Tensor& tensor);
  static Place place_of(const Tensor& tensor);
  size_t num_memories() const;
  bool share_as_traced() const;

  std::vector<Read> reads_;
  std::vector<Member> members_;
  size_t num_memories_ = 0;             // different ones, of first reads
  mutable std::vector<Place> checked_;  // for which share_as_traced() was true
};

}  // namespace flow::nn
