#include "tests/support/sbp_search.h"

#include <algorithm>
#include <memory>
#include <random>
#include <span>

#include "core/context.h"
#include "eager/runtime.h"
#include "tests/support/simulated_ranks.h"

namespace flow::contract {

namespace {

constexpr uint64_t kNumDraws = 40;
// Those of a true signature that every kernel computes; the others are left to the one chosen.
constexpr uint64_t kNumDrawsForAllKernels = 3;
// Combinations whose parts the shape rule refuses (ops with logical sizes in their attrs may take
// them) are not tried beyond this many runs of a kernel.
constexpr int64_t kMaxRuns = 20000;

// A call with its result on one rank.
struct Draw {
  RawCall call;
  std::vector<Tensor> expected;
  uint64_t seed;
};

Inputs copies_of(const Inputs& inputs) {
  Inputs copies;
  for (const Tensor& input : inputs) {
    copies.push_back(input.defined() ? make_guarded(input.meta_ptr(), read_values(input))
                                     : Tensor());
  }
  return copies;
}

std::vector<Draw> make_draws(const OpSample& sample, DType dtype) {
  std::vector<Draw> draws;
  for (uint64_t seed = 1; seed <= kNumDraws; ++seed) {
    Draw draw{capture_first(sample, dtype, seed), {}, seed};
    draw.call.random = {.seed = 1, .stream = seed};
    draw.expected = *run_kernel(draw.call, copies_of(draw.call.inputs), local_outputs(draw.call));
    draws.push_back(std::move(draw));
  }
  return draws;
}

// That of the coarsest input.
Tolerance tolerance_of(const RawCall& call) {
  Tolerance tolerance = sharding_tolerance(DType::kFloat64);
  for (const Tensor& input : call.inputs) {
    if (!input.defined()) continue;
    const Tolerance own = sharding_tolerance(input.dtype());
    if (own.absolute > tolerance.absolute) tolerance = own;
  }
  return tolerance;
}

// What the ranks compute: [output][rank].
using Results = std::vector<std::vector<Tensor>>;

Results run_ranks(const Draw& draw, const SbpSignature& signature, int64_t num_ranks,
                  const KernelRun& run) {
  const Placement placement = ranks(num_ranks);
  std::mt19937_64 random(draw.seed * 1000 + static_cast<uint64_t>(num_ranks));
  std::vector<std::vector<Tensor>> inputs;
  for (size_t i = 0; i < draw.call.inputs.size(); ++i) {
    const Tensor& input = draw.call.inputs[i];
    inputs.push_back(input.defined() ? cut(input, signature.inputs[i], placement, random)
                                     : std::vector<Tensor>(static_cast<size_t>(num_ranks)));
  }
  Results results(draw.expected.size());
  for (int64_t r = 0; r < num_ranks; ++r) {
    Inputs own;
    for (const auto& parts : inputs)
      own.push_back(parts[static_cast<size_t>(r)]);
    std::vector<MetaPtr> metas;
    for (size_t i = 0; i < draw.expected.size(); ++i) {
      const Tensor& whole = draw.expected[i];
      metas.push_back(
          global_meta(whole.shape(), whole.dtype(), placement, signature.outputs[i], r));
    }
    const auto outputs = run_kernel(draw.call, own, metas, run);
    if (!outputs) throw Unsupported("the kernel does not apply");
    for (size_t i = 0; i < outputs->size(); ++i)
      results[i].push_back((*outputs)[i]);
  }
  return results;
}

// Empty when the signature holds.
std::string check_signature(const Draw& draw, const SbpSignature& signature, int64_t num_ranks,
                            const KernelRun& run) {
  try {
    const Results results = run_ranks(draw, signature, num_ranks, run);
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string problem = compare_parts(results[i], signature.outputs[i], draw.expected[i],
                                                tolerance_of(draw.call));
      if (!problem.empty()) return str("output ", i, ", ", problem);
    }
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// The kernels a declared signature is run with: each that applies to the whole call.
std::vector<const KernelDef*> kernels_of(const RawCall& call) {
  std::vector<const KernelDef*> kernels = {nullptr};
  for (const KernelDef& kernel : kernel_table().kernels(*call.op, DeviceType::kCpu))
    kernels.push_back(&kernel);
  return kernels;
}

bool chooses_own_layout(const RawCall& call) {
  const auto outputs = infer_outputs(call, metas_of(call.inputs));
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const OutputSpec& spec) { return spec.has_layout; });
}

// A creation op makes its part of whatever layout is asked for.
std::vector<SbpSignature> creation_signatures(const Draw& draw) {
  std::vector<SbpSignature> signatures;
  for (int64_t dim = 0; dim < draw.expected[0].dim(); ++dim)
    signatures.push_back({{}, std::vector(draw.expected.size(), sbp::split(dim))});
  return signatures;
}

bool is_mutated(const RawCall& call, size_t input) {
  return (call.mutates >> input & 1U) != 0;
}

// A dim of size 1 is left out: nothing of it is split, the first rank holds everything.
void add_splits(const Tensor& tensor, std::vector<Sbp>& layouts) {
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.shape()[dim] != 1) layouts.push_back(sbp::split(dim));
  }
}

