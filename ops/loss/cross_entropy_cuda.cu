// Classification losses on CUDA devices. A team of threads handles the classes of a target. Losses
// of a sum are stored as doubles and added up by one team, so that the order is fixed.
#include "ops/kernel/fault_cuda.cuh"
#include "ops/kernel/held_row_cuda.cuh"
#include "ops/loss/cross_entropy_op.h"

namespace flow::ops {

void register_cross_entropy_cuda(KernelTable& table);

namespace {

constexpr int64_t kIgnored = -1;

// The classes of the targets; kIgnored for targets that are ignored. Targets that are not classes
// are reported and ignored.
struct Targets {
  const int32_t* narrow;
  const int64_t* wide;
  int64_t ignore_index;
  int64_t num_classes;
  FaultReport fault;

  Targets(const KernelContext& ctx, const DenseInput& target, int input, const char* op)
      : narrow(nullptr), wide(nullptr) {
    const auto& attrs = ctx.attrs_as<ClassLossAttrs>();
    (ctx.in(input).meta->dtype == DType::kInt32) ? void(narrow = target.as<int32_t>())
                                                 : void(wide = target.as<int64_t>());
    ignore_index = attrs.ignore_index;
    num_classes = attrs.num_classes;
    fault = fault_report(ctx, op, 0, num_classes - 1);
  }

  __device__ int64_t operator()(int64_t i) const {
    const int64_t target = narrow != nullptr ? narrow[i] : wide[i];
    if (target == ignore_index) return kIgnored;
    if (target >= 0 && target < num_classes) return target;
    fault.raise(target);
    return kIgnored;
  }
};

// The weights of the classes this rank holds; 0 for the others, 1 for all without weights.
template <class T>
struct Weights {
  const T* data;
  int64_t begin = 0;
  int64_t end = 0;

  Weights(const KernelContext& ctx, const DenseInput& weight, int input) : data(weight.as<T>()) {
    if (!ctx.has_input(input)) return;
    begin = ctx.in(input).meta->local_begin[0];
    end = begin + ctx.in(input).shape()[0];
  }

  __device__ Wide<T> operator()(int64_t c) const {
    if (data == nullptr) return 1;
    return c >= begin && c < end ? widen(data[c - begin]) : Wide<T>{0};
  }

  template <class Threads>
  __device__ Wide<T> total(int64_t num_classes, Threads threads) const {
    if (data == nullptr) return static_cast<Wide<T>>(num_classes);
    double sum = 0;
    for (int64_t c = begin + threads.first(); c < end; c += threads.step())
      sum += static_cast<double>((*this)(c));
    return static_cast<Wide<T>>(threads.sum(sum));
  }
};

// The destination of the losses: the output, one by one, or doubles to be added up.
template <class L>
class Losses {
 public:
  struct Target {
    L* each;
    double* terms;

    __device__ void store(int64_t i, L loss) const {
      if (terms != nullptr) {
        terms[i] = static_cast<double>(loss);
      } else {
        each[i] = loss;
      }
    }
  };

  Losses(const KernelContext& ctx, int64_t count)
      : ctx_(ctx), count_(count), target_{ctx.out(0).as<L>(), nullptr} {
    if (!ctx.attrs_as<ClassLossAttrs>().reduces) return;
    terms_ = ScratchArray<double>(ctx, count);
    target_.terms = terms_.data();
  }

  Target target() const { return target_; }

  void finish() const {
    if (target_.terms != nullptr) sum_all(ctx_, target_.terms, count_, target_.each);
  }

 private:
  const KernelContext& ctx_;
  int64_t count_;
  ScratchArray<double> terms_;
  Target target_;
};

// The input's local part as (outer, classes, inner); targets are (outer, inner).
struct ClassSlices : Slices {
  int64_t first_class;

  explicit ClassSlices(const TensorMeta& x)
      : Slices(x.local_shape, dim_of(x)), first_class(x.local_begin[dim_of(x)]) {}

  static int64_t dim_of(const TensorMeta& x) { return x.local_shape.size() == 1 ? 0 : 1; }
};

template <class T>
struct TargetWeight {
  Targets targets;
  Weights<T> weights;
  typename Losses<Wide<T>>::Target losses;

  __device__ void operator()(int64_t i) const {
    const int64_t target = targets(i);
    losses.store(i, target == kIgnored ? Wide<T>{0} : weights(target));
  }
};

template <class T>
struct NllLoss {
  const T* x;
  ClassSlices slices;
  Targets targets;
  Weights<T> weights;
  typename Losses<Wide<T>>::Target losses;

