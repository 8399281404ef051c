#include "tests/support/global_call.h"

#include <functional>
#include <mutex>
#include <optional>
#include <random>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "core/context.h"
#include "tests/support/closeness.h"
#include "tests/support/contract_fixture.h"
#include "tests/support/traced_call.h"
#include "tests/support/values.h"

namespace flow::contract {

namespace {

// All possible layouts: for undefined tensors, for numbers, and for all dims, including those of
// size 1.
std::vector<Sbp> possible_layouts(const Draw& draw, size_t input, bool may_be_partial) {
  const Tensor& tensor = draw.call.inputs[input];
  std::vector<Sbp> layouts = {sbp::broadcast};
  if (!tensor.defined()) return layouts;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim)
    layouts.push_back(sbp::split(dim));
  if (draw.is_mutated(input) || !may_be_partial) return layouts;
  // Sums of parts are rounded, and the attributes of a data-dependent op hold what the exact values
  // decide.
  if (tensor.dtype() != DType::kBool && !draw.call.op->has_data_dependent_shape)
    layouts.push_back(sbp::partial_sum);
  layouts.push_back(sbp::partial_max);
  layouts.push_back(sbp::partial_min);
  return layouts;
}

std::string list(const Layouts& layouts) {
  std::string text;
  for (const NdSbp& nd_sbp : layouts)
    text += str(text.empty() ? "" : ", ", nd_sbp);
  return text;
}

bool is_differentiable(const Draw& draw, size_t input, uint32_t constant_inputs) {
  const Tensor& tensor = draw.call.inputs[input];
  return tensor.defined() && is_floating(tensor.dtype()) && tensor.dtype() == draw.dtype &&
         (constant_inputs >> input & 1U) == 0;
}

// Random weights for the elements of an output, in its placement.
Tensor upstream_of(const Tensor& output, const Placement& placement, uint64_t seed) {
  std::mt19937_64 random(seed);
  Values values;
  for (int64_t i = 0; i < output.numel(); ++i)
    values.push_back(static_cast<double>(random() % 401) / 100 - 2);
  const MetaPtr meta =
      placement.defined()
          ? global_meta(output.shape(), output.dtype(), placement,
                        NdSbp::broadcast(placement.num_axes()), thread_state().context->rank())
          : local_meta(output.shape(), output.dtype(), DeviceType::kCpu);
  return make_guarded(meta, values);
}

// The outputs, and the gradients of the inputs that have one; a gradient is undefined if no output
// depends on the input.
std::vector<Tensor> outputs_and_gradients(const Draw& draw, Inputs inputs,
                                          uint32_t constant_inputs) {
  std::vector<Tensor> sources;
  Placement placement;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    if (inputs[i].is_global()) placement = inputs[i].placement();
    if (!is_differentiable(draw, i, constant_inputs)) continue;
    sources.push_back(inputs[i].detach().requires_grad_());
    inputs[i] = draw.is_mutated(i) ? sources.back().clone() : sources.back();
  }
  std::vector<Tensor> results = dispatch_again(draw.call, inputs);
  std::vector<Tensor> ends;
  std::vector<Tensor> upstream;
  for (const Tensor& output : results) {
    if (!is_floating(output.dtype()) || !output.requires_grad()) continue;
    ends.push_back(output);
    upstream.push_back(upstream_of(output, placement, draw.seed + ends.size()));
  }
  if (ends.empty() || sources.empty()) return results;
  const auto gradients = grad(ends, sources, {.grad_outputs = upstream, .allow_unused = true});
  results.insert(results.end(), gradients.begin(), gradients.end());
  return results;
}

std::vector<Tensor> wholes(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors)
    result.push_back(tensor.defined() ? tensor.detach().full() : Tensor());
  return result;
}

// The differences between this rank's parts when the call is traced and when it is not. Collective.
std::string trace_once(ShardedCall& sharded, const Layouts& layouts) {
  const int64_t rank = thread_state().context->rank();
  RawCall call = sharded.draw().call;
  try {
    const auto expected = dispatch_again(call, sharded.own_inputs(layouts, rank));
    call.inputs = sharded.own_inputs(layouts, rank);
    const auto actual = run_traced(call);
    for (size_t i = 0; i < expected.size(); ++i) {
      if (!actual[i].meta().same_logical(expected[i].meta())) return "the layout differs";
      const std::string problem =
          difference(read_values(actual[i]), read_values(expected[i]), kExact);
      if (!problem.empty()) return str("output ", i, ", ", problem);
    }
  } catch (const InvalidArgument& error) {
    return error.what();
  } catch (const Unsupported& error) {
    return error.what();
  }
  return {};
}

