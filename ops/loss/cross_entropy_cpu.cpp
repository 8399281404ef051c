// Classification losses on the CPU. The forward kernel reads the input twice (maximum, sum of
// exponentials), the second time from cache; the backward kernel reads it once, as it is given
// logsumexp. Sums over targets are added up in double, a fixed number of targets at a time, so that
// they do not depend on the number of threads.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/kernel/row_loops.h"
#include "ops/kernel/vector.h"
#include "ops/kernel/vector_math.h"
#include "ops/loss/cross_entropy_op.h"

#include "ops/kernel/isa_begin.h"

namespace {

// The type of the losses for inputs of type T.
template <class T>
using Loss = std::conditional_t<kIsHalf<T>, float, T>;

template <class T>
Loss<T> value_of(T x) {
  return static_cast<Loss<T>>(x);
}

[[noreturn, gnu::noinline]] void refuse_target(const char* op, int64_t target,
                                               int64_t num_classes) {
  throw InvalidArgument(str("[", op, "] target ", target, " is not a class; give 0 to ",
                            num_classes - 1, ", or make it the ignore_index"));
}

// The classes of the targets; kIgnored for targets that are ignored.
class Targets {
 public:
  static constexpr int64_t kIgnored = -1;

  Targets(const TensorView& view, const ClassLossAttrs& attrs, const char* op)
      : narrow_(view.meta->dtype == DType::kInt32 ? view.as<int32_t>() : nullptr),
        wide_(view.meta->dtype == DType::kInt64 ? view.as<int64_t>() : nullptr),
        ignore_index_(attrs.ignore_index),
        num_classes_(attrs.num_classes),
        op_(op) {}

  int64_t operator()(int64_t at) const {
    const int64_t target = narrow_ != nullptr ? narrow_[at] : wide_[at];
    if (target == ignore_index_) return kIgnored;
    if (target < 0 || target >= num_classes_) refuse_target(op_, target, num_classes_);
    return target;
  }

 private:
  const int32_t* narrow_;
  const int64_t* wide_;
  int64_t ignore_index_;
  int64_t num_classes_;
  const char* op_;
};

// The weights of the classes this rank holds; 0 for the others, 1 for all without weights.
template <class T>
class Weights {
 public:
  Weights(const KernelContext& ctx, int input)
      : num_classes_(ctx.attrs_as<ClassLossAttrs>().num_classes) {
    if (!ctx.has_input(input)) return;
    const TensorMeta& meta = *ctx.in(input).meta;
    data_ = ctx.in(input).as<T>();
    begin_ = meta.local_begin[0];
    end_ = begin_ + meta.local_shape[0];
    stride_ = meta.strides[0];
  }

  bool given() const { return end_ >= 0; }

  Loss<T> operator()(int64_t c) const {
    if (!given()) return 1;
    return c >= begin_ && c < end_ ? value_of(data_[(c - begin_) * stride_]) : Loss<T>{0};
  }

  Loss<T> total() const {
    if (!given()) return static_cast<Loss<T>>(num_classes_);
    double sum = 0;
    for (int64_t c = begin_; c < end_; ++c)
      sum += static_cast<double>((*this)(c));
    return static_cast<Loss<T>>(sum);
  }

 private:
  const T* data_ = nullptr;
  int64_t num_classes_;
  int64_t begin_ = 0;
  int64_t end_ = -1;  // -1: no weights
  int64_t stride_ = 1;
};

// Writes losses to the output one by one, or adds them up by parts of the targets.
constexpr int64_t kPartElements = 16384;

// Calls fn(position) -> loss for all positions in parallel and stores or adds up the results;
// `work` is the number of elements read for one loss.
template <class L, class Fn>
void collect_losses(const KernelContext& ctx, int64_t positions, int64_t work, const Fn& fn) {
  L* out = ctx.out(0).as<L>();
  const bool reduces = ctx.attrs_as<ClassLossAttrs>().reduces;
  const int64_t part = std::max<int64_t>(1, kPartElements / std::max<int64_t>(1, work));
  const int64_t parts = (positions + part - 1) / part;
  std::vector<double> sums(reduces ? static_cast<size_t>(parts) : 0);
  ctx.pool().parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      double sum = 0;
      for (int64_t i = p * part; i < std::min(positions, (p + 1) * part); ++i) {
        const L loss = fn(i);
        sum += static_cast<double>(loss);
        if (!reduces) out[i] = loss;
      }
      if (reduces) sums[static_cast<size_t>(p)] = sum;
    }
  });
  if (!reduces) return;
  double total = 0;
  for (const double sum : sums)
    total += sum;
  *out = static_cast<L>(total);
}

