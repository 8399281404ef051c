#include "autograd/view.h"

#include <algorithm>
#include <vector>

#include "autograd/layout.h"
#include "boxing/redistribute_op.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/strided_twin.h"

namespace flow::autograd {

void track_view(const Call& call, const Decision& decision, const Tensor& output) {
  const TensorImpl& input = call.input(0).impl();
  TensorImpl& view = output.impl();
  if (view.is_linked_view) {
    view.is_untracked_view = !is_grad_enabled() && is_floating(view.meta->dtype);
    return;
  }
  if (decision.redistributes || !share_memory(input, view) || view.trace != nullptr ||
      !is_floating(view.meta->dtype)) {
    return;
  }
  if (!is_grad_enabled() || input.is_untracked_view || call.inputs.size() != 1 ||
      call.op.grad == &not_differentiable) {
    view.is_untracked_view = true;
    const bool is_recorded = !is_grad_enabled() && input.tracks_grad();
    if (is_recorded || shows_recorded(input)) make_autograd(view).shows_recorded = true;
    return;
  }
  const TensorAutograd* known = find_autograd(input);
  const bool is_view = known != nullptr && known->base != nullptr;
  TensorAutograd& slot = make_autograd(view);
  slot.base_owner = is_view ? known->base_owner : Ref<TensorImpl>(&call.input(0).impl());
  slot.base = slot.base_owner.get();
  slot.steps = make_ref<ViewStep>(call, is_view ? known->steps : nullptr);
  slot.base_history = slot.base->grad_fn.get();
}

void refresh_view(TensorImpl& view) {
  TensorAutograd& slot = *find_autograd(view);
  if (!view.tracks_grad() || !slot.base->requires_grad) return;
  const GradNode* base_history = slot.base->grad_fn.get();
  if (view.grad_fn && slot.base_history == base_history) return;
  const EnableGradGuard enable_grad;
  const Tensor fresh = apply_steps(Tensor(slot.base_owner), slot.steps.get());
  const TensorImpl& now = fresh.impl();
  // After transpose_ of the base, the steps may lead to other elements, or to a copy.
  if (!(fresh.shape() == view.meta->shape) || !(fresh.strides() == view.meta->strides) ||
      !share_memory(now, view) || now.offset != view.offset) {
    throw InvalidArgument(
        str("[view] the base of this view changed its shape in place: the view is ", *view.meta,
            " and would become ", fresh.meta(),
            "; make the view after calls such as squeeze_ and transpose_"));
  }
  const Ref<GradNode>& history = fresh.impl().grad_fn;
  FLOW_ASSERT(static_cast<bool>(history), "a view of a recorded tensor has no history");
  set_history(view, Ref<Node>(static_cast<Node*>(history.get())), fresh.impl().output_index);
  slot.base_history = base_history;
}

Tensor apply_steps(const Tensor& tensor, const ViewStep* steps) {
  std::vector<const ViewStep*> order;
  for (const ViewStep* step = steps; step != nullptr; step = step->previous.get())
    order.push_back(step);
  Tensor result = tensor;
  std::for_each(order.rbegin(), order.rend(), [&](const ViewStep* step) {
    const Tensor* input = &result;
    const void* attrs = step->op->attrs == nullptr ? nullptr : step->attrs.data();
    result = dispatch_raw(*step->op, {&input, 1}, attrs, step->site);
  });
  return result;
}

ViewWriteNode::ViewWriteNode(const Block& block, const NodeScope& scope, Ref<OpNode> write,
                             const char* op, const Tensor& base, Ref<ViewStep> steps)
    : Node(block, scope),
      write_(std::move(write)),
      op_(op),
      base_meta_(base.meta_ptr()),
      base_offset_(base.storage_offset()),
      steps_(std::move(steps)) {
  edges()[0] = edge_of(base);
  outputs()[0].meta = base_meta_;
  if (write_) {
    const std::span<Edge> write_edges = write_->edges();
    std::copy(write_edges.begin() + 1, write_edges.end(), edges().begin() + 1);
    // This edge only tells the write's rule whether the gradient of the old value is wanted.
    write_edges[0].node = edges()[0].node;
    write_edges[0].index = edges()[0].index;
    write_->set_view_write(this);
  }
  number();
}

namespace {

// Whether the view is this rank's part of its base, which depends on the base's layout.
bool shows_local_part(const ViewStep* steps) {
  for (const ViewStep* step = steps; step != nullptr; step = step->previous.get()) {
    if (step->op == &boxing::kToLocal) return true;
  }
  return false;
}

}  // namespace

// base' = base with the part v replaced by f(v, …):
//   dbase = dbase' with its part replaced by df/dv(dbase' at the part);
//   the gradients of the other inputs are those of the write.
void ViewWriteNode::apply(const Tensor* dy, Tensor* dx) {
  std::vector<Tensor> written(edges().size());
  if (write_) {
    const bool is_local = shows_local_part(steps_.get());
    const Tensor part =
        apply_steps(is_local ? to_layout_of(dy[0], *base_meta_) : dy[0], steps_.get());
    write_->apply(&part, written.data());
    std::move(written.begin() + 1, written.end(), dx + 1);
  }
  if (!needs(0)) return;
  const Tensor whole = writable_copy(dy[0], base_meta_);
  const Tensor part = apply_steps(whole, steps_.get());
  FLOW_ASSERT(share_memory(part.impl(), whole.impl()), "the view ops of a view made a copy");
  if (written[0].defined()) {
    write_->check_gradient(0, written[0]);
    part.copy_(written[0]);
  } else {
    part.zero_();
  }
  dx[0] = whole;
}

void ViewWriteNode::free_saved() {
  if (!write_) return;
  write_->free_saved();
  is_released_ = !write_->is_alive();
}

Tensor ViewWriteNode::written_view(const Tensor& saved) {
  const Tensor base = Tensor::make(base_meta_, saved.impl().storage, base_offset_);
  set_history(base.impl(), Ref<Node>(this), 0);
  return apply_steps(base, steps_.get());
}

void rebase_history(const Call& call, TensorImpl& view, Ref<OpNode> write) {
  TensorAutograd& slot = *find_autograd(view);
  if (!write && !slot.base->requires_grad) return;
  if (call.mutates != 1) {
    throw Unsupported(
        str("[", call.op.name,
            "] an op that writes several tensors in place cannot write to a view while "
            "gradients are recorded; write to a tensor that is not a view, or use "
            "NoGradGuard"));
  }
  const Tensor base(slot.base_owner);
  follow_written_twin(base.impl());
  const size_t num_edges = write ? write->edges().size() : 1;
  const auto node = make_node<ViewWriteNode>(num_edges, 1, 0, NodeScope::current(call.site),
                                             std::move(write), call.op.name, base, slot.steps);
  set_history(base.impl(), node, 0);
  refresh_view(view);
}

}  // namespace flow::autograd
