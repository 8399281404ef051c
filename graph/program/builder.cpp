#include "graph/program/builder.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "boxing/routed_kernel.h"
#include "core/device/device_memory.h"
#include "graph/program/kernel_binding.h"
#include "graph/program/memory_plan.h"
#include "ops/creation/copy_op.h"
#include "ops/elementwise/row_table.h"

namespace flow::graph {

ProgramBuilder::ProgramBuilder(int64_t rank, const KernelTable& kernels) : kernels_(kernels) {
  program_.rank = rank;
}

BlockIndex ProgramBuilder::begin_block() {
  end_communication();
  if (!program_.blocks.empty()) program_.blocks.back().end_step = program_.steps.size();
  program_.blocks.push_back({program_.steps.size(), program_.steps.size()});
  return current_block();
}

void ProgramBuilder::add_run(const BlockRun& run) {
  end_communication();
  Block block = program_.block(run.block);
  if (run.block == current_block()) block.end_step = program_.steps.size();
  if (block.first_step < block.end_step) program_.runs.push_back(run);
}

TableId ProgramBuilder::add_table(std::vector<int64_t> numbers) {
  if (std::all_of(numbers.begin(), numbers.end(), [](int64_t number) { return number == 0; })) {
    return kNoTable;
  }
  const auto [known, is_new] =
      tables_.try_emplace(std::move(numbers), static_cast<TableId>(program_.tables.size()));
  if (is_new) program_.tables.push_back(known->first);
  return known->second;
}

BufferId ProgramBuilder::add_buffer(MetaPtr meta) {
  program_.buffers.push_back({.meta = meta, .is_per_micro_batch = is_per_micro_batch_});
  made_in_.push_back(current_block());
  return static_cast<BufferId>(program_.buffers.size() - 1);
}

BufferId ProgramBuilder::add_external(MetaPtr meta) {
  const BufferId id = add_buffer(meta);
  program_.buffers.back().external = static_cast<int32_t>(program_.externals.size());
  program_.externals.push_back(id);
  return id;
}

BufferId ProgramBuilder::add_view(BufferId base, MetaPtr meta, int64_t offset, TableId begins) {
  const BufferId id = add_buffer(meta);
  Buffer& view = program_.buffers.back();
  view.base = base;
  view.offset = offset;
  view.begins = begins;
  return id;
}

void ProgramBuilder::add_in_place(const OpDef& op, const void* attrs, BufferId target,
                                  BufferId source) {
  KernelStep kernel{.op_call = {.op = &op}, .on_parts = true};
  if (op.attrs != nullptr) {
    const auto* bytes = static_cast<const std::byte*>(attrs);
    kernel.op_call.attrs.assign(bytes, bytes + op.attrs->size);
  }
  Step step{.body = std::move(kernel),
            .inputs = {target, source},
            .outputs = {target},
            .guard = guard_,
            .turn = turn_};
  const KernelMetas metas = kernel_metas(step, [&](BufferId id) { return buffer(id).meta; });
  auto& added = *step.as<KernelStep>();
  set_kernel_call(added, make_kernel_call(added.op_call, metas, kernels_));
  add_step(std::move(step));
}

void ProgramBuilder::add_copy(BufferId source, BufferId target) {
  add_in_place(ops::kCopy, nullptr, target, strided(source));
}

void ProgramBuilder::add_sum(BufferId source, BufferId target) {
  const ops::AddAttrs attrs;
  add_in_place(ops::op_of<ops::Add>(), &attrs, target, strided(source));
}

void ProgramBuilder::add_to_sum(BufferId source, BufferId target) {
  const BufferId plain = strided(source);
  turn_ = StepTurn::kFirst;
  add_copy(plain, target);
  turn_ = StepTurn::kLater;
  add_sum(plain, target);
  turn_ = StepTurn::kEvery;
}

size_t ProgramBuilder::add_send(BufferId buffer, int64_t peer, int64_t tag, const Node& node) {
  add_step({.body = SendStep{.peer = peer, .tag = tag},
            .inputs = {buffer},
            .file = node.file,
            .line = node.line,
            .module = node.module,
            .phase = node.phase});
  return program_.steps.size() - 1;
}

size_t ProgramBuilder::add_recv(BufferId buffer, int64_t peer, int64_t tag, const Node& node) {
  add_step({.body = ReceiveStep{.peer = peer, .tag = tag},
            .outputs = {buffer},
            .file = node.file,
            .line = node.line,
            .module = node.module,
            .phase = node.phase});
  return program_.steps.size() - 1;
}

void ProgramBuilder::add_wait(size_t started) {
  const Step& step = program_.steps[started];
  program_.steps.push_back({.body = WaitStep{.started = started},
                            .inputs = step.inputs,
                            .outputs = step.outputs,
                            .file = step.file,
                            .line = step.line,
                            .module = step.module,
                            .phase = step.phase});
}

bool ProgramBuilder::may_read(BufferId twin, BufferId source) const {
  const BlockIndex made_in = made_in_[static_cast<size_t>(twin)];
  return made_in == current_block() || made_in == made_in_[static_cast<size_t>(source)];
}

BufferId ProgramBuilder::strided(BufferId id) {
  if (id == kNoBuffer || buffer(id).meta->blocked == nullptr) return id;
  const auto known = twins_.find(id);
  if (known != twins_.end() && may_read(known->second, id)) return known->second;
  const BufferId twin = add_buffer(with_blocked(buffer(id).meta, nullptr));
  add_step({.body = ConvertStep{}, .inputs = {id}, .outputs = {twin}});
  twins_[id] = twin;
  return twin;
}

BufferId ProgramBuilder::contiguous(BufferId id) {
  const BufferId plain = strided(id);
  const MetaPtr meta = buffer(plain).meta;
  if (meta->is_contiguous) return plain;
  const BufferId copy = add_buffer(with_strides(meta, contiguous_strides(meta->local_shape)));
  add_copy(plain, copy);
  return copy;
}

bool ProgramBuilder::overlaps(BufferId read, BufferId written) const {
  if (read == kNoBuffer || read == written) return false;
  if (program_.root_of(read) != program_.root_of(written)) return false;
  const std::optional<int64_t> read_at = offset_in_root(read);
  const std::optional<int64_t> written_at = offset_in_root(written);
  if (!read_at || !written_at) return true;
  const MetaPtr read_meta = buffer(read).meta, written_meta = buffer(written).meta;
  if (read_meta == written_meta && read_at == written_at) return false;
  return !are_apart(*read_meta, *read_at, *written_meta, *written_at);
}

std::optional<int64_t> ProgramBuilder::offset_in_root(BufferId id) const {
  int64_t offset = 0;
  for (; buffer(id).base != kNoBuffer; id = buffer(id).base) {
    if (buffer(id).begins != kNoTable) return std::nullopt;
    offset += buffer(id).offset;
  }
  return offset;
}

std::vector<BufferId> ProgramBuilder::without_overlaps(const OpDef& op,
                                                       std::vector<BufferId> inputs) {
  for (uint32_t left = op.mutates; left != 0; left &= left - 1) {
    const BufferId written = inputs[static_cast<size_t>(std::countr_zero(left))];
    for (BufferId& input : inputs) {
      if (!overlaps(input, written)) continue;
      const MetaPtr meta = buffer(input).meta;
      const BufferId copy = add_buffer(with_strides(meta, contiguous_strides(meta->local_shape)));
      add_copy(input, copy);
      input = copy;
    }
  }
  return inputs;
}

std::vector<BufferId> ProgramBuilder::add_node(const Node& node,
                                               const std::vector<BufferId>& inputs,
                                               const std::vector<MetaPtr>& metas) {
  return add_node(node, inputs, metas, metas[0]->is_global());
}

std::vector<BufferId> ProgramBuilder::add_node(const Node& node,
                                               const std::vector<BufferId>& inputs,
                                               const std::vector<MetaPtr>& metas,
                                               bool draws_globally) {
  const OpDef& op = *node.op;
  // A redistribution gives the members of a group different parts, whose next steps may differ.
  if (boxing::follows_route(op)) complete(inputs);
  std::vector<MetaPtr> input_metas;
  for (const BufferId id : inputs)
    input_metas.push_back(id == kNoBuffer ? nullptr : buffer(id).meta);
  KernelCall call = flow::make_kernel_call({.op = op,
                                            .inputs = input_metas,
                                            .outputs = metas,
                                            .attrs = node.raw_attrs(),
                                            .mutates = op.mutates,
                                            .chooses_kernel = !boxing::follows_route(op)},
                                           kernels_);
  if (call.kind == KernelCall::Kind::kNothing) return add_absent(metas);
  if (op.mutates != 0) {
    const std::vector<BufferId> apart = without_overlaps(op, inputs);
    if (apart != inputs) return add_node(node, apart, metas, draws_globally);
  }
  std::vector<BufferId> sources = inputs;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (call.forms[i] == InputForm::kStrided) sources[i] = strided(sources[i]);
  }
  if (call.kind == KernelCall::Kind::kView)
    return {add_view(sources[0], call.outputs[0], call.view_offset)};
  // The communication thread takes no scratch memory to pack an input.
  const bool packs = boxing::follows_route(op) && node.transfer_start == TransferStart::kAtOnce;
  if (packs && allows_background_) sources[0] = contiguous(sources[0]);
  Step step{.inputs = sources,
            .guard = guard_,
            .file = node.file,
            .line = node.line,
            .module = node.module,
            .phase = node.phase};
  for (uint32_t left = op.mutates; left != 0; left &= left - 1)
    step.outputs.push_back(sources[static_cast<size_t>(std::countr_zero(left))]);
  const BufferId reused = overwritten_ < 0 ? kNoBuffer : inputs[static_cast<size_t>(overwritten_)];
  if (can_overwrite(reused, call.outputs[0])) {
    step.outputs = {reused};
    std::erase_if(twins_, [&](const auto& twin) { return twin.first == reused; });
  } else if (op.mutates == 0) {
    for (const MetaPtr meta : call.outputs)
      step.outputs.push_back(add_buffer(meta));
  }
  std::vector<BufferId> outputs = step.outputs;
  if (boxing::follows_route(op)) {
    const KernelQuery query{op, call.inputs, call.outputs, node.raw_attrs()};
    auto route = std::make_shared<const boxing::Route>(boxing::route_of_call(query));
    step.body =
        CollectiveStep{.op_call = {.op = &op, .attrs = node.attrs}, .route = std::move(route)};
    add_collective(std::move(step), node.transfer_start);
  } else {
    KernelStep kernel{.op_call = {.op = &op, .attrs = node.attrs},
                      .draw = node.draw,
                      .draws_globally = node.draw >= 0 && draws_globally};
    set_kernel_call(kernel, std::move(call));
    step.body = std::move(kernel);
    add_step(std::move(step));
  }
  return outputs;
}

bool ProgramBuilder::can_overwrite(BufferId id, MetaPtr result) const {
  return id != kNoBuffer && buffer(id).meta == result && buffer(id).external < 0 &&
         buffer(id).base == kNoBuffer;
}

void ProgramBuilder::add_step(Step step) {
  flush_used(step);
  end_used(step);
  program_.steps.push_back(std::move(step));
}

std::vector<BufferId> ProgramBuilder::add_absent(const std::vector<MetaPtr>& metas) {
  std::vector<BufferId> absent;
  for (const MetaPtr meta : metas)
    absent.push_back(add_buffer(meta));
  return absent;
}

Program ProgramBuilder::finish() {
  end_communication();
  if (!program_.blocks.empty()) program_.blocks.back().end_step = program_.steps.size();
  if (program_.runs.empty()) program_.blocks.clear();
  share_bucket_memory();
  plan_memory(program_);
  return std::move(program_);
}

}  // namespace flow::graph