#if FLOW_ISA == 0

// The offsets of the elements of a tensor that has the input's shape or the target's: position i
// counts the targets in row-major order.
struct Places {
  Shape sizes;  // of the target
  Strides strides;
  int64_t class_stride = 0;

  int64_t operator()(int64_t i) const {
    int64_t at = 0;
    for (int64_t d = sizes.size() - 1; d >= 0; --d) {
      at += i % sizes[d] * strides[d];
      i /= sizes[d];
    }
    return at;
  }
};

Places target_places(const TensorMeta& meta) {
  return {meta.local_shape, meta.strides};
}

Places input_places(const TensorMeta& meta) {
  Places places{meta.local_shape, meta.strides};
  const int64_t classes = meta.local_shape.size() == 1 ? 0 : 1;
  places.class_stride = places.strides[classes];
  places.sizes.erase(classes);
  places.strides.erase(classes);
  return places;
}

// The distance between positions of an incoming gradient; 0 for the gradient of a sum.
Places gradient_places(const TensorMeta& dy, const TensorMeta& target) {
  if (dy.local_shape.size() == target.local_shape.size()) return target_places(dy);
  return {target.local_shape, Shape::filled(target.local_shape.size(), 0)};
}

template <class T>
void target_weight_plainly(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<ClassLossAttrs>();
  const Targets targets(ctx.in(0), attrs, "cross_entropy");
  const Weights<T> weights(ctx, 1);
  const Places place = target_places(*ctx.in(0).meta);
  collect_losses<Loss<T>>(ctx, ctx.in(0).numel(), 1, [&](int64_t i) {
    const int64_t target = targets(place(i));
    return target == Targets::kIgnored ? Loss<T>{0} : weights(target);
  });
}

template <class T>
void nll_plainly(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<ClassLossAttrs>();
  const TensorMeta& x_meta = *ctx.in(0).meta;
  const Targets targets(ctx.in(1), attrs, "nll_loss");
  const Weights<T> weights(ctx, 2);
  const Places place = target_places(*ctx.in(1).meta);
  const Places x_place = input_places(x_meta);
  const int64_t classes = class_dim(x_place.sizes.size());
  const int64_t first = x_meta.local_begin[classes];
  const T* x = ctx.in(0).as<T>();
  collect_losses<Loss<T>>(ctx, ctx.in(1).numel(), 1, [&](int64_t i) {
    const int64_t target = targets(place(i));
    const int64_t held = target - first;
    if (target == Targets::kIgnored || held < 0 || held >= x_meta.local_shape[classes]) {
      return Loss<T>{0};
    }
    return -weights(target) * value_of(x[x_place(i) + held * x_place.class_stride]);
  });
}

template <class T>
void nll_backward_plainly(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<ClassLossAttrs>();
  const TensorMeta& dx_meta = *ctx.out(0).meta;
  const Targets targets(ctx.in(1), attrs, "nll_loss");
  const Weights<T> weights(ctx, 2);
  const Places place = target_places(*ctx.in(1).meta);
  const Places dy_place = gradient_places(*ctx.in(0).meta, *ctx.in(1).meta);
  const Places dx_place = input_places(dx_meta);
  const int64_t classes = class_dim(dx_place.sizes.size());
  const auto* dy = ctx.in(0).as<Loss<T>>();
  T* dx = ctx.out(0).as<T>();
  std::fill_n(dx, dx_meta.local_numel, T(0.0F));
  for (int64_t i = 0; i < ctx.in(1).numel(); ++i) {
    const int64_t target = targets(place(i));
    const int64_t held = target - dx_meta.local_begin[classes];
    if (target == Targets::kIgnored || held < 0 || held >= dx_meta.local_shape[classes]) continue;
    dx[dx_place(i) + held * dx_place.class_stride] =
        static_cast<T>(-weights(target) * dy[dy_place(i)]);
  }
}