  __device__ void operator()(int64_t i) const {
    const int64_t target = targets(i);
    const int64_t held = target - slices.first_class;
    const bool counts = target != kIgnored && held >= 0 && held < slices.size;
    losses.store(i, counts ? -weights(target) * widen(x[slices.begin(i) + held * slices.inner])
                           : Wide<T>{0});
  }
};

template <class T>
struct NllLossBackward {
  const Wide<T>* dy;
  int64_t dy_step;
  T* dx;
  ClassSlices slices;
  Targets targets;
  Weights<T> weights;

  template <class Threads>
  __device__ void operator()(int64_t i, Threads threads) const {
    const int64_t target = targets(i);
    const int64_t held = target == kIgnored ? -1 : target - slices.first_class;
    const Wide<T> slope = target == kIgnored ? Wide<T>{0} : -weights(target) * dy[i * dy_step];
    for (int64_t c = threads.first(); c < slices.size; c += threads.step())
      dx[slices.begin(i) + c * slices.inner] = narrow<T>(c == held ? slope : Wide<T>{0});
  }
};

// exp(x - base). A result of 16 bits needs no more than exp2 of a rounded product gives.
template <class T>
__device__ Wide<T> exp_above(Wide<T> x, Wide<T> base) {
  if constexpr (kIsHalf<T>) {
    constexpr float kLog2E = 1.44269504088896341F;
    return std::exp2((x - base) * kLog2E);
  } else {
    return std::exp(x - base);
  }
}

// The largest of some numbers, and the sum of exp(number - largest), kept while numbers are added
// (Milakov and Gimelshein 2018).
template <class T>
struct RunningSum {
  using C = Wide<T>;
  C largest = -std::numeric_limits<C>::infinity();
  C total = 0;

  // The largest number, or 0 if all numbers are -infinity.
  static __device__ C base_of(C largest) {
    return largest == -std::numeric_limits<C>::infinity() ? C{0} : largest;
  }

  template <int kCount>
  __device__ void add(const C (&numbers)[kCount]) {
    C most = largest;
    FLOW_UNROLL
    for (int j = 0; j < kCount; ++j)
      most = most < numbers[j] ? numbers[j] : most;
    const C base = base_of(most);
    if (largest < most) total *= exp_above<T>(largest, base);
    largest = most;
    FLOW_UNROLL
    for (int j = 0; j < kCount; ++j)
      total += exp_above<T>(numbers[j], base);
  }

  // log of the sum of exp of the numbers of all threads.
  template <class Threads>
  __device__ C log_sum_exp(Threads threads) const {
    const C most = threads.reduce(largest, [](C a, C b) { return a < b ? b : a; });
    const C sum = threads.sum(total * exp_above<T>(largest, base_of(most)));
    return most + std::log(sum);
  }
};

// Calls f(at, packs) for the packs of a row, kRowPacks of them at a time, so that several loads are
// on their way at once. `at[i]` is the position of the first element of pack i. Elements after the
// end of the row are `filler`.
inline constexpr int kRowPacks = 2;

template <class T, class Threads, class F>
__device__ void for_row_packs(const T* row, int64_t size, bool is_packed, T filler, Threads threads,
                              const F& f) {
  constexpr int kCount = kPackCount<T>;
  const int64_t step = threads.step() * kCount;
  for (int64_t first = threads.first() * kCount; first < size; first += kRowPacks * step) {
    int64_t at[kRowPacks];
    Pack<T, kCount> packs[kRowPacks];
    FLOW_UNROLL
    for (int i = 0; i < kRowPacks; ++i) {
      at[i] = first + i * step;
      if (at[i] < size) {
        packs[i] = load_elements(row, at[i], size, is_packed, filler);
      } else {
        FLOW_UNROLL
        for (int j = 0; j < kCount; ++j)
          packs[i].element[j] = filler;
      }
    }
    f(at, packs);
  }
}

template <class T>
struct CrossEntropy {
  using C = Wide<T>;
  const T* x;
  bool is_packed;  // rows of neighbours can be read as packs
  C* lse_out;
  ClassSlices slices;
  Targets targets;
  Weights<T> weights;
  C smoothing;
  typename Losses<C>::Target losses;

  template <class Threads>
  __device__ void operator()(int64_t i, Threads threads) const {
    const T* own = x + slices.begin(i);
    const C lse = sum_of(own, threads).log_sum_exp(threads);
    double even = 0;
    if (smoothing != 0) {
      for (int64_t c = threads.first(); c < slices.size; c += threads.step())
        even += static_cast<double>(weights(c) * (lse - widen(own[c * slices.inner])));
      even = threads.sum(even);
    }
    if (!threads.leads()) return;
    lse_out[i] = lse;
    const int64_t target = targets(i);
    C loss = 0;
    if (target != kIgnored) {
      loss = (1 - smoothing) * weights(target) * (lse - widen(own[target * slices.inner]));
      loss += smoothing / static_cast<C>(slices.size) * static_cast<C>(even);
    }
    losses.store(i, loss);
  }

