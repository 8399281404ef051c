#include "autograd/function.h"

#include <algorithm>
#include <cstdlib>

#include <cxxabi.h>

#include "autograd/autocast.h"
#include "autograd/current_version.h"
#include "autograd/function_node.h"
#include "autograd/layout.h"
#include "autograd/tensor_autograd.h"
#include "core/calls/substitution.h"
#include "core/error.h"
#include "core/view_link.h"

namespace flow {

namespace {

std::string type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  return text ? text.get() : type.name();
}

// The position of `tensor` in `tensors`; tensors.size() if it is not there.
size_t find_same(const std::vector<Tensor>& tensors, const Tensor& tensor) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const Tensor& other) { return other.is_same(tensor); });
  return static_cast<size_t>(found - tensors.begin());
}

// True if a write to one of the tensors is also a write to the other one.
bool shows(const TensorImpl& view, const TensorImpl& base) {
  if (autograd::shares_memory(view, base)) return true;
  const ViewLink* link = find_view_link(view);
  return link != nullptr && shows(link->base.impl(), base);
}

}  // namespace

std::vector<Tensor> FunctionContext::saved() const {
  return node_ != nullptr ? node_->saved() : to_save_;
}

bool FunctionContext::needs_input_grad(size_t i) const {
  if (i >= inputs_need_grad_.size()) {
    throw InvalidArgument(str("[needs_input_grad] tensor argument ", i,
                              " does not exist; the function received ", inputs_need_grad_.size(),
                              " tensors; count them from 0"));
  }
  return node_ != nullptr ? node_->needs(i) : inputs_need_grad_[i];
}

void FunctionContext::check_value_type(const std::type_info& wanted) const {
  if (value_type_ != nullptr && *value_type_ == wanted) return;
  throw InvalidArgument(str("[FunctionContext] get() asks for a value of type ", type_name(wanted),
                            "; set() was given ",
                            value_type_ == nullptr ? std::string("none") : type_name(*value_type_),
                            "; use the same type in both"));
}

namespace autograd {

FunctionCall::FunctionCall(const std::type_info& type, FunctionBackward backward, Site site)
    : type_(type),
      backward_(backward),
      site_(site),
      context_(std::make_unique<FunctionContext>()) {}

FunctionCall::~FunctionCall() = default;

void FunctionCall::add_argument(const Tensor& tensor) {
  inputs_.push_back(Substitution::of(tensor));
  is_tensor_.push_back(true);
}

void FunctionCall::add_argument(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors)
    add_argument(tensor);
}

void FunctionCall::begin() {
  for (const Tensor& input : inputs_) {
    // Otherwise an op of forward would do so, which looks like a write to the input.
    if (input.defined() && has_view_links()) refresh_view(input);
    const bool needs_grad = input.defined() && input.requires_grad() && is_grad_enabled();
    context_->inputs_need_grad_.push_back(needs_grad);
    is_recorded_ |= needs_grad;
    versions_.push_back(input.defined() ? current_version(input) : 0);
  }
}

void FunctionCall::finish(std::vector<Tensor>& outputs) {
  if (!is_recorded_) return;
  const std::string name = type_name(type_);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].defined() || current_version(inputs_[i]) == versions_[i]) continue;
    throw InvalidArgument(
        str("[", name, "] forward wrote its input ", i,
            " in place, which backward cannot differentiate; clone() it in forward"),
        user_site(site_));
  }
  const std::vector<Tensor> results = outputs;
  const std::vector<Tensor> to_save = std::move(context_->to_save_);
  const std::vector<Tensor> without_gradient = std::move(context_->non_differentiable_);
  context_->to_save_.clear();
  context_->non_differentiable_.clear();
  FunctionContext& context = *context_;
  const auto node =
      make_node<FunctionNode>(inputs_.size(), outputs.size(), 0, NodeScope::current(site_), name,
                              backward_, std::move(context_), std::move(is_tensor_));
  context.node_ = node.get();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].defined()) continue;
    node->edges()[i] = edge_of(inputs_[i]);
  }
  node->number();
  for (const Tensor& given : to_save) {
    const Tensor& tensor = Substitution::of(given);
    const size_t input = find_same(inputs_, tensor);
    const size_t output = find_same(results, tensor);
    using Role = FunctionNode::Role;
    const bool is_input = tensor.defined() && input < inputs_.size();
    const bool is_output = tensor.defined() && output < results.size();
    const Role role = is_input ? Role::kInput : is_output ? Role::kOutput : Role::kIntermediate;
    node->save({SavedTensor(tensor), role, static_cast<uint32_t>(is_input ? input : output)});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) continue;
    // A new handle, because forward may have returned an input or a tensor that others hold.
    outputs[i] = Tensor(outputs[i].impl().alias());
    node->outputs()[i].meta = outputs[i].meta_ptr();
    if (!is_floating(outputs[i].dtype()) ||
        find_same(without_gradient, results[i]) < without_gradient.size()) {
      continue;
    }
    TensorImpl& output = outputs[i].impl();
    set_history(output, node, static_cast<uint32_t>(i));
    const auto shown = std::ranges::find_if(inputs_, [&](const Tensor& input) {
      return input.defined() && shows(output, input.impl());
    });
    if (shown == inputs_.end()) continue;
    output.is_untracked_view = true;
    TensorAutograd& slot = make_autograd(output);
    // Not an output of another function in between: a long chain of them would end recursively.
    const TensorAutograd* inner = find_autograd(shown->impl());
    slot.shown_input = inner != nullptr && inner->shown_input ? inner->shown_input
                                                              : Ref<TensorImpl>(&shown->impl());
    slot.shown_history = slot.shown_input->grad_fn.get();
  }
}

}  // namespace autograd

}  // namespace flow
