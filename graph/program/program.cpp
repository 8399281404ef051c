#include "graph/program/program.h"

#include "core/error.h"

namespace flow::graph {

namespace {
// One visitor made of several functions, for std::visit.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

std::string buffer_name(const Program& program, BufferId id) {
  if (id == kNoBuffer) return "none";
  const Buffer& buffer = program.buffer(id);
  if (buffer.external >= 0) return str("x", buffer.external);
  if (buffer.base != kNoBuffer) {
    std::string name = str("b", id, "=", buffer_name(program, buffer.base), "+", buffer.offset);
    if (buffer.begins != kNoTable) name += str("+t", buffer.begins);
    return name;
  }
  if (buffer.arena_offset < 0) return str("b", id);
  return buffer.frame < 0 ? str("b", id, "@", buffer.arena_offset)
                          : str("b", id, "@f", buffer.frame, "+", buffer.arena_offset);
}

void add_step(std::string& text, const Program& program, const Step& step);
void add_runs(std::string& text, const Program& program);

// Whom a step communicates with, or what it waits for.
std::string partner_of(const Step& step) {
  if (const auto* send = step.as<SendStep>()) return str(" peer ", send->peer, " tag ", send->tag);
  if (const auto* receive = step.as<ReceiveStep>()) {
    return str(" peer ", receive->peer, " tag ", receive->tag);
  }
  if (const auto* wait = step.as<WaitStep>()) return str(" for step ", wait->started);
  return {};
}
}  // namespace

bool Step::starts() const {
  return as<SendStep>() != nullptr || as<ReceiveStep>() != nullptr || in_background;
}

const OpCall* Step::op_call() const {
  if (const auto* kernel = as<KernelStep>()) return &kernel->op_call;
  if (const auto* collective = as<CollectiveStep>()) return &collective->op_call;
  return nullptr;
}

const boxing::Route* Step::route() const {
  if (const auto* collective = as<CollectiveStep>()) return collective->route.get();
  if (const auto* bucket = as<BucketStep>()) return bucket->route.get();
  return nullptr;
}

std::string_view Step::name() const {
  return std::visit(
      Overloaded{
          [](const KernelStep& it) { return std::string_view(it.op_call.op->name); },
          [](const CollectiveStep& it) { return std::string_view(it.op_call.op->name); },
          [](const BucketStep& it) {
            return std::string_view(it.route->steps[0].is_mean ? "mean_bucket" : "sum_bucket");
          },
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
  if (program.runs.empty()) {
    for (const Step& step : program.steps)
      add_step(text, program, step);
    return text;
  }
  for (size_t i = 0; i < program.blocks.size(); ++i) {
    const Block& block = program.blocks[i];
    text += str("block ", i, '\n');
    for (size_t step = block.first_step; step < block.end_step; ++step)
      add_step(text += "  ", program, program.steps[step]);
  }
  add_runs(text, program);
  return text;
}

namespace {

void add_step(std::string& text, const Program& program, const Step& step) {
  text += str(step.in_background ? "start " : "", step.name(), '(');
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
  if (step.turn == StepTurn::kFirst) text += " in the first run";
  if (step.turn == StepTurn::kLater) text += " in later runs";
  text += partner_of(step) + '\n';
}

// One line for each part: the blocks that run, with their micro-batches.
void add_runs(std::string& text, const Program& program) {
  size_t part = 0;
  for (size_t i = 0; i < program.runs.size(); ++i) {
    for (; part < program.parts.size() && program.parts[part].first_run == i; ++part)
      text += str(part == 0 ? "" : "\n", program.parts[part].name, ':');
    const BlockRun& run = program.runs[i];
    text += str(' ', run.block);
    if (run.micro_batch != kNoMicroBatch) text += str('.', run.micro_batch);
  }
  text += '\n';
  for (size_t i = 0; i < program.frames.size(); ++i) {
    text += str("frame ", i, ", ", program.frames[i].bytes, " bytes at");
    for (const int64_t offset : program.frames[i].arena_offsets)
      text += str(' ', offset);
    text += '\n';
  }
  for (size_t i = 0; i < program.tables.size(); ++i) {
    text += str("table ", i, ':');
    for (const int64_t number : program.tables[i])
      text += str(' ', number);
    text += '\n';
  }
}

}  // namespace

ProgramRuns::ProgramRuns(const Program& program)
    : whole_{0, program.steps.size()}, blocks_(program.blocks), runs_(program.runs) {
  if (!runs_.empty()) return;
  blocks_ = {&whole_, 1};
  runs_ = {&once_, 1};
}

}  // namespace flow::graph
