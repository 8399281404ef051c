// Parses expressions such as x[1:4, ::2], x[..., None, 0], x[i, j], x[m] and x[[0, 2]].
#include <charconv>

#include "ops/creation/creation.h"
#include "ops/index/index.h"
#include "tools/flow_conform/case.h"
#include "tools/flow_conform/layout.h"

namespace flow::conform {

namespace {

std::string without_spaces(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ') out += c;
  }
  return out;
}

// The parts between commas (or another separator) that are not inside brackets.
std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == separator && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::optional<int64_t> number_in(const std::string& text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  if (text.empty() || status != std::errc() || stop != end) return std::nullopt;
  return number;
}

Slice::Bound bound_in(const std::string& text) {
  if (text.empty() || text == "None") return None;
  const auto number = number_in(text);
  if (!number) throw NotSupported("the slice bound " + text);
  return *number;
}

IndexArg slice_in(const std::string& text) {
  std::vector<std::string> parts = parts_of(text, ':');
  if (parts.size() > 3) throw BadSpec("the slice " + text + " has too many parts");
  parts.resize(3);
  const auto step = number_in(parts[2]);
  if (!step && !parts[2].empty() && parts[2] != "None")
    throw NotSupported("the slice step " + parts[2]);
  return Slice(bound_in(parts[0]), bound_in(parts[1]), step.value_or(1));
}

Tensor list_in(const std::string& text) {
  std::vector<int64_t> numbers;
  const std::string inner = text.substr(1, text.size() - 2);
  if (!inner.empty()) {
    for (const std::string& part : parts_of(inner, ',')) {
      const auto number = number_in(part);
      if (!number) throw NotSupported("the index " + text);
      numbers.push_back(*number);
    }
  }
  return tensor(numbers, {static_cast<int64_t>(numbers.size())});
}

// One index of x.
IndexArg item_in(Case& c, const Tensor& x, const std::string& text) {
  if (text == "..." || text == "Ellipsis") return Ellipsis;
  if (text == "None" || text == "newaxis" || text == "torch.newaxis") return None;
  if (const auto number = number_in(text)) return *number;
  if (text.starts_with('[') && text.ends_with(']')) return like(x, list_in(text));
  if (text.find(':') != std::string::npos) return slice_in(text);
  const Tensor indices = c.named(text.c_str());
  if (!indices.defined()) throw NotSupported("the index " + text);
  return indices;
}

}  // namespace

Tensor index_by_expression(Case& c) {
  const std::string text = without_spaces(c.expr());
  const size_t open = text.find('[');
  if (open == std::string::npos || !text.ends_with(']')) {
    throw NotSupported("the expression " + c.expr());
  }
  const Tensor x = c.named(text.substr(0, open).c_str());
  if (!x.defined()) throw BadSpec("the case has no input " + text.substr(0, open));
  std::string inner = text.substr(open + 1, text.size() - open - 2);
  if (inner.starts_with('(') && inner.ends_with(')')) inner = inner.substr(1, inner.size() - 2);
  if (inner.ends_with(',')) inner.pop_back();
  std::vector<IndexArg> indices;
  if (!inner.empty()) {
    for (const std::string& part : parts_of(inner, ','))
      indices.push_back(item_in(c, x, part));
  }
  return index(x, IndexList(std::move(indices)));
}

}  // namespace flow::conform
