// Starting gradient reductions during backward: Li et al. 2020, "PyTorch Distributed: Experiences
// on Accelerating Data Parallel Training". Gathering parameters ahead of their use: Rajbhandari et
// al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models".
#include "graph/passes/overlap_redistributions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "autograd/bucket_size.h"
#include "boxing/planner.h"
#include "boxing/rank_route.h"
#include "boxing/redistribute_op.h"
#include "boxing/routed_kernel.h"
#include "graph/ir/graph_uses.h"
#include "graph/passes/node_cost.h"
#include "graph/passes/redistributions.h"
#include "graph/passes/work_to_delay.h"

namespace flow::graph {

namespace {

constexpr double kBytesPerKb = 1 << 10;

class Overlap {
 public:
  Overlap(Graph& graph, const OverlapOptions& options)
      : graph_(graph), options_(options), uses_(graph), delayed_to_(graph.nodes.size(), 0) {}

  int64_t run() {
    if (std::none_of(graph_.nodes.begin(), graph_.nodes.end(), is_transfer)) return 0;
    predict();
    for (const Capture& capture : graph_.captures)
      kept_bytes_ += static_cast<double>(bytes_of(graph_.value(capture.initial)));
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (is_transfer(graph_.nodes[i])) plan(i);
    }
    reorder();
    return num_changed_;
  }

 private:
  // One that is being filled.
  struct Bucket {
    double bytes = 0;
    double limit_mb = 0;
  };

  void predict() {
    work_us_.push_back(0);
    for (const Node& node : graph_.nodes) {
      work_us_.push_back(work_us_.back() + (is_transfer(node) ? 0 : predicted_us(graph_, node)));
    }
  }

  // The predicted work of the nodes [begin, end).
  double work_us(size_t begin, size_t end) const { return work_us_[end] - work_us_[begin]; }

  void plan(size_t index) {
    Node& node = graph_.nodes[index];
    const Value &from = graph_.value(node.inputs[0]), &to = graph_.value(node.outputs[0]);
    if (node.guard >= 0 || from.placement != to.placement) return;
    const bool is_mean = node.op == &boxing::kAllReduceMean;
    const boxing::Route route =
        is_mean ? boxing::mean_route(from.shape, from.dtype, from.placement)
                : boxing::find_route(from.shape, from.dtype, layout_of(from), layout_of(to));
    if (route.steps.size() != 1) return;
    const size_t input_exists = exists_at(node.inputs[0]);
    if (is_gradient_sum(node, route.steps[0]))
      return add_to_bucket(index, from, route.steps[0], input_exists);
    // A mean is of local tensors, whose work may be predicted differently on other ranks.
    if (is_mean) return;
    if (route.bytes() < options_.least_kb * kBytesPerKb || is_too_large(from, to) ||
        needs_scratch(from, route)) {
      return;
    }
    const std::span<const size_t> readers = uses_.readers(node.outputs[0]);
    const size_t first_use = readers.empty() ? graph_.nodes.size() : readers.front();
    size_t start = input_exists;
    if (!readers.empty() && gathers(from, to)) {
      start = first_use;
      while (start > input_exists && work_us(start, first_use) < 2 * route.time_us())
        --start;
    }
    start = std::min(start, index);
    double hidden_us = work_us(start, first_use);
    std::vector<size_t> delayed;
    if (node.phase == Phase::kBackward && !readers.empty() && !gathers(from, to)) {
      delayed = work_to_delay(index, start, route.time_us() - hidden_us);
      for (const size_t i : delayed)
        hidden_us += work_us(i, i + 1);
    }
    if (std::min(hidden_us, route.time_us()) < options_.least_hidden_us) return;
    set(index, TransferStart::kAtOnce, start);
    hiding_until_ = std::max(hiding_until_, first_use);
    const size_t place = place_after(index, start);
    for (const size_t i : delayed) {
      delayed_to_[i] = place;
      moved_[place].push_back(i);
      ++num_changed_;
    }
  }

  // Where a value exists, as the index of the node before which it does.
  size_t exists_at(ValueId id) const {
    const int64_t maker = uses_.maker(id);
    return maker < 0
               ? 0
               : std::max(static_cast<size_t>(maker) + 1, delayed_to_[static_cast<size_t>(maker)]);
  }

  // What comes right after a transfer that starts before the node `start`.
  static size_t place_after(size_t transfer, size_t start) {
    return start < transfer ? start : transfer + 1;
  }

  // Work before a transfer that can run while it does, such as the gradients of the weights that
  // multiplied its input. Work that hides another transfer stays.
  std::vector<size_t> work_to_delay(size_t transfer, size_t start, double wanted_us) {
    const size_t place = place_after(transfer, start);
    if (wanted_us <= 0 || hiding_until_ >= place) return {};
    if (!delayable_) delayable_.emplace(graph_, uses_);
    return delayable_->find(transfer, hiding_until_, place, wanted_us);
  }

