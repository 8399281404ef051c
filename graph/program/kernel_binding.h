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

  KernelQuery query(const OpCall& call) const {
    return {*call.op, inputs, plain_outputs, call.raw_attrs()};
  }

  friend bool operator==(const KernelMetas&, const KernelMetas&) = default;
};

// `meta_of` gives the meta of a buffer; it is called only for ids other than kNoBuffer.
KernelMetas kernel_metas(const Step& step, const std::function<MetaPtr(BufferId)>& meta_of);

// Decides the call of a kernel step whose buffers have these metas. The builder has put conversions
// into separate steps, so the call converts nothing but numbers for a device.
KernelCall make_kernel_call(const OpCall& op_call, const KernelMetas& metas,
                            const KernelTable& kernels);

// Stores a decided call in its step.
void set_kernel_call(KernelStep& step, KernelCall call);

// Decides the calls of a program that was read from a file, and gives its buffers the blocked
// layouts that its kernels write. Throws BadFile, which names the step, if a kernel takes or gives
// another layout than the program has.
void bind_kernel_calls(Program& program, const KernelTable& kernels);

}  // namespace flow::graph
