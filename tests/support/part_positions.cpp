#include "tests/support/part_positions.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "core/error.h"
#include "tests/support/contract_fixture.h"
#include "tests/support/sbp_search.h"
#include "tests/support/sharded_call.h"
#include "tests/support/simulated_ranks.h"

namespace flow::contract {

namespace {

constexpr uint64_t kNumDraws = 5;
constexpr int64_t kMostSamples = 12;

bool is_split(Sbp sbp) {
  return sbp.is_split();
}

bool has_split(const SbpSignature& signature) {
  return std::any_of(signature.inputs.begin(), signature.inputs.end(), is_split) ||
         std::any_of(signature.outputs.begin(), signature.outputs.end(), is_split);
}

bool has_signatures(const OpSample& sample, const RawCall& call) {
  return sample.has_values && !call.inputs.empty() && !call.op->has_data_dependent_shape &&
         !decides_layout(call);
}

// ---------------------------------------------------------------- parts

using Samples = std::vector<int64_t>;  // the numbers of the samples that one part has

// Two parts follow each other; three parts take turns, like micro-batches of several ranks.
std::vector<Samples> parts_of(int64_t num_samples, int64_t num_parts) {
  std::vector<Samples> parts(static_cast<size_t>(num_parts));
  for (int64_t s = 0; s < num_samples; ++s) {
    const int64_t part = num_parts == 2 ? (3 * s >= num_samples ? 1 : 0) : s % num_parts;
    parts[static_cast<size_t>(part)].push_back(s);
  }
  return parts;
}

Shape shape_of_part(Shape shape, int64_t dim, int64_t num_samples, const Samples& samples) {
  shape[dim] = shape[dim] / num_samples * static_cast<int64_t>(samples.size());
  return shape;
}

// Calls fn(position in the whole, position in the part) for each element of the part, in row-major
// order of both.
template <class Fn>
void for_each_of_part(const Shape& whole, int64_t dim, int64_t num_samples, const Samples& samples,
                      const Fn& fn) {
  int64_t inner = 1;
  int64_t outer = 1;
  for (int64_t d = 0; d < whole.size(); ++d)
    (d < dim ? outer : inner) *= d == dim ? 1 : whole[d];
  const int64_t row = whole[dim] / num_samples * inner;  // elements of a sample
  size_t next = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t sample : samples) {
      for (int64_t i = 0; i < row; ++i)
        fn(static_cast<size_t>((o * num_samples + sample) * row + i), next++);
    }
  }
}

// A call whose samples are cut into parts for one signature.
class CutCall {
 public:
  CutCall(const Draw& draw, const SbpSignature& signature, int64_t num_samples, int64_t num_parts)
      : draw_(draw),
        signature_(signature),
        num_samples_(num_samples),
        parts_(parts_of(num_samples, num_parts)),
        random_(draw.seed) {}

  // Empty if the parts give the whole result, or the kernel does not apply.
  std::string check(const KernelRun& run) {
    std::vector<std::vector<Tensor>> results(draw_.expected.size());
    std::vector<Inputs> inputs = make_inputs_of_parts();
    for (size_t p = 0; p < parts_.size(); ++p) {
      std::vector<MetaPtr> metas;
      for (size_t i = 0; i < results.size(); ++i) {
        const Tensor& whole = draw_.expected[i];
        metas.push_back(
            local_meta(shape_in(whole, signature_.outputs[i], p), whole.dtype(), DeviceType::kCpu));
      }
      const auto outputs = run_kernel(draw_.call, inputs[p], metas, run);
      if (!outputs) return {};
      for (size_t i = 0; i < results.size(); ++i)
        results[i].push_back((*outputs)[i]);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string problem = compare(results[i], signature_.outputs[i], draw_.expected[i]);
      if (!problem.empty()) return str("output ", i, ", ", problem);
    }
    return {};
  }

 private:
  Shape shape_in(const Tensor& whole, Sbp sbp, size_t part) const {
    return sbp.is_split() ? shape_of_part(whole.shape(), sbp.dim(), num_samples_, parts_[part])
                          : whole.shape();
  }

