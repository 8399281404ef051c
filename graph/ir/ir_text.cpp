#include "graph/ir/ir_text.h"

#include <algorithm>
#include <charconv>

namespace flow::graph {

namespace {

constexpr std::string_view kPhaseLetters = "FBU";

// The words for when a transfer starts, each followed by a space.
constexpr std::string_view kStartWords[] = {"", "with_bucket ", "background "};

std::string describe(const Value& value) {
  std::string text = str(value.shape, " ", value.dtype);
  if (value.placement.defined()) {
    text += str(" [", value.nd_sbp, " on ", value.placement, "]");
  } else {
    text += str(" ", value.device);
  }
  return text;
}

std::string id_list(std::span<const ValueId> ids) {
  std::string text;
  for (const ValueId id : ids) {
    text += text.empty() ? "" : ", ";
    text += id == kNoValue ? std::string("none") : str("%", id);
  }
  return text;
}

// A cursor over one line. Ids of values are less than `most_values`.
class Line {
 public:
  Line(std::string_view text, int64_t number, size_t most_values)
      : rest_(text), number_(number), most_values_(static_cast<int64_t>(most_values)) {}

  [[noreturn]] void fail(std::string_view wanted) const {
    throw InvalidArgument(
        str("[parse_graph] line ", number_, ": expected ", wanted, " at '", rest_, "'"));
  }

  bool starts_with(std::string_view word) const { return rest_.starts_with(word); }

