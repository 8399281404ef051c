#include "autograd/hooks.h"

#include "autograd/backward_run.h"
#include "autograd/tensor_autograd.h"
#include "core/error.h"

namespace flow {

int64_t register_post_accumulate_grad_hook(const Tensor& leaf,
                                           std::function<void(const Tensor&)> hook) {
  if (!leaf.is_leaf() || !leaf.requires_grad()) {
    throw InvalidArgument(
        str("[register_post_accumulate_grad_hook] only a leaf that requires grad ",
            "accumulates its gradient; received ", leaf.meta(),
            leaf.is_leaf() ? ", which does not require grad" : ", the result of a recorded op"));
  }
  const Ref<autograd::LeafNode>& node = autograd::leaf_node(leaf.impl());
  const int64_t id =
      autograd::id_of_new_hook("register_post_accumulate_grad_hook", hook == nullptr);
  node->accumulate_hooks.push_back({id, std::move(hook)});
  autograd::make_autograd(leaf.impl()).hooks.push_back({id, node});
  return id;
}

int64_t register_node_hook(
    const Tensor& tensor,
    std::function<void(std::span<const Tensor> dx, std::span<const Tensor> dy)> hook) {
  const autograd::Edge edge = autograd::current_edge_of(tensor);
  if (!edge.node || edge.node->is_leaf()) {
    throw InvalidArgument(str("[register_node_hook] the tensor, ", tensor.meta(),
                              ", is not the result of a recorded op; use register_hook on leaves"));
  }
  const int64_t id = autograd::id_of_new_hook("register_node_hook", hook == nullptr);
  edge.node->make_hooks().after.push_back({id, std::move(hook)});
  autograd::make_autograd(tensor.impl()).hooks.push_back({id, edge.node});
  return id;
}

namespace {
autograd::BackwardRun& outermost_run(const char* who) {
  autograd::BackwardRun* run = autograd::BackwardRun::outermost();
  if (run != nullptr) return *run;
  throw InvalidArgument(str("[", who,
                            "] no backward is running on this thread; call it from a hook or a "
                            "custom function's backward"));
}
}  // namespace

uint64_t backward_number() {
  return outermost_run("backward_number").number();
}

void call_after_backward(std::function<void()> callback) {
  outermost_run("call_after_backward").add_final_callback(std::move(callback));
}

}  // namespace flow
