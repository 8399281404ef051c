// How the output of flow-plan names steps and the memory that they make.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "graph/program/program.h"

namespace flow::tools {

// What made some memory, or takes some time: an op at a line, in a module.
struct Origin {
  std::string op;
  std::string module;  // dotted path; empty outside of modules
  std::string line;    // "train.cpp:12"; empty for steps that the compiler added without a line
  friend auto operator<=>(const Origin&, const Origin&) = default;

  // "linear in model.fc1, train.cpp:12".
  std::string text() const;
  // The module, or else the line or the op.
  std::string place() const;
};

// "train.cpp:12"; the last part of the path. Empty if the step has no line.
std::string line_of(const graph::Step& step);

Origin origin_of(const graph::Step& step);

// Which steps make the memory of a program. The program must outlive it.
class Makers {
 public:
  explicit Makers(const graph::Program& program);

  // The origin of what is stored in `root`, a buffer that is no view, from `begin` bytes on. A copy
  // or sum that the compiler added counts as what it copies.
  Origin origin_of(graph::BufferId root, int64_t begin = 0) const;

 private:
  Origin origin_of_step(size_t step, int depth) const;
  // The step that writes this memory first; -1 if none does.
  int64_t maker(graph::BufferId root, int64_t begin) const;

  const graph::Program& program_;
  std::map<std::pair<graph::BufferId, int64_t>, size_t> makers_;  // first step by place
  std::map<graph::BufferId, size_t> first_makers_;
};

}  // namespace flow::tools
