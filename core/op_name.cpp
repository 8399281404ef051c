#include "core/op_name.h"

#include <string_view>

#include "core/op.h"

namespace flow {

std::string in_place_name(const OpDef& op) {
  std::string_view name = op.name;
  if (name.ends_with('_')) return op.name;
  for (const std::string_view suffix : {"_scalar", "_fill"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  return std::string(name) + "_";
}

}  // namespace flow