  std::vector<Inputs> make_inputs_of_parts() {
    std::vector<Inputs> parts(parts_.size());
    for (size_t i = 0; i < draw_.call.inputs.size(); ++i) {
      const Tensor& whole = draw_.call.inputs[i];
      const Sbp sbp = signature_.inputs[i];
      std::vector<Tensor> addends;
      if (whole.defined() && sbp.is_partial()) {
        addends = cut(whole, sbp, ranks(static_cast<int64_t>(parts_.size())), random_);
      }
      for (size_t p = 0; p < parts_.size(); ++p) {
        if (!whole.defined()) {
          parts[p].emplace_back();
          continue;
        }
        Values values = read_values(addends.empty() ? whole : addends[p]);
        if (sbp.is_split()) values = rows_of(values, whole.shape(), sbp.dim(), parts_[p]);
        const MetaPtr meta = local_meta(shape_in(whole, sbp, p), whole.dtype(), DeviceType::kCpu);
        parts[p].push_back(make_guarded(meta, values));
      }
    }
    return parts;
  }

  Values rows_of(const Values& whole, const Shape& shape, int64_t dim, const Samples& samples) {
    Values rows;
    for_each_of_part(shape, dim, num_samples_, samples,
                     [&](size_t from, size_t /*to*/) { rows.push_back(whole[from]); });
    return rows;
  }

  std::string compare(const std::vector<Tensor>& results, Sbp sbp, const Tensor& expected) const {
    const Tolerance tolerance = tolerance_of(draw_.call);
    if (!sbp.is_split()) return compare_parts(results, sbp, expected, tolerance);
    Values joined = read_values(expected);
    const Values whole = joined;
    for (size_t p = 0; p < results.size(); ++p) {
      if (!lies_in_storage(results[p])) return "the result lies outside of its memory";
      const Values values = read_values(results[p]);
      for_each_of_part(expected.shape(), sbp.dim(), num_samples_, parts_[p],
                       [&](size_t to, size_t from) { joined[to] = values[from]; });
    }
    return difference(joined, whole, tolerance);
  }

  const Draw& draw_;
  const SbpSignature& signature_;
  int64_t num_samples_;
  std::vector<Samples> parts_;
  std::mt19937_64 random_;
};

// The numbers of samples by which some dim of the call can be divided.
std::set<int64_t> sample_counts(const Draw& draw) {
  std::set<int64_t> counts;
  const auto add = [&](const Tensor& tensor) {
    if (!tensor.defined()) return;
    for (const int64_t size : tensor.shape()) {
      for (int64_t count = 2; count <= std::min(size, kMostSamples); ++count) {
        if (size % count == 0) counts.insert(count);
      }
    }
  };
  for (const Tensor& input : draw.call.inputs)
    add(input);
  for (const Tensor& output : draw.expected)
    add(output);
  return counts;
}

bool holds_samples(const Draw& draw, const SbpSignature& signature, int64_t num_samples) {
  const auto holds = [&](const Tensor& tensor, Sbp sbp) {
    return !tensor.defined() || !sbp.is_split() || tensor.shape()[sbp.dim()] % num_samples == 0;
  };
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    if (!holds(draw.call.inputs[i], signature.inputs[i])) return false;
  }
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    if (!holds(draw.expected[i], signature.outputs[i])) return false;
  }
  return true;
}

std::string check_cut(CutCall call, const KernelRun& run) {
  try {
    return call.check(run);
  } catch (const Error& error) {
    return error.what();
  }
}

// ---------------------------------------------------------------- positions

// The next rank whose parts have the shapes of this rank's parts; none if no other rank has, or if
// this rank has no elements.
std::optional<int64_t> rank_alike(ShardedCall& call, const SbpSignature& signature, int64_t rank) {
  const auto is_alike = [&](int64_t other) {
    for (size_t i = 0; i < signature.inputs.size(); ++i) {
      const MetaPtr own = call.input_meta(i, signature.inputs[i], rank);
      if (own == nullptr) continue;
      const MetaPtr meta = call.input_meta(i, signature.inputs[i], other);
      if (own->local_numel == 0 || !(own->local_shape == meta->local_shape)) return false;
    }
    for (size_t i = 0; i < signature.outputs.size(); ++i) {
      const MetaPtr own = call.output_meta(i, signature.outputs[i], rank);
      const MetaPtr meta = call.output_meta(i, signature.outputs[i], other);
      if (own->local_numel == 0 || !(own->local_shape == meta->local_shape)) return false;
    }
    return true;
  };
  for (int64_t step = 1; step < call.num_ranks(); ++step) {
    const int64_t other = (rank + step) % call.num_ranks();
    if (is_alike(other)) return other;
  }
  return {};
}

