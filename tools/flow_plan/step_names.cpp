#include "tools/flow_plan/step_names.h"

#include "core/error.h"

namespace flow::tools {

namespace {

using graph::BufferId;
using graph::Program;
using graph::Step;

// The root of a buffer, and where the buffer begins in it, in bytes.
std::pair<BufferId, int64_t> place_of(const Program& program, BufferId id) {
  int64_t begin = 0;
  for (; program.buffer(id).base != graph::kNoBuffer; id = program.buffer(id).base) {
    const graph::Buffer& view = program.buffer(id);
    begin += view.offset * static_cast<int64_t>(dtype_size(view.meta->dtype));
  }
  return {id, begin};
}

}  // namespace

std::string Origin::text() const {
  std::string text = op;
  if (!module.empty()) text += " in " + module;
  if (!line.empty()) text += ", " + line;
  return text;
}

std::string Origin::place() const {
  if (!module.empty()) return module;
  return line.empty() ? op : line;
}

std::string line_of(const Step& step) {
  if (step.line == 0) return {};
  return str(step.file.substr(step.file.find_last_of('/') + 1), ':', step.line);
}

Origin origin_of(const Step& step) {
  return {std::string(step.name()), step.module, line_of(step)};
}

Makers::Makers(const Program& program) : program_(program) {
  for (size_t i = 0; i < program.steps.size(); ++i) {
    for (const BufferId id : program.steps[i].outputs) {
      const auto place = place_of(program, id);
      makers_.try_emplace(place, i);
      first_makers_.try_emplace(place.first, i);
    }
  }
}

int64_t Makers::maker(BufferId root, int64_t begin) const {
  const auto exact = makers_.find({root, begin});
  if (exact != makers_.end()) return static_cast<int64_t>(exact->second);
  const auto first = first_makers_.find(root);
  return first == first_makers_.end() ? -1 : static_cast<int64_t>(first->second);
}

Origin Makers::origin_of_step(size_t index, int depth) const {
  constexpr int kDeepest = 8;  // of copies of copies
  const Step& step = program_.steps[index];
  const bool is_added = step.line == 0 && !step.inputs.empty() && depth < kDeepest;
  if (!is_added || step.inputs.back() == graph::kNoBuffer) return tools::origin_of(step);
  const auto [root, begin] = place_of(program_, step.inputs.back());
  const int64_t source = maker(root, begin);
  if (source < 0 || static_cast<size_t>(source) == index) return tools::origin_of(step);
  return origin_of_step(static_cast<size_t>(source), depth + 1);
}

Origin Makers::origin_of(BufferId root, int64_t begin) const {
  const int64_t step = maker(root, begin);
  if (step < 0) return {.op = "never written", .module = {}, .line = {}};
  return origin_of_step(static_cast<size_t>(step), 0);
}

}  // namespace flow::tools
