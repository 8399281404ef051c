#include "graph/ir/place.h"

#include <mutex>
#include <set>

namespace flow::graph {

const std::string* interned(const std::string& text) {
  static std::mutex mutex;
  static auto& texts = *new std::set<std::string>;  // outlives static objects
  const std::lock_guard lock(mutex);
  return &*texts.insert(text).first;
}

Site site_of(const Node& node) {
  return node.line == 0 ? Site::none() : Site::here(interned(node.file)->c_str(), node.line);
}

}  // namespace flow::graph
