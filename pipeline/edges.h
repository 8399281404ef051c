// Transfers between stages: the messages from each rank of one stage to each rank of the other.
#pragma once

#include <vector>

#include "graph/ir/ir.h"
#include "graph/program/order.h"

namespace flow::pipeline {

using graph::Message;

// All messages that bring a tensor from one layout to the other, sorted by receiver, then by the
// sender's position. Every element is sent once: by the receiver itself if it has the element, else
// by one of the replicas in turn. Requires: neither layout has partial values; shape and dtype are
// the same.
std::vector<Message> messages_between(const graph::Value& from, const graph::Value& to);

}  // namespace flow::pipeline