  // True for the sum, or mean, of a gradient over replicas of its parameter, which backward itself
  // does not need.
  bool is_gradient_sum(const Node& node, const boxing::RouteStep& step) const {
    return step.kind == boxing::RouteStepKind::kAllReduce && boxing::adds_up(step) &&
           node.phase == Phase::kBackward && !is_read_in_backward(node.outputs[0]);
  }

  // True if a node of backward computes with the value, or with the rank's part of it.
  bool is_read_in_backward(ValueId id) const {
    const std::span<const size_t> readers = uses_.readers(id);
    return std::any_of(readers.begin(), readers.end(), [&](size_t reader) {
      const Node& node = graph_.nodes[reader];
      return node.op == &boxing::kToLocal ? is_read_in_backward(node.outputs[0])
                                          : node.phase == Phase::kBackward;
    });
  }

  static bool gathers(const Value& from, const Value& to) {
    return part_bytes(to) > part_bytes(from);
  }

  // True if the transfer needs too much memory in addition while it runs.
  bool is_too_large(const Value& from, const Value& to) const {
    return part_bytes(from) != part_bytes(to) &&
           static_cast<double>(bytes_of(to)) > options_.most_memory_share * kept_bytes_;
  }

  // The communication thread takes no memory, so that the peak of memory is known. On devices,
  // messages that host memory packs piece by piece are packed as a whole.
  static bool needs_scratch(const Value& from, const boxing::Route& route) {
    const std::vector<int64_t>& ranks = from.placement.ranks();
    return std::any_of(ranks.begin(), ranks.end(), [&](int64_t rank) {
      return !boxing::scratch_of_route(*from.meta_on(rank), route, rank, false).empty() ||
             (from.device != DeviceType::kCpu &&
              boxing::make_rank_route(route, rank).steps[0].is_streamed);
    });
  }

  // Sums, and means, of one dtype over the same groups of ranks are in the same buckets.
  void add_to_bucket(size_t index, const Value& gradient, const boxing::RouteStep& step,
                     size_t start) {
    const std::tuple key(gradient.placement.id(), step.axes, step.is_mean, gradient.dtype,
                         gradient.device);
    Bucket& bucket = buckets_.try_emplace(key, Bucket{0, options_.first_bucket_mb}).first->second;
    // The first part of a balanced split is the largest.
    const Box most = box_of(gradient.shape, gradient.placement, gradient.nd_sbp, 0);
    bucket.bytes +=
        static_cast<double>(most.size.numel()) * static_cast<double>(dtype_size(gradient.dtype));
    const bool is_full = bucket.bytes >= bucket.limit_mb * autograd::kBytesPerMb;
    if (is_full) bucket = {0, options_.bucket_mb};
    set(index, is_full ? TransferStart::kWithBucket : TransferStart::kInOrder, start);
  }

  void set(size_t index, TransferStart when, size_t start) {
    graph_.nodes[index].transfer_start = when;
    ++num_changed_;
    if (start < index) moved_[start].push_back(index);
  }

  void reorder() {
    if (moved_.empty()) return;
    std::vector<bool> is_moved(graph_.nodes.size(), false);
    std::vector<size_t> order;
    for (const auto& [start, nodes] : moved_) {
      for (const size_t node : nodes)
        is_moved[node] = true;
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto before = moved_.find(i);
      if (before != moved_.end())
        order.insert(order.end(), before->second.begin(), before->second.end());
      if (!is_moved[i]) order.push_back(i);
    }
    std::vector<Node> nodes;
    for (const size_t i : order)
      nodes.push_back(std::move(graph_.nodes[i]));
    graph_.nodes = std::move(nodes);
  }

  Graph& graph_;
  const OverlapOptions& options_;
  GraphUses uses_;
  std::optional<DelayableWork> delayable_;       // once a transfer asks for it
  double kept_bytes_ = 0;                        // of all captures
  std::vector<double> work_us_;                  // of all nodes before the one with this index
  std::map<size_t, std::vector<size_t>> moved_;  // by the node that they come before
  std::map<std::tuple<const void*, uint32_t, bool, DType, DeviceType>, Bucket> buckets_;
  std::vector<size_t> delayed_to_;  // by node: the node that it comes before; 0: it stays
  size_t hiding_until_ = 0;         // the node before which transfers so far have all ended
  int64_t num_changed_ = 0;
};

}  // namespace

int64_t overlap_redistributions(Graph& graph, const OverlapOptions& options) {
  return options.enabled ? Overlap(graph, options).run() : 0;
}

Pass overlap_pass(const OverlapOptions& options) {
  const auto run = [options](UnloweredStep& step) {
    return overlap_redistributions(step.graph, options);
  };
  const std::string settings =
      options.enabled
          ? str("buckets of ", options.first_bucket_mb, " and ", options.bucket_mb,
                " MiB, others from ", options.least_kb, " KiB and ", options.least_hidden_us,
                " us, early ones with at most ", options.most_memory_share, " of the memory")
          : "off";
  return {"overlap_redistributions", true, run, settings};
}

}  // namespace flow::graph
