// The folder of a training run, and its log.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace examples {

// Names of the files in a run's folder.
class RunFolder {
 public:
  // Makes the folder. If it holds an earlier run and `resumes` is false, it is first renamed to
  // `path`.1, or the next free number. Throws flow::IoError if it holds something else or cannot be
  // made. Collective over the world.
  RunFolder(const std::string& path, bool resumes);

  std::string checkpoints() const { return path_ + "/checkpoints"; }

  std::string steps() const { return path_ + "/steps.jsonl"; }

  std::string timeline() const { return path_ + "/timeline.json"; }

  std::string predicted_timeline() const { return path_ + "/predicted.json"; }

  std::string report() const { return path_ + "/report.html"; }

 private:
  std::string path_;
};

struct StepRecord {
  int64_t step = 0;  // from 0
  double loss = 0, grad_norm = 0, lr = 0;
  double tokens_per_s = 0;
  std::optional<double> validation_loss = {};  // after the step
};

// One line of JSON for each step, which rank 0 writes:
//   {"step": 0, "loss": 4.75, "grad_norm": 1.2, "lr": 0.001, "tokens_per_s": 812}
// Some also have "validation_loss". A number that is not finite is null. All but the rate is the
// same in each run of the same program.
class RunLog {
 public:
  // Goes on after the first `steps` lines of the file, and removes later ones. Throws flow::IoError
  // if the file cannot be read or written, or has fewer steps.
  RunLog(std::string path, int64_t steps);

  void add(StepRecord record);

  const std::vector<StepRecord>& records() const { return records_; }

  // The losses of the steps since the construction.
  std::vector<double> losses() const;

 private:
  std::string path_;
  size_t num_earlier_ = 0;
  std::vector<StepRecord> records_;
  std::ofstream file_;
};

}  // namespace examples
