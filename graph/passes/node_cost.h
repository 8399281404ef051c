// The predicted time of a node, for passes and pipelines that compare one with another.
#pragma once

#include "graph/ir/ir.h"

namespace flow::graph {

// The bytes of the logical tensor.
int64_t bytes_of(const Value& value);

// The bytes of the largest part of a value, which is that of the placement's first rank.
int64_t part_bytes(const Value& value);

// The predicted microseconds of a kernel on one core: the longer of arithmetic and memory traffic.
double kernel_us(double flops, double bytes);

// What a node does on all ranks of its placement together. A view does nothing.
struct NodeWork {
  double flops = 0;
  double bytes = 0;  // read and written
};

NodeWork work_of(const Graph& graph, const Node& node);

// Microseconds of this work of a node on each rank of its placement. Pure, so all ranks predict the
// same.
double predicted_us(const Graph& graph, const Node& node, const NodeWork& work);

// Microseconds for the whole batch.
double predicted_us(const Graph& graph, const Node& node);

}  // namespace flow::graph
