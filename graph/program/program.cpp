#include "graph/program/program.h"

#include "core/error.h"

namespace flow::graph {

namespace {
std::string buffer_name(const Program& program, BufferId id) {
  if (id == kNoBuffer) return "none";
  const Buffer& buffer = program.buffer(id);
  if (buffer.external >= 0) return str("x", buffer.external);
  if (buffer.base != kNoBuffer) {
    return str("b", id, "=", buffer_name(program, buffer.base), "+", buffer.offset);
  }
  return buffer.arena_offset < 0 ? str("b", id) : str("b", id, "@", buffer.arena_offset);
}
}  // namespace

std::string to_string(const Program& program) {
  return to_string(program, program.rank);
}

std::string to_string(const Program& program, int64_t rank) {
  static constexpr const char* kNames[] = {"kernel", "to_strided", "send", "recv", "wait"};
  std::string text = str("rank ", rank, ", arena ", program.arena_bytes, " bytes\n");
  for (const Step& step : program.steps) {
    text += step.kind == StepKind::kKernel ? step.op->name : kNames[static_cast<size_t>(step.kind)];
    text += '(';
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      text += str(i == 0 ? "" : ", ", buffer_name(program, step.inputs[i]));
    }
    text += ')';
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const Buffer& output = program.buffer(step.outputs[i]);
      text += str(i == 0 ? " -> " : ", ", buffer_name(program, step.outputs[i]), " ",
                  output.meta->local_shape);
    }
    if (step.guard != kNoBuffer) text += str(" if ", buffer_name(program, step.guard));
    if (step.peer >= 0) text += str(" peer ", step.peer, " tag ", step.tag);
    text += '\n';
  }
  return text;
}

}  // namespace flow::graph