template <class T>
void cross_entropy_plainly(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<ClassLossAttrs>();
  const Targets targets(ctx.in(1), attrs, "cross_entropy");
  const Weights<T> weights(ctx, 2);
  const Places place = target_places(*ctx.in(1).meta);
  const Places x_place = input_places(*ctx.in(0).meta);
  const double smoothing = attrs.label_smoothing;
  auto* lse_out = ctx.out(1).as<Loss<T>>();
  collect_losses<Loss<T>>(ctx, ctx.in(1).numel(), attrs.num_classes, [&](int64_t i) {
    const T* x = ctx.in(0).as<T>() + x_place(i);
    const auto at = [&](int64_t c) {
      return static_cast<double>(value_of(x[c * x_place.class_stride]));
    };
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t c = 0; c < attrs.num_classes; ++c)
      largest = std::max(largest, at(c));
    double total = 0;
    for (int64_t c = 0; c < attrs.num_classes; ++c)
      total += std::exp(at(c) - largest);
    const double lse = largest + std::log(total);
    lse_out[i] = static_cast<Loss<T>>(lse);
    const int64_t target = targets(place(i));
    if (target == Targets::kIgnored) return Loss<T>{0};
    double loss = (1 - smoothing) * static_cast<double>(weights(target)) * (lse - at(target));
    if (smoothing != 0) {
      double even = 0;
      for (int64_t c = 0; c < attrs.num_classes; ++c)
        even += static_cast<double>(weights(c)) * (lse - at(c));
      loss += smoothing / static_cast<double>(attrs.num_classes) * even;
    }
    return static_cast<Loss<T>>(loss);
  });
}

template <class T>
void cross_entropy_backward_plainly(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<ClassLossAttrs>();
  const TensorMeta& x_meta = *ctx.in(1).meta;
  const Targets targets(ctx.in(2), attrs, "cross_entropy");
  const Weights<T> weights(ctx, 4);
  const Places dy_place = gradient_places(*ctx.in(0).meta, *ctx.in(2).meta);
  const Places x_place = input_places(x_meta);
  const Places dx_place = input_places(*ctx.out(0).meta);
  const Places place = target_places(*ctx.in(2).meta);
  const Places lse_place = target_places(*ctx.in(3).meta);
  const int64_t classes = class_dim(place.sizes.size());
  const double even = attrs.label_smoothing / static_cast<double>(attrs.num_classes);
  const double even_total = even == 0 ? 0 : even * static_cast<double>(weights.total());
  for (int64_t i = 0; i < ctx.in(2).numel(); ++i) {
    const T* x = ctx.in(1).as<T>() + x_place(i);
    T* dx = ctx.out(0).as<T>() + dx_place(i);
    const auto dy = static_cast<double>(ctx.in(0).as<Loss<T>>()[dy_place(i)]);
    const auto lse = static_cast<double>(ctx.in(3).as<Loss<T>>()[lse_place(i)]);
    const int64_t target = targets(place(i));
    for (int64_t held = 0; held < x_meta.local_shape[classes]; ++held) {
      double slope = 0;
      if (target != Targets::kIgnored) {
        const int64_t c = x_meta.local_begin[classes] + held;
        const double on_target = (1 - attrs.label_smoothing) * static_cast<double>(weights(target));
        const double p =
            std::exp(static_cast<double>(value_of(x[held * x_place.class_stride])) - lse);
        slope = (on_target + even_total) * p - (c == target ? on_target : 0.0);
        if (even != 0) slope -= even * static_cast<double>(weights(c));
      }
      // Ignored targets do not contribute to a mean over none of them, whose gradient is not
      // finite.
      const double gradient = target == Targets::kIgnored ? 0 : dy * slope;
      dx[held * dx_place.class_stride] = static_cast<T>(static_cast<Loss<T>>(gradient));
    }
  }
}