  // Of the classes that this thread takes.
  template <class Threads>
  __device__ RunningSum<T> sum_of(const T* own, Threads threads) const {
    RunningSum<T> sum;
    if (slices.inner > 1) {
      for (int64_t c = threads.first(); c < slices.size; c += threads.step())
        sum.add({widen(own[c * slices.inner])});
      return sum;
    }
    constexpr int kCount = kPackCount<T>;
    const T nothing = narrow<T>(-std::numeric_limits<C>::infinity());
    for_row_packs(own, slices.size, is_packed, nothing, threads,
                  [&](const int64_t(&)[kRowPacks], const Pack<T, kCount>(&packs)[kRowPacks]) {
                    C numbers[kRowPacks * kCount];
                    FLOW_UNROLL
                    for (int n = 0; n < kRowPacks * kCount; ++n)
                      numbers[n] = widen(packs[n / kCount].element[n % kCount]);
                    sum.add(numbers);
                  });
    return sum;
  }
};

// dx = dy (scale p - on_target [c = t] - even w_c)
template <class T>
struct CrossEntropyBackward {
  using C = Wide<T>;
  const C* dy;
  int64_t dy_step;
  const T* x;
  const C* lse;
  T* dx;
  bool is_packed;  // rows of neighbours can be read and written as packs
  ClassSlices slices;
  Targets targets;
  Weights<T> weights;
  C smoothing;

  template <class Threads>
  __device__ void operator()(int64_t i, Threads threads) const {
    const int64_t begin = slices.begin(i);
    const int64_t target = targets(i);
    const C even = smoothing / static_cast<C>(targets.num_classes);
    const C even_total = smoothing != 0 ? even * weights.total(targets.num_classes, threads) : C{0};
    if (target == kIgnored) {  // also where the gradient of a mean over no target is not finite
      for (int64_t c = threads.first(); c < slices.size; c += threads.step())
        dx[begin + c * slices.inner] = narrow<T>(C{0});
      return;
    }
    const C on_target = (1 - smoothing) * weights(target);
    const C gradient = dy[i * dy_step];
    const C scale = on_target + even_total;
    const C shift = lse[i];
    const auto slope_of = [&](T element, int64_t held) {
      const int64_t c = slices.first_class + held;
      C slope = scale * exp_above<T>(widen(element), shift);
      if (even != 0) slope -= even * weights(c);
      if (c == target) slope -= on_target;
      return narrow<T>(gradient * slope);
    };
    if (slices.inner > 1) {
      for (int64_t held = threads.first(); held < slices.size; held += threads.step()) {
        const int64_t at = begin + held * slices.inner;
        dx[at] = slope_of(x[at], held);
      }
      return;
    }
    constexpr int kCount = kPackCount<T>;
    const C factor = gradient * scale;
    for_row_packs(x + begin, slices.size, is_packed, T{}, threads,
                  [&](const int64_t(&at)[kRowPacks], Pack<T, kCount>(&packs)[kRowPacks]) {
                    FLOW_UNROLL
                    for (int p = 0; p < kRowPacks; ++p) {
                      if (at[p] >= slices.size) continue;
                      const int64_t to_target = target - slices.first_class - at[p];
                      const bool is_plain = even == 0 && (to_target < 0 || to_target >= kCount);
                      FLOW_UNROLL
                      for (int j = 0; j < kCount; ++j) {
                        T& element = packs[p].element[j];
                        element = is_plain ? narrow<T>(factor * exp_above<T>(widen(element), shift))
                                           : slope_of(element, at[p] + j);
                      }
                      store_elements(dx + begin, at[p], slices.size, is_packed, packs[p]);
                    }
                  });
  }
};

// The distance between the incoming gradients of targets; 0 for the gradient of a sum.
int64_t gradient_step(const KernelContext& ctx, int target) {
  return ctx.in(0).shape().size() == ctx.in(target).shape().size() ? 1 : 0;
}

void target_weight(const KernelContext& ctx) {
  const DenseInput target(ctx, 0);
  const DenseInput weight(ctx, 1);
  dispatch_floating(ctx.attrs_as<ClassLossAttrs>().dtype, [&]<class T>() {
    const Losses<Wide<T>> losses(ctx, ctx.in(0).numel());
    for_each_element(ctx, ctx.in(0).numel(),
                     TargetWeight<T>{Targets(ctx, target, 0, "cross_entropy"),
                                     Weights<T>(ctx, weight, 1), losses.target()});
    losses.finish();
  });
}

void nll_loss(const KernelContext& ctx) {
  const DenseInput x(ctx, 0);
  const DenseInput target(ctx, 1);
  const DenseInput weight(ctx, 2);
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    const Losses<Wide<T>> losses(ctx, ctx.in(1).numel());
    for_each_element(
        ctx, ctx.in(1).numel(),
        NllLoss<T>{x.as<T>(), ClassSlices(*ctx.in(0).meta), Targets(ctx, target, 1, "nll_loss"),
                   Weights<T>(ctx, weight, 2), losses.target()});
    losses.finish();
  });
}

