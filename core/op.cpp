#include "core/op.h"

namespace flow {

const TensorMeta& OpContext::input(int i) const {
  check(has_input(i), "input ", i, " is undefined; give a tensor");
  return *inputs_[static_cast<size_t>(i)];
}

void OpContext::fail(const std::string& message) const {
  std::string received;
  for (const MetaPtr meta : inputs_) {
    received += received.empty() ? "" : ", ";
    received += meta == nullptr ? "undefined" : str(*meta);
  }
  throw InvalidArgument(
      str("[", op_.name, "] ", message, received.empty() ? "" : str("; received ", received)));
}

void not_differentiable(GradContext& /*ctx*/) {
  throw InternalError("[autograd] a gradient was asked of an op that has none");
}

void not_twice_differentiable(GradContext& ctx) {
  throw Unsupported(str("[", ctx.op_name(),
                        "] the result of this op is a gradient that cannot be differentiated "
                        "again; leave its function out of what create_graph differentiates, or "
                        "compose the function of other ops"));
}

void only_broadcast(SbpContext& /*ctx*/) {}

void cannot_write_back(const Tensor& base, const Tensor& /*part*/, const void* /*attrs*/,
                       Site /*site*/) {
  throw InternalError(str(
      "[view] a write to a view that has no inverse was not refused; the base is ", base.meta()));
}

std::string in_place_name(const OpDef& op) {
  std::string_view name = op.name;
  if (name.ends_with('_')) return op.name;
  for (const std::string_view suffix : {"_scalar", "_fill"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  return std::string(name) + "_";
}

void OpTable::add(const OpDef& op) {
  const std::string name = op.name;
  if (by_name_.contains(name)) {
    throw InvalidArgument(str("[register_op] op '", name, "' exists already; choose another name"));
  }
  const char* missing = op.infer == nullptr                              ? "infer"
                        : op.sbp == nullptr                              ? "sbp"
                        : op.grad == nullptr                             ? "grad"
                        : op.view != nullptr && op.write_back == nullptr ? "write_back"
                                                                         : nullptr;
  if (missing != nullptr) {
    throw InvalidArgument(str("[register_op] op '", name, "' has no ", missing,
                              " rule; write one, or refuse it with not_differentiable, "
                              "not_twice_differentiable, only_broadcast or cannot_write_back"));
  }
  by_name_.emplace(name, &op);
  order_.push_back(&op);
}

const OpDef* OpTable::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

}  // namespace flow
