#include "graph/program/builder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "boxing/routed_kernel.h"
#include "core/error.h"
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
  const std::array metas = {local_part(buffer(target).meta), local_part(buffer(source).meta)};
  const KernelQuery query{op, metas, {metas.data(), 1}, step.raw_attrs()};
  const KernelChoice choice = kernels_.select(query, metas[0]->device);
  step.fn = choice.fn;
  step.state = choice.state;
  step.scratch = scratch_of(choice.state);
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
  const MetaPtr meta = buffer(id).meta;
  if (meta->blocked == nullptr) return id;
  if (blocked_[id].plain != kNoBuffer) return blocked_[id].plain;
  const BufferId plain = add_buffer(with_blocked(meta, nullptr));
  program_.steps.push_back({.kind = StepKind::kToStrided, .inputs = {id}, .outputs = {plain}});
  Blocked& known = blocked_[id];
  known.plain = plain;
  known.phase = phase_;
  known.replaces = !known.is_used || (known.made_in != Phase::kForward);
  return plain;
}

BufferId ProgramBuilder::seen(BufferId id) const {
  const auto found = blocked_.find(id);
  if (found == blocked_.end() || found->second.plain == kNoBuffer) return id;
  const Blocked& known = found->second;
  return known.replaces || known.phase == phase_ ? known.plain : id;
}

BufferId ProgramBuilder::contiguous(BufferId id) {
  const BufferId plain = strided(id);
  const MetaPtr meta = buffer(plain).meta;
  if (meta->is_contiguous) return plain;
  const BufferId copy = add_buffer(with_strides(meta, contiguous_strides(meta->local_shape)));
  add_copy(plain, copy);
  return copy;
}

namespace {

bool is_held_by_any(const std::vector<MetaPtr>& inputs, const std::vector<MetaPtr>& outputs) {
  const auto is_held = [](MetaPtr meta) { return meta != nullptr && meta->is_held; };
  return std::any_of(inputs.begin(), inputs.end(), is_held) ||
         std::any_of(outputs.begin(), outputs.end(), is_held);
}

}  // namespace

std::vector<BufferId> ProgramBuilder::add_node(const Node& node,
                                               const std::vector<BufferId>& inputs,
                                               const std::vector<MetaPtr>& metas) {
  return add_node(node, inputs, metas, metas[0]->is_global());
}

std::vector<BufferId> ProgramBuilder::add_node(const Node& node,
                                               const std::vector<BufferId>& inputs,
                                               const std::vector<MetaPtr>& output_metas,
                                               bool draws_globally) {
  const OpDef& op = *node.op;
  phase_ = node.phase;
  std::vector<BufferId> sources;
  for (const BufferId id : inputs)
    sources.push_back(seen(id));
  std::vector<MetaPtr> metas;
  for (const BufferId id : sources)
    metas.push_back(id == kNoBuffer ? nullptr : buffer(id).meta);
  if (!is_held_by_any(metas, output_metas)) {
    std::vector<BufferId> absent;
    for (const MetaPtr meta : output_metas)
      absent.push_back(add_buffer(meta));
    return absent;
  }
  if (op.view != nullptr) {
    const BufferId base = strided(sources[0]);
    ViewSpec view;
    if (op.view(*buffer(base).meta, output_metas[0]->local_shape, node.raw_attrs(), view)) {
      return {add_view(base, with_strides(output_metas[0], view.strides), view.offset)};
    }
    sources[0] = base;
    metas[0] = buffer(base).meta;
  }
  std::vector<BufferId> outputs;
  std::vector<MetaPtr> wanted = output_metas;
  if (op.mutates != 0) {
    for (size_t i = 0; i < sources.size(); ++i) {
      if ((op.mutates >> i & 1) == 0) continue;
      sources[i] = strided(sources[i]);
      outputs.push_back(sources[i]);
      wanted[outputs.size() - 1] = metas[i] = buffer(sources[i]).meta;
    }
  }
  const KernelDef* chosen = nullptr;
  const DeviceType device = wanted[0]->device;
  const KernelQuery query{op, metas, wanted, node.raw_attrs()};
  const bool is_routed = boxing::follows_route(op);
  KernelChoice choice;
  if (!is_routed) choice = kernels_.select(query, device, {}, &chosen);
  const bool has_blocked = std::any_of(
      metas.begin(), metas.end(), [](MetaPtr m) { return m != nullptr && m->blocked != nullptr; });
  if (has_blocked && (is_routed || !chosen->accepts_blocked)) {
    for (size_t i = 0; i < sources.size(); ++i) {
      if (sources[i] == kNoBuffer) continue;
      sources[i] = strided(sources[i]);
      metas[i] = buffer(sources[i]).meta;
    }
    if (!is_routed) choice = kernels_.select(query, device);
  }
  std::shared_ptr<const boxing::Route> route;
  KernelScratch scratch = scratch_of(choice.state);
  if (is_routed) {
    route = std::make_shared<const boxing::Route>(boxing::route_of_call(query));
    scratch = boxing::scratch_of_route(query, *route, program_.rank);
  }
  if (op.mutates == 0) {
    for (const MetaPtr meta : choice.outputs.empty() ? wanted : choice.outputs) {
      outputs.push_back(add_buffer(meta));
    }
  }
  program_.steps.push_back({.kind = StepKind::kKernel,
                            .inputs = sources,
                            .outputs = outputs,
                            .op = &op,
                            .attrs = node.attrs,
                            .route = std::move(route),
                            .fn = choice.fn,
                            .state = choice.state,
                            .scratch = std::move(scratch),
                            .guard = guard_,
                            .draw = node.draw,
                            .draws_globally = node.draw >= 0 && draws_globally,
                            .file = node.file,
                            .line = node.line});
  for (const BufferId id : inputs) {
    if (id != kNoBuffer && buffer(id).meta->blocked != nullptr) blocked_[id].is_used = true;
  }
  for (const BufferId id : outputs) {
    if (buffer(id).meta->blocked != nullptr) blocked_[id].made_in = phase_;
  }
  return outputs;
}

Program ProgramBuilder::finish() {
  wait_for_sends();
  plan_memory(program_);
  return std::move(program_);
}

}  // namespace flow::graph
