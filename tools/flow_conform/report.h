// The outcome of the cases of a spec: lines of text and the exit status.
#pragma once

#include <functional>
#include <string>

#include "tools/flow_conform/attrs.h"

namespace flow::conform {

enum ExitCode : int {
  kDone = 0,
  kFailed = 1,
  kBadSpec = 2,
  kNotSupported = 3,
  kBadFile = 65,     // a file is damaged
  kFileFailure = 74  // a file is missing, or the disk is full
};

// Rank 0 writes the lines: unsupported and failed cases to standard error, and cases that must
// raise to standard output.
class Report {
 public:
  // Runs a case, and reports the case if it throws. Rethrows errors of files and of ranks.
  void run(const std::string& id, const std::function<void()>& body);
  // Runs a case in which `op` must throw an error of flow.
  void run_raising(const std::string& id, const std::string& op, const std::function<void()>& body);

  ExitCode exit_code() const { return exit_code_; }

 private:
  void not_supported(const std::string& id, const std::string& reason);
  void failed(const std::string& id, const std::string& reason);

  ExitCode exit_code_ = kDone;
};

// Reads a spec, and passes it to `run`. Throws an IoError if it cannot be opened, and a BadSpec
// that names the file if it is no JSON, or if `run` finds that it has another form.
ExitCode run_spec(const std::string& path, const std::function<ExitCode(const Json&)>& run);

// The path of `file`, which is given relative to the folder of `spec`.
std::string path_next_to(const std::string& spec, const std::string& file);

}  // namespace flow::conform
