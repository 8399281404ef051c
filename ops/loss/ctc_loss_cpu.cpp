// Kernels of the CTC loss: the forward and backward recursions over log-probabilities, in double,
// with one task for each sample.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/float16.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/loss/ctc_loss_op.h"

#include "ops/kernel/isa_begin.h"

void register_ctc_loss_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

double log_of_sum(double a, double b) {
  const double high = std::max(a, b);
  if (high == kNever) return kNever;
  return high + std::log1p(std::exp(std::min(a, b) - high));
}

template <class T>
double widen(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(x);
  } else {
    return static_cast<double>(static_cast<float>(x));
  }
}

template <class T>
T narrow(double x) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(x);
  } else {
    return T(static_cast<float>(x));
  }
}

int64_t at(const TensorView& tensor, int64_t i) {
  return tensor.as<int64_t>()[i * tensor.strides()[0]];
}

// One sample: its log-probabilities, and its target with blanks around each label.
template <class T>
class Sample {
 public:
  // `first` is the position of log_probs among the inputs.
  Sample(const KernelContext& ctx, int first, int64_t n)
      : x_(ctx.in(first).as<T>() + n * ctx.in(first).strides()[1]),
        time_stride_(ctx.in(first).strides()[0]),
        class_stride_(ctx.in(first).strides()[2]),
        times_(at(ctx.in(first + 2), n)) {
    const TensorView& targets = ctx.in(first + 1);
    const int64_t classes = ctx.in(first).shape()[2];
    const int64_t blank = ctx.attrs_as<CtcAttrs>().blank;
    const int64_t size = at(ctx.in(first + 3), n);
    if (times_ < 0 || times_ > ctx.in(first).shape()[0]) {
      throw InvalidArgument(str("[ctc_loss] input length ", times_, " of sample ", n,
                                " is out of range; give at most ", ctx.in(first).shape()[0]));
    }
    if (size < 0 || size > targets.shape()[1]) {
      throw InvalidArgument(str("[ctc_loss] target length ", size, " of sample ", n,
                                " is out of range; give at most ", targets.shape()[1]));
    }
    labels_.push_back(blank);
    for (int64_t s = 0; s < size; ++s) {
      const int64_t label =
          targets.as<int64_t>()[n * targets.strides()[0] + s * targets.strides()[1]];
      if (label < 0 || label >= classes) {
        throw InvalidArgument(
            str("[ctc_loss] target ", label, " is not a class; give 0 to ", classes - 1));
      }
      labels_.push_back(label);
      labels_.push_back(blank);
    }
  }

  int64_t times() const { return times_; }

  int64_t states() const { return static_cast<int64_t>(labels_.size()); }

  int64_t label(int64_t s) const { return labels_[static_cast<size_t>(s)]; }

  double log_prob(int64_t t, int64_t c) const {
    return widen(x_[t * time_stride_ + c * class_stride_]);
  }

  // Returns true if an alignment may go from state s to s + 2, skipping a blank between different
  // labels.
  bool skips(int64_t s) const {
    return s >= 0 && s + 2 < states() && s % 2 == 1 && label(s) != label(s + 2);
  }

 private:
  const T* x_;
  int64_t time_stride_;
  int64_t class_stride_;
  int64_t times_;
  std::vector<int64_t> labels_;
};

// alpha[t][s]: the probability of all beginnings of alignments that are in state s at time t, as a
// logarithm.
template <class T>
std::vector<double> beginnings(const Sample<T>& sample) {
  const int64_t states = sample.states();
  std::vector<double> alpha(static_cast<size_t>(sample.times() * states), kNever);
  for (int64_t t = 0; t < sample.times(); ++t) {
    double* now = alpha.data() + t * states;
    const double* before = now - states;
    for (int64_t s = 0; s < states; ++s) {
      double sum = t == 0 && s < 2 ? 0 : kNever;
      if (t > 0) {
        sum = before[s];
        if (s > 0) sum = log_of_sum(sum, before[s - 1]);
        if (sample.skips(s - 2)) sum = log_of_sum(sum, before[s - 2]);
      }
      now[s] = sum == kNever ? kNever : sum + sample.log_prob(t, sample.label(s));
    }
  }
  return alpha;
}

