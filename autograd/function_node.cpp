#include "autograd/function_node.h"

#include <algorithm>

#include "autograd/layout.h"
#include "core/calls/autocast_scope.h"
#include "core/error.h"
#include "ops/elementwise/cast.h"

namespace flow::autograd {

FunctionNode::FunctionNode(const Block& block, const NodeScope& scope, std::string name,
                           FunctionBackward backward, std::unique_ptr<FunctionContext> context,
                           std::vector<bool> is_tensor)
    : Node(block, scope),
      name_(std::move(name)),
      backward_(backward),
      context_(std::move(context)),
      is_tensor_(std::move(is_tensor)) {}

void FunctionNode::apply(const Tensor* dy, Tensor* dx) {
  std::vector<Tensor> gradients(dy, dy + outputs().size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    const MetaPtr meta = outputs()[i].meta;
    if (!gradients[i].defined() && context_->materializes_ && meta != nullptr) {
      gradients[i] = zeros_for(*meta, scope().user_site());
    }
  }
  const AutocastScope as_in_forward(autocast_);
  std::vector<Tensor> result = backward_(*context_, std::move(gradients));
  place_gradients(result, dx);
  // Under autocast, backward computes in the narrow dtype.
  for (size_t i = 0; i < edges().size(); ++i) {
    if (!needs(i) || !dx[i].defined() || !is_floating(dx[i].dtype())) continue;
    if (const DType wanted = edges()[i].meta->dtype; is_floating(wanted))
      dx[i] = cast(dx[i], wanted);
  }
}

void FunctionNode::place_gradients(std::vector<Tensor>& given, Tensor* dx) const {
  check_number_of_gradients(given.size());
  if (given.size() == edges().size()) {
    std::ranges::move(given, dx);
    return;
  }
  for (size_t i = 0; i < is_tensor_.size(); ++i) {
    if (is_tensor_[i]) {
      *dx++ = std::move(given[i]);
    } else if (given[i].defined()) {
      throw InvalidArgument(str("[", name_, "] backward gave a gradient for argument ", i,
                                ", which is not a tensor; return an undefined Tensor() for it"));
    }
  }
}

void FunctionNode::check_number_of_gradients(size_t given) const {
  if (given == edges().size() || given == is_tensor_.size()) return;
  throw InvalidArgument(str("[", name_, "] backward returned ", given, " gradients; the function ",
                            "has ", edges().size(), " tensor arguments (", is_tensor_.size(),
                            " arguments in all); return one gradient for each"));
}

void FunctionNode::free_saved() {
  if (saved_.empty()) return;
  is_released_ = true;
  saved_.clear();
}

std::vector<Tensor> FunctionNode::saved() const {
  if (is_released_) {
    throw InvalidArgument(str("[", name_,
                              "] the saved tensors are gone: an earlier backward freed ",
                              "them; call that backward with .retain_graph = true"));
  }
  const bool is_recording = is_grad_enabled();
  std::vector<Tensor> result;
  for (const Saved& saved : saved_) {
    Node* history = nullptr;
    uint32_t index = saved.index;
    if (is_recording && saved.role == Role::kOutput) {
      history = const_cast<FunctionNode*>(this);
    } else if (is_recording && saved.role == Role::kInput) {
      history = edges()[saved.index].node.get();
      index = edges()[saved.index].index;
    }
    result.push_back(saved.tensor.unpack(*this, "saved tensor", static_cast<int>(result.size()),
                                         history, index));
  }
  return result;
}

}  // namespace flow::autograd
