// Transfers between stages: what each rank of one sends to each rank of the other.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor_meta.h"
#include "graph/ir/ir.h"

namespace flow::pipeline {

// A box of the logical index space that `from` has and `to` needs; the same rank where it has it
// already.
struct Message {
  int64_t from = 0;
  int64_t to = 0;
  Box box;
  friend bool operator==(const Message&, const Message&) = default;
};

// All messages that bring a tensor from one layout to the other, by receiver, then sender's
// position: every element once, from the receiver itself where it has it, else from replicas in
// turn. Requires: neither layout has partial values, shape and dtype are the same.
std::vector<Message> messages_between(const graph::Value& from, const graph::Value& to);

}  // namespace flow::pipeline
