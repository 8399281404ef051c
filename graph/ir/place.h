// The places of traced calls in the user's program, for errors.
#pragma once

#include <string>

#include "core/error.h"
#include "graph/ir/ir.h"

namespace flow::graph {

// The copy of a file name or module path that lives for ever, as errors and reports need it.
const std::string* interned(const std::string& text);

// The line that called the op of a node; none for a node that was not traced.
Site site_of(const Node& node);

// Throws an error about a node, with the line and module path of its call.
template <class E>
[[noreturn]] void throw_at(const Node& node, const std::string& message) {
  E error(message);
  error.add_place(site_of(node), interned(node.module));
  throw E(error);
}

}  // namespace flow::graph
