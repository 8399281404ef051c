// Gates of recurrent cells on CUDA devices, with one thread for each element of the state.
#include <cmath>

#include "ops/kernel/rows_cuda.cuh"
#include "ops/linear/recurrent_op.h"
#include "ops/local_parts.h"

namespace flow::ops {

void register_recurrent_cuda(KernelTable& table);

namespace {

template <class C>
__device__ C sigmoid_of(C x) {
  return C{1} / (C{1} + std::exp(-x));
}

// The operands of a cell: gates (rows, parts, width), state (rows, width).
template <class T>
struct Gates {
  const T* of_input;
  const T* of_state;
  const T* state;
  int64_t width;
  int parts;

  // The offset of part p of element `i` of the state among the gates.
  __device__ int64_t place(int64_t i, int p) const {
    const auto [row, column] = divide(i, width);
    return (row * parts + p) * width + column;
  }

  __device__ Wide<T> input(int64_t i, int p) const { return widen(of_input[place(i, p)]); }

  __device__ Wide<T> hidden(int64_t i, int p) const { return widen(of_state[place(i, p)]); }

  __device__ Wide<T> both(int64_t i, int p) const { return input(i, p) + hidden(i, p); }
};

template <class T>
struct Lstm {
  Gates<T> gates;
  T* hidden;
  T* cell;

  __device__ void operator()(int64_t i) const {
    const Wide<T> now = sigmoid_of(gates.both(i, 1)) * widen(gates.state[i]) +
                        sigmoid_of(gates.both(i, 0)) * std::tanh(gates.both(i, 2));
    cell[i] = narrow<T>(now);
    hidden[i] = narrow<T>(sigmoid_of(gates.both(i, 3)) * std::tanh(now));
  }
};

template <class T>
struct LstmBackward {
  Gates<T> gates;
  const T* dhidden;  // null: zeros
  const T* dcell;    // null: zeros
  T* dgates;
  T* dstate;

  __device__ void operator()(int64_t i) const {
    using C = Wide<T>;
    const C old = widen(gates.state[i]);
    const C in = sigmoid_of(gates.both(i, 0));
    const C keep = sigmoid_of(gates.both(i, 1));
    const C fresh = std::tanh(gates.both(i, 2));
    const C out = sigmoid_of(gates.both(i, 3));
    const C t = std::tanh(keep * old + in * fresh);
    const C dy = dhidden != nullptr ? widen(dhidden[i]) : C{0};
    const C dnow = dcell != nullptr ? widen(dcell[i]) : C{0};
    const C through = dnow + dy * out * (1 - t * t);
    dgates[gates.place(i, 0)] = narrow<T>(through * fresh * in * (1 - in));
    dgates[gates.place(i, 1)] = narrow<T>(through * old * keep * (1 - keep));
    dgates[gates.place(i, 2)] = narrow<T>(through * in * (1 - fresh * fresh));
    dgates[gates.place(i, 3)] = narrow<T>(dy * t * out * (1 - out));
    dstate[i] = narrow<T>(through * keep);
  }
};

template <class T>
struct Gru {
  Gates<T> gates;
  T* y;

  __device__ void operator()(int64_t i) const {
    using C = Wide<T>;
    const C fresh =
        std::tanh(gates.input(i, 2) + sigmoid_of(gates.both(i, 0)) * gates.hidden(i, 2));
    const C old = widen(gates.state[i]);
    y[i] = narrow<T>(fresh + sigmoid_of(gates.both(i, 1)) * (old - fresh));
  }
};

template <class T>
struct GruBackward {
  Gates<T> gates;
  const T* dy;
  T* dof_input;
  T* dof_state;
  T* dstate;

  __device__ void operator()(int64_t i) const {
    using C = Wide<T>;
    const C reset = sigmoid_of(gates.both(i, 0));
    const C keep = sigmoid_of(gates.both(i, 1));
    const C state = gates.hidden(i, 2);
    const C fresh = std::tanh(gates.input(i, 2) + reset * state);
    const C d = widen(dy[i]);
    const C dfresh = d * (1 - keep) * (1 - fresh * fresh);
    const T dreset = narrow<T>(dfresh * state * reset * (1 - reset));
    const T dkeep = narrow<T>(d * (widen(gates.state[i]) - fresh) * keep * (1 - keep));
    dof_input[gates.place(i, 0)] = dreset;
    dof_input[gates.place(i, 1)] = dkeep;
    dof_input[gates.place(i, 2)] = narrow<T>(dfresh);
    dof_state[gates.place(i, 0)] = dreset;
    dof_state[gates.place(i, 1)] = dkeep;
    dof_state[gates.place(i, 2)] = narrow<T>(dfresh * reset);
    dstate[i] = narrow<T>(d * keep);
  }
};

// Calls fn(gates) with the operands of input dtype.
template <class Fn>
void with_gates(const KernelContext& ctx, int parts, const Fn& fn) {
  const DenseInput of_input(ctx, 0);
  const DenseInput of_state(ctx, 1);
  const DenseInput state(ctx, 2);
  const int64_t width = ctx.in(2).shape().back();
  dispatch_floating(ctx.in(2).meta->dtype, [&]<class T>() {
    fn(Gates<T>{of_input.as<T>(), of_state.as<T>(), state.as<T>(), width, parts});
  });
}

void lstm(const KernelContext& ctx) {
  with_gates(ctx, 4, [&]<class T>(const Gates<T>& gates) {
    for_each_element(ctx, ctx.in(2).numel(),
                     Lstm<T>{gates, ctx.out(0).as<T>(), ctx.out(1).as<T>()});
  });
}

void lstm_backward(const KernelContext& ctx) {
  const DenseInput dhidden(ctx, 3);
  const DenseInput dcell(ctx, 4);
  with_gates(ctx, 4, [&]<class T>(const Gates<T>& gates) {
    for_each_element(ctx, ctx.in(2).numel(),
                     LstmBackward<T>{gates, dhidden.as<T>(), dcell.as<T>(), ctx.out(0).as<T>(),
                                     ctx.out(1).as<T>()});
  });
}

void gru(const KernelContext& ctx) {
  with_gates(ctx, 3, [&]<class T>(const Gates<T>& gates) {
    for_each_element(ctx, ctx.in(2).numel(), Gru<T>{gates, ctx.out(0).as<T>()});
  });
}

void gru_backward(const KernelContext& ctx) {
  const DenseInput dy(ctx, 3);
  with_gates(ctx, 3, [&]<class T>(const Gates<T>& gates) {
    for_each_element(ctx, ctx.in(2).numel(),
                     GruBackward<T>{gates, dy.as<T>(), ctx.out(0).as<T>(), ctx.out(1).as<T>(),
                                    ctx.out(2).as<T>()});
  });
}

template <KernelFn kFn>
KernelChoice select(const KernelQuery& query) {
  return {parts_fit(query) ? kFn : nullptr};
}

}  // namespace

void register_recurrent_cuda(KernelTable& table) {
  table.add(kLstmGates, DeviceType::kCuda, {"cuda", select<lstm>});
  table.add(kLstmGatesBackward, DeviceType::kCuda, {"cuda", select<lstm_backward>});
  table.add(kGruGates, DeviceType::kCuda, {"cuda", select<gru>});
  table.add(kGruGatesBackward, DeviceType::kCuda, {"cuda", select<gru_backward>});
}

}  // namespace flow::ops