std::vector<Sbp> layouts_of(const RawCall& call, size_t input) {
  const Tensor& tensor = call.inputs[input];
  std::vector<Sbp> layouts = {sbp::broadcast};
  if (!tensor.defined()) return layouts;
  add_splits(tensor, layouts);
  if (is_mutated(call, input)) return layouts;
  if (tensor.dtype() != DType::kBool) layouts.push_back(sbp::partial_sum);
  layouts.push_back(sbp::partial_max);
  layouts.push_back(sbp::partial_min);
  return layouts;
}

// Calls fn with every choice of one element per list.
template <class Fn>
void for_each_choice(const std::vector<std::vector<Sbp>>& lists, Fn&& fn) {
  std::vector<size_t> at(lists.size(), 0);
  std::vector<Sbp> choice;
  for (const auto& list : lists)
    choice.push_back(list.front());
  for (;;) {
    fn(choice);
    size_t i = lists.size();
    while (i > 0 && at[i - 1] + 1 == lists[i - 1].size()) {
      --i;
      at[i] = 0;
      choice[i] = lists[i].front();
    }
    if (i == 0) return;
    choice[i - 1] = lists[i - 1][++at[i - 1]];
  }
}

// Whether the shape rule, given the parts, answers the parts of the outputs.
bool fits_shape_rule(const RawCall& call, const SbpSignature& signature, int64_t num_ranks,
                     std::span<const Tensor> expected) {
  const Placement placement = ranks(num_ranks);
  for (int64_t r = 0; r < num_ranks; ++r) {
    std::vector<MetaPtr> parts;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const Tensor& input = call.inputs[i];
      parts.push_back(input.defined() ? local_part(global_meta(input.shape(), input.dtype(),
                                                               placement, signature.inputs[i], r))
                                      : nullptr);
    }
    try {
      const auto specs = infer_outputs(call, parts);
      for (size_t i = 0; i < expected.size(); ++i) {
        const Box box = box_of(expected[i].shape(), placement, signature.outputs[i], r);
        if (!(specs[i].shape == box.size)) return false;
      }
    } catch (const Error&) {
      return false;
    }
  }
  return true;
}

// Kernels divide by the sizes of parts that do not belong together.
bool has_empty_part(const Draw& draw, const SbpSignature& signature, int64_t num_ranks) {
  const auto is_cut_up = [num_ranks](const Tensor& tensor, Sbp sbp) {
    return tensor.defined() && sbp.is_split() && tensor.shape()[sbp.dim()] < num_ranks;
  };
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    if (is_cut_up(draw.call.inputs[i], signature.inputs[i])) return true;
  }
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    if (is_cut_up(draw.expected[i], signature.outputs[i])) return true;
  }
  return false;
}

constexpr Sbp kUnsplit[] = {sbp::broadcast, sbp::partial_sum, sbp::partial_max, sbp::partial_min};