template <class Run>
KernelChoice choose(bool applies, DType dtype, const Run& run) {
  KernelChoice choice;
  if (!applies) return choice;
  dispatch_floating(dtype, [&]<class T>() { choice.fn = run.template operator()<T>(); });
  return choice;
}

KernelChoice select_target_weight(const KernelQuery& query) {
  return choose(parts_agree(query.input(0), nullptr, {&query.output(0)}),
                query.attrs_as<ClassLossAttrs>().dtype,
                []<class T>() { return target_weight_plainly<T>; });
}

KernelChoice select_nll(const KernelQuery& query) {
  return choose(parts_agree(query.input(1), &query.input(0), {&query.output(0)}),
                query.input(0).dtype, []<class T>() { return nll_plainly<T>; });
}

KernelChoice select_nll_backward(const KernelQuery& query) {
  return choose(parts_agree(query.input(1), &query.output(0), {&query.input(0)}),
                query.output(0).dtype, []<class T>() { return nll_backward_plainly<T>; });
}

KernelChoice select_cross_entropy_reference(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  const int64_t classes = class_dim(query.input(1).dim());
  return choose(parts_agree(query.input(1), &x, {&query.output(0), &query.output(1)}) &&
                    x.local_shape[classes] == x.shape[classes],
                x.dtype, []<class T>() { return cross_entropy_plainly<T>; });
}

KernelChoice select_cross_entropy_backward_reference(const KernelQuery& query) {
  const TensorMeta& x = query.input(1);
  const TensorMeta& dx = query.output(0);
  return choose(parts_agree(query.input(2), &x, {&query.input(0), &query.input(3)}) &&
                    x.local_shape == dx.local_shape && x.local_begin == dx.local_begin,
                x.dtype, []<class T>() { return cross_entropy_backward_plainly<T>; });
}

#endif

// ---- contiguous operands: x is (outer, classes, inner), targets are (outer, inner)

struct DenseState {
  int64_t outer = 1;
  int64_t classes = 1;
  int64_t inner = 1;
  int64_t first_class = 0;
};

DenseState dense_state(const TensorMeta& x) {
  DenseState state;
  if (x.local_shape.size() == 1) {
    state.classes = x.local_shape[0];
    state.first_class = x.local_begin[0];
    return state;
  }
  state.outer = x.local_shape[0];
  state.classes = x.local_shape[1];
  state.first_class = x.local_begin[1];
  for (int64_t d = 2; d < x.local_shape.size(); ++d)
    state.inner *= x.local_shape[d];
  return state;
}

// logsumexp of a row.
template <class T>
Loss<T> lse_of_row(const T* x, int64_t n) {
  using C = Loss<T>;
  const C largest = row_max<C>(n, [&](auto at) { return at.get(x); });
  const Vec<C> shift = Vec<C>::fill(largest);
  const C total = row_sum<C>(n, [&](auto at) { return at.keep(exp(at.get(x) - shift), 0); });
  return largest + std::log(total);
}

// logsumexp of neighbouring columns, elements `inner` apart.
template <class T, class At>
Vec<Loss<T>> lse_of_columns(const T* x, int64_t n, int64_t inner, At at) {
  using V = Vec<Loss<T>>;
  V largest = V::fill(-std::numeric_limits<Loss<T>>::infinity());
  for (int64_t c = 0; c < n; ++c)
    largest = max(at.get(x + c * inner), largest);
  V total = V::zero();
  for (int64_t c = 0; c < n; ++c)
    total = total + exp(at.get(x + c * inner) - largest);
  return largest + log(total);
}

// The smoothed part of one loss: sum of w_c (lse - x_c) over all classes.
template <class T>
Loss<T> even_loss(const T* x, int64_t n, int64_t inner, Loss<T> lse, const Weights<T>& weights) {
  double sum = 0;
  for (int64_t c = 0; c < n; ++c)
    sum += static_cast<double>(weights(c) * (lse - value_of(x[c * inner])));
  return static_cast<Loss<T>>(sum);
}

