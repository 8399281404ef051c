// Kernels of ops/update.h: one pass; per element SGD reads 8 bytes of float and writes 4 (12 and 8
// with momentum), Adam reads 16 and writes 12. State is read from the inputs and written to the
// outputs, which are the same memory in eager mode and lie alike elsewhere.
#include <cmath>

#include "ops/elementwise_loops.h"
#include "ops/update_op.h"

#include "ops/isa_begin.h"

namespace {

// Input `i` if it was given, else `fallback`.
double number_or(const KernelContext& ctx, int i, double fallback) {
  if (!ctx.has_input(i)) return fallback;
  const TensorView& view = ctx.in(i);
  return view.meta->dtype == DType::kFloat64 ? *view.as<double>() : double{*view.as<float>()};
}

// One element of input `kInput`, widened.
template <class T>
struct Reader {
  const T* data;
  int64_t stride;

  Compute<T> operator[](int64_t i) const { return static_cast<Compute<T>>(data[i * stride]); }
};

template <class T>
struct Writer {
  T* data;
  int64_t stride;

  void set(int64_t i, Compute<T> value) const { data[i * stride] = static_cast<T>(value); }
};

// Where a stretch of the loop begins in each tensor; operand 1 of the plan is input 0. A stride of
// 1 is known to the compiler in the flat case.
template <class T, bool kIsFlat>
struct Stretch {
  const KernelContext& ctx;
  const LoopPlan& plan;
  const LoopPlan::Offsets& offsets;

  Reader<T> in(int i) const {
    const auto operand = static_cast<size_t>(i + 1);
    return {ctx.in(i).as<T>() + offsets[operand], kIsFlat ? 1 : plan.inner_stride()[operand]};
  }

  // Output `o`, which lies as input `i`.
  Writer<T> out(int o, int i) const {
    const auto operand = static_cast<size_t>(i + 1);
    return {ctx.out(o).as<T>() + offsets[operand], kIsFlat ? 1 : plan.inner_stride()[operand]};
  }
};

struct SgdStep {
  template <class T>
  struct Numbers {
    using C = Compute<T>;
    C lr, weight_decay, sign;

    explicit Numbers(const KernelContext& ctx) {
      const auto& attrs = ctx.attrs_as<SgdAttrs>();
      lr = static_cast<C>(number_or(ctx, kSgdTensors, attrs.lr));
      weight_decay = static_cast<C>(attrs.weight_decay);
      sign = attrs.maximize ? C{-1} : C{1};
    }
  };

  template <class T, class S>
  static void run(const Numbers<T>& k, const S& s, int64_t n) {
    const Reader<T> param = s.in(0), grad = s.in(1);
    const Writer<T> new_param = s.out(0, 0);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const auto p = param[i];
      new_param.set(i, p - k.lr * (k.sign * grad[i] + k.weight_decay * p));
    }
  }
};

struct SgdMomentumStep {
  template <class T>
  struct Numbers {
    using C = Compute<T>;
    C lr, weight_decay, sign, momentum, damped;
    bool nesterov, is_first;

    explicit Numbers(const KernelContext& ctx) {
      const auto& attrs = ctx.attrs_as<SgdAttrs>();
      lr = static_cast<C>(number_or(ctx, kSgdMomentumTensors, attrs.lr));
      weight_decay = static_cast<C>(attrs.weight_decay);
      sign = attrs.maximize ? C{-1} : C{1};
      momentum = static_cast<C>(attrs.momentum);
      damped = static_cast<C>(1 - attrs.dampening);
      nesterov = attrs.nesterov;
      is_first = attrs.is_first;
    }
  };

  template <class T, class S>
  static void run(const Numbers<T>& numbers, const S& s, int64_t n) {
    const Numbers<T> k = numbers;
    const Reader<T> param = s.in(0), grad = s.in(1), buffer = s.in(2);
    const Writer<T> new_param = s.out(0, 0), new_buffer = s.out(1, 2);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const auto p = param[i];
      const auto g = k.sign * grad[i] + k.weight_decay * p;
      const auto b = k.is_first ? g : k.momentum * buffer[i] + k.damped * g;
      new_buffer.set(i, b);
      new_param.set(i, p - k.lr * (k.nesterov ? g + k.momentum * b : b));
    }
  }
};

template <bool kIsAmsgrad>
struct AdamStep {
  template <class T>
  struct Numbers {
    using C = Compute<T>;
    C sign, decay, coupled, keep1, take1, keep2, take2, step_size, scale2, eps;

