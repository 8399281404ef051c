// Makes the program of one rank, step by step.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/kernel_call.h"
#include "graph/ir/ir.h"
#include "graph/program/program.h"

namespace flow::graph {

// Makes buffers and steps of one rank; knows how a node becomes a kernel, a view or nothing.
class ProgramBuilder {
 public:
  ProgramBuilder(int64_t rank, const KernelTable& kernels);

  // Steps from here on belong to `name`.
  void begin_part(std::string name) {
    program_.parts.push_back({program_.steps.size(), std::move(name)});
  }

  void set_num_draws(int64_t count) { program_.num_draws = count; }

  // Kernels from here on run only where this bool scalar is true; kNoBuffer: always.
  void set_guard(BufferId guard) { guard_ = guard; }

  // A new arena buffer (or an unheld one).
  BufferId add_buffer(MetaPtr meta);
  BufferId add_external(MetaPtr meta);
  // Emits `node` reading `inputs`. `metas` are the outputs' metas on this rank. Outputs of an op
  // that always writes in place are its input buffers. Returns the output buffers.
  std::vector<BufferId> add_node(const Node& node, const std::vector<BufferId>& inputs,
                                 const std::vector<MetaPtr>& metas);
  // Of a random node whose metas do not tell whether all ranks draw the same values.
  std::vector<BufferId> add_node(const Node& node, const std::vector<BufferId>& inputs,
                                 const std::vector<MetaPtr>& metas, bool draws_globally);
  // A view of `base` at `offset` elements.
  BufferId add_view(BufferId base, MetaPtr meta, int64_t offset);
  // target = source, same shape; target += source.
  void add_copy(BufferId source, BufferId target);
  void add_sum(BufferId source, BufferId target);
  // Starts a send and returns its step, which is to be waited for; wait_for_sends() ends all that
  // are under way.
  size_t add_send(BufferId buffer, int64_t peer, int64_t tag, const Node& node);
  void add_recv(BufferId buffer, int64_t peer, int64_t tag, const Node& node);
  void wait_for_send(size_t send);
  void wait_for_sends();
  // The buffer as strided, and as contiguous memory too; converted or copied if it is not.
  BufferId strided(BufferId buffer);
  BufferId contiguous(BufferId buffer);

  const Buffer& buffer(BufferId id) const { return program_.buffers[static_cast<size_t>(id)]; }

  // Plans memory and hands the program over.
  Program finish();

 private:
  void add_in_place(const OpDef& op, const void* attrs, BufferId target, BufferId source);
  void add_kernel(Step step, KernelCall call);
  // Buffers of values of which this rank holds no part.
  std::vector<BufferId> add_absent(const std::vector<MetaPtr>& metas);

  const KernelTable& kernels_;
  Program program_;
  std::vector<size_t> sends_;           // steps not waited for
  std::map<BufferId, BufferId> twins_;  // the strided forms of blocked buffers
  BufferId guard_ = kNoBuffer;
};

}  // namespace flow::graph
