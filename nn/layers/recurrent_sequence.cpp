#include "nn/layers/recurrent_sequence.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "autograd/engine.h"
#include "autograd/function.h"
#include "core/context.h"
#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/unary_op.h"
#include "ops/linear/matmul.h"
#include "ops/linear/matmul_op.h"
#include "ops/linear/recurrent_op.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow::nn::internal {

namespace {

using Tensors = std::vector<Tensor>;

// Sequences of so many steps multiply by a transposed copy of the weight, which few rows of the
// state read in order.
constexpr size_t kStepsOfCopy = 4;

CellState lstm_forward(const Tensor& of_input, const Tensor& of_state, const CellState& before) {
  ops::LstmStep after = ops::lstm_gates(of_input, of_state, before.c);
  return {std::move(after.hidden), std::move(after.cell)};
}

Cell::Gradients lstm_backward(const Tensor& of_input, const Tensor& of_state,
                              const CellState& before, const Tensor& /*hidden*/,
                              const CellState& dafter) {
  const auto [dgates, dcell] =
      ops::lstm_gates_backward(of_input, of_state, before.c, dafter.h, dafter.c);
  return {dgates, dgates, {{}, dcell}};
}

CellState gru_forward(const Tensor& of_input, const Tensor& of_state, const CellState& before) {
  return {ops::gru_gates(of_input, of_state, before.h), {}};
}

Cell::Gradients gru_backward(const Tensor& of_input, const Tensor& of_state,
                             const CellState& before, const Tensor& /*hidden*/,
                             const CellState& dafter) {
  const auto [dof_input, dof_state, dhidden] =
      ops::gru_gates_backward(of_input, of_state, before.h, dafter.h);
  return {dof_input, dof_state, {dhidden, {}}};
}

CellState tanh_forward(const Tensor& of_input, const Tensor& of_state,
                       const CellState& /*before*/) {
  return {tanh(of_input + of_state), {}};
}

CellState relu_forward(const Tensor& of_input, const Tensor& of_state,
                       const CellState& /*before*/) {
  return {relu(of_input + of_state), {}};
}

// Of a function whose derivative is known by its value.
template <const OpDef* kDerivative>
Cell::Gradients value_backward(const Tensor& /*of_input*/, const Tensor& /*of_state*/,
                               const CellState& /*before*/, const Tensor& hidden,
                               const CellState& dafter) {
  const Tensor d = dispatch(*kDerivative, {&dafter.h, &hidden}, Site::here());
  return {d, d, {}};
}

// a + b; b may be undefined.
Tensor with_added(const Tensor& a, const Tensor& b) {
  return b.defined() ? a + b : a;
}

// The parts of x along dim 0. Their gradients are written once, by one stack; the gradient of
// unbind is a sum of as many tensors of the size of x as there are parts.
struct Steps : Function<Steps> {
  static Tensors forward(FunctionContext& /*ctx*/, const Tensor& x) { return unbind(x, 0); }

  static Tensors backward(FunctionContext& /*ctx*/, const Tensors& dy) { return {stack(dy, 0)}; }
};

// What a step computes.
struct StepValues {
  Tensor of_state;
  Tensor hidden;  // before the projection
  CellState after;
};

StepValues take_step(const Cell& cell, const Tensor& of_input, const CellState& before,
                     const DirectionWeights& weights) {
  StepValues values;
  values.of_state = linear(before.h, weights.weight_hh, weights.bias_hh);
  values.after = cell.forward(of_input, values.of_state, before);
  values.hidden = values.after.h;
  if (weights.weight_hr.defined()) values.after.h = linear(values.hidden, weights.weight_hr);
  return values;
}

// Takes a step for each part of the input, and calls record(before, values) after each.
template <class Record>
SequenceResult take_steps(const Cell& cell, Tensors of_input, const CellState& first,
                          const DirectionWeights& weights, bool is_reverse, const Record& record) {
  if (is_reverse) std::reverse(of_input.begin(), of_input.end());
  CellState state = first;
  Tensors outputs;
  for (const Tensor& gates : of_input) {
    const StepValues values = take_step(cell, gates, state, weights);
    record(state, values);
    state = values.after;
    outputs.push_back(state.h);
  }
  if (is_reverse) std::reverse(outputs.begin(), outputs.end());
  return {stack(outputs, 0), state};
}

// As each step is recorded in the graph.
SequenceResult run_steps(const Cell& cell, const Tensor& of_input, const CellState& first,
                         const DirectionWeights& weights, bool is_reverse) {
  return take_steps(cell, Steps::apply(of_input), first, weights, is_reverse,
                    [](const CellState& /*before*/, const StepValues& /*values*/) {});
}

// The tensors that a sequence is called with.
enum Argument : size_t {
  kOfInput,
  kFirstH,
  kFirstC,
  kWeightHh,
  kBiasHh,
  kWeightHr,
  kNumArguments,
};

using Arguments = std::array<Tensor, kNumArguments>;

CellState first_of(const Arguments& arguments) {
  return {arguments[kFirstH], arguments[kFirstC]};
}

DirectionWeights weights_of(const Arguments& arguments) {
  return {{}, arguments[kWeightHh], {}, arguments[kBiasHh], arguments[kWeightHr]};
}

// The arguments, some of which may be undefined, and what the steps computed, in their order. The
// results of the layer are not among it, so that they may be written in place: the states of the
// steps are copied to the output, and nothing reads the last cell.
struct Trace {
  Arguments arguments;
  Tensors of_state, hidden;
  Tensors states, cells;  // before each step
};

struct Sequence : Function<Sequence> {
  // What backward needs besides tensors.
  struct Form {
    const Cell* cell;
    bool is_reverse;
    std::array<bool, kNumArguments> is_given;
    size_t steps;
    bool has_cells;
  };

