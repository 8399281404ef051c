#include "tools/flow_plan/dot.h"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "tools/flow_plan/step_names.h"

namespace flow::tools {

namespace {

using graph::BufferId;
using graph::Graph;
using graph::Program;
using graph::Step;
using graph::ValueId;

// The text between quotes. Names of ops, modules and files come from a file.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return result + '"';
}

constexpr const char* kHead =
    "digraph plan {\n"
    "  node [shape=box, fontname=\"sans-serif\", fontsize=11];\n"
    "  edge [fontname=\"sans-serif\", fontsize=9];\n";

std::string node(const std::string& id, std::string_view label, const char* shape = nullptr) {
  return str(id, " [label=", quoted(label),
             shape == nullptr ? "" : ", shape=", shape == nullptr ? "" : shape, "];\n");
}

std::string edge(const std::string& from, const std::string& to, std::string_view label) {
  return str("  ", from, " -> ", to, " [label=", quoted(label), "];\n");
}

std::string value_text(const graph::Value& value) {
  std::string text = str(value.shape, ' ', value.dtype);
  if (value.placement.defined()) text += str('\n', value.nd_sbp, " on ", value.placement);
  return text;
}

std::string label_of(std::string_view op, const std::string& module, const std::string& line) {
  std::string text(op);
  if (!module.empty()) text += '\n' + module;
  if (!line.empty()) text += '\n' + line;
  return text;
}

}  // namespace

std::string dot_of(const Graph& graph) {
  std::vector<std::string> makers(graph.values.size());  // the node of each value
  std::string outside, stages, edges;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    makers[static_cast<size_t>(graph.inputs[i])] = str("in", i);
    outside += "  " + node(str("in", i), str("input ", i), "ellipse");
  }
  for (size_t i = 0; i < graph.captures.size(); ++i) {
    makers[static_cast<size_t>(graph.captures[i].initial)] = str("outside", i);
    outside += "  " + node(str("outside", i), str("tensor from outside ", i), "cylinder");
  }
  std::map<int64_t, std::string> by_stage;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const graph::Node& it = graph.nodes[i];
    const std::string file = it.file.substr(it.file.find_last_of('/') + 1);
    const std::string line = it.line == 0 ? "" : str(file, ':', it.line);
    by_stage[it.stage] += "    " + node(str("n", i), label_of(it.op->name, it.module, line));
    for (const ValueId id : it.inputs) {
      if (id == graph::kNoValue || makers[static_cast<size_t>(id)].empty()) continue;
      edges += edge(makers[static_cast<size_t>(id)], str("n", i), value_text(graph.value(id)));
    }
    for (const ValueId id : it.outputs)
      makers[static_cast<size_t>(id)] = str("n", i);
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId id = graph.outputs[i];
    outside += "  " + node(str("out", i), str("output ", i), "ellipse");
    edges += edge(makers[static_cast<size_t>(id)], str("out", i), value_text(graph.value(id)));
  }
  for (size_t i = 0; i < graph.captures.size(); ++i) {
    const graph::Capture& capture = graph.captures[i];
    if (capture.initial == capture.final_value) continue;
    edges += str("  ", makers[static_cast<size_t>(capture.final_value)], " -> outside", i,
                 " [style=dashed];\n");
  }
  for (const auto& [stage, nodes] : by_stage) {
    stages += by_stage.size() == 1
                  ? nodes
                  : str("  subgraph cluster_", stage < 0 ? "none" : str(stage),
                        " {\n    label=", quoted(str("stage ", stage)), ";\n", nodes, "  }\n");
  }
  return kHead + outside + stages + edges + "}\n";
}

std::string dot_of(const Program& program) {
  std::string outside, steps, edges;
  std::map<BufferId, std::string> writers;  // by root
  for (size_t i = 0; i < program.externals.size(); ++i) {
    const std::string name = str("x", i);
    writers[program.root_of(program.externals[i])] = name;
    outside +=
        "  " + node(name, str(name, '\n', program.buffer(program.externals[i]).meta->local_shape),
                    "cylinder");
  }
  const graph::ProgramRuns runs(program);
  for (size_t b = 0; b < runs.blocks().size(); ++b) {
    const graph::Block& block = runs.blocks()[b];
    const bool has_blocks = !program.blocks.empty();
    if (has_blocks) steps += str("  subgraph cluster_", b, " {\n    label=\"block ", b, "\";\n");
    for (size_t i = block.first_step; i < block.end_step; ++i) {
      const Step& step = program.steps[i];
      const std::string name = str("s", i);
      steps += (has_blocks ? "    " : "  ") +
               node(name, label_of(step.name(), step.module, line_of(step)));
      for (const BufferId id : step.inputs) {
        if (id == graph::kNoBuffer) continue;
        const auto writer = writers.find(program.root_of(id));
        if (writer == writers.end()) continue;
        const TensorMeta& meta = *program.buffer(id).meta;
        edges += edge(writer->second, name, str(meta.local_shape, ' ', meta.dtype));
      }
      for (const BufferId id : step.outputs) {
        std::string& writer = writers[program.root_of(id)];
        const bool is_outside = program.buffer(program.root_of(id)).external >= 0;
        if (is_outside && writer.starts_with('x'))
          edges += str("  ", name, " -> ", writer, " [style=dashed];\n");
        writer = name;
      }
    }
    if (has_blocks) steps += "  }\n";
  }
  return kHead + outside + steps + edges + "}\n";
}

}  // namespace flow::tools
