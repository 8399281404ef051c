// Nodes of the backward graph. A node stands for one recorded call: its edges lead to the nodes
// that made the call's inputs, and apply() turns gradients of the outputs into those of the inputs.
//
// A node, its edges and its saved values are one block of memory. Nodes are confined to one thread
// at a time; counting references is thread safe. Sequence numbers fall along every edge, so they
// are a topological order.
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

// Where the gradient of an input goes: output `index` of the node that made it. No node: nobody
// wants the gradient. `meta` is the input's, null for an optional input that was not given.
struct Edge {
  Ref<Node> node;
  uint32_t index = 0;
  MetaPtr meta = nullptr;
};

// One output of a node and its gradient as far as it has been summed up by the running backward.
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

// Functions that run beside a node's own rule.
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

  // A non-leaf tensor that wants its gradient kept. `slot` unregisters itself when it dies.
  struct Retained {
    uint32_t output;
    struct TensorAutograd* slot;
  };

  std::vector<TensorHook> before;
  std::vector<PostHook> after;
  std::vector<Retained> retained;
};

// A number for remove_hook, unique in the process.
int64_t next_hook_id();

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
  // the outputs' gradients, of which at least one is defined.
  virtual void apply(const Tensor* dy, Tensor* dx) = 0;
  // Drops the saved values.
  virtual void free_saved() = 0;

  // True for the node that stands for a leaf.
  virtual bool is_leaf() const { return false; }

  // True when the rule is the user's: its mistakes are InvalidArgument.
  virtual bool is_custom() const { return false; }

  // False once free_saved() dropped values that apply() reads.
  bool is_alive() const { return !is_released_; }

  std::span<Edge> edges() const { return {edges_, num_edges_}; }

  std::span<NodeOutput> outputs() const { return {outputs_, num_outputs_}; }

  // Whether the running backward wants the gradient of input i.
  bool needs(size_t i) const { return edges_[i].node && edges_[i].node->is_needed_; }

  uint64_t sequence() const { return sequence_; }

  const NodeScope& scope() const { return scope_; }

  NodeHooks* hooks() const { return hooks_.get(); }

  NodeHooks& make_hooks() {
    if (!hooks_) hooks_ = std::make_unique<NodeHooks>();
    return *hooks_;
  }

  virtual void remove_hook(int64_t id);

  // "mul at model.cpp:12", for messages.
  std::string describe() const;
  // Throws unless `dx`, the gradient of input i, has that input's shape, dtype and device.
  void check_gradient(size_t i, const Tensor& dx) const;

  void dispose() noexcept final;

 protected:
  Node(const Block& block, const NodeScope& scope);

  // Numbers the node above all nodes its edges lead to; call it when the edges are set.
  void number();

  bool is_released_ = false;

 private:
  friend class BackwardRun;

  // State of the backward run that has reached this node (autograd/engine.cpp).
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

// Makes a node with room for its edges, outputs and `extra_bytes`.
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