    explicit Numbers(const KernelContext& ctx) {
      constexpr int kTensors = kIsAmsgrad ? kAmsgradTensors : kAdamTensors;
      const auto& attrs = ctx.attrs_as<AdamAttrs>();
      const double lr = number_or(ctx, kTensors, attrs.lr);
      const double step = number_or(ctx, kTensors + 1, static_cast<double>(attrs.step));
      sign = attrs.maximize ? C{-1} : C{1};
      decay = static_cast<C>(attrs.is_decoupled ? 1 - lr * attrs.weight_decay : 1);
      coupled = static_cast<C>(attrs.is_decoupled ? 0 : attrs.weight_decay);
      keep1 = static_cast<C>(attrs.beta1);
      take1 = static_cast<C>(1 - attrs.beta1);
      keep2 = static_cast<C>(attrs.beta2);
      take2 = static_cast<C>(1 - attrs.beta2);
      step_size = static_cast<C>(lr / (1 - std::pow(attrs.beta1, step)));
      scale2 = static_cast<C>(std::sqrt(1 - std::pow(attrs.beta2, step)));
      eps = static_cast<C>(attrs.eps);
    }
  };

  template <class T, class S>
  static void run(const Numbers<T>& numbers, const S& s, int64_t n) {
    const Numbers<T> k = numbers;
    const Reader<T> param = s.in(0), grad = s.in(1), average = s.in(2), square = s.in(3);
    const Reader<T> largest = s.in(kIsAmsgrad ? 4 : 3);
    const Writer<T> new_param = s.out(0, 0), new_average = s.out(1, 2), new_square = s.out(2, 3);
    const Writer<T> new_largest = s.out(kIsAmsgrad ? 3 : 2, kIsAmsgrad ? 4 : 3);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const auto p = param[i];
      const auto g = k.sign * grad[i] + k.coupled * p;
      const auto m = k.keep1 * average[i] + k.take1 * g;
      const auto v = k.keep2 * square[i] + k.take2 * (g * g);
      auto bound = v;
      if constexpr (kIsAmsgrad) {
        const auto before = largest[i];
        bound = before > v ? before : v;
        new_largest.set(i, bound);
      }
      const auto denominator = std::sqrt(bound) / k.scale2 + k.eps;
      new_average.set(i, m);
      new_square.set(i, v);
      new_param.set(i, k.decay * p - k.step_size * (m / denominator));
    }
  }
};

template <class Step, class T>
void run_update(const KernelContext& ctx) {
  const auto& plan = ctx.plan_as<LoopPlan>();
  const typename Step::template Numbers<T> numbers(ctx);
  const LoopPlan::Offsets& stride = plan.inner_stride();
  const bool is_flat = std::all_of(stride.begin(), stride.begin() + plan.num_operands,
                                   [](int64_t step) { return step == 1; });
  parallel_stretches(ctx.pool(), plan, [&](const LoopPlan::Offsets& offsets, int64_t n) {
    if (is_flat) {
      Step::template run<T>(numbers, Stretch<T, true>{ctx, plan, offsets}, n);
    } else {
      Step::template run<T>(numbers, Stretch<T, false>{ctx, plan, offsets}, n);
    }
  });
}

template <class Step, int kTensors>
KernelChoice select_update(const KernelQuery& query) {
  KernelChoice choice;
  dispatch_floating(query.output(0).dtype, [&]<class T>() { choice.fn = run_update<Step, T>; });
  choice.plan = share_loop_plan(query.output(0), query.inputs.first(kTensors));
  return choice;
}

template <class Step, int kTensors>
void add_update(KernelTable& table, const OpDef& op) {
  const char* name = FLOW_ISA == 0 ? "reference" : FLOW_ISA_NAME;
  table.add(op, DeviceType::kCpu, {name, select_update<Step, kTensors>});
}

}  // namespace

void register_update_cpu(KernelTable& table) {
  add_update<SgdStep, kSgdTensors>(table, kSgdUpdate);
  add_update<SgdMomentumStep, kSgdMomentumTensors>(table, kSgdMomentumUpdate);
  add_update<AdamStep<false>, kAdamTensors>(table, kAdamUpdate);
  add_update<AdamStep<true>, kAmsgradTensors>(table, kAmsgradUpdate);
}

#include "ops/isa_end.h"
