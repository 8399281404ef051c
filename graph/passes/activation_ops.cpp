#include "graph/passes/activation_ops.h"

#include <algorithm>
#include <array>

#include "ops/conv/conv_op.h"
#include "ops/elementwise/activation_and_grad_op.h"
#include "ops/elementwise/row_table.h"
#include "ops/elementwise/unary_op.h"

namespace flow::graph {

const ActivationOps* activation_ops(const OpDef* value) {
  static const std::array known = {ActivationOps{&ops::op_of<ops::Gelu>(), &ops::kGeluGrad,
                                                 &ops::kGeluAndGrad, &ops::kGeluAndSlope},
                                   ActivationOps{&ops::op_of<ops::GeluTanh>(), &ops::kGeluTanhGrad,
                                                 &ops::kGeluTanhAndGrad, &ops::kGeluTanhAndSlope},
                                   ActivationOps{&ops::op_of<ops::Silu>(), &ops::kSiluGrad,
                                                 &ops::kSiluAndGrad, &ops::kSiluAndSlope}};
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const ActivationOps& ops) { return ops.value == value; });
  return found == known.end() ? nullptr : &*found;
}

bool has_convolutions(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.op == &ops::kConv; });
}

}  // namespace flow::graph
