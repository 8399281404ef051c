#include "autograd/node.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "autograd/tensor_autograd.h"
#include "core/error.h"

namespace flow::autograd {

namespace {

// The last sequence number given on this thread. Nodes made on other threads may raise it.
constinit thread_local uint64_t last_sequence = 0;

// Nodes waiting to be destroyed. A loop destroys them, because a long chain must not recurse.
struct Graveyard {
  Node* first = nullptr;
  bool is_active = false;
};

constinit thread_local Graveyard graveyard;

}  // namespace

int64_t id_of_new_hook(const char* function, bool is_empty) {
  if (is_empty) throw InvalidArgument(str("[", function, "] the hook is empty; give a function"));
  static std::atomic<int64_t> last{0};
  return ++last;
}

Node::Node(const Block& block, const NodeScope& scope)
    : num_edges_(block.num_edges),
      num_outputs_(block.num_outputs),
      edges_(block.edges),
      outputs_(block.outputs),
      scope_(scope) {
  for (uint32_t i = 0; i < num_edges_; ++i)
    new (edges_ + i) Edge();
  for (uint32_t i = 0; i < num_outputs_; ++i)
    new (outputs_ + i) NodeOutput();
}

Node::~Node() {
  for (uint32_t i = 0; i < num_edges_; ++i)
    edges_[i].~Edge();
  for (uint32_t i = 0; i < num_outputs_; ++i)
    outputs_[i].~NodeOutput();
  if (!hooks_) return;
  for (const NodeHooks::Retained& retained : hooks_->retained)
    retained.slot->retained_node = nullptr;
}

void Node::number() {
  uint64_t sequence = last_sequence + 1;
  for (const Edge& edge : edges()) {
    if (edge.node) sequence = std::max(sequence, edge.node->sequence_ + 1);
  }
  last_sequence = sequence_ = sequence;
}

void Node::remove_hook(int64_t id) {
  if (!hooks_) return;
  std::erase_if(hooks_->before, [&](const auto& hook) { return hook.id == id; });
  std::erase_if(hooks_->after, [&](const auto& hook) { return hook.id == id; });
}

std::string Node::describe() const {
  const Site site = scope_.user_site();
  return site.is_known() ? str(name(), " at ", site.file(), ":", site.line()) : name();
}

void Node::check_gradient(size_t i, const Tensor& dx) const {
  const TensorMeta& input = *edges()[i].meta;
  const TensorMeta& given = dx.meta();
  if (&input == &given || (input.shape == given.shape && input.dtype == given.dtype &&
                           input.device == given.device && input.placement == given.placement)) {
    return;
  }
  const std::string message =
      str("[", name(), "] the gradient rule returned ", given, " as the gradient of input ", i,
          ", which is ", input, "; return one with the input's shape, dtype, placement and device");
  if (is_custom()) throw InvalidArgument(message);
  throw InternalError(message);
}

void Node::dispose() noexcept {
  Graveyard& dead = graveyard;
  next_dead_ = dead.first;
  dead.first = this;
  if (dead.is_active) return;
  dead.is_active = true;
  while (Node* node = dead.first) {
    dead.first = node->next_dead_;
    node->~Node();
    ::operator delete(node);
  }
  dead.is_active = false;
}

}  // namespace flow::autograd
