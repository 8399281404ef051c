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

// The distinct ranges of samples that ranks hold of a batch, whose dim `dim` holds the samples;
// none where a shard boundary falls within a sample.
std::vector<Range> shards_of(const Value& value, int64_t dim, int64_t num_samples) {
  const int64_t rows = value.shape[dim] / num_samples;  // of a sample
  std::vector<Range> shards;
  const int64_t ranks = value.placement.defined() ? value.placement.num_ranks() : 0;
  for (int64_t position = 0; position < ranks; ++position) {
    const Box box = box_of(value.shape, value.placement, value.nd_sbp, position);
    if (box.begin[dim] % rows != 0 || box.size[dim] % rows != 0) return {};
    const Range shard{box.begin[dim] / rows, box.size[dim] / rows};
    if (shard.size > 0 && std::find(shards.begin(), shards.end(), shard) == shards.end()) {
      shards.push_back(shard);
    }
  }
  std::sort(shards.begin(), shards.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return shards;
}

}  // namespace

BatchCut cut_batch(const Graph& graph, const std::vector<ValueId>& inputs,
                   int64_t num_micro_batches) {
  BatchCut cut{.num_samples = 0, .num_micro_batches = num_micro_batches, .runs = {}};
  for (const ValueId input : inputs)
    cut.num_samples = std::gcd(cut.num_samples, graph.value(input).shape[0]);
  if (!inputs.empty() && cut.num_samples == 0) {
    throw Unsupported(
        "[micro-batch] a batch of 0 samples cannot run through stages; skip empty batches");
  }
  if (num_micro_batches > 1 && cut.num_samples < num_micro_batches) {
    throw InvalidArgument(str("[micro-batch] a batch of ", cut.num_samples,
                              " samples (the rows that all inputs have in common) cannot be cut "
                              "into ",
                              num_micro_batches,
                              " parts; use fewer micro-batches, and make an input that is no part "
                              "of the batch, such as class weights, a member of the graph"));
  }
  if (cut.num_samples == 0) return cut;
  cut.runs = {{0, cut.num_samples}};
  const auto consider = [&](ValueId id) { refine_cut(graph.value(id), 0, cut); };
  for (const ValueId input : inputs)
    consider(input);
  for (const graph::Node& node : graph.nodes) {
    const bool moves_input =
        node.op == &boxing::kRedistribute &&
        std::find(inputs.begin(), inputs.end(), node.inputs[0]) != inputs.end();
    if (moves_input) consider(node.outputs[0]);
  }
  return cut;
}

void refine_cut(const Value& value, int64_t dim, BatchCut& cut) {
  std::vector<Range> shards = shards_of(value, dim, cut.num_samples);
  if (shards.size() > cut.runs.size()) cut.runs = std::move(shards);
}

}  // namespace flow::pipeline
