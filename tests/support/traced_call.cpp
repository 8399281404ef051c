#include "tests/support/traced_call.h"

#include "core/context.h"
#include "eager/runtime.h"
#include "graph/program/lower.h"
#include "graph/program/program.h"
#include "graph/run/executor.h"
#include "graph/trace/tracer.h"

namespace flow::contract {

namespace {

graph::TracedStep trace(const RawCall& call) {
  graph::Trace trace;
  Inputs inputs;
  const uint32_t written = call.mutates | call.op->mutates;
  for (const Tensor& input : call.inputs) {
    inputs.push_back(input.defined() ? trace.add_input(input) : Tensor());
    // A step does not write to its inputs.
    const size_t i = inputs.size() - 1;
    if (i < 32 && (written >> i & 1) != 0) inputs[i] = inputs[i].clone();
  }
  return trace.finish(dispatch_unseeded(call, inputs));
}

}  // namespace

std::vector<Tensor> run_traced(const RawCall& call, const KernelTable& kernels) {
  const graph::TracedStep step = trace(call);
  const int64_t rank = thread_state().context->rank();
  const graph::Program program =
      graph::lower(step.graph, graph::plain_order(step.graph), rank, kernels);
  std::vector<Tensor> externals;
  for (const Tensor& input : call.inputs) {
    if (input.defined()) externals.push_back(make_guarded(input.meta_ptr(), read_values(input)));
  }
  externals.insert(externals.end(), step.captures.begin(), step.captures.end());
  const size_t num_given = externals.size();
  for (size_t i = num_given; i < program.externals.size(); ++i) {
    const auto buffer = static_cast<size_t>(program.externals[i]);
    externals.push_back(make_guarded(program.buffers[buffer].meta, kOutputFill));
  }
  manual_seed(kDrawSeed);
  graph::Executor(program).run(externals);
  return {externals.begin() + static_cast<int64_t>(num_given), externals.end()};
}

}  // namespace flow::contract