// For one choice of input layouts and of output parts (B standing for all unsplit ones), the
// signatures that hold on every draw.
void collect_true(const std::vector<Draw>& draws, const SbpSignature& parts, int64_t num_ranks,
                  std::vector<SbpSignature>& found) {
  const KernelRun run{.kernel = &reference_kernel(*draws[0].call.op), .checks_guards = false};
  std::vector<std::vector<Sbp>> kinds;
  for (const Sbp& output : parts.outputs) {
    if (output.is_split()) {
      kinds.push_back({output});
    } else {
      kinds.emplace_back(std::begin(kUnsplit), std::end(kUnsplit));
    }
  }
  for (const Draw& draw : draws) {
    Results results;
    try {
      results = run_ranks(draw, parts, num_ranks, run);
    } catch (const Error&) {
      return;
    }
    for (size_t i = 0; i < kinds.size(); ++i) {
      std::erase_if(kinds[i], [&](Sbp kind) {
        return !compare_parts(results[i], kind, draw.expected[i], tolerance_of(draw.call)).empty();
      });
      if (kinds[i].empty()) return;
    }
  }
  for_each_choice(kinds, [&](const std::vector<Sbp>& outputs) {
    found.push_back({parts.inputs, outputs});
  });
}

// P(sum) of bools is "any", as their P(max) is.
SbpSignature canonical(SbpSignature signature, const Draw& draw) {
  const auto rename = [](Sbp& sbp, const Tensor& tensor) {
    if (tensor.defined() && tensor.dtype() == DType::kBool && sbp == sbp::partial_sum) {
      sbp = sbp::partial_max;
    }
  };
  for (size_t i = 0; i < signature.inputs.size(); ++i)
    rename(signature.inputs[i], draw.call.inputs[i]);
  for (size_t i = 0; i < signature.outputs.size(); ++i)
    rename(signature.outputs[i], draw.expected[i]);
  return signature;
}

bool is_extremum(Sbp sbp) {
  return sbp == sbp::partial_max || sbp == sbp::partial_min;
}

// B is a special case of P(max) and P(min): as input of `stronger` it may stand for those, as its
// output it serves for those.
bool implies(const SbpSignature& stronger, const SbpSignature& weaker) {
  for (size_t i = 0; i < weaker.inputs.size(); ++i) {
    if (stronger.inputs[i] == weaker.inputs[i]) continue;
    if (!(weaker.inputs[i].is_broadcast() && is_extremum(stronger.inputs[i]))) return false;
  }
  for (size_t i = 0; i < weaker.outputs.size(); ++i) {
    if (stronger.outputs[i] == weaker.outputs[i]) continue;
    if (!(stronger.outputs[i].is_broadcast() && is_extremum(weaker.outputs[i]))) return false;
  }
  return !(stronger == weaker);
}

bool contains(const std::vector<SbpSignature>& list, const SbpSignature& signature) {
  return std::find(list.begin(), list.end(), signature) != list.end();
}

std::vector<SbpSignature> search(const std::vector<Draw>& draws, int64_t num_ranks) {
  const RawCall& call = draws[0].call;
  std::vector<std::vector<Sbp>> input_layouts;
  std::vector<std::vector<Sbp>> output_parts;
  int64_t num_runs = num_ranks;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    input_layouts.push_back(layouts_of(call, i));
    num_runs *= static_cast<int64_t>(input_layouts.back().size());
  }
  for (const Tensor& output : draws[0].expected) {
    output_parts.push_back({sbp::broadcast});
    add_splits(output, output_parts.back());
    num_runs *= static_cast<int64_t>(output_parts.back().size());
  }
  std::vector<SbpSignature> found;
  for_each_choice(input_layouts, [&](const std::vector<Sbp>& inputs) {
    for_each_choice(output_parts, [&](const std::vector<Sbp>& outputs) {
      const SbpSignature parts{inputs, outputs};
      size_t next = 0;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (is_mutated(call, i) && !(outputs[next++] == inputs[i])) return;
      }
      const bool fits = fits_shape_rule(call, parts, num_ranks, draws[0].expected);
      if (!fits && (num_runs > kMaxRuns || has_empty_part(draws[0], parts, num_ranks))) return;
      collect_true(draws, parts, num_ranks, found);
    });
  });
  if (call.mutates != 0) {  // the layout of a written tensor stays
    std::erase_if(found, [&](const SbpSignature& signature) {
      size_t next = 0;
      for (size_t i = 0; i < signature.inputs.size(); ++i) {
        if (is_mutated(call, i) && !(signature.outputs[next++] == signature.inputs[i])) return true;
      }
      return false;
    });
  }
  return found;
}

}  // namespace