  static Tensors forward(FunctionContext& ctx, const Tensor& of_input, const Tensor& h,
                         const Tensor& c, const Tensor& weight_hh, const Tensor& bias_hh,
                         const Tensor& weight_hr, const Cell* cell, bool is_reverse) {
    ctx.set_materialize_grads(false);
    Trace trace{{of_input, h, c, weight_hh, bias_hh, weight_hr}, {}, {}, {}, {}};
    Tensors gates = unbind(of_input, 0);
    const size_t steps = gates.size();
    DirectionWeights weights = weights_of(trace.arguments);
    if (steps >= kStepsOfCopy && weight_hh.device() == DeviceType::kCpu)
      weights.weight_hh = transpose(transpose(weight_hh, 0, 1).contiguous(), 0, 1);
    const bool records = needs_any(ctx);
    const SequenceResult result =
        take_steps(*cell, std::move(gates), first_of(trace.arguments), weights, is_reverse,
                   [&](const CellState& before, const StepValues& values) {
                     if (!records) return;
                     trace.states.push_back(before.h);
                     if (before.c.defined()) trace.cells.push_back(before.c);
                     trace.of_state.push_back(values.of_state);
                     trace.hidden.push_back(values.hidden);
                   });
    const bool has_cells = result.last.c.defined();
    if (records) save(ctx, trace, {cell, is_reverse, {}, steps, has_cells});
    return has_cells ? Tensors{result.output, result.last.c} : Tensors{result.output};
  }

  static Tensors backward(FunctionContext& ctx, const Tensors& dy) {
    const Form& form = ctx.get<Form>();
    const Trace trace = restored(form, ctx.saved());
    const Tensor dcell = form.has_cells ? dy[1] : Tensor();
    if (!dy[0].defined() && !dcell.defined()) return Tensors(kNumArguments);
    return is_grad_enabled() ? recorded_gradients(ctx, form, trace, dy[0], dcell)
                             : gradients(ctx, form, trace, dy[0], dcell);
  }

 private:
  static bool needs_any(const FunctionContext& ctx) {
    for (size_t i = 0; i < kNumArguments; ++i) {
      if (ctx.needs_input_grad(i)) return true;
    }
    return false;
  }

  static void save(FunctionContext& ctx, const Trace& trace, Form form) {
    Tensors saved;
    for (size_t i = 0; i < kNumArguments; ++i) {
      form.is_given[i] = trace.arguments[i].defined();
      if (form.is_given[i]) saved.push_back(trace.arguments[i]);
    }
    for (const Tensors* list : {&trace.of_state, &trace.hidden, &trace.states, &trace.cells})
      saved.insert(saved.end(), list->begin(), list->end());
    ctx.save_for_backward(saved);
    ctx.set(form);
  }

  static Trace restored(const Form& form, const Tensors& saved) {
    auto next = saved.begin();
    Trace trace;
    for (size_t i = 0; i < kNumArguments; ++i) {
      if (form.is_given[i]) trace.arguments[i] = *next++;
    }
    const auto take = [&](Tensors& list, size_t count) {
      const auto begin = next;
      next += static_cast<std::ptrdiff_t>(count);
      list.assign(begin, next);
    };
    take(trace.of_state, form.steps);
    take(trace.hidden, form.steps);
    take(trace.states, form.steps);
    take(trace.cells, form.has_cells ? form.steps : 0);
    return trace;
  }

