#include "graph/program/program.h"

#include "core/error.h"
#include "core/overloaded.h"

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

// Whom a step communicates with, or what it waits for.
std::string partner_of(const Step& step) {
  if (const auto* send = step.as<SendStep>()) return str(" peer ", send->peer, " tag ", send->tag);
  if (const auto* receive = step.as<ReceiveStep>()) {
    return str(" peer ", receive->peer, " tag ", receive->tag);
  }
  if (const auto* wait = step.as<WaitStep>()) return str(" for step ", wait->send);
  return {};
}
}  // namespace

const OpCall* Step::op_call() const {
  if (const auto* kernel = as<KernelStep>()) return &kernel->op_call;
  if (const auto* collective = as<CollectiveStep>()) return &collective->op_call;
  return nullptr;
}

std::string_view Step::name() const {
  return std::visit(
      Overloaded{
          [](const KernelStep& it) { return std::string_view(it.op_call.op->name); },
          [](const CollectiveStep& it) { return std::string_view(it.op_call.op->name); },
          [](const ConvertStep&) { return std::string_view("to_strided"); },
          [](const SendStep&) { return std::string_view("send"); },
          [](const ReceiveStep&) { return std::string_view("recv"); },
          [](const WaitStep&) { return std::string_view("wait"); },
      },
      body);
}

std::string to_string(const Program& program) {
  return to_string(program, program.rank);
}

std::string to_string(const Program& program, int64_t rank) {
  std::string text = str("rank ", rank, ", arena ", program.arena_bytes, " bytes\n");
  for (const Step& step : program.steps) {
    text += str(step.name(), '(');
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
    text += partner_of(step) + '\n';
  }
  return text;
}

}  // namespace flow::graph
