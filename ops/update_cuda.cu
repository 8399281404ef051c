// CUDA kernels of ops/update.h: the steps of ops/update_cpu.cpp, one pass over parameter and state.
#include <cmath>

#include "ops/elementwise_cuda.cuh"
#include "ops/update_op.h"

namespace flow::ops {

namespace {

// A number of the call, or the tensor that was given in its place.
struct Number {
  double value = 0;
  const float* in_float = nullptr;
  const double* in_double = nullptr;

  __device__ double get() const {
    return in_float != nullptr ? double{*in_float} : in_double != nullptr ? *in_double : value;
  }
};

Number number_or(const KernelContext& ctx, int i, double fallback) {
  Number number{fallback};
  if (!ctx.has_input(i)) return number;
  const TensorView& view = ctx.in(i);
  if (view.meta->dtype == DType::kFloat64) {
    number.in_double = view.as<double>();
  } else {
    number.in_float = view.as<float>();
  }
  return number;
}

// The inputs and outputs of the parameter's shape; outputs lie as the inputs they replace.
template <class T, int kTensors>
struct UpdateTensors {
  const T* in[kTensors];
  T* out[kTensors];  // null: not written
};

template <class T, int kTensors>
UpdateTensors<T, kTensors> update_tensors(const KernelContext& ctx, uint32_t mutates) {
  UpdateTensors<T, kTensors> tensors = {};
  int output = 0;
  for (int i = 0; i < kTensors; ++i) {
    tensors.in[i] = ctx.in(i).as<T>();
    if ((mutates >> i & 1) != 0) tensors.out[i] = ctx.out(output++).as<T>();
  }
  return tensors;
}

// Operand 0 of the loop is the output, operand i + 1 is input i.
template <class Step, class T>
__global__ void update(DeviceLoop<1 + Step::kTensors> loop, Step step,
                       UpdateTensors<T, Step::kTensors> tensors) {
  using C = DeviceCompute<T>;
  const auto numbers = step.template numbers<C>();
  for (int64_t i = grid_thread(); i < loop.numel; i += grid_threads()) {
    const auto offsets = offsets_of(loop, i);
    C values[Step::kTensors];
    for (int k = 0; k < Step::kTensors; ++k)
      values[k] = widen(tensors.in[k][offsets.at[k + 1]]);
    step.run(numbers, values);
    for (int k = 0; k < Step::kTensors; ++k) {
      if (tensors.out[k] != nullptr) tensors.out[k][offsets.at[k + 1]] = narrow<T>(values[k]);
    }
  }
}

struct SgdStep {
  static constexpr int kTensors = kSgdTensors;
  static constexpr uint32_t kMutates = 0b1;
  Number lr;
  double weight_decay, sign;

  explicit SgdStep(const KernelContext& ctx) : lr(number_or(ctx, kTensors, 0)) {
    const auto& attrs = ctx.attrs_as<SgdAttrs>();
    lr.value = attrs.lr;
    weight_decay = attrs.weight_decay;
    sign = attrs.maximize ? -1 : 1;
  }

  template <class C>
  struct Numbers {
    C lr, weight_decay, sign;
  };

  template <class C>
  __device__ Numbers<C> numbers() const {
    return {static_cast<C>(lr.get()), static_cast<C>(weight_decay), static_cast<C>(sign)};
  }

  template <class C>
  __device__ void run(const Numbers<C>& k, C* v) const {
    v[0] = v[0] - k.lr * (k.sign * v[1] + k.weight_decay * v[0]);
  }
};

struct SgdMomentumStep {
  static constexpr int kTensors = kSgdMomentumTensors;
  static constexpr uint32_t kMutates = 0b101;
  Number lr;
  double weight_decay, sign, momentum, damped;
  bool nesterov, is_first;

  explicit SgdMomentumStep(const KernelContext& ctx) : lr(number_or(ctx, kTensors, 0)) {
    const auto& attrs = ctx.attrs_as<SgdAttrs>();
    lr.value = attrs.lr;
    weight_decay = attrs.weight_decay;
    sign = attrs.maximize ? -1 : 1;
    momentum = attrs.momentum;
    damped = 1 - attrs.dampening;
    nesterov = attrs.nesterov;
    is_first = attrs.is_first;
  }

  template <class C>
  struct Numbers {
    C lr, weight_decay, sign, momentum, damped;
  };

