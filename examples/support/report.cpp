#include "support/report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <sstream>

#include <unistd.h>

#include "core/context.h"
#include "core/error.h"

namespace examples {

namespace {
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}
}  // namespace

std::string shortest(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

Progress::Progress(int64_t steps, std::string unit)
    : steps_(steps),
      unit_(std::move(unit)),
      is_terminal_(isatty(STDOUT_FILENO) != 0),
      start_(Clock::now()),
      last_shown_(start_) {}

double Progress::update(int64_t step, double loss, int64_t count) {
  units_ += count;
  smoothed_loss_ = step == 0 ? loss : 0.95 * smoothed_loss_ + 0.05 * loss;
  const bool is_last = step + 1 == steps_;
  const double interval = is_terminal_ ? 0.2 : 5;
  const double elapsed = std::max(seconds_since(start_), 1e-9);
  const double rate = static_cast<double>(units_) / elapsed;
  const bool is_due = is_last || step == 0 || seconds_since(last_shown_) >= interval;
  if (!is_due || flow::env::rank() != 0) return rate;
  last_shown_ = Clock::now();
  const long long done = step + 1, total = steps_;
  const double left =
      elapsed / static_cast<double>(step + 1) * static_cast<double>(steps_ - step - 1);
  if (is_terminal_) {
    constexpr int kWidth = 28;
    const auto filled = static_cast<int>(kWidth * (step + 1) / steps_);
    std::printf("\r[%s%s] %lld/%lld  loss %.4f  %.0f %s/s  %.0f s left   ",
                std::string(static_cast<size_t>(filled), '#').c_str(),
                std::string(static_cast<size_t>(kWidth - filled), '.').c_str(), done, total,
                smoothed_loss_, rate, unit_.c_str(), left);
  } else {
    std::printf("step %lld/%lld  loss %.4f  %.0f %s/s  %.0f s left\n", done, total, smoothed_loss_,
                rate, unit_.c_str(), left);
  }
  std::fflush(stdout);
  return rate;
}

void Progress::finish() {
  if (is_terminal_ && flow::env::rank() == 0) std::printf("\n");
}

StepLog::StepLog(const std::string& path) : path_(path), last_(Clock::now()) {
  if (path.empty()) return;
  if (flow::env::world_size() > 1) path_ += flow::str(".rank", flow::env::rank());
  file_.open(path_);
  if (!file_) throw flow::IoError("[log] cannot write " + path_ + "; check folder and permissions");
}

void StepLog::write(int64_t step, double loss, double grad_norm, double lr, double samples_per_s) {
  if (path_.empty()) return;
  file_ << "{\"step\": " << step << ", \"loss\": " << shortest(loss)
        << ", \"grad_norm\": " << shortest(grad_norm) << ", \"lr\": " << shortest(lr)
        << ", \"samples_per_s\": " << shortest(samples_per_s) << ", \"rank\": " << flow::env::rank()
        << "}" << std::endl;
  if (!file_) throw flow::IoError("[log] cannot write " + path_ + "; is the disk full?");
}

double StepLog::rate_of(int64_t count) {
  const double seconds = std::max(seconds_since(last_), 1e-9);
  last_ = Clock::now();
  return static_cast<double>(count) / seconds;
}

void print_boxing_summary(const flow::BoxingReport& report, int64_t steps) {
  double runs = 0, bytes = 0, predicted_us = 0, took_us = 0;
  for (const flow::BoxingEntry& entry : report.entries) {
    const auto count = static_cast<double>(entry.runs);
    runs += count;
    bytes += count * entry.bytes;
    predicted_us += count * entry.predicted_us;
    took_us += entry.total_us;
  }
  const double per_step = 1 / static_cast<double>(std::max<int64_t>(steps, 1));
  std::printf(
      "boxing, per step on rank %lld: %.1f redistributions, %.2f MiB received, %.1f ms "
      "(predicted %.1f); the most expensive:\n",
      static_cast<long long>(flow::env::rank()), runs * per_step, bytes * per_step / (1 << 20),
      took_us * per_step * 1e-3, predicted_us * per_step * 1e-3);
  constexpr size_t kShown = 3;
  std::ostringstream text;
  for (size_t i = 0; i < std::min(kShown, report.entries.size()); ++i)
    text << report.entries[i];
  std::printf("%s", text.str().c_str());
}

}  // namespace examples
