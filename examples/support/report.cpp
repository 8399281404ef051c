#include "support/report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/context.h"
#include "core/error.h"
#include "core/launcher.h"

namespace examples {

namespace {
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}
}  // namespace

std::string shortest(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string json_number(double value) {
  return std::isfinite(value) ? shortest(value) : "null";
}

Progress::Progress(int64_t steps, std::string unit, std::string task)
    : steps_(steps),
      unit_(std::move(unit)),
      task_(std::move(task)),
      width_(flow::env::terminal_width()),
      start_(Clock::now()),
      last_shown_(start_) {}

double Progress::smoothed(int64_t step, double loss) const {
  if (step == 0) return loss;
  const double share = task_.empty() ? 0.05 : 1 / static_cast<double>(step + 1);
  return loss_ + share * (loss - loss_);
}

void Progress::update(int64_t step, double loss, int64_t count) {
  loss_ = smoothed(step, loss);
  const int64_t done = step + 1, total = steps_;
  std::string text = flow::str(done, '/', total, "  loss ", fixed(loss_, 4));
  const auto now = Clock::now();
  if (step == 0) {
    start_ = now;
  } else {
    units_ += count;
    const double elapsed = std::max(std::chrono::duration<double>(now - start_).count(), 1e-9);
    const double left = elapsed / static_cast<double>(step) * static_cast<double>(total - done);
    text += flow::str("  ", fixed(static_cast<double>(units_) / elapsed, 0), ' ', unit_, "/s  ",
                      fixed(left, 0), " s left");
  }
  const double interval = width_ > 0 ? 0.2 : 5;
  const bool is_due = done == total || step == 0 || seconds_since(last_shown_) >= interval;
  if (!is_due || flow::env::rank() != 0) return;
  last_shown_ = now;
  has_shown_ = true;
  const std::string line = width_ > 0 ? in_place((task_.empty() ? "" : task_ + ' ') + text, done)
                                      : (task_.empty() ? "step " : task_ + ' ') + text + '\n';
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

// The cursor stays at the start of the line, so the next frame, or another text, covers this one.
std::string Progress::in_place(const std::string& text, int64_t done) const {
  constexpr int64_t kWidest = 28, kNarrowest = 8;
  const int64_t columns = width_ - 1;  // a full line would wrap
  const int64_t bar = std::min(kWidest, columns - static_cast<int64_t>(text.size()) - 3);
  std::string line = text;
  if (bar >= kNarrowest) {
    const auto filled = static_cast<size_t>(bar * done / steps_);
    line = flow::str('[', std::string(filled, '#'),
                     std::string(static_cast<size_t>(bar) - filled, '.'), "] ", text);
  }
  line.resize(static_cast<size_t>(columns), ' ');
  return line + '\r';
}

void Progress::finish() {
  if (width_ > 0 && has_shown_ && flow::env::rank() == 0) std::printf("\n");
}

StepLog::StepLog(const std::string& path) : path_(path), last_(Clock::now()) {
  if (path.empty()) return;
  if (flow::env::world_size() > 1) path_ += flow::str(".rank", flow::env::rank());
  file_.open(path_);
  if (!file_) throw flow::IoError("[log] cannot write " + path_ + "; check folder and permissions");
}

void StepLog::write(int64_t step, double loss, double grad_norm, double lr, double samples_per_s) {
  if (path_.empty()) return;
  file_ << "{\"step\": " << step << ", \"loss\": " << json_number(loss)
        << ", \"grad_norm\": " << json_number(grad_norm) << ", \"lr\": " << shortest(lr)
        << ", \"samples_per_s\": " << shortest(samples_per_s) << ", \"rank\": " << flow::env::rank()
        << "}" << std::endl;
  if (!file_) throw flow::IoError("[log] cannot write " + path_ + "; is the disk full?");
}

double StepLog::rate_of(int64_t count) {
  const double seconds = std::max(seconds_since(last_), 1e-9);
  last_ = Clock::now();
  return static_cast<double>(count) / seconds;
}

void RateMeter::start() {
  start_ = Clock::now();
}

double RateMeter::rate(int64_t count) const {
  return static_cast<double>(count) / std::max(seconds_since(start_), 1e-9);
}

}  // namespace examples
