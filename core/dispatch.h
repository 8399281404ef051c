// The one entry for every op in eager mode and in traces: infer and choose (cached), run, record.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/op.h"

namespace flow {

// One call of an op. It is stored on the caller's stack.
struct Call {
  const OpDef& op;
  // An undefined tensor is an optional input that is not given.
  std::span<const Tensor* const> inputs;
  const void* attrs;
  Site site;
  // Bit i: input i is written in place; the outputs are these inputs in order.
  uint32_t mutates = 0;
  RandomStream random = {};  // set by dispatch for random ops

  const Tensor& input(size_t i) const { return *inputs[i]; }

  // A copy of the attrs, for who stores the call; empty if the op has none.
  std::vector<std::byte> copy_attrs() const;
};

// What was decided for a call. It is a pure function of op, attrs and logical metas, and is the
// same on every rank except for the local part of the output metas.
struct Decision {
  const OpDef* op = nullptr;

  // The layout that each input needs before the kernel runs; undefined placement: the layout it
  // has.
  struct InputLayout {
    Placement placement;
    NdSbp nd_sbp;
    friend bool operator==(const InputLayout&, const InputLayout&) = default;
  };

  std::vector<InputLayout> inputs;
  std::vector<MetaPtr> outputs;
  bool redistributes = false;  // some input's layout changes
  bool decomposes = false;     // OpDef::decompose runs instead of a kernel
  // The written tensor is a partial value, which the op cannot write: the result is computed out of
  // place and copied into it.
  bool writes_copy = false;
  // The output of a view op shares no memory with the input on some rank: every rank copies and
  // links it (core/view_link.h).
  bool links_view = false;

  friend bool operator==(const Decision&, const Decision&) = default;
};

std::string to_string(const Decision& decision);

// Steps 1 and 2. Implementations cache decisions. The reference stays valid until the dispatch that
// asked for it has ended, including the calls nested in it.
class Chooser {
 public:
  virtual ~Chooser() = default;
  virtual const Decision& choose(const Call& call) = 0;
};

// Step 3: runs a call (eager) or records it (tracing). `outputs` has decision.outputs.size()
// handles; dispatch has already set those of mutated inputs.
class Interpreter {
 public:
  virtual ~Interpreter() = default;
  virtual void run(const Call& call, const Decision& decision, Tensor* outputs) = 0;
  // Gives `target`, and all tensors that share its memory, the values of `value`, which has the
  // same shape and dtype. Changes no history.
  virtual void replace(const Tensor& target, const Tensor& value) = 0;
  // Returns the number of writes to the memory of a tensor that this interpreter has run.
  virtual uint32_t version_of(const Tensor& tensor) = 0;

  // Returns what a trace stores with `tensor`, which all aliases share that the trace makes of it.
  // Null if this interpreter does not trace.
  virtual std::shared_ptr<TraceSlot> slot_of(const Tensor& /*tensor*/) { return nullptr; }
};

// Is told of the calls that its thread runs, but not of traced ones (eager/profiler.h).
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // These are called before and after step 3. Calls nest: a redistribution begins and ends within
  // the call that needs it.
  virtual void begin(const Call& call, const Decision& decision) = 0;
  virtual void end(const Decision& decision, bool has_failed) = 0;
};

// Step 4: autograd.
class Recorder {
 public:
  virtual ~Recorder() = default;
  // Throws InvalidArgument if autograd forbids writing to a mutated input. Gives views among the
  // inputs the histories that they have before the write.
  virtual void check_mutation(const Call& call) = 0;
  virtual void record(const Call& call, const Decision& decision, Tensor* outputs) = 0;
  // Notes the output of a view op that was not recorded: a later write to it may have to be
  // recorded.
  virtual void note_view(const Call& call, const Decision& decision, const Tensor& output) = 0;
  // Gives `target` the history of `source`.
  virtual void take_history(const Tensor& target, const Tensor& source) = 0;
};

// Runs before all other steps while an AutocastGuard is on.
class Autocaster {
 public:
  virtual ~Autocaster() = default;
  // Runs `call`, whose op has an autocast rule, with inputs that are cast by the rule.
  virtual void run(Call& call, Tensor* outputs) const = 0;
  // Returns one input as cast by `rule`.
  virtual Tensor cast(const TensorArg& x, AutocastRule rule) const = 0;
  virtual DType dtype() const = 0;
};

// Runs `call`; `outputs` has room for the op's outputs.
void dispatch(Call& call, Tensor* outputs);

namespace internal {
// Throws InvalidArgument.
[[noreturn]] void refuse_outputs(const OpDef& op, size_t room);

// Throws InvalidArgument if the op has more outputs than the caller has room for.
inline void check_outputs(const OpDef& op, size_t room) {
  if (op.num_outputs > static_cast<int>(room)) [[unlikely]]
    refuse_outputs(op, room);
}
}  // namespace internal

// Forms for the usual ops, which have one output.
Tensor dispatch(const OpDef& op, std::initializer_list<const Tensor*> inputs, Site site);
Tensor dispatch_raw(const OpDef& op, std::span<const Tensor* const> inputs, const void* attrs,
                    Site site);

template <class Attrs>
Tensor dispatch(const OpDef& op, std::initializer_list<const Tensor*> inputs, const Attrs& attrs,
                Site site) {
  return dispatch_raw(op, {inputs.begin(), inputs.size()}, &attrs, site);
}

// The form for several outputs.
template <size_t N, class Attrs>
std::array<Tensor, N> dispatch_multi(const OpDef& op, std::initializer_list<const Tensor*> inputs,
                                     const Attrs& attrs, Site site) {
  internal::check_outputs(op, N);
  std::array<Tensor, N> outputs;
  Call call{op, {inputs.begin(), inputs.size()}, &attrs, site};
  dispatch(call, outputs.data());
  return outputs;
}

// `op_`: writes output 0 into inputs[0], whose shape and dtype it must have, and returns inputs[0].
Tensor dispatch_in_place(const OpDef& op, std::initializer_list<const Tensor*> inputs,
                         const void* attrs, Site site);

}  // namespace flow
