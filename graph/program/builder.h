// Builds the program of one rank step by step.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/kernel_call.h"
#include "graph/ir/ir.h"
#include "graph/program/program.h"

namespace flow::graph {

// Makes the buffers and steps of one rank, and decides for each node whether it becomes a kernel, a
// view or nothing.
class ProgramBuilder {
 public:
  ProgramBuilder(int64_t rank, const KernelTable& kernels);

  // The steps that follow belong to part `name`.
  void begin_part(std::string name) {
    program_.parts.push_back({program_.steps.size(), std::move(name)});
  }

  void set_num_draws(int64_t count) { program_.num_draws = count; }

  // The kernels that follow run only if this bool scalar is true; kNoBuffer: always.
  void set_guard(BufferId guard) { guard_ = guard; }

  // Adds a buffer in the arena, or one without memory if this rank holds no part.
  BufferId add_buffer(MetaPtr meta);
  BufferId add_external(MetaPtr meta);
  // Adds the steps of `node`, which reads `inputs`. `metas` are the metas of the outputs on this
  // rank. If the op always writes in place, its outputs are its input buffers. Returns the output
  // buffers.
  std::vector<BufferId> add_node(const Node& node, const std::vector<BufferId>& inputs,
                                 const std::vector<MetaPtr>& metas);
  // The form for a random node whose metas do not tell whether all ranks draw the same values.
  std::vector<BufferId> add_node(const Node& node, const std::vector<BufferId>& inputs,
                                 const std::vector<MetaPtr>& metas, bool draws_globally);
  // Adds a view of `base` that begins at `offset` elements.
  BufferId add_view(BufferId base, MetaPtr meta, int64_t offset);
  // add_copy: target = source, of the same shape. add_sum: target += source.
  void add_copy(BufferId source, BufferId target);
  void add_sum(BufferId source, BufferId target);
  // Starts a send and returns its step. The send has to be waited for; wait_for_sends() waits for
  // all that have not ended.
  size_t add_send(BufferId buffer, int64_t peer, int64_t tag, const Node& node);
  void add_recv(BufferId buffer, int64_t peer, int64_t tag, const Node& node);
  void wait_for_send(size_t send);
  void wait_for_sends();
  // Returns the buffer in strided form, and in contiguous memory. It is converted or copied if
  // necessary.
  BufferId strided(BufferId buffer);
  BufferId contiguous(BufferId buffer);

  const Buffer& buffer(BufferId id) const { return program_.buffers[static_cast<size_t>(id)]; }

  // Plans the memory and returns the program.
  Program finish();

 private:
  void add_in_place(const OpDef& op, const void* attrs, BufferId target, BufferId source);
  // Adds the buffers of values of which this rank holds no part.
  std::vector<BufferId> add_absent(const std::vector<MetaPtr>& metas);

  const KernelTable& kernels_;
  Program program_;
  std::vector<size_t> sends_;           // steps that are not yet waited for
  std::map<BufferId, BufferId> twins_;  // the strided forms of blocked buffers
  BufferId guard_ = kNoBuffer;
};

}  // namespace flow::graph
