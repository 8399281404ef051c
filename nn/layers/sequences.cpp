#include "nn/layers/sequences.h"

#include <algorithm>
#include <numeric>

#include "core/calls/site_scope.h"
#include "core/context.h"
#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/cast.h"
#include "ops/index/index.h"
#include "ops/shape/concat.h"

namespace flow::nn::utils::rnn {

Tensor pad_sequence(const std::vector<Tensor>& sequences, const PadSequenceOptions& options,
                    Site site) {
  const SiteScope scope(site);
  if (sequences.empty()) {
    throw InvalidArgument(
        "[pad_sequence] there is no sequence; received an empty list; give at least one");
  }
  const bool at_left = options.padding_side == "left";
  if (!at_left && options.padding_side != "right") {
    throw InvalidArgument(str("[pad_sequence] the padding side is unknown; received '",
                              options.padding_side, "'; give left or right"));
  }
  int64_t longest = 0;
  for (const Tensor& sequence : sequences) {
    const bool fits = sequence.dim() > 0 && sequence.dim() == sequences[0].dim() &&
                      std::equal(sequence.shape().begin() + 1, sequence.shape().end(),
                                 sequences[0].shape().begin() + 1);
    if (!fits) {
      throw InvalidArgument(
          str("[pad_sequence] the shapes of sequences may differ in dim 0 only; "
              "received ",
              sequences[0].meta(), " and ", sequence.meta()));
    }
    longest = std::max(longest, sequence.size(0));
  }
  std::vector<Tensor> padded;
  for (const Tensor& sequence : sequences) {
    std::vector<int64_t> amounts(static_cast<size_t>(2 * sequence.dim()), 0);
    amounts[amounts.size() - (at_left ? 2 : 1)] = longest - sequence.size(0);
    padded.push_back(pad(sequence, amounts, {.value = options.padding_value}));
  }
  return stack(padded, options.batch_first ? 0 : 1);
}

std::vector<Tensor> unpad_sequence(const Tensor& padded, const Tensor& lengths, bool batch_first,
                                   Site site) {
  const SiteScope scope(site);
  const int64_t batch_dim = batch_first ? 0 : 1;
  if (padded.dim() < 2 || lengths.dim() != 1 || lengths.size(0) != padded.size(batch_dim)) {
    throw InvalidArgument(
        str("[unpad_sequence] lengths must have one number for each sequence, "
            "which are dim ",
            batch_dim, "; received ", padded.meta(), " and ", lengths.meta()));
  }
  std::vector<Tensor> sequences;
  const std::vector<int64_t> counts = cast(lengths, int64).to_vector<int64_t>();
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 0 || counts[i] > padded.size(1 - batch_dim)) {
      throw InvalidArgument(str("[unpad_sequence] the length of sequence ", i,
                                " is out of range; received ", counts[i], " for ", padded.meta()));
    }
    sequences.push_back(padded.select(batch_dim, static_cast<int64_t>(i)).narrow(0, 0, counts[i]));
  }
  return sequences;
}

namespace {

Tensor lengths_of(const std::vector<int64_t>& values) {
  return tensor(values, {static_cast<int64_t>(values.size())});
}

// Where x is, and whole on all its ranks.
Tensor indices_for(const Tensor& x, const std::vector<int64_t>& values) {
  return tensor(values, ops::whole_like(x, int64));
}

}  // namespace

PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths,
                                    const PackOptions& options, Site site) {
  const SiteScope scope(site);
  if (thread_state().trace != nullptr) {
    throw Unsupported(
        "[pack_padded_sequence] a graph cannot pack, because the lengths decide its shapes; pack "
        "outside, and pass the data of the result to build()");
  }
  const std::vector<Tensor> given = unpad_sequence(input, lengths, options.batch_first);
  const Tensor steps_first = options.batch_first ? input.transpose(0, 1) : input;
  std::vector<int64_t> order(given.size()), back(given.size());
  std::iota(order.begin(), order.end(), 0);
  const auto length_of = [&](int64_t i) { return given[static_cast<size_t>(i)].size(0); };
  const auto is_longer = [&](int64_t a, int64_t b) { return length_of(a) > length_of(b); };
  const bool is_sorted = std::is_sorted(order.begin(), order.end(), is_longer);
  if (!is_sorted && options.enforce_sorted) {
    throw InvalidArgument(str("[pack_padded_sequence] lengths must not increase; received ",
                              lengths, "; sort the sequences, or pass .enforce_sorted = false"));
  }
  std::stable_sort(order.begin(), order.end(), is_longer);
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  if (order.empty() || length_of(order.back()) == 0) {
    throw InvalidArgument(str("[pack_padded_sequence] every sequence must have a step; received ",
                              lengths, "; leave out the empty ones"));
  }
  PackedSequence packed;
  Tensor sorted = steps_first;
  if (!is_sorted) {
    packed.sorted_indices = indices_for(steps_first, order);
    packed.unsorted_indices = indices_for(steps_first, back);
    sorted = steps_first.index_select(1, packed.sorted_indices);
  }
  std::vector<Tensor> steps;
  for (int64_t t = 0; t < length_of(order[0]); ++t) {
    const auto count =
        std::count_if(order.begin(), order.end(), [&](int64_t i) { return length_of(i) > t; });
    packed.batch_sizes.push_back(count);
    steps.push_back(sorted.select(0, t).narrow(0, 0, count));
  }
  packed.data = cat(steps, 0);
  return packed;
}

PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted, Site site) {
  const SiteScope scope(site);
  std::vector<int64_t> lengths;
  for (const Tensor& sequence : sequences)
    lengths.push_back(sequence.dim() > 0 ? sequence.size(0) : 0);
  return pack_padded_sequence(pad_sequence(sequences), lengths_of(lengths),
                              {.enforce_sorted = enforce_sorted});
}

PaddedSequence pad_packed_sequence(const PackedSequence& sequence, const PadPackedOptions& options,
                                   Site site) {
  const SiteScope scope(site);
  const auto longest = static_cast<int64_t>(sequence.batch_sizes.size());
  if (options.total_length != 0 && options.total_length < longest) {
    throw InvalidArgument(
        str("[pad_packed_sequence] total_length must be at least the longest "
            "length, ",
            longest, "; received ", options.total_length));
  }
  const int64_t batch = sequence.batch_sizes[0];
  std::vector<int64_t> lengths(static_cast<size_t>(batch), 0);
  std::vector<Tensor> steps;
  int64_t begin = 0;
  for (const int64_t count : sequence.batch_sizes) {
    for (int64_t i = 0; i < count; ++i)
      ++lengths[static_cast<size_t>(i)];
    std::vector<int64_t> amounts(static_cast<size_t>(2 * sequence.data.dim()), 0);
    amounts.back() = batch - count;
    steps.push_back(
        pad(sequence.data.narrow(0, begin, count), amounts, {.value = options.padding_value}));
    begin += count;
  }
  Tensor output = stack(steps, 0);
  if (options.total_length > longest) {
    std::vector<int64_t> amounts(static_cast<size_t>(2 * output.dim()), 0);
    amounts.back() = options.total_length - longest;
    output = pad(output, amounts, {.value = options.padding_value});
  }
  Tensor counts = lengths_of(lengths);
  if (sequence.unsorted_indices.defined()) {
    output = output.index_select(1, sequence.unsorted_indices);
    counts = indices_for(output, lengths).index_select(0, sequence.unsorted_indices);
  }
  return {options.batch_first ? output.transpose(0, 1) : output, counts};
}

}  // namespace flow::nn::utils::rnn
