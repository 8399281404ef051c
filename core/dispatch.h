// The one entry for every op and both interpreters: infer and choose (cached), run, record.
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/op.h"

namespace flow {

// One call of an op. Lives on the caller's stack.
struct Call {
  const OpDef& op;
  std::span<const Tensor* const> inputs;  // an undefined tensor: optional input not given
  const void* attrs;
  Site site;
  // Bit i: input i is written in place, outputs are these inputs in order.
  uint32_t mutates = 0;
  RandomStream random = {};  // set by dispatch for random ops

  const Tensor& input(size_t i) const { return *inputs[i]; }
};

// What was decided for a call: a pure function of op, attrs and logical metas, the same on every
// rank, but for the local part of the output metas.
struct Decision {
  const OpDef* op = nullptr;

  // How each input must lie before the kernel runs; undefined placement: as it is.
  struct InputLayout {
    Placement placement;
    NdSbp nd_sbp;
    friend bool operator==(const InputLayout&, const InputLayout&) = default;
  };

  std::vector<InputLayout> inputs;
  std::vector<MetaPtr> outputs;
  bool redistributes = false;  // some input's layout changes
  bool decomposes = false;     // OpDef::decompose answers instead of a kernel

  friend bool operator==(const Decision&, const Decision&) = default;
};

std::string to_string(const Decision& decision);

// Steps 1 and 2. Implementations cache; the reference outlives the dispatch it was asked for,
// calls nested in it included.
class Chooser {
 public:
  virtual ~Chooser() = default;
  virtual const Decision& choose(const Call& call) = 0;
};

// Step 3: carries a call out (eager) or writes it down (tracing). `outputs` has
// decision.outputs.size() handles; those of mutated inputs are set by dispatch already.
class Interpreter {
 public:
  virtual ~Interpreter() = default;
  virtual void run(const Call& call, const Decision& decision, Tensor* outputs) = 0;
};

// Hears of the calls that its thread carries out, those of a trace left out (eager/profiler.h).
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // Around step 3. Calls nest: a redistribution begins and ends within the call that needs it.
  virtual void begin(const Call& call, const Decision& decision) = 0;
  virtual void end(const Decision& decision, bool has_failed) = 0;
};

// Step 4: autograd.
class Recorder {
 public:
  virtual ~Recorder() = default;
  // Throws InvalidArgument when autograd forbids writing to a mutated input.
  virtual void check_mutation(const Call& call) = 0;
  virtual void record(const Call& call, const Decision& decision, Tensor* outputs) = 0;
  // The output of an unrecorded view op: a later write to it may have to be recorded.
  virtual void note_view(const Call& call, const Decision& decision, const Tensor& output) = 0;
};

// Stands before all steps while an AutocastGuard is on.
class Autocaster {
 public:
  virtual ~Autocaster() = default;
  // Carries out `call`, whose op has a rule, on inputs cast by it.
  virtual void run(Call& call, Tensor* outputs) const = 0;
  // What `rule` makes of one input.
  virtual Tensor cast(const TensorArg& x, AutocastRule rule) const = 0;
  virtual DType dtype() const = 0;
};

// Carries out `call`; `outputs` has room for the op's outputs.
void dispatch(Call& call, Tensor* outputs);

// Forms for the usual ops.
Tensor dispatch(const OpDef& op, std::initializer_list<const Tensor*> inputs, Site site);
Tensor dispatch_raw(const OpDef& op, std::span<const Tensor* const> inputs, const void* attrs,
                    Site site);

template <class Attrs>
Tensor dispatch(const OpDef& op, std::initializer_list<const Tensor*> inputs, const Attrs& attrs,
                Site site) {
  return dispatch_raw(op, {inputs.begin(), inputs.size()}, &attrs, site);
}

// Several outputs.
template <size_t N, class Attrs>
std::array<Tensor, N> dispatch_multi(const OpDef& op, std::initializer_list<const Tensor*> inputs,
                                     const Attrs& attrs, Site site) {
  std::array<Tensor, N> outputs;
  Call call{op, {inputs.begin(), inputs.size()}, &attrs, site};
  dispatch(call, outputs.data());
  return outputs;
}

// `op_`: writes output 0 over inputs[0], which must have its shape and dtype, and returns that.
Tensor dispatch_in_place(const OpDef& op, std::initializer_list<const Tensor*> inputs,
                         const void* attrs, Site site);

}  // namespace flow
