// Decides the kernel calls of a program's steps again, for a program that was read from a file and
// for another rank of its class that runs it.
#pragma once

#include <functional>
#include <vector>

#include "core/kernel_call.h"
#include "graph/program/program.h"

namespace flow::graph {

// The metas that a step's kernel sees. `plain_outputs` are those that the kernel was asked for,
// before it chose blocked layouts.
struct KernelMetas {
  std::vector<MetaPtr> inputs;
  std::vector<MetaPtr> outputs;
  std::vector<MetaPtr> plain_outputs;

  KernelQuery query(const Step& step) const {
    return {*step.op, inputs, plain_outputs, step.raw_attrs()};
  }

  friend bool operator==(const KernelMetas&, const KernelMetas&) = default;
};

// `meta_of` gives the meta of a buffer; it is called only for ids other than kNoBuffer.
KernelMetas kernel_metas(const Step& step, const std::function<MetaPtr(BufferId)>& meta_of);

// Decides the call of a step whose buffers have these metas. The builder has put conversions into
// separate steps, so the call converts nothing but numbers for a device.
KernelCall make_kernel_call(const Step& step, const KernelMetas& metas, const KernelTable& kernels);

// Decides the calls of a program that was read from a file, and gives its buffers the blocked
// layouts that its kernels write. Throws BadFile, which names the step, if a kernel takes or gives
// another layout than the program has.
void bind_kernel_calls(Program& program, const KernelTable& kernels);

}  // namespace flow::graph