// The differences; empty if there are none. Collective. Partial sums are rounded, so the expected
// result is computed from the sum of the parts of the inputs.
std::string run_once(ShardedCall& sharded, const Layouts& layouts, uint32_t constant_inputs) {
  const Draw& draw = sharded.draw();
  try {
    const Inputs inputs = sharded.own_inputs(layouts, thread_state().context->rank());
    const Inputs logical = wholes(inputs);
    for (size_t i = 0; i < logical.size(); ++i) {
      if (!logical[i].defined()) continue;
      const std::string problem = difference(
          read_values(logical[i]), read_values(draw.call.inputs[i]), tolerance_of(draw.call));
      if (!problem.empty()) return str("input ", i, ", ", problem);
    }
    const auto actual = wholes(outputs_and_gradients(draw, inputs, constant_inputs));
    const auto expected = outputs_and_gradients(draw, logical, constant_inputs);
    // The local draws of other ranks differ from those of rank 0.
    if (draw.call.op->is_random && thread_state().context->rank() != 0) return {};
    for (size_t i = 0; i < expected.size(); ++i) {
      if (expected[i].defined() != actual[i].defined()) return str("result ", i, " is undefined");
      if (!expected[i].defined()) continue;
      const std::string problem =
          difference(read_values(actual[i]), read_values(expected[i]), tolerance_of(draw.call));
      if (!problem.empty()) return str("result ", i, ", ", problem);
    }
  } catch (const InvalidArgument& error) {
    return error.what();
  } catch (const Unsupported& error) {
    return error.what();
  }
  return {};
}

// One line for each choice of layouts at which some rank finds a difference.
std::string report_of_ranks(const Draw& draw, const Placement& placement,
                            const std::vector<Layouts>& layouts,
                            const std::function<std::string(ShardedCall&, const Layouts&)>& check) {
  std::string report;
  std::mutex mutex;
  try {
    run_ranks(placement.num_ranks(), [&] {
      ShardedCall sharded(draw, placement);
      for (const auto& choice : layouts) {
        const std::string problem = check(sharded, choice);
        if (problem.empty()) continue;
        const std::lock_guard lock(mutex);
        report +=
            str("  ", list(choice), ", rank ", thread_state().context->rank(), ": ", problem, '\n');
      }
    });
  } catch (const Error& error) {
    report += str("  ", error.what(), '\n');
  }
  return report;
}

}  // namespace

bool has_layouts(const OpSample& sample, const Draw& draw) {
  return sample.has_values && !draw.call.inputs.empty() && !decides_layout(draw.call);
}

std::vector<Layouts> choose_layouts(const Draw& draw, int64_t num_axes, size_t count,
                                    uint32_t constant_inputs) {
  std::mt19937_64 random(draw.seed);
  std::vector<Layouts> choices(count);
  for (Layouts& choice : choices) {
    std::optional<NdSbp> of_written;
    for (size_t i = 0; i < draw.call.inputs.size(); ++i) {
      const std::vector<Sbp> layouts =
          possible_layouts(draw, i, !is_differentiable(draw, i, constant_inputs));
      choice.emplace_back();
      for (int64_t axis = 0; axis < num_axes; ++axis)
        choice.back().push_back(layouts[random() % layouts.size()]);
      if (!draw.is_mutated(i)) continue;
      if (!of_written) of_written = choice.back();
      choice.back() = *of_written;
    }
  }
  return choices;
}

std::string run_on_ranks(const Draw& draw, const Placement& placement,
                         const std::vector<Layouts>& layouts, uint32_t constant_inputs) {
  return report_of_ranks(draw, placement, layouts,
                         [=](ShardedCall& sharded, const Layouts& choice) {
                           return run_once(sharded, choice, constant_inputs);
                         });
}

std::string trace_on_ranks(const Draw& draw, const Placement& placement,
                           const std::vector<Layouts>& layouts) {
  return report_of_ranks(draw, placement, layouts, trace_once);
}

}  // namespace flow::contract