// beta[t][s]: the probability of all continuations after time t of alignments in state s at time t,
// as a logarithm.
template <class T>
std::vector<double> ends(const Sample<T>& sample) {
  const int64_t states = sample.states();
  std::vector<double> beta(static_cast<size_t>(sample.times() * states), kNever);
  for (int64_t t = sample.times() - 1; t >= 0; --t) {
    double* now = beta.data() + t * states;
    const double* after = now + states;
    for (int64_t s = 0; s < states; ++s) {
      if (t == sample.times() - 1) {
        now[s] = s >= states - 2 ? 0 : kNever;
        continue;
      }
      const auto through = [&](int64_t next) {
        return after[next] == kNever ? kNever
                                     : after[next] + sample.log_prob(t + 1, sample.label(next));
      };
      double sum = through(s);
      if (s + 1 < states) sum = log_of_sum(sum, through(s + 1));
      if (sample.skips(s)) sum = log_of_sum(sum, through(s + 2));
      now[s] = sum;
    }
  }
  return beta;
}

template <class T>
double log_likelihood(const Sample<T>& sample, const std::vector<double>& alpha) {
  const int64_t states = sample.states();
  if (sample.times() == 0) return states == 1 ? 0 : kNever;
  const double* last = alpha.data() + (sample.times() - 1) * states;
  return states == 1 ? last[0] : log_of_sum(last[states - 1], last[states - 2]);
}

void loss(const KernelContext& ctx) {
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    const bool zero_infinity = ctx.attrs_as<CtcAttrs>().zero_infinity;
    ctx.pool().parallel_for(0, ctx.in(0).shape()[1], 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const Sample<T> sample(ctx, 0, n);
        const double value = -log_likelihood(sample, beginnings(sample));
        ctx.out(0).as<T>()[n * ctx.out(0).strides()[0]] =
            narrow<T>(zero_infinity && std::isinf(value) ? 0 : value);
      }
    });
  });
}

template <class T>
void backward_of(const KernelContext& ctx, int64_t n) {
  const Sample<T> sample(ctx, 1, n);
  const TensorView& dx = ctx.out(0);
  T* to = dx.as<T>() + n * dx.strides()[1];
  const int64_t classes = dx.shape()[2];
  const int64_t states = sample.states();
  const double dy = widen(ctx.in(0).as<T>()[n * ctx.in(0).strides()[0]]);
  const std::vector<double> alpha = beginnings(sample);
  const std::vector<double> beta = ends(sample);
  const double total = log_likelihood(sample, alpha);
  const bool is_zero = ctx.attrs_as<CtcAttrs>().zero_infinity && std::isinf(total);
  std::vector<double> reached(static_cast<size_t>(classes));
  for (int64_t t = 0; t < dx.shape()[0]; ++t) {
    const bool counts = t < sample.times() && !is_zero;
    std::fill(reached.begin(), reached.end(), kNever);
    for (int64_t s = 0; counts && s < states; ++s) {
      double& sum = reached[static_cast<size_t>(sample.label(s))];
      const auto place = static_cast<size_t>(t * states + s);
      sum = log_of_sum(sum, alpha[place] + beta[place]);
    }
    for (int64_t c = 0; c < classes; ++c) {
      const double share = counts ? std::exp(reached[static_cast<size_t>(c)] - total) : 0;
      to[t * dx.strides()[0] + c * dx.strides()[2]] =
          narrow<T>(counts ? dy * (std::exp(sample.log_prob(t, c)) - share) : 0);
    }
  }
}

void backward(const KernelContext& ctx) {
  dispatch_floating(ctx.in(1).meta->dtype, [&]<class T>() {
    ctx.pool().parallel_for(0, ctx.in(1).shape()[1], 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n)
        backward_of<T>(ctx, n);
    });
  });
}

}  // namespace

void register_ctc_loss_cpu(KernelTable& table) {
  table.add(kCtcLoss, DeviceType::kCpu, {"reference", always<loss>});
  table.add(kCtcLossBackward, DeviceType::kCpu, {"reference", always<backward>});
}

#else

void register_ctc_loss_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