std::string to_string(const SbpSignature& signature) {
  std::string text;
  const auto append = [&text](const std::vector<Sbp>& list) {
    for (size_t i = 0; i < list.size(); ++i)
      text += str(i == 0 ? "" : ", ", list[i]);
  };
  append(signature.inputs);
  text += " -> ";
  append(signature.outputs);
  return text;
}

std::vector<SbpSignature> signatures_of(const RawCall& call, int64_t num_ranks) {
  const std::vector<MetaPtr> inputs = metas_of(call.inputs);
  const std::vector<OutputSpec> outputs = infer_outputs(call, inputs);
  SbpContext ctx(*call.op, inputs, call.attrs_data(), outputs, num_ranks);
  call.op->sbp(ctx);
  std::vector<SbpSignature> signatures = ctx.signatures();
  signatures.push_back(
      {std::vector(inputs.size(), sbp::broadcast), std::vector(outputs.size(), sbp::broadcast)});
  return signatures;
}

std::string find_false_signatures(const OpSample& sample, DType dtype, int64_t num_ranks) {
  if (!sample.has_values) return {};
  const std::vector<Draw> draws = make_draws(sample, dtype);
  const bool is_creation = draws[0].call.inputs.empty();
  if (!is_creation && chooses_own_layout(draws[0].call)) return {};
  std::string report;
  for (const Draw& draw : draws) {
    const auto signatures =
        is_creation ? creation_signatures(draw) : signatures_of(draw.call, num_ranks);
    for (const SbpSignature& signature : signatures) {
      if (signature.inputs.size() != draw.call.inputs.size() ||
          signature.outputs.size() != draw.expected.size()) {
        return to_string(signature) + " has another number of tensors than the call";
      }
      for (const KernelDef* kernel : kernels_of(draw.call)) {
        if (kernel != nullptr && draw.seed > kNumDrawsForAllKernels) break;
        const std::string problem = check_signature(
            draw, signature, num_ranks, {.kernel = kernel, .uses_views = kernel == nullptr});
        if (problem.empty() || problem == "the kernel does not apply") continue;
        report += str("  ", to_string(signature), " on ", num_ranks, " ranks, kernel ",
                      kernel == nullptr ? "chosen" : kernel->name, ", draw ", draw.seed, ": ",
                      problem, '\n');
      }
    }
    if (!report.empty()) break;
  }
  return report;
}

std::vector<std::string> find_missing_signatures(const OpSample& sample, DType dtype,
                                                 int64_t num_ranks) {
  const std::vector<Draw> draws = make_draws(sample, dtype);
  if (draws[0].call.inputs.empty() || chooses_own_layout(draws[0].call)) return {};
  std::vector<SbpSignature> known;
  for (const SbpSignature& signature : signatures_of(draws[0].call, num_ranks))
    known.push_back(canonical(signature, draws[0]));
  std::vector<SbpSignature> found;
  for (const SbpSignature& signature : search(draws, num_ranks)) {
    const SbpSignature name = canonical(signature, draws[0]);
    if (!contains(found, name)) found.push_back(name);
  }
  std::vector<std::string> missing;
  for (const SbpSignature& signature : found) {
    const bool is_implied = std::any_of(found.begin(), found.end(), [&](const SbpSignature& other) {
      return implies(other, signature);
    });
    if (!is_implied && !contains(known, signature)) missing.push_back(to_string(signature));
  }
  return missing;
}

}  // namespace flow::contract
