#include "core/dispatch.h"

#include <bit>

#include "core/calls/host_memory.h"
#include "core/calls/substitution.h"
#include "core/shared_draws.h"
#include "core/view_link.h"

namespace flow {

namespace {

bool any_requires_grad(const Call& call) {
  for (const Tensor* input : call.inputs) {
    if (input->defined() && input->impl().tracks_grad()) return true;
  }
  return false;
}

bool any_global(const Decision& decision) {
  for (const MetaPtr meta : decision.outputs) {
    if (meta->is_global()) return true;
  }
  return false;
}

// The handles of mutated inputs are the outputs.
void bind_mutated(const Call& call, Tensor* outputs) {
  size_t next = 0;
  for (uint32_t left = call.mutates; left != 0; left &= left - 1) {
    outputs[next++] = call.input(static_cast<size_t>(std::countr_zero(left)));
  }
}

void run_observed(const ThreadState& state, const Call& call, const Decision& decision,
                  Tensor* outputs) {
  CallObserver& observer = *state.observer;
  observer.begin(call, decision);
  try {
    state.interpreter->run(call, decision, outputs);
  } catch (...) {
    observer.end(decision, true);
    throw;
  }
  observer.end(decision, false);
}

// Computes the result of a call in place out of place, and copies it into the written tensor.
void write_copy(const Call& call, Tensor* outputs) {
  const Tensor result = dispatch_raw(call.op, call.inputs, call.attrs, call.site);
  bind_mutated(call, outputs);
  outputs[0].copy_({result, call.site});
}

void refresh_views(const Call& call) {
  for (const Tensor* input : call.inputs) {
    if (input->defined()) refresh_view(*input);
  }
}

}  // namespace

std::vector<std::byte> Call::copy_attrs() const {
  if (op.attrs == nullptr) return {};
  const auto* begin = static_cast<const std::byte*>(attrs);
  return {begin, begin + op.attrs->size};
}

namespace {

void run_call(Call& call, Tensor* outputs) {
  ThreadState& state = thread_state();
  if (state.chooser == nullptr) [[unlikely]] {
    throw InternalError("[dispatch] no runtime is installed; include <flow/flow.h>");
  }
  if (has_view_links()) [[unlikely]]
    refresh_views(call);
  if (state.autocast != nullptr && call.op.autocast != AutocastRule::kNone) [[unlikely]] {
    state.autocast->run(call, outputs);
    return;
  }
  call.mutates |= call.op.mutates;
  const Decision& decision = state.chooser->choose(call);
  if (decision.decomposes) [[unlikely]] {
    std::vector<MetaPtr> metas;
    for (const Tensor* input : call.inputs) {
      metas.push_back(input->defined() ? input->meta_ptr() : nullptr);
    }
    const SbpContext sbp(call.op, metas, call.attrs, {});
    call.op.decompose({call.inputs, call.attrs, call.site}, sbp, outputs);
    return;
  }
  if (decision.writes_copy) [[unlikely]]
    return write_copy(call, outputs);
  const bool records = state.grad_enabled && any_requires_grad(call);
  if (call.mutates != 0) {
    state.recorder->check_mutation(call);
    if (has_view_links()) [[unlikely]]
      check_linked_writes(call);
    bind_mutated(call, outputs);
  }
  if (call.op.is_random) {
    call.random = state.context->generator().next();
    if (!any_global(decision) && !SharedDraws::are_on()) {
      call.random.rank = static_cast<uint64_t>(state.context->rank());
    }
  }
  if (state.observer != nullptr && state.trace == nullptr) [[unlikely]] {
    run_observed(state, call, decision, outputs);
  } else {
    state.interpreter->run(call, decision, outputs);
  }
  if (records) {
    state.recorder->record(call, decision, outputs);
  } else if (call.op.view != nullptr) {
    state.recorder->note_view(call, decision, outputs[0]);
  }
  if (call.mutates != 0 && has_view_links()) [[unlikely]]
    write_back_views(call);
}

// Runs a call with the substitutes of its inputs.
void run_substituted(const Call& call, Tensor* outputs) {
  std::vector<const Tensor*> inputs;
  for (const Tensor* input : call.inputs)
    inputs.push_back(&Substitution::of(*input));
  Call substituted = call;
  substituted.inputs = inputs;
  run_call(substituted, outputs);
}

}  // namespace

// The one place that gives the errors of all ops their line and module path.
void dispatch(Call& call, Tensor* outputs) {
  try {
    in_host_memory([&] { return call.op.name; }, call.site,
                   [&] {
                     if (Substitution::is_active()) [[unlikely]]
                       return run_substituted(call, outputs);
                     run_call(call, outputs);
                   });
  } catch (Error& error) {
    error.add_place(call.site);
    throw;
  }
}

Tensor dispatch_raw(const OpDef& op, std::span<const Tensor* const> inputs, const void* attrs,
                    Site site) {
  internal::check_outputs(op, 1);
  Tensor output;
  Call call{op, inputs, attrs, site};
  dispatch(call, &output);
  return output;
}

void internal::refuse_outputs(const OpDef& op, size_t room) {
  throw InvalidArgument(str("[", op.name, "] the op has ", op.num_outputs,
                            " outputs, and the caller takes ", room, "; call dispatch_multi<",
                            op.num_outputs, ">"));
}

Tensor dispatch(const OpDef& op, std::initializer_list<const Tensor*> inputs, Site site) {
  if (op.attrs != nullptr) {
    throw InvalidArgument(
        str("[", op.name,
            "] the op has attrs, and the caller gives none; pass them before the site"),
        site);
  }
  return dispatch_raw(op, {inputs.begin(), inputs.size()}, nullptr, site);
}

Tensor dispatch_in_place(const OpDef& op, std::initializer_list<const Tensor*> inputs,
                         const void* attrs, Site site) {
  if (!op.allows_in_place) {
    throw InvalidArgument(str("[", op.name, "] the op has no in-place form; call dispatch"), site);
  }
  Tensor output;
  Call call{op, {inputs.begin(), inputs.size()}, attrs, site};
  call.mutates = 1;
  dispatch(call, &output);
  return output;
}

std::string to_string(const Decision& decision) {
  std::string text = str(decision.op->name, "(");
  for (size_t i = 0; i < decision.inputs.size(); ++i) {
    const auto& layout = decision.inputs[i];
    text += i == 0 ? "" : ", ";
    text += layout.placement.defined() ? str(layout.nd_sbp, " on ", layout.placement) : "as is";
  }
  text += ") -> ";
  for (size_t i = 0; i < decision.outputs.size(); ++i) {
    text += str(i == 0 ? "" : ", ", *decision.outputs[i]);
  }
  return text;
}

}  // namespace flow
