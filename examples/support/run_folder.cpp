#include "support/run_folder.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/error.h"
#include "support/report.h"

namespace examples {

namespace {
namespace fs = std::filesystem;

bool is_first_rank() {
  return flow::env::rank() == 0;
}

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw flow::IoError(flow::str("[run] ", path, ' ', what));
}

void set_aside(const fs::path& path) {
  int64_t number = 1;
  while (fs::exists(flow::str(path.string(), '.', number)))
    ++number;
  fs::rename(path, flow::str(path.string(), '.', number));
}

double number_of(const nlohmann::json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

StepRecord parse_record(const std::string& line) {
  const nlohmann::json json = nlohmann::json::parse(line);
  StepRecord record{.step = json.at("step"),
                    .loss = number_of(json.at("loss")),
                    .grad_norm = number_of(json.at("grad_norm")),
                    .lr = json.at("lr"),
                    .tokens_per_s = json.at("tokens_per_s")};
  if (json.contains("validation_loss"))
    record.validation_loss = number_of(json.at("validation_loss"));
  return record;
}

std::vector<StepRecord> read_records(const std::string& path, int64_t steps) {
  std::vector<StepRecord> records;
  std::ifstream file(path);
  for (std::string line; static_cast<int64_t>(records.size()) < steps;) {
    if (!std::getline(file, line)) {
      fail(path, flow::str("has ", records.size(), " steps; the checkpoint is of step ", steps,
                           "; resume with the log of the same run"));
    }
    try {
      records.push_back(parse_record(line));
    } catch (const nlohmann::json::exception& error) {
      fail(path, flow::str("has a line that is no step: ", error.what(),
                           "; resume with the log of the same run"));
    }
  }
  return records;
}

std::string to_line(const StepRecord& record) {
  std::string line = flow::str("{\"step\": ", record.step, ", \"loss\": ", json_number(record.loss),
                               ", \"grad_norm\": ", json_number(record.grad_norm),
                               ", \"lr\": ", shortest(record.lr));
  if (record.validation_loss)
    line += ", \"validation_loss\": " + json_number(*record.validation_loss);
  return line + ", \"tokens_per_s\": " + shortest(record.tokens_per_s) + "}\n";
}

}  // namespace

RunFolder::RunFolder(const std::string& path, bool resumes) : path_(path) {
  while (path_.size() > 1 && path_.ends_with('/'))
    path_.pop_back();
  if (is_first_rank()) {
    const bool is_used = fs::exists(path_) && !(fs::is_directory(path_) && fs::is_empty(path_));
    if (is_used && !fs::exists(steps())) {
      fail(path_, "exists and is not the folder of a run; give another one with --run");
    }
    if (is_used && !resumes) set_aside(path_);
    fs::create_directories(path_);
    std::ofstream(steps(), std::ios::app);  // marks it as the folder of a run
  }
  if (flow::env::world_size() > 1) flow::env::barrier();
}

RunLog::RunLog(std::string path, int64_t steps)
    : path_(std::move(path)), num_earlier_(static_cast<size_t>(steps)) {
  if (steps > 0) records_ = read_records(path_, steps);
  if (flow::env::world_size() > 1) flow::env::barrier();  // all have read it
  if (!is_first_rank()) return;
  file_.open(path_);
  for (const StepRecord& record : records_)
    file_ << to_line(record);
  file_.flush();
  if (!file_) fail(path_, "cannot be written; check folder and permissions");
}

void RunLog::add(StepRecord record) {
  records_.push_back(record);
  if (!is_first_rank()) return;
  file_ << to_line(record) << std::flush;
  if (!file_) fail(path_, "cannot be written; is the disk full?");
}

std::vector<double> RunLog::losses() const {
  std::vector<double> losses;
  for (size_t i = num_earlier_; i < records_.size(); ++i)
    losses.push_back(records_[i].loss);
  return losses;
}

}  // namespace examples