template <class T>
void run_cross_entropy(const KernelContext& ctx) {
  using C = Loss<T>;
  const auto& state = ctx.state_as<DenseState>();
  const auto& attrs = ctx.attrs_as<ClassLossAttrs>();
  const Targets targets(ctx.in(1), attrs, "cross_entropy");
  const Weights<T> weights(ctx, 2);
  const T* x = ctx.in(0).as<T>();
  C* lse = ctx.out(1).as<C>();
  const auto smoothing = static_cast<C>(attrs.label_smoothing);
  const C even = smoothing / static_cast<C>(attrs.num_classes);
  const int64_t slab = state.classes * state.inner;
  if (state.inner > 1) {
    ctx.pool().parallel_for(
        0, state.outer, std::max<int64_t>(1, kPartElements / std::max<int64_t>(1, slab)),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            for_row<C>(state.inner, [&](auto at) {
              at.put(lse + i * state.inner,
                     lse_of_columns(x + i * slab, state.classes, state.inner, at));
            });
          }
        });
  }
  collect_losses<C>(ctx, state.outer * state.inner, state.classes, [&](int64_t i) {
    const T* own = x + i / state.inner * slab + i % state.inner;
    if (state.inner == 1) lse[i] = lse_of_row(own, state.classes);
    const int64_t target = targets(i);
    if (target == Targets::kIgnored) return C{0};
    C loss = (C{1} - smoothing) * weights(target) * (lse[i] - value_of(own[target * state.inner]));
    if (smoothing != 0) {
      loss += even * even_loss(own, state.classes, state.inner, lse[i], weights);
    }
    return loss;
  });
}

// The factors of softmax and of the target in dx: dx = scale p - on_target [c = t] - even w_c.
template <class C>
struct Slope {
  C scale = 0;
  C on_target = 0;
  C even = 0;
};

template <class T>
class Slopes {
 public:
  explicit Slopes(const KernelContext& ctx)
      : weights(ctx, 4),
        targets(ctx.in(2), ctx.attrs_as<ClassLossAttrs>(), "cross_entropy"),
        dy_(ctx.in(0).as<Loss<T>>()),
        dy_step_(ctx.in(0).shape().size() == ctx.in(2).shape().size() ? 1 : 0),
        smoothing_(static_cast<Loss<T>>(ctx.attrs_as<ClassLossAttrs>().label_smoothing)),
        even_(smoothing_ / static_cast<Loss<T>>(ctx.attrs_as<ClassLossAttrs>().num_classes)),
        even_total_(smoothing_ == 0 ? Loss<T>{0} : even_ * weights.total()) {}

  Slope<Loss<T>> operator()(int64_t i, int64_t target) const {
    if (target == Targets::kIgnored) return {};
    const Loss<T> dy = dy_[i * dy_step_];
    const Loss<T> on_target = (1 - smoothing_) * weights(target) * dy;
    return {on_target + even_total_ * dy, on_target, even_ * dy};
  }

  const Weights<T> weights;
  const Targets targets;

 private:
  const Loss<T>* dy_;
  int64_t dy_step_;
  Loss<T> smoothing_;
  Loss<T> even_;
  Loss<T> even_total_;
};

// Subtracts the terms other than softmax from the gradients of one target, which are `inner` apart.
template <class T>
void subtract_target(T* dx, const DenseState& state, int64_t target, const Slope<Loss<T>>& slope,
                     const Weights<T>& weights) {
  const auto subtract = [&](int64_t held, Loss<T> amount) {
    T& element = dx[held * state.inner];
    element = static_cast<T>(value_of(element) - amount);
  };
  if (slope.even != 0) {
    for (int64_t held = 0; held < state.classes; ++held)
      subtract(held, slope.even * weights(state.first_class + held));
  }
  const int64_t held = target - state.first_class;
  if (target != Targets::kIgnored && held >= 0 && held < state.classes) {
    subtract(held, slope.on_target);
  }
}