  // For higher derivatives: those of the steps, which are computed again.
  static Tensors recorded_gradients(const FunctionContext& ctx, const Form& form,
                                    const Trace& trace, const Tensor& doutput,
                                    const Tensor& dcell) {
    const Arguments& arguments = trace.arguments;
    const SequenceResult again = run_steps(*form.cell, arguments[kOfInput], first_of(arguments),
                                           weights_of(arguments), form.is_reverse);
    Tensors ends, upstream;
    const auto add_end = [&](const Tensor& end, const Tensor& d) {
      if (!d.defined()) return;
      ends.push_back(end);
      upstream.push_back(d);
    };
    add_end(again.output, doutput);
    add_end(again.last.c, dcell);
    Tensors wanted;
    for (size_t i = 0; i < kNumArguments; ++i) {
      if (ctx.needs_input_grad(i)) wanted.push_back(arguments[i]);
    }
    const Tensors found =
        grad(ends, wanted, {.grad_outputs = upstream, .create_graph = true, .allow_unused = true});
    Tensors result(kNumArguments);
    size_t next = 0;
    for (size_t i = 0; i < kNumArguments; ++i) {
      if (ctx.needs_input_grad(i)) result[i] = found[next++];
    }
    return result;
  }

  // Backpropagation through time.
  static Tensors gradients(const FunctionContext& ctx, const Form& form, const Trace& trace,
                           const Tensor& doutput, const Tensor& dcell) {
    const auto last = static_cast<int64_t>(form.steps) - 1;
    const auto position = [&](int64_t step) { return form.is_reverse ? last - step : step; };
    const auto part = [&](const Tensor& x, int64_t step) {
      return x.defined() ? select(x, 0, position(step)) : x;
    };
    const Tensor& weight_hr = trace.arguments[kWeightHr];
    Tensors dof_input(form.steps), dof_state(form.steps), dprojected;
    CellState d{part(doutput, last), dcell};
    for (int64_t step = last; step >= 0; --step) {
      const auto number = static_cast<size_t>(step);
      const auto at = static_cast<size_t>(position(step));
      if (weight_hr.defined()) {
        if (!d.h.defined()) d.h = zeros_like(trace.states[number]);
        dprojected.push_back(d.h);
        d.h = matmul(d.h, weight_hr);
      }
      const CellState before{trace.states[number], form.has_cells ? trace.cells[number] : Tensor()};
      const Cell::Gradients own =
          form.cell->backward(part(trace.arguments[kOfInput], step), trace.of_state[number], before,
                              trace.hidden[number], d);
      dof_input[at] = own.of_input;
      dof_state[at] = own.of_state;
      d = own.before;
      if (step == 0 && !ctx.needs_input_grad(kFirstH)) break;
      d.h = with_added(matmul(own.of_state, trace.arguments[kWeightHh]), d.h);
      if (step > 0) d.h = with_added(d.h, part(doutput, step - 1));
    }

    Tensors result(kNumArguments);
    const Tensor all_of_input = stack(dof_input, 0);
    const bool is_shared = dof_input[0].is_same(dof_state[0]);
    const Tensor all_of_state = is_shared ? all_of_input : stack(dof_state, 0);
    if (ctx.needs_input_grad(kOfInput)) result[kOfInput] = all_of_input;
    if (ctx.needs_input_grad(kFirstH)) result[kFirstH] = d.h;
    if (ctx.needs_input_grad(kFirstC)) result[kFirstC] = d.c;
    if (ctx.needs_input_grad(kWeightHh)) {
      Tensors before = trace.states;
      if (form.is_reverse) std::reverse(before.begin(), before.end());
      result[kWeightHh] = ops::contract_leading(all_of_state, stack(before, 0));
    }
    if (ctx.needs_input_grad(kBiasHh)) result[kBiasHh] = sum(all_of_state, {0, 1});
    if (ctx.needs_input_grad(kWeightHr)) {
      std::reverse(dprojected.begin(), dprojected.end());
      result[kWeightHr] = ops::contract_leading(stack(dprojected, 0), stack(trace.hidden, 0));
    }
    return result;
  }
};

}  // namespace

const Cell kLstmCell = {lstm_forward, lstm_backward};
const Cell kGruCell = {gru_forward, gru_backward};
const Cell kTanhCell = {tanh_forward, value_backward<&ops::kTanhGrad>};
const Cell kReluCell = {relu_forward, value_backward<&ops::kReluGrad>};

CellState cell_step(const Cell& cell, const Tensor& of_input, const CellState& before,
                    const DirectionWeights& weights) {
  return take_step(cell, of_input, before, weights).after;
}

SequenceResult run_sequence(const Cell& cell, const Tensor& of_input, const CellState& first,
                            const DirectionWeights& weights, bool is_reverse) {
  // Autocast decides the dtypes of each op of a step.
  if (thread_state().autocast != nullptr)
    return run_steps(cell, of_input, first, weights, is_reverse);
  const Tensors results = Sequence::apply(of_input, first.h, first.c, weights.weight_hh,
                                          weights.bias_hh, weights.weight_hr, &cell, is_reverse);
  const int64_t last = is_reverse ? 0 : of_input.size(0) - 1;
  return {results[0], {select(results[0], 0, last), results.size() > 1 ? results[1] : Tensor()}};
}

}  // namespace flow::nn::internal
