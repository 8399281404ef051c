#include "nn/graphs/inspect.h"

#include "autograd/recompute.h"
#include "core/dispatch.h"
#include "ops/creation/inspect_op.h"

namespace flow {

namespace {

Tensor inspect(const OpDef& op, const TensorArg& x, std::string_view name) {
  if (is_recomputing()) return x.tensor();
  const std::string* module = thread_state().module_path;
  const ops::InspectAttrs attrs{.name = ops::ShortText(name),
                                .module = ops::ShortText(module != nullptr ? *module : "")};
  return dispatch(op, {&x.tensor()}, attrs, x.site());
}

}  // namespace

Tensor graph_print(const TensorArg& x, std::string_view name) {
  return inspect(ops::kGraphPrint, x, name);
}

Tensor check_finite(const TensorArg& x, std::string_view name) {
  return inspect(ops::kCheckFinite, x, name);
}

}  // namespace flow
