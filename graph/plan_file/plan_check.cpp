#include "graph/plan_file/plan_check.h"

#include <set>

#include "boxing/routed_kernel.h"
#include "core/error.h"
#include "graph/ir/id_map.h"
#include "graph/program/kernel_binding.h"

namespace flow::graph {

namespace {

class Check {
 public:
  Check(const Program& program, const Graph& graph, std::string_view name)
      : program_(program), graph_(graph), name_(name) {}

  void run() {
    starts_.assign(program_.buffers.size(), 0);
    for (BufferId id = 0; starts_.contains(id); ++id)
      check_buffer(id);
    check_externals();
    for (size_t i = 0; i < program_.steps.size(); ++i)
      check_step(i);
  }

 private:
  template <class... Parts>
  void require(bool holds, const Parts&... parts) const {
    if (!holds) throw BadFile(str("[plan] ", name_, ": ", parts..., "; compile the step again"));
  }

  const Buffer& buffer(BufferId id) const { return program_.buffer(id); }

  // The number of bytes from the first element to the end of the last.
  static int64_t extent(const TensorMeta& meta) {
    if (meta.blocked != nullptr) return static_cast<int64_t>(meta.blocked->bytes);
    if (meta.local_numel == 0) return 0;
    int64_t last = 0;
    for (int64_t d = 0; d < meta.local_shape.size(); ++d) {
      int64_t step = 0;
      if (__builtin_mul_overflow(meta.local_shape[d] - 1, meta.strides[d], &step) ||
          __builtin_add_overflow(last, step, &last)) {
        return INT64_MAX;
      }
    }
    const auto size = static_cast<int64_t>(dtype_size(meta.dtype));
    return last < INT64_MAX / size - 1 ? (last + 1) * size : INT64_MAX;
  }

  void check_buffer(BufferId index) {
    const Buffer& it = buffer(index);
    const int64_t bytes = extent(*it.meta);
    if (it.base != kNoBuffer) {
      require(
          it.base < index && it.external < 0 && it.arena_offset < 0 && it.meta->blocked == nullptr,
          "buffer ", index, " is a view of a buffer that is not before it");
      BufferId root = it.base;
      while (buffer(root).base != kNoBuffer)
        root = buffer(root).base;
      starts_[index] =
          starts_[it.base] + it.offset * static_cast<int64_t>(dtype_size(it.meta->dtype));
      const int64_t room = extent(*buffer(root).meta) - starts_[index];
      require(!it.meta->is_held || bytes <= room || bytes == 0, "buffer ", index,
              " extends beyond the buffer that it is a view of");
      require(!it.meta->is_held || buffer(root).meta->is_held, "buffer ", index,
              " is a view of a buffer that this rank does not hold");
      return;
    }
    require(it.external < 0 || it.arena_offset < 0, "buffer ", index,
            " is both in the arena and a tensor from outside");
    require(it.arena_offset < 0 ||
                (it.arena_offset % 64 == 0 && bytes <= program_.arena_bytes - it.arena_offset),
            "buffer ", index, " is outside the arena or not aligned");
  }

  void check_externals() const {
    std::vector<ValueId> values = graph_.inputs;
    for (const Capture& capture : graph_.captures)
      values.push_back(capture.initial);
    values.insert(values.end(), graph_.outputs.begin(), graph_.outputs.end());
    require(program_.externals.size() == values.size(), "a program has ", program_.externals.size(),
            " tensors from outside, but the graph has ", values.size());
    size_t count = 0;
    for (const Buffer& it : program_.buffers)
      count += it.external >= 0 ? 1 : 0;
    require(count == values.size(),
            "the tensors from outside of a program are not those of the graph");
    for (size_t i = 0; i < values.size(); ++i) {
      const Buffer& it = buffer(program_.externals[i]);
      require(it.external == static_cast<int32_t>(i) &&
                  it.meta == graph_.value(values[i]).meta_on(program_.rank),
              "tensor ", i, " from outside differs from that of the graph");
    }
  }

  void check_step(size_t index) {
    const Step& step = program_.steps[index];
    std::visit([&](const auto& body) { check(index, step, body); }, step.body);
  }

  void check(size_t index, const Step& step, const ConvertStep&) {
    require_ids(index, step, 1, 1);
    const TensorMeta& source = *buffer(step.inputs[0]).meta;
    require(
        source.blocked != nullptr && buffer(step.outputs[0]).meta == with_blocked(&source, nullptr),
        "step ", index, " converts to a layout that is not the strided one");
  }

  void check(size_t index, const Step& step, const SendStep& send) {
    require_ids(index, step, 1, 0);
    check_message(index, send.peer, step.inputs[0]);
    sends_.insert(index);
  }

