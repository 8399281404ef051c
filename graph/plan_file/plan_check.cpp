#include "graph/plan_file/plan_check.h"

#include <algorithm>
#include <set>
#include <utility>

#include "boxing/routed_kernel.h"
#include "core/error.h"
#include "graph/ir/id_map.h"
#include "graph/program/kernel_binding.h"
#include "graph/program/program_classes.h"
#include "ops/index/gather_op.h"
#include "ops/index/index_op.h"
#include "ops/reduce/reduce_op.h"
#include "ops/shape/view_op.h"

namespace flow::graph {

namespace {

class Check {
 public:
  Check(const Program& program, const Graph& graph, std::string_view name)
      : program_(program), graph_(graph), name_(name), may_run_(may_run(program, graph)) {}

  void run() {
    check_blocks();
    check_tables();
    starts_.assign(program_.buffers.size(), 0);
    for (BufferId id = 0; starts_.contains(id); ++id)
      check_buffer(id);
    check_externals();
    for (size_t i = 0; i < program_.steps.size(); ++i)
      check_step(i);
    check_runs();
  }

 private:
  template <class... Parts>
  void require(bool holds, const Parts&... parts) const {
    if (!holds) throw BadFile(str("[plan] ", name_, ": ", parts..., "; compile the step again"));
  }

  const Buffer& buffer(BufferId id) const { return program_.buffer(id); }

  // ---- blocks and their runs

  void check_blocks() {
    require(program_.blocks.empty() == program_.runs.empty(), "a program has blocks or runs only");
    require(program_.blocks.empty() || program_.blocks.back().end_step == program_.steps.size(),
            "a step belongs to no block");
    std::set<std::pair<BlockIndex, int32_t>> known;
    for (const BlockRun& run : program_.runs) {
      require(known.insert({run.block, run.micro_batch}).second, "block ", run.block,
              " runs twice in micro-batch ", run.micro_batch);
      num_micro_batches_ = std::max(num_micro_batches_, static_cast<size_t>(run.micro_batch + 1));
    }
    require(num_micro_batches_ <= program_.runs.size(), "a micro-batch has no runs");
  }

  // A rank may have nothing of the last micro-batches.
  void check_tables() const {
    for (const std::vector<int64_t>& table : program_.tables) {
      require(table.size() >= num_micro_batches_ &&
                  std::all_of(table.begin(), table.end(), [](int64_t it) { return it >= 0; }),
              "a table does not have a number for each micro-batch");
    }
    for (const Frame& frame : program_.frames) {
      require(frame.arena_offsets.size() >= num_micro_batches_ &&
                  std::all_of(frame.arena_offsets.begin(), frame.arena_offsets.end(),
                              [&](int64_t it) {
                                return it == -1 ||
                                       (it % 64 == 0 && frame.bytes <= program_.arena_bytes - it);
                              }),
              "a frame is outside the arena or not aligned");
    }
  }

  // What the views of a block's steps need in each run, and that messages are waited for.
  void check_runs() {
    const ProgramRuns runs(program_);
    std::set<std::pair<size_t, int32_t>> started;
    for (const BlockRun& run : runs.runs()) {
      const Block& block = runs.block_of(run);
      for (size_t i = block.first_step; i < block.end_step; ++i) {
        const Step& step = program_.steps[i];
        for (const BufferId id : step.inputs)
          check_in_run(id, run);
        for (const BufferId id : step.outputs)
          check_in_run(id, run);
        check_in_run(step.guard, run);
        if (step.starts()) started.insert({i, run.micro_batch});
        const auto* wait = step.as<WaitStep>();
        require(wait == nullptr || started.erase({wait->started, run.micro_batch}) == 1, "step ", i,
                " waits for a step that has not begun");
      }
    }
    require(started.empty(), "no step waits for a step that was started");
  }

