#include "nn/optim/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "autograd/autocast.h"
#include "core/calls/site_scope.h"
#include "core/context.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "nn/optim/strong_wolfe.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/reduce/reduce.h"

namespace flow::optim {

namespace {

// One tensor for each parameter: a vector of the space in which the function is minimised.
using Vector = std::vector<Tensor>;

double dot(const Vector& a, const Vector& b) {
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i)
    total += sum(a[i] * b[i]).item<double>();
  return total;
}

double largest(const Vector& a) {
  double most = 0;
  for (const Tensor& x : a)
    if (x.numel() > 0) most = std::max(most, abs(x).max().item<double>());
  return most;
}

double sum_of_sizes(const Vector& a) {
  double total = 0;
  for (const Tensor& x : a)
    total += sum(abs(x)).item<double>();
  return total;
}

Vector scaled(const Vector& a, double factor) {
  Vector result;
  for (const Tensor& x : a)
    result.push_back(x * factor);
  return result;
}

// a + factor b
Vector plus(const Vector& a, const Vector& b, double factor) {
  Vector result;
  for (size_t i = 0; i < a.size(); ++i)
    result.push_back(a[i] + b[i] * factor);
  return result;
}

// An entry of the history: the change of the parameters and that of the gradients.
struct Change {
  Vector parameters;
  Vector gradients;
};

// The product of -gradients and the inverse Hessian that the history describes (Nocedal and Wright
// 2006, algorithm 7.4).
Vector two_loops(const Vector& gradients, const std::deque<Change>& history, double diagonal) {
  Vector q = scaled(gradients, -1);
  std::vector<double> inverse(history.size()), factor(history.size());
  for (size_t i = history.size(); i-- > 0;) {
    inverse[i] = 1 / dot(history[i].gradients, history[i].parameters);
    factor[i] = dot(history[i].parameters, q) * inverse[i];
    q = plus(q, history[i].gradients, -factor[i]);
  }
  q = scaled(q, diagonal);
  for (size_t i = 0; i < history.size(); ++i) {
    const double beta = dot(history[i].gradients, q) * inverse[i];
    q = plus(q, history[i].parameters, factor[i] - beta);
  }
  return q;
}

}  // namespace

// What a step leaves to the next one.
struct LBFGS::Memory {
  int64_t iterations = 0;
  int64_t evaluations = 0;
  double length = 0;  // of the last move along `direction`
  double diagonal = 1;
  double last_loss = 0;
  Vector direction, last_gradients;
  std::deque<Change> history;
};

void check_options(const LBFGSOptions& o) {
  if (o.lr < 0 || o.max_iter < 1 || o.history_size < 1 || o.max_eval.value_or(1) < 1) {
    throw InvalidArgument(
        str("[LBFGS] lr must not be negative, and max_iter, max_eval and "
            "history_size must be positive; received ",
            o.lr, ", ", o.max_iter, ", ", o.max_eval.value_or(o.max_iter), ", ", o.history_size));
  }
  if (!o.line_search_fn.empty() && o.line_search_fn != "strong_wolfe") {
    throw InvalidArgument(
        str("[LBFGS] line_search_fn must be empty or strong_wolfe; received ", o.line_search_fn));
  }
  if (o.shard_state) {
    throw Unsupported(
        "[LBFGS] the state cannot be sharded, because each step needs all of it; leave shard_state "
        "out");
  }
}

std::vector<std::string> LBFGS::buffer_names() const {
  std::vector<std::string> names = {"d", "prev_grad"};
  for (int64_t i = 0; i < groups()[0].options.history_size; ++i) {
    names.push_back(str("old_stps.", i));
    names.push_back(str("old_dirs.", i));
  }
  return names;
}

std::vector<std::string> LBFGS::number_names() const {
  return {"func_evals", "t", "H_diag", "prev_loss"};
}

LBFGS::Memory LBFGS::load() {
  Memory memory;
  const auto num = static_cast<size_t>(groups()[0].params.size());
  memory.iterations = state_of(0).step;
  if (memory.iterations == 0) return memory;
  const std::vector<double>& numbers = state_of(0).numbers;
  memory.evaluations = static_cast<int64_t>(numbers[0]);
  memory.length = numbers[1];
  memory.diagonal = numbers[2];
  memory.last_loss = numbers[3];
  for (size_t p = 0; p < num; ++p) {
    const std::vector<Tensor>& buffers = state_of(p).buffers;
    memory.direction.push_back(buffers[0]);
    memory.last_gradients.push_back(buffers[1]);
    for (size_t i = 0; 2 * i + 3 < buffers.size() && buffers[2 * i + 2].defined(); ++i) {
      if (memory.history.size() <= i) memory.history.emplace_back();
      memory.history[i].parameters.push_back(buffers[2 * i + 2]);
      memory.history[i].gradients.push_back(buffers[2 * i + 3]);
    }
  }
  return memory;
}

void LBFGS::store(const Memory& memory) {
  for (size_t p = 0; p < memory.direction.size(); ++p) {
    ParamState& state = state_of(p);
    state.step = memory.iterations;
    state.numbers = {static_cast<double>(memory.evaluations), memory.length, memory.diagonal,
                     memory.last_loss};
    state.buffers[0] = memory.direction[p];
    state.buffers[1] = memory.last_gradients[p];
    for (size_t i = 0; i < memory.history.size(); ++i) {
      state.buffers[2 * i + 2] = memory.history[i].parameters[p];
      state.buffers[2 * i + 3] = memory.history[i].gradients[p];
    }
  }
}

