#include "tests/support/sbp_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <span>

#include "boxing/sbp_select.h"
#include "core/context.h"
#include "eager/runtime.h"
#include "tests/support/sharded_call.h"
#include "tests/support/simulated_ranks.h"

namespace flow::contract {

namespace {

constexpr size_t kNumDraws = SearchExtent().num_draws;
// The draws of a true signature that run with every kernel; all other draws use the chosen kernel.
constexpr size_t kNumDrawsForAllKernels = 3;
// Above this many combinations, parts that the shape rule refuses are not tried.
constexpr size_t kMaxOddRuns = 20000;
constexpr std::array<int64_t, 2> kNumsOfRanks = {2, 3};

// Random values for one sample, drawn when they are first needed.
class Draws {
 public:
  Draws(const OpSample& sample, DType dtype) : sample_(sample), dtype_(dtype) {}

  const Draw& at(size_t i) {
    while (draws_.size() <= i)
      draws_.push_back(std::make_unique<Draw>(
          make_draw(sample_, dtype_, static_cast<uint64_t>(draws_.size()) + 1)));
    return *draws_[i];
  }

 private:
  const OpSample& sample_;
  DType dtype_;
  std::vector<std::unique_ptr<Draw>> draws_;
};

// The draws on a number of ranks.
class ShardedDraws {
 public:
  ShardedDraws(Draws& draws, int64_t num_ranks) : draws_(draws), num_ranks_(num_ranks) {}

  ShardedCall& at(size_t i) {
    while (calls_.size() <= i)
      calls_.push_back(std::make_unique<ShardedCall>(draws_.at(calls_.size()), num_ranks_));
    return *calls_[i];
  }

  int64_t num_ranks() const { return num_ranks_; }

 private:
  Draws& draws_;
  int64_t num_ranks_;
  std::vector<std::unique_ptr<ShardedCall>> calls_;
};

// The coarsest unit roundoff of the floating inputs and of a result.
double coarsest_roundoff(const RawCall& call, const Tensor& result) {
  double coarsest = is_floating(result.dtype()) ? unit_roundoff(result.dtype()) : 0;
  for (const Tensor& input : call.inputs) {
    if (input.defined() && is_floating(input.dtype()))
      coarsest = std::max(coarsest, unit_roundoff(input.dtype()));
  }
  return coarsest;
}

// The addends of a sum are rounded on each rank, and so is their sum: four times along each axis by
// at most the unit roundoff of the largest one. The sum is much smaller where addends cancel.
double rounding_of_addends(const RawCall& call, const std::vector<Tensor>& parts,
                           const NdSbp& nd_sbp, const Tensor& expected) {
  const auto axes = std::count_if(nd_sbp.begin(), nd_sbp.end(), [](const Sbp& sbp) {
    return sbp.kind() == Sbp::Kind::kPartialSum;
  });
  if (axes == 0 || !is_floating(expected.dtype())) return 0;
  double largest = 0;
  for (const Tensor& part : parts) {
    for (const double value : read_values(part)) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
  }
  return 4 * static_cast<double>(axes) * coarsest_roundoff(call, expected) * largest;
}

Tolerance tolerance_of(const ShardedCall& call, const std::vector<Tensor>& parts,
                       const NdSbp& nd_sbp, const Tensor& expected) {
  const RawCall& raw = call.draw().call;
  Tolerance tolerance = tolerance_of(raw);
  tolerance.absolute += rounding_of_addends(raw, parts, nd_sbp, expected);
  return tolerance;
}

std::string compare(const ShardedCall& call, const std::vector<Tensor>& parts, Sbp sbp,
                    const Tensor& expected) {
  return compare_parts(parts, sbp, expected, tolerance_of(call, parts, sbp, expected));
}

std::string compare(const ShardedCall& call, const std::vector<Tensor>& parts, const NdSbp& nd_sbp,
                    const Tensor& expected) {
  return compare_parts(parts, nd_sbp, call.placement(), expected,
                       tolerance_of(call, parts, nd_sbp, expected));
}

// Prints "S(0), B -> P".
template <class Signature>
std::string text_of(const Signature& signature) {
  std::string text;
  const auto append = [&text](const auto& list) {
    for (size_t i = 0; i < list.size(); ++i)
      text += str(i == 0 ? "" : ", ", list[i]);
  };
  append(signature.inputs);
  text += " -> ";
  append(signature.outputs);
  return text;
}

// Empty if the signature holds.
template <class Signature>
std::string check_signature(ShardedCall& call, const Signature& signature, const KernelRun& run) {
  const Draw& draw = call.draw();
  try {
    const auto results = call.run(signature, run);
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string problem = compare(call, results[i], signature.outputs[i], draw.expected[i]);
      if (!problem.empty()) return str("output ", i, ", ", problem);
    }
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

bool chooses_own_layout(const RawCall& call) {
  const auto outputs = infer_outputs(call, metas_of(call.inputs));
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const OutputSpec& spec) { return spec.has_layout; });
}

// A creation op makes its part of any requested layout.
std::vector<SbpSignature> creation_signatures(const Draw& draw) {
  std::vector<SbpSignature> signatures;
  for (int64_t dim = 0; dim < draw.expected[0].dim(); ++dim)
    signatures.push_back({{}, std::vector(draw.expected.size(), sbp::split(dim))});
  return signatures;
}

// A dim of size 1 is left out: splitting it leaves everything on the first rank.
std::vector<Sbp> splits_of(const Tensor& tensor) {
  std::vector<Sbp> layouts = {sbp::broadcast};
  if (!tensor.defined()) return layouts;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.shape()[dim] != 1) layouts.push_back(sbp::split(dim));
  }
  return layouts;
}

