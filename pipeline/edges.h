// Transfers between stages: what each rank of one sends to each rank of the other.
#pragma once

#include <vector>

#include "graph/ir/ir.h"
#include "graph/program/order.h"

namespace flow::pipeline {

using graph::Message;

// All messages that bring a tensor from one layout to the other, by receiver, then sender's
// position: every element once, from the receiver itself where it has it, else from replicas in
// turn. Requires: neither layout has partial values, shape and dtype are the same.
std::vector<Message> messages_between(const graph::Value& from, const graph::Value& to);

}  // namespace flow::pipeline