  void check_in_run(BufferId id, const BlockRun& run) const {
    if (id == kNoBuffer) return;
    const Buffer& it = buffer(id);
    bool moves = it.holders != kNoTable;
    BufferId root = id;
    for (; buffer(root).base != kNoBuffer; root = buffer(root).base)
      moves = moves || buffer(root).begins != kNoTable;
    const int32_t frame = buffer(root).frame;
    require((!moves && frame < 0) || run.micro_batch >= 0, "buffer ", id,
            " is used in no micro-batch");
    require(frame < 0 || program_.frames[static_cast<size_t>(frame)]
                                 .arena_offsets[static_cast<size_t>(run.micro_batch)] >= 0,
            "buffer ", id, " has no memory in micro-batch ", run.micro_batch);
    require(it.holders == kNoTable ||
                local_meta_on(it.meta, program_.number(it.holders, run.micro_batch)) != nullptr,
            "buffer ", id, " has another shape in micro-batch ", run.micro_batch);
  }

  bool is_table(TableId table) const {
    return table >= kNoTable && table < static_cast<TableId>(program_.tables.size());
  }

  // ---- buffers and steps

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
    require(is_table(it.begins) && is_table(it.holders) &&
                (it.holders == kNoTable || it.meta->is_global()),
            "buffer ", index, " needs a table that does not exist");
    require(it.frame == -1 || (it.frame >= 0 && it.base == kNoBuffer && it.external < 0 &&
                               static_cast<size_t>(it.frame) < program_.frames.size()),
            "buffer ", index, " is in a frame that does not exist");
    if (it.base != kNoBuffer) {
      const bool is_known = it.base < index || (static_cast<size_t>(it.base) < starts_.size() &&
                                                buffer(it.base).base == kNoBuffer);
      require(is_known && it.external < 0 && it.arena_offset < 0 && it.meta->blocked == nullptr,
              "buffer ", index, " is a view of a buffer that is not before it");
      BufferId root = it.base;
      while (buffer(root).base != kNoBuffer)
        root = buffer(root).base;
      const auto size = static_cast<int64_t>(dtype_size(it.meta->dtype));
      starts_[index] = starts_[it.base] + it.offset * size;
      if (it.begins != kNoTable) {
        const std::vector<int64_t>& table = program_.tables[static_cast<size_t>(it.begins)];
        const int64_t most = *std::max_element(table.begin(), table.end());
        require(most < INT64_MAX / 16 - starts_[index], "buffer ", index, " begins too far away");
        starts_[index] += most * size;
      }
      if (!may_run_) return;
      const int64_t room = extent(*buffer(root).meta) - starts_[index];
      require(!it.meta->is_held || bytes <= room || bytes == 0, "buffer ", index,
              " extends beyond the buffer that it is a view of");
      require(!it.meta->is_held || buffer(root).meta->is_held || bytes == 0, "buffer ", index,
              " is a view of a buffer that this rank does not hold");
      return;
    }
    require(it.external < 0 || it.arena_offset < 0, "buffer ", index,
            " is both in the arena and a tensor from outside");
    const int64_t room =
        it.frame < 0 ? program_.arena_bytes : program_.frames[static_cast<size_t>(it.frame)].bytes;
    require(it.arena_offset < 0 || (it.arena_offset % 64 == 0 && bytes <= room - it.arena_offset),
            "buffer ", index, " is outside the arena or not aligned");
    require(it.frame < 0 || it.arena_offset >= 0, "buffer ", index, " has no place in its frame");
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
    if (step.in_background) {
      require(step.route() != nullptr && step.route()->steps.size() == 1 &&
                  step.guard == kNoBuffer && step.turn == StepTurn::kEvery,
              "step ", index, " cannot be in the background");
    }
    std::visit([&](const auto& body) { check(index, step, body); }, step.body);
    if (step.starts()) started_.insert(index);
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
    require_ids(index, step, step.inputs.size(), step.outputs.size());
    const Step& started = program_.steps[wait.started];
    require(started_.erase(wait.started) == 1 && step.inputs == started.inputs &&
                step.outputs == started.outputs,
            "step ", index, " waits for a step that was not started with its buffers");
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
      const bool has_memory = buffer(root).external >= 0 || buffer(root).arena_offset >= 0;
      // The local part of a rank that holds nothing is empty.
      const bool is_absent = !buffer(root).meta->is_held && buffer(id).meta->local_numel == 0;
      require(has_memory || is_absent || !may_run_, "step ", index,
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
    const auto is_here = [&](BufferId id) { return id == kNoBuffer || buffer(id).meta->is_held; };
    require(std::all_of(step.inputs.begin(), step.inputs.end(), is_here) &&
                std::all_of(step.outputs.begin(), step.outputs.end(), is_here),
            "step ", index, ", ", op.name, ", works on a tensor of other ranks");
    require(!boxing::follows_route(op), "step ", index, ", ", op.name, ", has no route");
    require(op.mutates != 0 || kernel.on_parts || op.num_outputs == kVariadic ||
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

  void check(size_t index, const Step& step, const BucketStep& bucket) const {
    require_ids(index, step, step.inputs.size(), step.inputs.size());
    const boxing::Route& route = *bucket.route;
    require(step.inputs.size() > 1 && route.steps.size() == 1 &&
                route.steps[0].kind == boxing::RouteStepKind::kAllReduce &&
                boxing::adds_up(route.steps[0]),
            "step ", index, " is no sum of several tensors");
    const BufferId base = buffer(step.outputs[0]).base;
    const DeviceType device = buffer(step.outputs[0]).meta->device;
    int64_t elements = 0;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const Buffer &from = buffer(step.inputs[i]), &to = buffer(step.outputs[i]);
      require(from.meta->is_contiguous && to.meta->is_contiguous && from.meta->is_held &&
                  from.meta->dtype == route.dtype && to.meta->dtype == route.dtype &&
                  from.meta->device == device && to.meta->device == device &&
                  from.meta->local_numel == to.meta->local_numel && base != kNoBuffer &&
                  to.base == base && to.begins == kNoTable && to.offset == elements,
              "step ", index, " adds up tensors that do not follow each other");
      elements += to.meta->local_numel;
    }
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
    if (!may_run_) return;
    const KernelMetas metas = kernel_metas(step, [&](BufferId id) { return buffer(id).meta; });
    // In a micro-batch, the attribute of a reshape is the shape for the whole batch. Its kernel
    // copies all elements and does not read the attribute.
    if (&op == &ops::kReshape) {
      const MetaPtr from = metas.inputs[0], to = metas.outputs[0];
      require(step.outputs.size() == 1 && from != nullptr && from->numel == to->numel &&
                  from->local_numel == to->local_numel && from->dtype == to->dtype &&
                  to->is_contiguous,
              "step ", index, ", ", op.name, ", has buffers that do not fit each other");
      return;
    }
    const std::vector<std::byte> attrs = attrs_of_part(call, metas.outputs[0]->shape);
    InferContext infer(op, metas.inputs, attrs.empty() ? nullptr : attrs.data());
    op.infer(infer);
    require(step.outputs.size() <= infer.outputs().size() &&
                (op.num_outputs != kVariadic || step.outputs.size() == infer.outputs().size()),
            "step ", index, ", ", op.name, ", has ", step.outputs.size(), " outputs");
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const OutputSpec& spec = infer.outputs()[i];
      require(spec.shape == metas.outputs[i]->shape && spec.dtype == metas.outputs[i]->dtype,
              "step ", index, ", ", op.name,
              ", gives a shape that differs from that of its buffer");
    }
  }

  // The attributes with the shape of the step's own result, which in a micro-batch is not that of
  // the whole batch. The kernels go by their buffers.
  static std::vector<std::byte> attrs_of_part(const OpCall& call, const Shape& result) {
    std::vector<std::byte> attrs = call.attrs;
    void* const raw = attrs.data();
    if (call.op == &ops::kSumTo) static_cast<ops::SumToAttrs*>(raw)->shape = result;
    if (call.op == &ops::kUngather) static_cast<ops::UngatherAttrs*>(raw)->shape = result;
    if (call.op == &ops::kUnindex) static_cast<ops::UnindexAttrs*>(raw)->shape = result;
    return attrs;
  }

  const Program& program_;
  const Graph& graph_;
  std::string_view name_;
  bool may_run_;  // otherwise local parts have shapes of another rank
  size_t num_micro_batches_ = 0;
  // Of views: the most bytes from the start of the buffer they show.
  IdMap<BufferId, int64_t> starts_;
  std::set<size_t> started_;  // not waited for
};

}  // namespace

void check_program(const Program& program, const Graph& graph, std::string_view name) {
  Check(program, graph, name).run();
}

}  // namespace flow::graph