// True if the search omits a signature: it splits a dim of size 1, or has a partial layout of a
// tensor that is written.
bool is_left_out(const Draw& draw, const SbpSignature& signature) {
  const auto is_one = [](const Tensor& tensor, Sbp sbp) {
    return tensor.defined() && sbp.is_split() && tensor.shape()[sbp.dim()] == 1;
  };
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    if (is_one(draw.call.inputs[i], signature.inputs[i])) return true;
    if (draw.is_mutated(i) && signature.inputs[i].is_partial()) return true;
  }
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    if (is_one(draw.expected[i], signature.outputs[i])) return true;
  }
  return false;
}

constexpr std::array kUnsplit = {sbp::broadcast, sbp::partial_sum, sbp::partial_max,
                                 sbp::partial_min};

// The layouts of an input in which every rank has the whole shape.
std::vector<Sbp> unsplit_layouts(const Draw& draw, size_t input) {
  const Tensor& tensor = draw.call.inputs[input];
  if (!tensor.defined() || draw.is_mutated(input)) return {sbp::broadcast};
  std::vector<Sbp> layouts(kUnsplit.begin(), kUnsplit.end());
  if (tensor.dtype() == DType::kBool) std::erase(layouts, sbp::partial_sum);
  return layouts;
}

// Calls fn for every choice of one element per list.
template <class Fn>
void for_each_choice(const std::vector<std::vector<Sbp>>& lists, Fn&& fn) {
  std::vector<size_t> at(lists.size(), 0);
  std::vector<Sbp> choice;
  for (const auto& list : lists) {
    if (list.empty()) return;
    choice.push_back(list.front());
  }
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

// P(sum) of bools means "any", and so does P(max).
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

// B is a special case of P(max) and P(min): an input of `stronger` that is B may replace them, and
// an output that is B satisfies them.
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

// For each output, the layouts whose parts equal those that the shape rule computes from parts of
// the inputs; empty if the rule refuses these.
std::vector<std::vector<Sbp>> outputs_that_fit(ShardedCall& call, const std::vector<Sbp>& inputs) {
  const Draw& draw = call.draw();
  std::vector<std::vector<Sbp>> layouts;
  for (const Tensor& output : draw.expected)
    layouts.push_back(splits_of(output));
  for (int64_t r = 0; r < call.num_ranks(); ++r) {
    std::vector<MetaPtr> parts;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const MetaPtr meta = call.input_meta(i, inputs[i], r);
      parts.push_back(meta == nullptr ? nullptr : local_part(meta));
    }
    try {
      const auto specs = infer_outputs(draw.call, parts);
      for (size_t i = 0; i < layouts.size(); ++i) {
        std::erase_if(layouts[i], [&](Sbp sbp) {
          return !(call.output_meta(i, sbp, r)->local_shape == specs[i].shape);
        });
      }
    } catch (const Error&) {
      for (auto& list : layouts)
        list.clear();
    }
  }
  return layouts;
}

Sbp unsplit(Sbp sbp) {
  return sbp.is_split() ? sbp : sbp::broadcast;
}

std::vector<Sbp> unsplit(std::vector<Sbp> layouts) {
  std::transform(layouts.begin(), layouts.end(), layouts.begin(), [](Sbp s) { return unsplit(s); });
  return layouts;
}

// True if a signature has parts that the shape rule does not compute: the op's kernels then know
// the offsets of their parts in the logical tensors.
bool is_odd(ShardedCall& call, const SbpSignature& signature) {
  const auto layouts = outputs_that_fit(call, unsplit(signature.inputs));
  for (size_t i = 0; i < layouts.size(); ++i) {
    const Sbp output = unsplit(signature.outputs[i]);
    const Shape& shape = call.draw().expected[i].shape();
    if (output.is_split() && shape[output.dim()] == 1) continue;
    if (std::find(layouts[i].begin(), layouts[i].end(), output) == layouts[i].end()) return true;
  }
  return false;
}

