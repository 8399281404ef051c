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
  const std::array<const Tensor*, 5> inputs{&of_input, &of_state, &before.c, &dafter.h, &dafter.c};
  std::array<Tensor, 2> d;
  Call call{ops::kLstmGatesBackward, inputs, nullptr, Site::here()};
  dispatch(call, d.data());
  return {d[0], d[0], {{}, d[1]}};
}

CellState gru_forward(const Tensor& of_input, const Tensor& of_state, const CellState& before) {
  return {ops::gru_gates(of_input, of_state, before.h), {}};
}

Cell::Gradients gru_backward(const Tensor& of_input, const Tensor& of_state,
                             const CellState& before, const Tensor& /*hidden*/,
                             const CellState& dafter) {
  const std::array<const Tensor*, 4> inputs{&of_input, &of_state, &before.h, &dafter.h};
  std::array<Tensor, 3> d;
  Call call{ops::kGruGatesBackward, inputs, nullptr, Site::here()};
  dispatch(call, d.data());
  return {d[0], d[1], {d[2], {}}};
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

// a + b, where either may be undefined.
Tensor sum_of_both(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

// The parts of x along dim 0. Their gradients are written once, by one stack; the gradient of
// unbind is a sum of as many tensors of the size of x as there are parts.
struct Steps : Function<Steps> {
  static Tensors forward(FunctionContext& /*ctx*/, const Tensor& x) { return unbind(x, 0); }

  static Tensors backward(FunctionContext& /*ctx*/, const Tensors& dy) { return {stack(dy, 0)}; }
};

// The arguments of a sequence, and what its steps computed, in the order of the steps. The results
// of the layer are not among it, so that they may be written in place: the states of the steps are
// copied to the output, and nothing reads the last cell.
struct Trace {
  Tensor of_input;
  CellState first;
  DirectionWeights weights;
  Tensors of_state, hidden, cells;
  Tensors states;  // hidden after the projection; empty if there is none
};

// The tensors of a trace in a fixed order. Some may be undefined.
Tensors arguments_of(const Trace& trace) {
  return {trace.of_input,          trace.first.h,         trace.first.c,
          trace.weights.weight_hh, trace.weights.bias_hh, trace.weights.weight_hr};
}

constexpr size_t kNumArguments = 6;

// As each step is recorded.
SequenceResult run_steps(const Cell& cell, const Tensor& of_input, const CellState& first,
                         const DirectionWeights& weights, bool is_reverse) {
  Tensors gates = Steps::apply(of_input);
  if (is_reverse) std::reverse(gates.begin(), gates.end());
  CellState state = first;
  Tensors outputs;
  for (const Tensor& gate : gates) {
    state = cell_step(cell, gate, state, weights);
    outputs.push_back(state.h);
  }
  if (is_reverse) std::reverse(outputs.begin(), outputs.end());
  return {stack(outputs, 0), state};
}

struct Sequence : Function<Sequence> {
  // What backward needs besides tensors.
  struct Form {
    const Cell* cell;
    bool is_reverse;
    std::vector<bool> is_given;  // of the arguments
    size_t steps;
    bool has_cells;
  };

  static Tensors forward(FunctionContext& ctx, const Tensor& of_input, const Tensor& h,
                         const Tensor& c, const Tensor& weight_hh, const Tensor& bias_hh,
                         const Tensor& weight_hr, const Cell* cell, bool is_reverse) {
    ctx.set_materialize_grads(false);
    Trace trace{of_input, {h, c}, {{}, weight_hh, {}, bias_hh, weight_hr}, {}, {}, {}, {}};
    Tensors gates = unbind(of_input, 0);
    if (is_reverse) std::reverse(gates.begin(), gates.end());
    Tensor weight = weight_hh;
    if (gates.size() >= kStepsOfCopy && weight.device() == DeviceType::kCpu)
      weight = transpose(transpose(weight, 0, 1).contiguous(), 0, 1);
    const bool records = needs_any(ctx);
    CellState state = trace.first;
    Tensors outputs;
    for (const Tensor& gate : gates) {
      const Tensor of_state = linear(state.h, weight, bias_hh);
      if (records && !outputs.empty() && state.c.defined()) trace.cells.push_back(state.c);
      state = cell->forward(gate, of_state, state);
      if (records) {
        trace.of_state.push_back(of_state);
        trace.hidden.push_back(state.h);
      }
      if (weight_hr.defined()) {
        state.h = linear(state.h, weight_hr);
        if (records) trace.states.push_back(state.h);
      }
      outputs.push_back(state.h);
    }
    if (records) save(ctx, trace, {cell, is_reverse, {}, gates.size(), state.c.defined()});
    if (is_reverse) std::reverse(outputs.begin(), outputs.end());
    const Tensor output = stack(outputs, 0);
    return state.c.defined() ? Tensors{output, state.c} : Tensors{output};
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
    for (const Tensor& argument : arguments_of(trace)) {
      form.is_given.push_back(argument.defined());
      if (argument.defined()) saved.push_back(argument);
    }
    for (const Tensors* list : {&trace.of_state, &trace.hidden, &trace.cells, &trace.states})
      saved.insert(saved.end(), list->begin(), list->end());
    ctx.save_for_backward(saved);
    ctx.set(std::move(form));
  }

  static Trace restored(const Form& form, const Tensors& saved) {
    auto next = saved.begin();
    Trace trace;
    size_t i = 0;
    for (Tensor* argument :
         {&trace.of_input, &trace.first.h, &trace.first.c, &trace.weights.weight_hh,
          &trace.weights.bias_hh, &trace.weights.weight_hr}) {
      if (form.is_given[i++]) *argument = *next++;
    }
    const auto take = [&](Tensors& list, size_t count) {
      const auto begin = next;
      next += static_cast<std::ptrdiff_t>(count);
      list.assign(begin, next);
    };
    take(trace.of_state, form.steps);
    take(trace.hidden, form.steps);
    take(trace.cells, form.has_cells ? form.steps - 1 : 0);
    take(trace.states, trace.weights.weight_hr.defined() ? form.steps : 0);
    return trace;
  }

  // For higher derivatives: those of the steps, which are computed again.
  static Tensors recorded_gradients(const FunctionContext& ctx, const Form& form,
                                    const Trace& trace, const Tensor& doutput,
                                    const Tensor& dcell) {
    const SequenceResult again =
        run_steps(*form.cell, trace.of_input, trace.first, trace.weights, form.is_reverse);
    Tensors ends, upstream;
    const auto add_end = [&](const Tensor& end, const Tensor& d) {
      if (!d.defined()) return;
      ends.push_back(end);
      upstream.push_back(d);
    };
    add_end(again.output, doutput);
    add_end(again.last.c, dcell);
    const Tensors arguments = arguments_of(trace);
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
    const Tensors& states = trace.states.empty() ? trace.hidden : trace.states;
    const auto state_before = [&](int64_t step) {
      if (step == 0) return trace.first;
      const auto before = static_cast<size_t>(step - 1);
      return CellState{states[before], form.has_cells ? trace.cells[before] : Tensor()};
    };
    const Tensor& weight_hr = trace.weights.weight_hr;
    Tensors dof_input(form.steps), dof_state(form.steps), dprojected;
    CellState d{part(doutput, last), dcell};
    for (int64_t step = last; step >= 0; --step) {
      const auto number = static_cast<size_t>(step);
      const auto at = static_cast<size_t>(position(step));
      if (weight_hr.defined()) {
        if (!d.h.defined()) d.h = zeros_like(states[number]);
        dprojected.push_back(d.h);
        d.h = matmul(d.h, weight_hr);
      }
      const Cell::Gradients own =
          form.cell->backward(part(trace.of_input, step), trace.of_state[number],
                              state_before(step), trace.hidden[number], d);
      dof_input[at] = own.of_input;
      dof_state[at] = own.of_state;
      d = own.before;
      if (step == 0 && !ctx.needs_input_grad(1)) break;
      d.h = sum_of_both(matmul(own.of_state, trace.weights.weight_hh), d.h);
      if (step > 0) d.h = sum_of_both(d.h, part(doutput, step - 1));
    }

    Tensors result(kNumArguments);
    const Tensor all_of_input = stack(dof_input, 0);
    const bool is_shared = dof_input[0].is_same(dof_state[0]);
    const Tensor all_of_state = is_shared ? all_of_input : stack(dof_state, 0);
    if (ctx.needs_input_grad(0)) result[0] = all_of_input;
    if (ctx.needs_input_grad(1)) result[1] = d.h;
    if (ctx.needs_input_grad(2)) result[2] = d.c;
    if (ctx.needs_input_grad(3)) {
      Tensors before = {trace.first.h};
      before.insert(before.end(), states.begin(), states.end() - 1);
      if (form.is_reverse) std::reverse(before.begin(), before.end());
      result[3] = ops::contract_leading(all_of_state, stack(before, 0));
    }
    if (ctx.needs_input_grad(4)) result[4] = sum(all_of_state, {0, 1});
    if (ctx.needs_input_grad(5)) {
      std::reverse(dprojected.begin(), dprojected.end());
      result[5] = ops::contract_leading(stack(dprojected, 0), stack(trace.hidden, 0));
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
  const Tensor of_state = linear(before.h, weights.weight_hh, weights.bias_hh);
  CellState after = cell.forward(of_input, of_state, before);
  if (weights.weight_hr.defined()) after.h = linear(after.h, weights.weight_hr);
  return after;
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
