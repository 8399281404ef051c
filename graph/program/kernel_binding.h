// Decides the kernel calls of a program's steps again: for a program that was read from a file, and
// where another rank of its class runs it.
#pragma once

#include <functional>
#include <vector>

#include "core/kernel_call.h"
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

// The call of a step whose buffers have these metas. The builder has put conversions into steps of
// their own, so none but numbers for a device are left.
KernelCall make_kernel_call(const Step& step, const KernelMetas& metas, const KernelTable& kernels);

// Decides the calls of a program read from a file, and gives its buffers the blocked layouts that
// its kernels write. Throws BadFile naming the step whose kernel lays its results out otherwise.
void bind_kernel_calls(Program& program, const KernelTable& kernels);

}  // namespace flow::graph