// A search for the signatures of one call that hold on every draw.
class Search {
 public:
  // `known` holds canonical signatures that need no proof.
  Search(ShardedDraws& draws, const std::vector<SbpSignature>& known)
      : draws_(draws), known_(known) {}

  // With `tries_odd_parts`, parts that the shape rule refuses are also tried.
  std::vector<SbpSignature> run(bool tries_odd_parts) {
    ShardedCall& call = draws_.at(0);
    const Draw& draw = call.draw();
    std::vector<std::vector<Sbp>> splits;
    std::vector<std::vector<Sbp>> all_outputs;
    size_t num_choices = 1;
    for (size_t i = 0; i < draw.call.inputs.size(); ++i) {
      splits.push_back(splits_of(draw.call.inputs[i]));
      num_choices *= splits.back().size() - 1 + unsplit_layouts(draw, i).size();
    }
    for (const Tensor& output : draw.expected) {
      all_outputs.push_back(splits_of(output));
      num_choices *= all_outputs.back().size();
    }
    tries_odd_parts &= num_choices <= kMaxOddRuns;
    for_each_choice(splits, [&](const std::vector<Sbp>& inputs) {
      for_each_choice(tries_odd_parts ? all_outputs : outputs_that_fit(call, inputs),
                      [&](const std::vector<Sbp>& outputs) {
                        try_partial_inputs({inputs, outputs});
                      });
    });
    return std::move(found_);
  }

 private:
  // True if a tensor that is written keeps its layout.
  bool keeps_written(const SbpSignature& signature) const {
    const Draw& draw = draws_.at(0).draw();
    size_t next = 0;
    for (size_t i = 0; i < signature.inputs.size(); ++i) {
      if (draw.is_mutated(i) && !(signature.outputs[next++] == signature.inputs[i])) return false;
    }
    return true;
  }

  void try_partial_inputs(const SbpSignature& parts) {
    if (!keeps_written(parts)) return;
    const Draw& draw = draws_.at(0).draw();
    std::vector<std::vector<Sbp>> layouts;
    for (size_t i = 0; i < parts.inputs.size(); ++i) {
      layouts.push_back(parts.inputs[i].is_split() ? std::vector{parts.inputs[i]}
                                                   : unsplit_layouts(draw, i));
    }
    for_each_choice(layouts, [&](const std::vector<Sbp>& inputs) {
      collect_true({inputs, parts.outputs});
    });
  }

  // Tests one choice of input layouts and of output parts, where B represents all unsplit parts.
  void collect_true(const SbpSignature& parts) {
    const KernelRun run{.kernel = &reference_kernel(*draws_.at(0).draw().call.op),
                        .checks_guards = false};
    std::vector<std::vector<Sbp>> kinds;
    for (const Sbp& output : parts.outputs) {
      kinds.push_back(output.is_split() ? std::vector{output}
                                        : std::vector<Sbp>(kUnsplit.begin(), kUnsplit.end()));
    }
    for (size_t d = 0; d < kNumDraws; ++d) {
      ShardedCall& call = draws_.at(d);
      const Draw& draw = call.draw();
      std::vector<std::vector<Tensor>> results;
      try {
        results = call.run(parts, run);
      } catch (const Error&) {
        return;
      }
      for (size_t i = 0; i < kinds.size(); ++i) {
        std::erase_if(kinds[i], [&](Sbp kind) {
          return !compare_parts(results[i], kind, draw.expected[i], tolerance_of(draw.call))
                      .empty();
        });
        if (kinds[i].empty()) return;
      }
      if (all_known(parts.inputs, kinds)) break;
    }
    for_each_choice(kinds, [&](const std::vector<Sbp>& outputs) {
      if (keeps_written({parts.inputs, outputs})) found_.push_back({parts.inputs, outputs});
    });
  }

  bool all_known(const std::vector<Sbp>& inputs, const std::vector<std::vector<Sbp>>& kinds) const {
    const Draw& draw = draws_.at(0).draw();
    bool result = true;
    for_each_choice(kinds, [&](const std::vector<Sbp>& outputs) {
      result = result && contains(known_, canonical({inputs, outputs}, draw));
    });
    return result;
  }

  ShardedDraws& draws_;
  const std::vector<SbpSignature>& known_;
  std::vector<SbpSignature> found_;
};

}  // namespace

