#include "graph/executor.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/context.h"
#include "core/error.h"

namespace flow::graph {

namespace {
// Edges have a group of their two ranks, in ascending order.
boxing::Communicator& pair_with(RankContext& rank, int64_t peer) {
  const std::array<int64_t, 2> ranks = {std::min(rank.rank(), peer), std::max(rank.rank(), peer)};
  return boxing::communicator_for(rank, ranks);
}

int64_t bytes_of(const TensorView& view) {
  return static_cast<int64_t>(view.meta->local_bytes());
}
}  // namespace

Executor::Executor(const Program& program)
    : program_(program), rank_(*thread_state().context), data_(program.buffers.size(), nullptr) {
  FLOW_ASSERT(program.rank == rank_.rank(), "a program of rank ", program.rank, " runs on rank ",
              rank_.rank());
  arena_ = Storage::allocate(rank_.allocator(), static_cast<size_t>(program.arena_bytes));
  for (const Step& step : program.steps) {
    first_view_.push_back(views_.size());
    views_.resize(views_.size() + step.inputs.size() + step.outputs.size());
  }
  streams_.resize(static_cast<size_t>(program.num_draws));
  sends_.resize(program.steps.size());
}

void Executor::bind(std::span<const Tensor> externals) {
  FLOW_ASSERT(externals.size() == program_.externals.size(), "the program has ",
              program_.externals.size(), " externals, ", externals.size(), " are given");
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const Buffer& buffer = program_.buffers[i];
    if (!buffer.meta->is_held) continue;
    if (buffer.external >= 0) {
      const Tensor& tensor = externals[static_cast<size_t>(buffer.external)];
      tensor.make_strided();
      if (tensor.meta_ptr() != buffer.meta) {
        throw InvalidArgument(str("[graph] a tensor differs from the one compiled for; received ",
                                  tensor.meta(), ", compiled for ", *buffer.meta,
                                  "; compile another plan for it"));
      }
      data_[i] = tensor.impl().data();
    } else if (buffer.base != kNoBuffer) {  // bases come first
      data_[i] = data_[static_cast<size_t>(buffer.base)] +
                 buffer.offset * static_cast<int64_t>(dtype_size(buffer.meta->dtype));
    } else if (buffer.arena_offset >= 0) {
      data_[i] = arena_->data() + buffer.arena_offset;
    }
  }
  size_t at = 0;
  const auto view = [&](BufferId id) {
    views_[at++] = id == kNoBuffer ? TensorView{}
                                   : TensorView{data_[static_cast<size_t>(id)],
                                                program_.buffers[static_cast<size_t>(id)].meta};
  };
  for (const Step& step : program_.steps) {
    for (const BufferId id : step.inputs)
      view(id);
    for (const BufferId id : step.outputs)
      view(id);
  }
}

void Executor::run(std::span<const Tensor> externals) {
  bind(externals);
  for (RandomStream& stream : streams_)
    stream = rank_.generator().next();
  for (size_t i = 0; i < program_.steps.size(); ++i)
    run_step(i);
}

void Executor::run_step(size_t index) {
  const Step& step = program_.steps[index];
  const std::span<const TensorView> inputs(views_.data() + first_view_[index], step.inputs.size());
  const std::span<const TensorView> outputs(inputs.data() + inputs.size(), step.outputs.size());
  switch (step.kind) {
    case StepKind::kKernel: {
      RandomStream random;
      if (step.draw >= 0) {
        random = streams_[static_cast<size_t>(step.draw)];
        if (!step.draws_globally) random.rank = static_cast<uint64_t>(rank_.rank());
      }
      const KernelContext context{inputs,          outputs, step.raw_attrs(),
                                  step.plan.get(), random,  rank_};
      step.fn(context);
      return;
    }
    case StepKind::kToStrided: {
      const BlockedLayout& layout = *inputs[0].meta->blocked;
      layout.to_strided(layout, inputs[0].data, outputs[0].data);
      return;
    }
    case StepKind::kSend: {
      boxing::Communicator& pair = pair_with(rank_, step.peer);
      sends_[index] = pair.isend(inputs[0].data, bytes_of(inputs[0]), 1 - pair.position(), step.tag,
                                 {.op = "pipeline edge"});
      return;
    }
    case StepKind::kRecv: {
      boxing::Communicator& pair = pair_with(rank_, step.peer);
      pair.recv(outputs[0].data, bytes_of(outputs[0]), 1 - pair.position(), step.tag,
                {.op = "pipeline edge"});
      return;
    }
    case StepKind::kWait: {
      const auto send = static_cast<size_t>(step.peer);
      boxing::Communicator& pair = pair_with(rank_, program_.steps[send].peer);
      pair.wait(std::move(sends_[send]));
      return;
    }
  }
}

}  // namespace flow::graph
