// What a training program shows while it runs: a progress bar on a terminal, plain lines elsewhere,
// and a JSON log.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>

#include "boxing/report.h"

namespace examples {

// `unit`s (samples, tokens) per second are printed, by rank 0, with the loss and the time left.
class Progress {
 public:
  Progress(int64_t steps, std::string unit);
  // After step number `step` (from 0), which handled `count` units. The units per second so far.
  double update(int64_t step, double loss, int64_t count);
  void finish();

 private:
  int64_t steps_;
  std::string unit_;
  bool is_terminal_;
  std::chrono::steady_clock::time_point start_, last_shown_;
  int64_t units_ = 0;
  double smoothed_loss_ = 0;
};

// The shortest decimals that give the number back.
std::string shortest(double value);

// {"step": 0, "loss": 4.75, "grad_norm": 1.2, "lr": 0.001, "samples_per_s": 812, "rank": 0}
class StepLog {
 public:
  // An empty path logs nothing; with several ranks ".rankR" is added to it. Throws flow::IoError
  // when the file cannot be written.
  explicit StepLog(const std::string& path);
  void write(int64_t step, double loss, double grad_norm, double lr, double samples_per_s);

  bool is_on() const { return !path_.empty(); }

  // Of `count` samples since the last call, or since this was made, a second.
  double rate_of(int64_t count);

 private:
  std::string path_;
  std::ofstream file_;
  std::chrono::steady_clock::time_point last_;
};

// What redistributions cost this rank in `steps` training steps, and the three costliest.
void print_boxing_summary(const flow::BoxingReport& report, int64_t steps);

}  // namespace examples
