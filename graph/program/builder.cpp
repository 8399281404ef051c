#include "graph/program/builder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "boxing/routed_kernel.h"
#include "core/error.h"
#include "graph/program/kernel_binding.h"
#include "ops/creation/copy_op.h"
#include "ops/elementwise/binary_op.h"

namespace flow::graph {

ProgramBuilder::ProgramBuilder(int64_t rank, const KernelTable& kernels) : kernels_(kernels) {
  program_.rank = rank;
}

BufferId ProgramBuilder::add_buffer(MetaPtr meta) {
  program_.buffers.push_back({.meta = meta});
  return static_cast<BufferId>(program_.buffers.size() - 1);
}

BufferId ProgramBuilder::add_external(MetaPtr meta) {
  const BufferId id = add_buffer(meta);
  program_.buffers.back().external = static_cast<int32_t>(program_.externals.size());
  program_.externals.push_back(id);
  return id;
}

BufferId ProgramBuilder::add_view(BufferId base, MetaPtr meta, int64_t offset) {
  program_.buffers.push_back({.meta = meta, .base = base, .offset = offset});
  return static_cast<BufferId>(program_.buffers.size() - 1);
}

void ProgramBuilder::add_in_place(const OpDef& op, const void* attrs, BufferId target,
                                  BufferId source) {
  Step step{.inputs = {target, source},
            .outputs = {target},
            .op = &op,
            .on_parts = true,
            .guard = guard_};
  if (op.attrs != nullptr) {
    step.attrs.resize(op.attrs->size);
    std::memcpy(step.attrs.data(), attrs, op.attrs->size);
  }
  const KernelMetas metas = kernel_metas(step, [&](BufferId id) { return buffer(id).meta; });
  add_kernel(std::move(step), make_kernel_call(step, metas, kernels_));
}

void ProgramBuilder::add_kernel(Step step, KernelCall call) {
  step.scratch = call.scratch;
  step.call = std::make_shared<const KernelCall>(std::move(call));
  program_.steps.push_back(std::move(step));
}

void ProgramBuilder::add_copy(BufferId source, BufferId target) {
  add_in_place(ops::kCopy, nullptr, target, strided(source));
}

void ProgramBuilder::add_sum(BufferId source, BufferId target) {
  const ops::AddAttrs attrs;
  add_in_place(ops::kAdd, &attrs, target, strided(source));
}

size_t ProgramBuilder::add_send(BufferId buffer, int64_t peer, int64_t tag, const Node& node) {
  sends_.push_back(program_.steps.size());
  program_.steps.push_back({.kind = StepKind::kSend,
                            .inputs = {buffer},
                            .outputs = {},
                            .peer = peer,
                            .tag = tag,
                            .file = node.file,
                            .line = node.line});
  return sends_.back();
}

void ProgramBuilder::add_recv(BufferId buffer, int64_t peer, int64_t tag, const Node& node) {
  program_.steps.push_back({.kind = StepKind::kRecv,
                            .inputs = {},
                            .outputs = {buffer},
                            .peer = peer,
                            .tag = tag,
                            .file = node.file,
                            .line = node.line});
}

void ProgramBuilder::wait_for_send(size_t send) {
  program_.steps.push_back({.kind = StepKind::kWait,
                            .inputs = program_.steps[send].inputs,
                            .outputs = {},
                            .peer = static_cast<int64_t>(send)});
  std::erase(sends_, send);
}

void ProgramBuilder::wait_for_sends() {
  while (!sends_.empty())
    wait_for_send(sends_.front());
}

BufferId ProgramBuilder::strided(BufferId id) {
  if (id == kNoBuffer || buffer(id).meta->blocked == nullptr) return id;
  const auto known = twins_.find(id);
  if (known != twins_.end()) return known->second;
  const BufferId twin = add_buffer(with_blocked(buffer(id).meta, nullptr));
  program_.steps.push_back({.kind = StepKind::kToStrided, .inputs = {id}, .outputs = {twin}});
  twins_.emplace(id, twin);
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
  std::vector<BufferId> sources = inputs;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (call.forms[i] == InputForm::kStrided) sources[i] = strided(sources[i]);
  }
  if (call.kind == KernelCall::Kind::kView)
    return {add_view(sources[0], call.outputs[0], call.view_offset)};
  Step step{.inputs = sources,
            .outputs = {},
            .op = &op,
            .attrs = node.attrs,
            .guard = guard_,
            .draw = node.draw,
            .draws_globally = node.draw >= 0 && draws_globally,
            .file = node.file,
            .line = node.line};
  for (uint32_t left = op.mutates; left != 0; left &= left - 1)
    step.outputs.push_back(sources[static_cast<size_t>(std::countr_zero(left))]);
  if (op.mutates == 0) {
    for (const MetaPtr meta : call.outputs)
      step.outputs.push_back(add_buffer(meta));
  }
  std::vector<BufferId> outputs = step.outputs;
  if (boxing::follows_route(op)) {
    const KernelQuery query{op, call.inputs, call.outputs, node.raw_attrs()};
    step.route = std::make_shared<const boxing::Route>(boxing::route_of_call(query));
    call.scratch = boxing::scratch_of_route(query, *step.route, program_.rank);
  }
  add_kernel(std::move(step), std::move(call));
  return outputs;
}

std::vector<BufferId> ProgramBuilder::add_absent(const std::vector<MetaPtr>& metas) {
  std::vector<BufferId> absent;
  for (const MetaPtr meta : metas)
    absent.push_back(add_buffer(meta));
  return absent;
}

Program ProgramBuilder::finish() {
  wait_for_sends();
  plan_memory(program_);
  return std::move(program_);
}

}  // namespace flow::graph