// A step: iterations from the parameters that the closure sees.
class LBFGS::Descent {
 public:
  Descent(const LBFGSOptions& options, const Vector& parameters,
          const std::function<Tensor()>& closure, Memory& memory)
      : options_(options), parameters_(parameters), closure_(closure), memory_(memory) {}

  // Evaluates the function. Returns its value, and sets whether that is a minimum already.
  Tensor begin(bool& is_flat) {
    Tensor loss = evaluate().detach();
    is_flat = largest(gradients_) <= options_.tolerance_grad;
    return loss;
  }

  // Makes one iteration; the last of a step does not evaluate the function, because the next step
  // does. Returns false if no more of them should follow.
  bool iterate(bool is_last) {
    choose_direction();
    const double slope = dot(gradients_, memory_.direction);
    if (slope > -options_.tolerance_change) return false;
    if (!options_.line_search_fn.empty()) {
      search(slope);
    } else {
      move();
      if (!is_last) evaluate();
    }
    const bool is_spent = evaluations_ >= max_evaluations();
    const bool is_flat = largest(gradients_) <= options_.tolerance_grad;
    const bool stands =
        largest(memory_.direction) * std::abs(memory_.length) <= options_.tolerance_change ||
        std::abs(loss_ - memory_.last_loss) < options_.tolerance_change;
    return !is_spent && !is_flat && !stands;
  }

 private:
  int64_t max_evaluations() const { return options_.max_eval.value_or(options_.max_iter * 5 / 4); }

  // Sets loss_ and gradients_.
  Tensor evaluate() {
    ++evaluations_;
    ++memory_.evaluations;
    autograd::drop_cached_casts();
    Tensor loss;
    {
      const EnableGradGuard recording;
      loss = closure_();
    }
    const double sign = options_.maximize ? -1 : 1;
    loss_ = sign * loss.item<double>();
    gradients_.clear();
    for (const Tensor& p : parameters_)
      gradients_.push_back(p.grad().defined() ? sign * p.grad().detach() : zeros_like(p));
    return loss;
  }

  void move() const {
    for (size_t i = 0; i < parameters_.size(); ++i)
      parameters_[i].copy_(parameters_[i] + memory_.direction[i] * memory_.length);
  }

  // Adds the last move to the history, and sets direction and length of the next one.
  void choose_direction() {
    const bool is_first = ++memory_.iterations == 1;
    if (is_first) {
      memory_.direction = scaled(gradients_, -1);
    } else {
      Change change{scaled(memory_.direction, memory_.length),
                    plus(gradients_, memory_.last_gradients, -1)};
      const double curvature = dot(change.gradients, change.parameters);
      if (curvature > 1e-10) {
        if (static_cast<int64_t>(memory_.history.size()) == options_.history_size) {
          memory_.history.pop_front();
        }
        memory_.diagonal = curvature / dot(change.gradients, change.gradients);
        memory_.history.push_back(std::move(change));
      }
      memory_.direction = two_loops(gradients_, memory_.history, memory_.diagonal);
    }
    memory_.last_gradients = gradients_;
    memory_.last_loss = loss_;
    memory_.length = options_.lr;
    if (is_first) memory_.length *= std::min(1.0, 1 / sum_of_sizes(gradients_));
  }

  // Moves by the length that the line search finds.
  void search(double slope) {
    Vector start;
    for (const Tensor& p : parameters_)
      start.push_back(p.detach().clone());
    const auto go_back = [&] {
      for (size_t i = 0; i < parameters_.size(); ++i)
        parameters_[i].copy_(start[i]);
    };
    const LinePoint here{0, loss_, slope, gradients_};
    const auto at = [&](double length) {
      memory_.length = length;
      move();
      evaluate();
      go_back();
      return LinePoint{length, loss_, dot(gradients_, memory_.direction), gradients_};
    };
    const LinePoint found = search_strong_wolfe(
        at, here, memory_.length, largest(memory_.direction), max_evaluations() - evaluations_);
    memory_.length = found.step;
    loss_ = found.value;
    gradients_ = found.gradients;
    move();
  }

  const LBFGSOptions& options_;
  const Vector& parameters_;
  const std::function<Tensor()>& closure_;
  Memory& memory_;
  double loss_ = 0;
  Vector gradients_;
  int64_t evaluations_ = 0;  // in this step
};

Tensor LBFGS::step(const std::function<Tensor()>& closure, Site site) {
  const SiteScope scope(site);
  if (thread_state().trace != nullptr) {
    throw Unsupported(
        "[LBFGS] a graph cannot contain this optimizer, because its steps read values; call step() "
        "outside of build()");
  }
  if (num_groups() != 1) {
    throw InvalidArgument(str("[LBFGS] takes one parameter group; received ", num_groups()));
  }
  const NoGradGuard no_grad;
  const LBFGSOptions& options = groups()[0].options;
  Memory memory = load();
  Descent descent(options, groups()[0].params, closure, memory);
  bool is_flat = false;
  Tensor first_loss = descent.begin(is_flat);
  if (is_flat) return first_loss;
  for (int64_t i = 1; i <= options.max_iter; ++i)
    if (!descent.iterate(i == options.max_iter)) break;
  store(memory);
  return first_loss;
}

void LBFGS::step(Site site) {
  throw Unsupported(
      "[LBFGS] step() needs a closure that computes the loss and the gradients; pass one: "
      "optimizer.step([&] { … return loss; })",
      site);
}

void LBFGS::update(const Tensor& /*parameter*/, const Tensor& /*grad*/, size_t /*number*/,
                   ParamState& /*state*/) {
  step();  // explains what to do
}

}  // namespace flow::optim