std::string to_string(const SbpSignature& signature) {
  return text_of(signature);
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

std::string find_false_signatures(const OpSample& sample, DType dtype, const SearchExtent& extent) {
  if (!sample.has_values) return {};
  Draws draws(sample, dtype);
  const Draw& first = draws.at(0);
  const bool is_creation = first.call.inputs.empty();
  if (!is_creation && chooses_own_layout(first.call)) return {};
  std::string report;
  for (const int64_t num_ranks : kNumsOfRanks) {
    const auto signatures =
        is_creation ? creation_signatures(first) : signatures_of(first.call, num_ranks);
    for (const SbpSignature& signature : signatures) {
      if (signature.inputs.size() != first.call.inputs.size() ||
          signature.outputs.size() != first.expected.size()) {
        return to_string(signature) + " has another number of tensors than the call";
      }
    }
    if (num_ranks > extent.most_ranks) break;
    const std::string before = report;
    for (size_t d = 0; d < extent.num_draws && report == before; ++d) {
      ShardedCall call(draws.at(d), num_ranks);
      for (const SbpSignature& signature : signatures) {
        for (const KernelDef* kernel : kernels_to_try(first.call)) {
          if (kernel != nullptr && d >= kNumDrawsForAllKernels) break;
          const std::string problem =
              check_signature(call, signature, {.kernel = kernel, .uses_views = kernel == nullptr});
          if (problem == "the kernel does not apply") continue;
          if (kernel != nullptr && extent.reached != nullptr) extent.reached->insert(kernel);
          if (problem.empty()) continue;
          report +=
              str("  ", to_string(signature), " on ", num_ranks, " ranks, kernel ",
                  kernel == nullptr ? "chosen" : kernel->name, ", draw ", d, ": ", problem, '\n');
        }
      }
    }
  }
  return report;
}

std::string find_false_nd_signatures(const OpSample& sample, DType dtype, const Placement& grid,
                                     uint64_t seed, size_t count) {
  const Draw draw = make_draw(sample, dtype, seed);
  const RawCall& raw = draw.call;
  if (raw.inputs.empty() || raw.op->has_data_dependent_shape || chooses_own_layout(raw)) return {};
  std::mt19937_64 random(seed);
  std::vector<MetaPtr> inputs = metas_of(raw.inputs);
  auto signatures =
      boxing::nd_signatures(*raw.op, inputs, raw.attrs_data(), infer_outputs(raw, inputs), grid);
  std::shuffle(signatures.begin(), signatures.end(), random);
  signatures.resize(std::min(signatures.size(), count));
  const std::vector<const KernelDef*> kernels = kernels_to_try(raw);
  ShardedCall call(draw, grid);
  std::string report;
  for (const boxing::NdSignature& signature : signatures) {
    const KernelDef* kernel = kernels[random() % kernels.size()];
    std::string problem =
        check_signature(call, signature, {.kernel = kernel, .uses_views = kernel == nullptr});
    if (problem == "the kernel does not apply") problem = check_signature(call, signature, {});
    if (problem.empty()) continue;
    report += str("  ", text_of(signature), ", kernel ",
                  kernel == nullptr ? "chosen" : kernel->name, ": ", problem, '\n');
  }
  return report;
}

bool has_odd_signature(const OpSample& sample, DType dtype) {
  const Draw draw = make_draw(sample, dtype, 1);
  if (draw.call.inputs.empty() || chooses_own_layout(draw.call)) return false;
  return std::any_of(kNumsOfRanks.begin(), kNumsOfRanks.end(), [&](int64_t num_ranks) {
    ShardedCall call(draw, num_ranks);
    const auto signatures = signatures_of(draw.call, num_ranks);
    return std::any_of(signatures.begin(), signatures.end(),
                       [&](const SbpSignature& signature) { return is_odd(call, signature); });
  });
}

SearchResult search_signatures(const OpSample& sample, DType dtype, bool tries_odd_parts) {
  Draws draws(sample, dtype);
  const Draw& first = draws.at(0);
  if (first.call.inputs.empty() || chooses_own_layout(first.call)) return {};
  SearchResult result;
  for (const int64_t num_ranks : kNumsOfRanks) {
    std::vector<SbpSignature> known;
    for (const SbpSignature& signature : signatures_of(first.call, num_ranks))
      known.push_back(canonical(signature, first));
    ShardedDraws sharded(draws, num_ranks);
    std::vector<SbpSignature> found;
    for (const SbpSignature& signature : Search(sharded, known).run(tries_odd_parts)) {
      const SbpSignature name = canonical(signature, first);
      if (!contains(found, name)) found.push_back(name);
    }
    for (const SbpSignature& signature : found) {
      const bool is_implied =
          std::any_of(found.begin(), found.end(),
                      [&](const SbpSignature& other) { return implies(other, signature); });
      if (!is_implied && !contains(known, signature)) {
        result.missing.push_back({to_string(signature), num_ranks});
      }
    }
    for (const SbpSignature& signature : known) {
      if (!contains(found, signature) && !is_left_out(first, signature)) {
        result.overlooked.push_back({to_string(signature), num_ranks});
      }
    }
  }
  return result;
}

}  // namespace flow::contract
