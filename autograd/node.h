// Nodes of the backward graph. A node represents one recorded call: its edges lead to the nodes
// that made the call's inputs, and apply() computes the gradients of the inputs from those of the
// outputs.
//
// A node, its edges and its saved values share one block of memory. A node is used by one thread at
// a time; reference counting is thread safe. Sequence numbers decrease along every edge, so they
// define a topological order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "core/context.h"
#include "core/tensor.h"

namespace flow::autograd {

class Node;
class BackwardRun;

// The destination of the gradient of an input: output `index` of the node that made the input. If
// there is no node, the gradient is not wanted. `meta` is the input's; it is null for an optional
// input that was not given.
struct Edge {
  Ref<Node> node;
  uint32_t index = 0;
  MetaPtr meta = nullptr;
};

// One output of a node, with the sum of the gradients that have arrived in the running backward.
struct NodeOutput {
  MetaPtr meta = nullptr;
  Tensor gradient;
};

// Where a node was recorded; its backward runs under the same scope.
struct NodeScope {
  Site site = Site::none();        // of the call
  Site scope_site = Site::none();  // of the enclosing module call
  const std::string* module_path = nullptr;
  int64_t stage = -1;

  static NodeScope current(Site site) {
    const ThreadState& state = thread_state();
    return {site, state.scope_site, state.module_path, state.stage};
  }

  // The user's line.
  Site user_site() const {
    return (site.is_known() && !site.is_inside_library()) || !scope_site.is_known() ? site
                                                                                    : scope_site;
  }
};

// User functions that run before and after a node's own rule.
struct NodeHooks {
  struct TensorHook {
    int64_t id;
    uint32_t output;
    std::function<Tensor(const Tensor&)> function;
  };

  struct PostHook {
    int64_t id;
    std::function<void(std::span<const Tensor> dx, std::span<const Tensor> dy)> function;
  };

  // A non-leaf tensor that keeps its gradient. `slot` removes this entry when it is destroyed.
  struct Retained {
    uint32_t output;
    struct TensorAutograd* slot;
  };

  std::vector<TensorHook> before;
  std::vector<PostHook> after;
  std::vector<Retained> retained;
};

// A handle for remove_hook, unique in the process. Throws InvalidArgument if the hook is empty.
int64_t id_of_new_hook(const char* function, bool is_empty);

class Node : public GradNode {
 public:
  // Memory of the arrays that follow the node in its block.
  struct Block {
    Edge* edges;
    NodeOutput* outputs;
    std::byte* extra;
    uint32_t num_edges;
    uint32_t num_outputs;
  };

  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() override;

  // The name of the op, for messages.
  const char* name() const override = 0;
  // Writes the gradient of every edge i with needs(i) to dx[i]; undefined means zero. `dy` holds
  // the gradients of the outputs; at least one is defined.
  virtual void apply(const Tensor* dy, Tensor* dx) = 0;
  // Frees the saved values.
  virtual void free_saved() = 0;

  // True for the node that represents a leaf.
  virtual bool is_leaf() const { return false; }

  // True if the gradient rule is the user's; its errors are then InvalidArgument.
  virtual bool is_custom() const { return false; }

  // False once free_saved() has freed values that apply() needs.
  bool is_alive() const { return !is_released_; }

  std::span<Edge> edges() const { return {edges_, num_edges_}; }

  std::span<NodeOutput> outputs() const { return {outputs_, num_outputs_}; }

  // True if the running backward wants the gradient of input i.
  bool needs(size_t i) const { return edges_[i].node && edges_[i].node->is_needed_; }

  uint64_t sequence() const { return sequence_; }

  const NodeScope& scope() const { return scope_; }

  NodeHooks* hooks() const { return hooks_.get(); }

  NodeHooks& make_hooks() {
    if (!hooks_) hooks_ = std::make_unique<NodeHooks>();
    return *hooks_;
  }

  virtual void remove_hook(int64_t id);

  // Prints "mul at model.cpp:12", for messages.
  std::string describe() const;
  // Throws unless `dx`, the gradient of input i, has that input's shape, dtype, device and
  // placement.
  void check_gradient(size_t i, const Tensor& dx) const;

  void dispose() noexcept final;

 protected:
  Node(const Block& block, const NodeScope& scope);

  // Gives the node a higher number than all nodes to which its edges lead. Call it after the edges
  // are set.
  void number();

  bool is_released_ = false;

 private:
  friend class BackwardRun;

  // The state of the backward run that has reached this node (autograd/backward_run.cpp).
  BackwardRun* run_ = nullptr;
  uint32_t pending_ = 0;  // uses whose gradient has not arrived
  bool is_needed_ = false;
  bool is_captured_ = false;

  uint32_t num_edges_;
  uint32_t num_outputs_;
  uint64_t sequence_ = 0;
  Edge* edges_;
  NodeOutput* outputs_;
  NodeScope scope_;
  std::unique_ptr<NodeHooks> hooks_;
  Node* next_dead_ = nullptr;
};

namespace internal {
constexpr size_t aligned(size_t bytes) {
  return (bytes + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);
}
}  // namespace internal

// Makes a node with room for its edges, its outputs and `extra_bytes`.
template <class T, class... Args>
Ref<T> make_node(size_t num_edges, size_t num_outputs, size_t extra_bytes, Args&&... args) {
  constexpr size_t kEdges = internal::aligned(sizeof(T));
  const size_t outputs = kEdges + num_edges * sizeof(Edge);
  const size_t extra = internal::aligned(outputs + num_outputs * sizeof(NodeOutput));
  auto* memory = static_cast<std::byte*>(::operator new(extra + extra_bytes));
  const Node::Block block{
      .edges = reinterpret_cast<Edge*>(memory + kEdges),
      .outputs = reinterpret_cast<NodeOutput*>(memory + outputs),
      .extra = memory + extra,
      .num_edges = static_cast<uint32_t>(num_edges),
      .num_outputs = static_cast<uint32_t>(num_outputs),
  };
  try {
    return Ref<T>(new (memory) T(block, std::forward<Args>(args)...));
  } catch (...) {
    ::operator delete(memory);
    throw;
  }
}

}  // namespace flow::autograd