void nll_loss_backward(const KernelContext& ctx) {
  const DenseInput dy(ctx, 0);
  const DenseInput target(ctx, 1);
  const DenseInput weight(ctx, 2);
  const ClassSlices slices(*ctx.out(0).meta);
  dispatch_floating(ctx.out(0).meta->dtype, [&]<class T>() {
    for_each_slice(
        ctx, ctx.in(1).numel(), slices.size, slices.inner,
        NllLossBackward<T>{dy.as<Wide<T>>(), gradient_step(ctx, 1), ctx.out(0).as<T>(), slices,
                           Targets(ctx, target, 1, "nll_loss"), Weights<T>(ctx, weight, 2)});
  });
}

void cross_entropy(const KernelContext& ctx) {
  const DenseInput x(ctx, 0);
  const DenseInput target(ctx, 1);
  const DenseInput weight(ctx, 2);
  const ClassSlices slices(*ctx.in(0).meta);
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    using C = Wide<T>;
    const Losses<C> losses(ctx, ctx.in(1).numel());
    for_each_slice(
        ctx, ctx.in(1).numel(), slices.size, slices.inner,
        CrossEntropy<T>{
            x.as<T>(), has_packed_rows(x.as<T>(), slices.size), ctx.out(1).as<C>(), slices,
            Targets(ctx, target, 1, "cross_entropy"), Weights<T>(ctx, weight, 2),
            static_cast<C>(ctx.attrs_as<ClassLossAttrs>().label_smoothing), losses.target()});
    losses.finish();
  });
}

void cross_entropy_backward(const KernelContext& ctx) {
  const DenseInput dy(ctx, 0);
  const DenseInput x(ctx, 1);
  const DenseInput target(ctx, 2);
  const DenseInput lse(ctx, 3);
  const DenseInput weight(ctx, 4);
  const ClassSlices slices(*ctx.in(1).meta);
  dispatch_floating(ctx.in(1).meta->dtype, [&]<class T>() {
    using C = Wide<T>;
    for_each_slice(
        ctx, ctx.in(2).numel(), slices.size, slices.inner,
        CrossEntropyBackward<T>{
            dy.as<C>(), gradient_step(ctx, 2), x.as<T>(), lse.as<C>(), ctx.out(0).as<T>(),
            has_packed_rows(x.as<T>(), slices.size) &&
                has_packed_rows(ctx.out(0).as<T>(), slices.size),
            slices, Targets(ctx, target, 2, "cross_entropy"), Weights<T>(ctx, weight, 4),
            static_cast<C>(ctx.attrs_as<ClassLossAttrs>().label_smoothing)});
  });
}

KernelChoice choose(bool applies, KernelFn fn) {
  return {applies ? fn : nullptr};
}

KernelChoice select_target_weight(const KernelQuery& query) {
  return choose(parts_agree(query.input(0), nullptr, {&query.output(0)}), target_weight);
}

KernelChoice select_nll(const KernelQuery& query) {
  return choose(parts_agree(query.input(1), &query.input(0), {&query.output(0)}), nll_loss);
}

KernelChoice select_nll_backward(const KernelQuery& query) {
  return choose(parts_agree(query.input(1), &query.output(0), {&query.input(0)}),
                nll_loss_backward);
}

KernelChoice select_cross_entropy(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  const int64_t classes = class_dim(query.input(1).dim());
  return choose(parts_agree(query.input(1), &x, {&query.output(0), &query.output(1)}) &&
                    x.local_shape[classes] == x.shape[classes],
                cross_entropy);
}

KernelChoice select_cross_entropy_backward(const KernelQuery& query) {
  const TensorMeta& x = query.input(1);
  const TensorMeta& dx = query.output(0);
  return choose(parts_agree(query.input(2), &x, {&query.input(0), &query.input(3)}) &&
                    x.local_shape == dx.local_shape && x.local_begin == dx.local_begin,
                cross_entropy_backward);
}

}  // namespace

void register_cross_entropy_cuda(KernelTable& table) {
  table.add(kTargetWeight, DeviceType::kCuda, {"cuda", select_target_weight});
  table.add(kNllLoss, DeviceType::kCuda, {"cuda", select_nll});
  table.add(kNllLossBackward, DeviceType::kCuda, {"cuda", select_nll_backward});
  table.add(kCrossEntropy, DeviceType::kCuda, {"cuda", select_cross_entropy});
  table.add(kCrossEntropyBackward, DeviceType::kCuda, {"cuda", select_cross_entropy_backward});
}

}  // namespace flow::ops
