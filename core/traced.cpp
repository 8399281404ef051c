#include "core/traced.h"

#include <utility>

#include "core/context.h"
#include "core/dispatch.h"
#include "core/error.h"

namespace flow {

Tensor alias_of(const Tensor& tensor) {
  Ref<TensorImpl> alias = tensor.impl().alias();
  Interpreter* trace = thread_state().trace;
  if (trace != nullptr && alias->trace == nullptr) [[unlikely]] {
    alias->trace = trace->slot_of(tensor);
    alias->storage = {};
    alias->offset = 0;
  }
  return Tensor(std::move(alias));
}

Site line_that_made(const Tensor& tensor) {
  const auto* slot = dynamic_cast<const SitedTraceSlot*>(tensor.impl().trace.get());
  return slot == nullptr ? Site::none() : slot->made_at;
}

void throw_traced(const char* op, const Tensor& tensor, Site site) {
  const Site made_at = line_that_made(tensor);
  Site where = user_site(site);
  if (!where.is_known() || where.is_inside_library()) where = made_at;
  const std::string made =
      made_at.is_known() ? str(", made at ", made_at.file(), ":", made_at.line(), ",") : "";
  if (tensor.impl().trace == nullptr) {
    throw InvalidArgument(str("[", op, "] the values of ", tensor.meta(), " from outside are read ",
                              "while a graph is traced, and its plan would keep them; read them ",
                              "before, or compute with ops instead"),
                          where);
  }
  if (thread_state().trace != nullptr) {
    throw InvalidArgument(str("[", op, "] the values of ", tensor.meta(), made,
                              " are not known while a graph is traced; return the tensor from the "
                              "graph, or compute with ops instead"),
                          where);
  }
  throw InvalidArgument(
      str("[", op, "] a traced tensor, ", tensor.meta(), made,
          " is used after its trace; it has no values: return what you need from build()"),
      where);
}

}  // namespace flow