  void check(size_t index, const Step& step, const ReceiveStep& receive) {
    require_ids(index, step, 0, 1);
    check_message(index, receive.peer, step.outputs[0]);
  }

  void check_message(size_t index, int64_t peer, BufferId id) const {
    require(peer != program_.rank && buffer(id).meta->is_contiguous, "step ", index,
            " is no valid message");
  }

  void check(size_t index, const Step& step, const WaitStep& wait) {
    require_ids(index, step, 1, 0);
    require(sends_.erase(wait.send) == 1 && step.inputs == program_.steps[wait.send].inputs,
            "step ", index, " waits for a step that is no pending send of its buffer");
  }

  void require_ids(size_t index, const Step& step, size_t inputs, size_t outputs) const {
    bool are_given = step.inputs.size() == inputs && step.outputs.size() == outputs;
    for (const BufferId id : step.inputs)
      are_given = are_given && id != kNoBuffer;
    require(are_given, "step ", index, " does not have the buffers that it needs");
    require_places(index, step);
  }

  // A buffer that a step uses must have memory.
  void require_places(size_t index, const Step& step) const {
    const auto check = [&](BufferId id) {
      if (id == kNoBuffer || !buffer(id).meta->is_held) return;
      BufferId root = id;
      while (buffer(root).base != kNoBuffer)
        root = buffer(root).base;
      require(buffer(root).external >= 0 || buffer(root).arena_offset >= 0, "step ", index,
              " works on a buffer without memory");
    };
    for (const BufferId id : step.inputs)
      check(id);
    for (const BufferId id : step.outputs)
      check(id);
    if (step.guard == kNoBuffer) return;
    check(step.guard);
    const TensorMeta& guard = *buffer(step.guard).meta;
    require(guard.is_held && guard.dtype == DType::kBool && guard.shape.empty(), "step ", index,
            " has a guard that is not a bool scalar");
  }

  void check(size_t index, const Step& step, const KernelStep& kernel) const {
    const OpDef& op = *kernel.op_call.op;
    require(!boxing::follows_route(op), "step ", index, ", ", op.name, ", has no route");
    require(op.mutates != 0 || kernel.on_parts ||
                step.outputs.size() == static_cast<size_t>(op.num_outputs),
            "step ", index, ", ", op.name, ", has ", step.outputs.size(), " outputs");
    require(op.is_random ? kernel.draw >= 0 && kernel.draw < program_.num_draws : kernel.draw == -1,
            "step ", index, ", ", op.name, ", makes draw ", kernel.draw);
    check_op(index, step, kernel.op_call);
  }

  void check(size_t index, const Step& step, const CollectiveStep& collective) const {
    const OpDef& op = *collective.op_call.op;
    require(boxing::follows_route(op), "step ", index, ", ", op.name, ", has a route");
    check_op(index, step, collective.op_call);
    require(step.outputs.size() == static_cast<size_t>(op.num_outputs), "step ", index, ", ",
            op.name, ", has ", step.outputs.size(), " outputs");
    const TensorMeta& result = *buffer(step.outputs[0]).meta;
    const boxing::Route& route = *collective.route;
    require(route.shape == result.shape && route.dtype == result.dtype &&
                route.to == boxing::Layout{result.placement, result.nd_sbp},
            "the route of step ", index, " does not lead to the layout of its output");
  }

  // The op's shape rule gives the outputs. The output of a step that adds or copies in place is its
  // first input.
  void check_op(size_t index, const Step& step, const OpCall& call) const {
    const OpDef& op = *call.op;
    const size_t inputs = step.inputs.size();
    require((op.num_inputs == kVariadic || inputs == static_cast<size_t>(op.num_inputs)) &&
                !step.outputs.empty(),
            "step ", index, ", ", op.name, ", has ", inputs, " inputs");
    require_places(index, step);
    const KernelMetas metas = kernel_metas(step, [&](BufferId id) { return buffer(id).meta; });
    InferContext infer(op, metas.inputs, call.raw_attrs());
    op.infer(infer);
    require(step.outputs.size() <= infer.outputs().size(), "step ", index, ", ", op.name, ", has ",
            step.outputs.size(), " outputs");
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const OutputSpec& spec = infer.outputs()[i];
      require(spec.shape == metas.outputs[i]->shape && spec.dtype == metas.outputs[i]->dtype,
              "step ", index, ", ", op.name,
              ", gives a shape that differs from that of its buffer");
    }
  }

  const Program& program_;
  const Graph& graph_;
  std::string_view name_;
  IdMap<BufferId, int64_t> starts_;  // of views: bytes from the start of the buffer they show
  std::set<size_t> sends_;           // not waited for
};

}  // namespace

void check_program(const Program& program, const Graph& graph, std::string_view name) {
  Check(program, graph, name).run();
}

}  // namespace flow::graph
