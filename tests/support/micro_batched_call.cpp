#include "tests/support/micro_batched_call.h"

#include <memory>
#include <utility>

#include "eager/runtime.h"
#include "graph/compile.h"
#include "graph/passes/settle_stages.h"
#include "graph/run/compiled_step.h"
#include "graph/trace/tracer.h"
#include "pipeline/order.h"

namespace flow::contract {

namespace {

graph::TracedStep trace_with(const RawCall& call, uint32_t batches, Inputs& given) {
  graph::Trace trace;
  Inputs inputs;
  const uint32_t written = call.mutates | call.op->mutates;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& input = call.inputs[i];
    const bool is_batch = input.defined() && (batches >> i & 1U) != 0;
    if (is_batch) given.push_back(input);
    inputs.push_back(is_batch ? trace.add_input(input) : input);
    // A step does not write to its inputs.
    if (is_batch && (written >> i & 1U) != 0) inputs[i] = inputs[i].clone();
  }
  return trace.finish(dispatch_unseeded(call, inputs));
}

}  // namespace

std::vector<Tensor> run_in_micro_batches(const RawCall& call, uint32_t batches,
                                         int64_t num_micro_batches) {
  Inputs given;
  graph::TracedStep step = trace_with(call, batches, given);
  const std::vector<graph::Pass> passes = {
      graph::graph_pass("settle_stages", true, graph::settle_stages),
      pipeline::micro_batching_pass(
          {.micro_batches = num_micro_batches, .num_arguments = given.size()})};
  auto artifact = std::make_shared<const graph::CompiledArtifact>(
      graph::compile_artifact(std::move(step.graph), passes));
  manual_seed(kDrawSeed);
  return graph::CompiledStep(std::move(step.captures), std::move(artifact)).run(given);
}

}  // namespace flow::contract
