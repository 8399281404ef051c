#include "nn/optim/strong_wolfe.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace flow::optim {

namespace {

constexpr double kDecrease = 1e-4;    // share of the predicted decrease that is demanded
constexpr double kCurvature = 0.9;    // share of the first slope that may be left
constexpr double kLeastReach = 1e-9;  // of the bracket, in the largest element of the parameters

// The minimum of the cubic through both points with their slopes, moved into [low, high].
double cubic_minimum(const LinePoint& a, const LinePoint& b, double low, double high) {
  const LinePoint& left = a.step <= b.step ? a : b;
  const LinePoint& right = a.step <= b.step ? b : a;
  const double d1 =
      left.slope + right.slope - 3 * (left.value - right.value) / (left.step - right.step);
  const double square = d1 * d1 - left.slope * right.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double share = (right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2);
  return std::min(std::max(right.step - (right.step - left.step) * share, low), high);
}

class Search {
 public:
  Search(const std::function<LinePoint(double step)>& evaluate, const LinePoint& start,
         int64_t max_iterations)
      : evaluate_(evaluate), start_(start), max_iterations_(max_iterations) {}

  LinePoint run(double first_step, double direction_size) {
    if (!find_bracket(first_step)) narrow(direction_size);
    return low_;
  }

 private:
  bool decreases_too_little(const LinePoint& point) const {
    return point.value > start_.value + kDecrease * point.step * start_.slope;
  }

  bool is_flat_enough(const LinePoint& point) const {
    return std::abs(point.slope) <= -kCurvature * start_.slope;
  }

  void set_bracket(LinePoint a, LinePoint b) {
    if (!(a.value <= b.value)) std::swap(a, b);  // also for NaN
    low_ = std::move(a);
    high_ = std::move(b);
  }

  // Moves outwards until two points enclose a good one. True if a good one was met; it is low_.
  bool find_bracket(double step) {
    LinePoint before = start_;
    LinePoint point = evaluate_(step);
    for (; iterations_ < max_iterations_; ++iterations_) {
      if (decreases_too_little(point) || (iterations_ > 1 && point.value >= before.value)) {
        set_bracket(before, point);
        return false;
      }
      if (is_flat_enough(point)) {
        low_ = point;
        return true;
      }
      if (point.slope >= 0) {
        set_bracket(before, point);
        return false;
      }
      const double next = cubic_minimum(
          before, point, point.step + 0.01 * (point.step - before.step), point.step * 10);
      before = std::move(point);
      point = evaluate_(next);
    }
    set_bracket(start_, point);
    return false;
  }

  // Replaces the ends of the bracket by points between them. low_ is the better end.
  void narrow(double direction_size) {
    bool was_near_an_end = false;
    for (; iterations_ < max_iterations_; ++iterations_) {
      const double least = std::min(low_.step, high_.step);
      const double most = std::max(low_.step, high_.step);
      if ((most - least) * direction_size < kLeastReach) return;
      double step = cubic_minimum(low_, high_, least, most);
      // A step near an end for the second time is moved away from it.
      const double margin = 0.1 * (most - least);
      const bool is_near_an_end = std::min(most - step, step - least) < margin;
      if (is_near_an_end && (was_near_an_end || step >= most || step <= least)) {
        step = most - step < step - least ? most - margin : least + margin;
        was_near_an_end = false;
      } else {
        was_near_an_end = is_near_an_end;
      }
      LinePoint point = evaluate_(step);
      if (decreases_too_little(point) || point.value >= low_.value) {
        set_bracket(low_, std::move(point));
        continue;
      }
      if (is_flat_enough(point)) {
        low_ = std::move(point);
        ++iterations_;
        return;
      }
      if (point.slope * (high_.step - low_.step) >= 0) high_ = low_;
      low_ = std::move(point);
    }
  }

  const std::function<LinePoint(double step)>& evaluate_;
  const LinePoint& start_;
  LinePoint low_, high_;
  int64_t max_iterations_;
  int64_t iterations_ = 0;
};

}  // namespace

LinePoint search_strong_wolfe(const std::function<LinePoint(double step)>& evaluate,
                              const LinePoint& start, double first_step, double direction_size,
                              int64_t max_iterations) {
  return Search(evaluate, start, max_iterations).run(first_step, direction_size);
}

}  // namespace flow::optim
