// The output of a training program while it runs: a progress bar on a terminal, plain lines
// elsewhere, and a JSON log.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>

namespace examples {

// Rank 0 prints the loss, and from the second step on `unit`s (samples, tokens) per second and the
// remaining time. The first step is not counted in the rate, because it compiles.
class Progress {
 public:
  // `task` begins each line and shows the mean of its losses; training needs no name and shows a
  // moving average.
  Progress(int64_t steps, std::string unit, std::string task = "");
  // Call this after step number `step` (from 0), which processed `count` units.
  void update(int64_t step, double loss, int64_t count);
  void finish();

 private:
  double smoothed(int64_t step, double loss) const;
  std::string in_place(const std::string& text, int64_t done) const;

  int64_t steps_;
  std::string unit_, task_;
  int64_t width_;  // of the terminal; 0: none
  std::chrono::steady_clock::time_point start_, last_shown_;
  bool has_shown_ = false;
  int64_t units_ = 0;  // since start_
  double loss_ = 0;    // smoothed
};

// The shortest decimal form that reads back as the same number.
std::string shortest(double value);

// The same for a file of JSON, which has null in place of NaN and infinity.
std::string json_number(double value);

// {"step": 0, "loss": 4.75, "grad_norm": 1.2, "lr": 0.001, "samples_per_s": 812, "rank": 0}
class StepLog {
 public:
  // An empty path logs nothing. With several ranks ".rankR" is appended to the path. Throws
  // flow::IoError if the file cannot be written.
  explicit StepLog(const std::string& path);
  void write(int64_t step, double loss, double grad_norm, double lr, double samples_per_s);

  bool is_on() const { return !path_.empty(); }

  // Samples per second, for `count` samples since the last call or since the construction.
  double rate_of(int64_t count);

 private:
  std::string path_;
  std::ofstream file_;
  std::chrono::steady_clock::time_point last_;
};

// Measures the rate of work, without the pauses between rate() and start().
class RateMeter {
 public:
  RateMeter() { start(); }

  void start();
  // Per second, for `count` units since start().
  double rate(int64_t count) const;

 private:
  std::chrono::steady_clock::time_point start_;
};

}  // namespace examples