  template <class C>
  __device__ Numbers<C> numbers() const {
    return {static_cast<C>(lr.get()), static_cast<C>(weight_decay), static_cast<C>(sign),
            static_cast<C>(momentum), static_cast<C>(damped)};
  }

  template <class C>
  __device__ void run(const Numbers<C>& k, C* v) const {
    const C g = k.sign * v[1] + k.weight_decay * v[0];
    const C b = is_first ? g : k.momentum * v[2] + k.damped * g;
    v[2] = b;
    v[0] = v[0] - k.lr * (nesterov ? g + k.momentum * b : b);
  }
};

template <bool kIsAmsgrad>
struct AdamStep {
  static constexpr int kTensors = kIsAmsgrad ? kAmsgradTensors : kAdamTensors;
  static constexpr uint32_t kMutates = kIsAmsgrad ? 0b11101 : 0b1101;
  Number lr, step;
  double weight_decay, sign, beta1, beta2, eps;
  bool is_decoupled;

  explicit AdamStep(const KernelContext& ctx)
      : lr(number_or(ctx, kTensors, 0)), step(number_or(ctx, kTensors + 1, 0)) {
    const auto& attrs = ctx.attrs_as<AdamAttrs>();
    lr.value = attrs.lr;
    step.value = static_cast<double>(attrs.step);
    weight_decay = attrs.weight_decay;
    sign = attrs.maximize ? -1 : 1;
    beta1 = attrs.beta1;
    beta2 = attrs.beta2;
    eps = attrs.eps;
    is_decoupled = attrs.is_decoupled;
  }

  template <class C>
  struct Numbers {
    C sign, decay, coupled, keep1, take1, keep2, take2, step_size, scale2, eps;
  };

  template <class C>
  __device__ Numbers<C> numbers() const {
    const double rate = lr.get();
    const double count = step.get();
    return {static_cast<C>(sign),
            static_cast<C>(is_decoupled ? 1 - rate * weight_decay : 1.0),
            static_cast<C>(is_decoupled ? 0.0 : weight_decay),
            static_cast<C>(beta1),
            static_cast<C>(1 - beta1),
            static_cast<C>(beta2),
            static_cast<C>(1 - beta2),
            static_cast<C>(rate / (1 - std::pow(beta1, count))),
            static_cast<C>(std::sqrt(1 - std::pow(beta2, count))),
            static_cast<C>(eps)};
  }

  template <class C>
  __device__ void run(const Numbers<C>& k, C* v) const {
    const C g = k.sign * v[1] + k.coupled * v[0];
    v[2] = k.keep1 * v[2] + k.take1 * g;
    v[3] = k.keep2 * v[3] + k.take2 * (g * g);
    C bound = v[3];
    if constexpr (kIsAmsgrad) {
      bound = v[4] > bound ? v[4] : bound;
      v[4] = bound;
    }
    v[0] = k.decay * v[0] - k.step_size * (v[2] / (std::sqrt(bound) / k.scale2 + k.eps));
  }
};

template <class Step, class T>
void run_update(const KernelContext& ctx) {
  constexpr int kTensors = Step::kTensors;
  const auto loop = device_loop<1 + kTensors>(ctx.plan_as<LoopPlan>());
  cuda::launch(update<Step, T>, cuda::blocks_for(loop.numel), cuda::kBlockThreads, 0,
               cuda::stream_of(ctx), loop, Step(ctx),
               update_tensors<T, kTensors>(ctx, Step::kMutates));
}

template <class Step>
KernelChoice select_update(const KernelQuery& query) {
  KernelChoice choice;
  dispatch_floating(query.output(0).dtype, [&]<class T>() { choice.fn = run_update<Step, T>; });
  choice.plan = share_loop_plan(query.output(0), query.inputs.first(Step::kTensors));
  return choice;
}

template <class Step>
void add_update(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCuda, {"cuda", select_update<Step>});
}

}  // namespace

void register_update_cuda(KernelTable& table) {
  add_update<SgdStep>(table, kSgdUpdate);
  add_update<SgdMomentumStep>(table, kSgdMomentumUpdate);
  add_update<AdamStep<false>>(table, kAdamUpdate);
  add_update<AdamStep<true>>(table, kAmsgradUpdate);
}

}  // namespace flow::ops
