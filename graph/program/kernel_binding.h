// What the kernels of a program's steps are chosen by.
#pragma once

#include <functional>
#include <vector>

#include "core/kernel.h"
#include "graph/program/program.h"

namespace flow::graph {

// The metas that a step's kernel sees; `plain_outputs` are those it was asked for, before it named
// blocked layouts.
struct KernelMetas {
  std::vector<MetaPtr> inputs;
  std::vector<MetaPtr> outputs;
  std::vector<MetaPtr> plain_outputs;

  KernelQuery query(const Step& step) const {
    return {*step.op, inputs, plain_outputs, step.raw_attrs()};
  }

  friend bool operator==(const KernelMetas&, const KernelMetas&) = default;
};

// `meta_of` gives the meta of a buffer that is one.
KernelMetas kernel_metas(const Step& step, const std::function<MetaPtr(BufferId)>& meta_of);

// Chooses the kernels of a program read from a file, and gives its buffers the blocked layouts that
// they write. Throws BadFile naming the step whose kernel lays its results out otherwise.
void choose_kernels(Program& program, const KernelTable& kernels);

}  // namespace flow::graph