  bool accept(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  void expect(std::string_view word) {
    if (!accept(word)) fail(str("'", word, "'"));
  }

  // Everything up to `stop`, which is consumed.
  std::string_view until(std::string_view stop) {
    const size_t at = rest_.find(stop);
    if (at == std::string_view::npos) fail(str("'", stop, "'"));
    const std::string_view part = rest_.substr(0, at);
    rest_.remove_prefix(at + stop.size());
    return part;
  }

  int64_t integer() {
    int64_t value = 0;
    const auto [end, status] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (status != std::errc()) fail("an integer");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  ValueId id() {
    if (accept("none")) return kNoValue;
    expect("%");
    const int64_t id = integer();
    if (id < 0 || id >= most_values_) fail(str("an id of a value before %", id));
    return static_cast<ValueId>(id);
  }

  // The id of a value that the line defines.
  ValueId defined_id() {
    const ValueId value = id();
    if (value == kNoValue) fail("the id of a value before");
    return value;
  }

  std::vector<ValueId> ids(std::string_view stop) {
    std::vector<ValueId> list;
    while (!accept(stop)) {
      if (!list.empty()) expect(", ");
      list.push_back(id());
    }
    return list;
  }

  bool at_end() const { return rest_.empty(); }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  int64_t number_;
  int64_t most_values_;
};

Value parse_value(Line& line) {
  Value value;
  line.expect("(");
  while (!line.accept(")")) {
    if (!value.shape.empty()) line.accept(", ") || line.accept(",");
    if (line.accept(")")) break;
    value.shape.push_back(line.integer());
  }
  line.expect(" ");
  std::string_view dtype = line.until(" ");
  value.dtype = parse_dtype(dtype);
  if (line.accept("[")) {
    value.nd_sbp = NdSbp::parse(line.until(" on "));
    internal::parse_field(line.until("]"), value.placement);
    value.device = value.placement.device_type();
  } else {
    value.device = line.accept("cpu") ? DeviceType::kCpu : (line.expect("cuda"), DeviceType::kCuda);
  }
  return value;
}

void set_value(Graph& graph, ValueId id, Value value) {
  if (graph.values.size() <= static_cast<size_t>(id)) {
    graph.values.resize(static_cast<size_t>(id) + 1);
  }
  graph.value(id) = std::move(value);
}

Node parse_node(Line& line, Graph& graph, std::vector<ValueId> outputs, const OpTable& ops) {
  Node node;
  node.outputs = std::move(outputs);
  const std::string_view name = line.until("(");
  node.op = ops.find(name);
  if (node.op == nullptr) line.fail(str("a known op, not '", name, "',"));
  node.inputs = line.ids(")");
  line.expect(" {");
  const std::string_view attrs = line.until("} : ");
  if (node.op->attrs != nullptr) {
    node.attrs.resize(node.op->attrs->size);
    node.op->attrs->parse(attrs, node.attrs.data());
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (i > 0) line.expect(", ");
    set_value(graph, node.outputs[i], parse_value(line));
  }
  line.expect(" @");
  const char letter = line.rest().empty() ? ' ' : line.rest()[0];
  const size_t phase = kPhaseLetters.find(letter);
  if (phase == std::string_view::npos) line.fail("a phase F, B or U");
  node.phase = static_cast<Phase>(phase);
  line.accept(line.rest().substr(0, 1));
  node.stage = line.integer();
  line.expect(" ");
  if (line.accept("draw ")) {
    node.draw = line.integer();
    line.expect(" ");
  }
  if (line.accept("transient ")) node.is_transient = true;
  for (const TransferStart start : {TransferStart::kWithBucket, TransferStart::kAtOnce}) {
    if (line.accept(kStartWords[static_cast<size_t>(start)])) node.transfer_start = start;
  }
  if (line.accept("over ")) {
    node.overwrites = line.integer();
    line.expect(" ");
  }
  if (line.accept("if ")) {
    node.guard = line.integer();
    line.expect(" ");
  }
  if (line.accept("in ")) node.module = line.until(" ");
  const std::string_view place = line.rest();
  const size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) line.fail("file:line");
  node.file = place.substr(0, colon);
  line.accept(place.substr(0, colon + 1));
  node.line = static_cast<uint32_t>(line.integer());
  return node;
}

}  // namespace

std::string to_string(const Graph& graph) {
  std::string text;
  for (const ValueId id : graph.inputs)
    text += str("input %", id, " : ", describe(graph.value(id)), "\n");
  for (const Capture& capture : graph.captures) {
    text += str("capture %", capture.initial, " : ", describe(graph.value(capture.initial)), "\n");
  }
  for (const Node& node : graph.nodes) {
    text +=
        str(id_list(node.outputs), " = ", node.op->name, "(", id_list(node.inputs), ") {",
            node.op->attrs == nullptr ? "" : node.op->attrs->to_string(node.raw_attrs()), "} : ");
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      text += str(i == 0 ? "" : ", ", describe(graph.value(node.outputs[i])));
    }
    text += str(
        " @", kPhaseLetters[static_cast<size_t>(node.phase)], node.stage, " ",
        node.draw < 0 ? "" : str("draw ", node.draw, " "), node.is_transient ? "transient " : "",
        kStartWords[static_cast<size_t>(node.transfer_start)],
        node.overwrites < 0 ? "" : str("over ", node.overwrites, " "),
        node.guard < 0 ? "" : str("if ", node.guard, " "),
        node.module.empty() ? "" : str("in ", node.module, " "), node.file, ":", node.line, "\n");
  }
  for (const Capture& capture : graph.captures) {
    if (capture.final_value != capture.initial) {
      text += str("write %", capture.initial, " <- %", capture.final_value, "\n");
    }
  }
  if (graph.num_draws > 0) text += str("draws ", graph.num_draws, "\n");
  text += str("return ", id_list(graph.outputs), "\n");
  return text;
}

Graph parse_graph(std::string_view text, const OpTable& ops) {
  Graph graph;
  int64_t number = 0;
  // The definition of a value takes more than a byte, and passes remove values from between others.
  const size_t most_values = text.size() + (1 << 16);
  while (!text.empty()) {
    const size_t end = text.find('\n');
    Line line(text.substr(0, end), ++number, most_values);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.at_end()) continue;
    if (line.accept("input ")) {
      const ValueId id = line.defined_id();
      line.expect(" : ");
      graph.inputs.push_back(id);
      set_value(graph, id, parse_value(line));
    } else if (line.accept("capture ")) {
      const ValueId id = line.defined_id();
      line.expect(" : ");
      graph.captures.push_back({id, id});
      set_value(graph, id, parse_value(line));
    } else if (line.accept("write ")) {
      const ValueId initial = line.id();
      line.expect(" <- ");
      const ValueId final_value = line.id();
      bool found = false;
      for (Capture& capture : graph.captures) {
        if (capture.initial != initial) continue;
        capture.final_value = final_value;
        found = true;
      }
      if (!found) line.fail("the id of a capture");
    } else if (line.accept("draws ")) {
      graph.num_draws = line.integer();
    } else if (line.accept("return")) {
      while (!line.at_end()) {
        if (!line.accept(", ")) line.expect(" ");
        graph.outputs.push_back(line.id());
      }
    } else {
      std::vector<ValueId> outputs = line.ids(" = ");
      if (std::find(outputs.begin(), outputs.end(), kNoValue) != outputs.end())
        line.fail("the ids of values before");
      graph.nodes.push_back(parse_node(line, graph, std::move(outputs), ops));
    }
  }
  return graph;
}

}  // namespace flow::graph
