#include "pipeline/batch_cut.h"

#include <algorithm>
#include <numeric>

#include "boxing/redistribute_op.h"
#include "core/error.h"

namespace flow::pipeline {

namespace {

using graph::Graph;
using graph::Value;
using graph::ValueId;

// The different ranges of samples that ranks hold of a batch; none where a shard cuts a sample.
std::vector<Range> shards_of(const Value& value, int64_t num_samples) {
  const int64_t rows = value.shape[0] / num_samples;  // of a sample
  std::vector<Range> shards;
  const int64_t ranks = value.placement.defined() ? value.placement.num_ranks() : 0;
  for (int64_t position = 0; position < ranks; ++position) {
    const Box box = box_of(value.shape, value.placement, value.nd_sbp, position);
    if (box.begin[0] % rows != 0 || box.size[0] % rows != 0) return {};
    const Range shard{box.begin[0] / rows, box.size[0] / rows};
    if (shard.size > 0 && std::find(shards.begin(), shards.end(), shard) == shards.end()) {
      shards.push_back(shard);
    }
  }
  std::sort(shards.begin(), shards.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return shards;
}

}  // namespace

std::vector<Range> BatchCut::samples_of(int64_t micro_batch) const {
  std::vector<Range> samples;
  for (const Range& run : runs) {
    Range part = balanced_part(run.size, num_micro_batches, micro_batch);
    part.begin += run.begin;
    samples.push_back(part);
  }
  return samples;
}

int64_t BatchCut::size_of(int64_t micro_batch) const {
  int64_t size = 0;
  for (const Range& range : samples_of(micro_batch))
    size += range.size;
  return size;
}

BatchCut cut_batch(const Graph& graph, const std::vector<ValueId>& inputs,
                   int64_t num_micro_batches) {
  BatchCut cut{.num_samples = 0, .num_micro_batches = num_micro_batches, .runs = {}};
  for (const ValueId input : inputs)
    cut.num_samples = std::gcd(cut.num_samples, graph.value(input).shape[0]);
  if (num_micro_batches > 1 && cut.num_samples < num_micro_batches) {
    throw InvalidArgument(str("[micro-batch] a batch of ", cut.num_samples,
                              " samples (the rows that all inputs have in common) cannot be cut "
                              "into ",
                              num_micro_batches, " parts; use fewer micro-batches"));
  }
  if (cut.num_samples == 0) return cut;
  const auto consider = [&](ValueId id) {
    std::vector<Range> shards = shards_of(graph.value(id), cut.num_samples);
    if (shards.size() > cut.runs.size()) cut.runs = std::move(shards);
  };
  for (const ValueId input : inputs)
    consider(input);
  for (const graph::Node& node : graph.nodes) {
    const bool moves_input =
        node.op == &boxing::kRedistribute &&
        std::find(inputs.begin(), inputs.end(), node.inputs[0]) != inputs.end();
    if (moves_input) consider(node.outputs[0]);
  }
  if (cut.runs.empty()) cut.runs = {{0, cut.num_samples}};
  return cut;
}

Value part_of(const BatchCut& cut, const Value& value, int64_t dim, int64_t micro_batch) {
  Value part = value;
  part.shape[dim] = value.shape[dim] / cut.num_samples * cut.size_of(micro_batch);
  return part;
}

std::vector<Piece> pieces_of(const BatchCut& cut, const TensorMeta& whole, const TensorMeta& part,
                             int64_t dim, int64_t micro_batch) {
  const int64_t rows = whole.shape[dim] / cut.num_samples;
  const int64_t wanted = part.local_begin[dim], end = wanted + part.local_shape[dim];
  const int64_t held = whole.local_begin[dim], held_end = held + whole.local_shape[dim];
  std::vector<Piece> pieces;
  int64_t at = 0;  // of the range, in the part's logical index space
  for (const Range& range : cut.samples_of(micro_batch)) {
    const int64_t begin = std::max(wanted, at), stop = std::min(end, at + range.size * rows);
    const int64_t first = range.begin * rows + begin - at;  // in the whole's
    at += range.size * rows;
    if (begin >= stop) continue;
    if (first < held || first + stop - begin > held_end) return {};
    const Piece piece{first - held, begin - wanted, stop - begin};
    if (!pieces.empty() && pieces.back().in_whole + pieces.back().size == piece.in_whole) {
      pieces.back().size += piece.size;
    } else {
      pieces.push_back(piece);
    }
  }
  return pieces;
}

}  // namespace flow::pipeline
