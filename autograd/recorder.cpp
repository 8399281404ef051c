#include "autograd/recorder.h"

#include <bit>

#include "autograd/op_node.h"
#include "autograd/tensor_autograd.h"
#include "autograd/view.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/op.h"
#include "core/view_link.h"

namespace flow::autograd {

namespace {

bool any_tracks_grad(const Call& call) {
  for (const Tensor* input : call.inputs) {
    if (input->defined() && input->impl().tracks_grad()) return true;
  }
  return false;
}

bool any_floating(const Tensor* outputs, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (outputs[i].defined() && is_floating(outputs[i].impl().meta->dtype)) return true;
  }
  return false;
}

bool is_tracked_view(const TensorImpl& impl) {
  return impl.autograd != nullptr && impl.autograd->base != nullptr;
}

// Has no state: all data is stored in the tensors and nodes.
class GradRecorder final : public Recorder {
 public:
  void check_mutation(const Call& call) override;
  void record(const Call& call, const Decision& decision, Tensor* outputs) override;

  void note_view(const Call& call, const Decision& decision, const Tensor& output) override {
    track_view(call, decision, output);
  }

  void take_history(const Tensor& target, const Tensor& source) override;

 private:
  static void forget_old_values(const Call& call);
};

// Follows a view to the tensor that it is a view of.
const TensorImpl& owner_of(const TensorImpl& tensor) {
  if (is_tracked_view(tensor)) return owner_of(*tensor.autograd->base);
  if (tensor.is_linked_view) return owner_of(find_view_link(tensor)->base.impl());
  return tensor;
}

void GradRecorder::take_history(const Tensor& target, const Tensor& source) {
  const TensorImpl& from = source.impl();
  if (from.grad_fn) {
    set_history(target.impl(), Ref<Node>(static_cast<Node*>(from.grad_fn.get())),
                from.output_index);
  } else {
    clear_history(target.impl());
  }
}

void GradRecorder::check_mutation(const Call& call) {
  if (!is_grad_enabled()) return;
  for (uint32_t left = call.mutates; left != 0; left &= left - 1) {
    const TensorImpl& written = call.input(static_cast<size_t>(std::countr_zero(left))).impl();
    const TensorImpl& owner = owner_of(written);
    const bool is_view = &owner != &written;
    if (owner.requires_grad && !owner.grad_fn) {
      throw InvalidArgument(
          str("[", in_place_name(call.op), "] a leaf that requires grad",
              is_view ? " has a view that is" : " is", " written in place: ", *owner.meta,
              "; write under NoGradGuard, or use the form without underscore"),
          user_site(call.site));
    }
    if (written.is_untracked_view && (any_tracks_grad(call) || shows_recorded(written))) {
      throw InvalidArgument(
          str("[", in_place_name(call.op),
              "] a view made while nothing was recorded (under NoGradGuard, or by a custom "
              "function) is written in place while gradients are recorded: ",
              *written.meta, "; make the view while gradients are recorded, or clone() it"),
          user_site(call.site));
    }
  }
  if (!has_view_links()) return;
  // A view of a linked view gets its history now. After the write, its base would follow the
  // written tensor, whose new history is recorded later.
  for (const Tensor* input : call.inputs) {
    if (input->defined() && is_tracked_view(input->impl())) refresh_view(input->impl());
  }
}

// After this call the written values depend on no differentiable value.
void GradRecorder::forget_old_values(const Call& call) {
  for (uint32_t left = call.mutates; left != 0; left &= left - 1) {
    TensorImpl& written = call.input(static_cast<size_t>(std::countr_zero(left))).impl();
    if (is_tracked_view(written)) {
      rebase_history(call, written, nullptr);
    } else {
      clear_history(written);
    }
  }
}

void GradRecorder::record(const Call& call, const Decision& decision, Tensor* outputs) {
  const size_t num_outputs = decision.outputs.size();
  if (call.op.grad == &not_differentiable || !any_floating(outputs, num_outputs)) {
    if (call.mutates != 0) {
      forget_old_values(call);
    } else if (call.op.view != nullptr) {
      track_view(call, decision, outputs[0]);
    }
    return;
  }
  const Ref<OpNode> node = OpNode::make(call, outputs, num_outputs);
  Edge* edge = node->edges().data();
  for (const Tensor* input : call.inputs) {
    if (input->defined() && input->impl().tracks_grad()) *edge = edge_of(*input);
    ++edge;
  }
  node->number();
  for (size_t i = 0; i < num_outputs; ++i) {
    if (!outputs[i].defined() || !is_floating(outputs[i].impl().meta->dtype)) continue;
    TensorImpl& output = outputs[i].impl();
    if (call.mutates != 0) {
      if (is_tracked_view(output)) {
        rebase_history(call, output, node);
      } else {
        set_history(output, node, static_cast<uint32_t>(i));
      }
      continue;
    }
    output.requires_grad = true;
    output.output_index = static_cast<uint32_t>(i);
    output.grad_fn = node;
  }
  if (call.op.view != nullptr && call.mutates == 0) track_view(call, decision, outputs[0]);
}

}  // namespace

std::unique_ptr<Recorder> make_recorder() {
  return std::make_unique<GradRecorder>();
}

}  // namespace flow::autograd