// Runs the part of `rank`, which says that it is the part of `position`.
std::optional<std::vector<Values>> run_at(ShardedCall& call, const SbpSignature& signature,
                                          const KernelRun& run, int64_t rank, int64_t position) {
  Inputs inputs = call.own_inputs(signature.inputs, rank);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    inputs[i] = Tensor::make(call.input_meta(i, signature.inputs[i], position),
                             inputs[i].impl().storage, inputs[i].impl().offset);
  }
  std::vector<MetaPtr> metas;
  for (size_t i = 0; i < signature.outputs.size(); ++i)
    metas.push_back(call.output_meta(i, signature.outputs[i], position));
  try {
    const auto outputs = run_kernel(call.draw().call, inputs, metas, run);
    if (!outputs) return {};
    std::vector<Values> values;
    for (const Tensor& output : *outputs)
      values.push_back(read_values(output));
    return values;
  } catch (const Error&) {
    return {};
  }
}

// True if some rank's result depends on the position; none if no rank can be compared.
std::optional<bool> reads_position(ShardedCall& call, const SbpSignature& signature,
                                   const KernelRun& run) {
  std::optional<bool> result;
  for (int64_t r = 0; r < call.num_ranks(); ++r) {
    const auto other = rank_alike(call, signature, r);
    if (!other) continue;
    const auto at_home = run_at(call, signature, run, r, r);
    if (!at_home) continue;
    result = result.value_or(false);
    const auto moved = run_at(call, signature, run, r, *other);
    if (!moved) return true;
    for (size_t i = 0; i < at_home->size(); ++i) {
      if (!difference((*moved)[i], (*at_home)[i], kExact).empty()) return true;
    }
  }
  return result;
}

struct Found {
  bool is_compared = false;
  bool reads = false;
};

// By signature, and whether the table calls it positional.
void compare_positions(const Draw& draw, int64_t num_ranks,
                       std::map<std::pair<std::string, bool>, Found>& by_signature) {
  ShardedCall call(draw, num_ranks);
  for (const SbpSignature& signature : signatures_of(draw.call, num_ranks)) {
    if (!has_split(signature)) continue;
    Found& found = by_signature[{to_string(signature), signature.is_positional}];
    for (const KernelDef* kernel : kernels_to_try(draw.call)) {
      const auto reads =
          reads_position(call, signature, {.kernel = kernel, .uses_views = kernel == nullptr});
      found.is_compared |= reads.has_value();
      found.reads |= reads.value_or(false);
    }
  }
}

}  // namespace

std::string find_false_parts(const OpSample& sample, DType dtype, uint64_t num_draws) {
  std::string report;
  for (uint64_t d = 1; d <= num_draws && report.empty(); ++d) {
    const Draw draw = make_draw(sample, dtype, d);
    if (!has_signatures(sample, draw.call)) return {};
    for (const int64_t num_samples : sample_counts(draw)) {
      for (const SbpSignature& signature : signatures_of(draw.call, num_samples)) {
        if (signature.is_positional || !has_split(signature)) continue;
        if (!holds_samples(draw, signature, num_samples)) continue;
        for (const int64_t num_parts : {2, 3}) {
          if (num_parts > num_samples) continue;
          for (const KernelDef* kernel : kernels_to_try(draw.call)) {
            const std::string problem =
                check_cut(CutCall(draw, signature, num_samples, num_parts),
                          {.kernel = kernel, .uses_views = kernel == nullptr});
            if (problem.empty()) continue;
            report += str("  ", to_string(signature), ", ", num_samples, " samples in ", num_parts,
                          " parts, kernel ", kernel == nullptr ? "chosen" : kernel->name, ": ",
                          problem, '\n');
          }
        }
      }
    }
  }
  return report;
}

std::string find_false_positions(const std::vector<const OpSample*>& samples) {
  std::map<std::pair<std::string, bool>, Found> by_signature;
  for (const OpSample* sample : samples) {
    const std::vector<DType> dtypes = widest_and_float32(*sample);
    for (uint64_t d = 1; d <= kNumDraws; ++d) {
      const Draw draw = make_draw(*sample, dtypes[d % dtypes.size()], d);
      if (!has_signatures(*sample, draw.call)) break;
      for (const int64_t num_ranks : {2, 3, 5})
        compare_positions(draw, num_ranks, by_signature);
    }
  }
  std::string report;
  for (const auto& [key, found] : by_signature) {
    const auto& [signature, is_positional] = key;
    if (!found.is_compared || found.reads == is_positional) continue;
    report += str("  ", signature,
                  is_positional ? " is positional, but no kernel reads a position\n"
                                : " is not positional, but a kernel reads a position\n");
  }
  return report;
}

}  // namespace flow::contract