template <class T>
void run_cross_entropy_backward(const KernelContext& ctx) {
  using C = Loss<T>;
  using V = Vec<C>;
  const auto& state = ctx.state_as<DenseState>();
  const Slopes<T> slopes(ctx);
  const T* x = ctx.in(1).as<T>();
  const C* lse = ctx.in(3).as<C>();
  T* dx = ctx.out(0).as<T>();
  const int64_t slab = state.classes * state.inner;
  const int64_t grain = std::max<int64_t>(1, kPartElements / std::max<int64_t>(1, slab));
  ctx.pool().parallel_for(0, state.outer, grain, [&](int64_t begin, int64_t end) {
    std::vector<Slope<C>> slope(static_cast<size_t>(state.inner));
    std::vector<C> scale(static_cast<size_t>(state.inner));
    std::vector<int64_t> target(static_cast<size_t>(state.inner));
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t j = 0; j < state.inner; ++j) {
        const auto at = static_cast<size_t>(j);
        target[at] = slopes.targets(n * state.inner + j);
        slope[at] = slopes(n * state.inner + j, target[at]);
        scale[at] = slope[at].scale;
      }
      const T* source = x + n * slab;
      T* result = dx + n * slab;
      if (state.inner == 1 && target[0] == Targets::kIgnored) {  // x may be infinite there
        std::fill_n(result, state.classes, T(0.0F));
      } else if (state.inner == 1) {
        const V shift = V::fill(lse[n]);
        const V factor = V::fill(scale[0]);
        for_row<C>(state.classes,
                   [&](auto at) { at.put(result, exp(at.get(source) - shift) * factor); });
      } else {
        for_row<C>(state.inner, [&](auto at) {
          const V shift = at.get(lse + n * state.inner);
          const V factor = at.get(scale.data());
          for (int64_t c = 0; c < state.classes; ++c) {
            const V p = exp(at.get(source + c * state.inner) - shift);
            at.put(result + c * state.inner, select(factor == V::zero(), V::zero(), p * factor));
          }
        });
      }
      for (int64_t j = 0; j < state.inner; ++j) {
        const auto at = static_cast<size_t>(j);
        subtract_target(result + j, state, target[at], slope[at], slopes.weights);
      }
    }
  });
}

bool all_contiguous(const KernelQuery& query, int count) {
  for (int i = 0; i < count; ++i) {
    if (!query.input(i).is_contiguous) return false;
  }
  return true;
}

// float16 and bfloat16 gradients would be rounded twice, so those dtypes use the reference.
KernelChoice select_cross_entropy(const KernelQuery& query) {
  if (!all_contiguous(query, 2)) return {};
  KernelChoice choice{nullptr, std::make_shared<const DenseState>(dense_state(query.input(0)))};
  dispatch_floating(query.input(0).dtype, [&]<class T>() { choice.fn = run_cross_entropy<T>; });
  return choice;
}

KernelChoice select_cross_entropy_backward(const KernelQuery& query) {
  const DType dtype = query.output(0).dtype;
  if (!all_contiguous(query, 4)) return {};
  KernelChoice choice{nullptr, std::make_shared<const DenseState>(dense_state(query.input(1)))};
  if (dtype == DType::kFloat32) {
    choice.fn = run_cross_entropy_backward<float>;
  } else if (dtype == DType::kFloat64) {
    choice.fn = run_cross_entropy_backward<double>;
  }
  return choice;
}

}  // namespace

void register_cross_entropy_cpu(KernelTable& table);

void register_cross_entropy_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kTargetWeight, DeviceType::kCpu, {"reference", select_target_weight});
  table.add(kNllLoss, DeviceType::kCpu, {"reference", select_nll});
  table.add(kNllLossBackward, DeviceType::kCpu, {"reference", select_nll_backward});
  table.add(kCrossEntropy, DeviceType::kCpu, {"reference", select_cross_entropy_reference});
  table.add(kCrossEntropyBackward, DeviceType::kCpu,
            {"reference", select_cross_entropy_backward_reference});
#endif
  table.add(kCrossEntropy, DeviceType::kCpu, {FLOW_ISA_NAME, select_cross_entropy});
  table.add(kCrossEntropyBackward, DeviceType::kCpu,
            {FLOW_ISA_NAME, select_cross_entropy_backward});
}

#include "ops/kernel/isa_end.h"
