// One run of backward: finds the nodes to visit, runs them in order and passes gradients on.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "autograd/bucket_size.h"
#include "autograd/gradient_sums.h"
#include "autograd/node.h"
#include "autograd/tensor_autograd.h"

namespace flow::autograd {

// A short list of tensors that does not allocate memory for up to kInline of them.
class TensorList {
 public:
  explicit TensorList(size_t size) : size_(size) {
    if (size > kInline) heap_.resize(size);
  }

  Tensor* data() { return size_ > kInline ? heap_.data() : inline_.data(); }

  Tensor& operator[](size_t i) { return data()[i]; }

  std::span<Tensor> span() { return {data(), size_}; }

 private:
  static constexpr size_t kInline = 4;
  size_t size_;
  std::array<Tensor, kInline> inline_;
  std::vector<Tensor> heap_;
};

// Runs may nest: a hook or a custom function may call backward, even through nodes of the outer
// run. The inner run then saves and restores the outer run's state in these nodes. A run that
// throws resets all nodes; only leaf gradients that were already complete have changed.
class BackwardRun {
 public:
  struct Options {
    bool keep_graph = false;
    bool create_graph = false;
    // Gradients are stored in the captures instead of the leaves.
    bool captures = false;
    double bucket_mb = kBucketMb;
    Site site = Site::none();
  };

  // An output of a node whose gradient the caller requested.
  struct Capture {
    Ref<Node> node;
    uint32_t index;
    MetaPtr meta;
    Tensor gradient;
  };

  explicit BackwardRun(const Options& options);
  ~BackwardRun();
  BackwardRun(const BackwardRun&) = delete;
  BackwardRun& operator=(const BackwardRun&) = delete;

  void add_root(const Edge& edge, const Tensor& gradient) { roots_.push_back({edge, gradient}); }

  void add_capture(const Edge& edge) {
    captures_.push_back({edge.node, edge.index, edge.meta, {}});
  }

  void run();

  const std::vector<Capture>& captures() const { return captures_; }

  // The outermost run of this thread; null outside backward.
  static BackwardRun* outermost();

  // The run's number; the runs of a thread count from 1.
  uint64_t number() const { return number_; }

  void add_final_callback(std::function<void()> callback) {
    final_callbacks_.push_back(std::move(callback));
  }

 private:
  struct Root {
    Edge edge;
    Tensor gradient;
  };

  // The outer run's state of a node that this run uses.
  struct Displaced {
    Node* node;
    BackwardRun* run;
    uint32_t pending;
    bool is_needed;
    bool is_captured;
    std::vector<Tensor> gradients;
  };

  void claim(Node& node);
  void find_nodes();
  void find_needed();
  void check_alive() const;
  void execute(Node& node);
  void receive(const Node& node, TensorList& dy);
  // True if the gradient of any input is wanted, so that the node's rule must run.
  static bool leads_on(const Node& node);
  void run_rule(Node& node, TensorList& dy, TensorList& dx);
  void deliver(Node& node, TensorList& dx);
  void run_hooks(const Node& node, TensorList& dy) const;
  void retain_gradients(const Node& node, TensorList& dy) const;
  void capture(const Node& node, TensorList& dy);
  void accumulate(LeafNode& node, Tensor gradient);
  void add_to_leaf(const Tensor& leaf, Tensor gradient, bool is_owned) const;
  void finish_sums();
  void add_to(Tensor& total, Tensor gradient) const;

  Options options_;
  BackwardRun* outer_;
  const ThreadState* thread_;
  uint64_t number_;
  std::vector<Root> roots_;
  std::vector<Capture> captures_;
  std::vector<Node*> nodes_;  // reached nodes, which the roots keep alive
  std::vector<Node*> ready_;  // a heap; the last recorded node comes first
  std::vector<Displaced> displaced_;
  GradientSums sums_;
  std::vector<std::function<void()>> final_callbacks_;
};

}  // namespace flow::autograd
