// What becomes of the cases of a spec: lines of text and the exit status.
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
  kBadFile = 65,     // damaged
  kFileFailure = 74  // missing, or the disk is full
};

// Rank 0 writes the lines: what is not supported or failed to standard error, what raised to
// standard output.
class Report {
 public:
  // Runs a case, of which nothing is kept when it throws. Failures of files and of ranks go on to
  // the caller.
  void run(const std::string& id, const std::function<void()>& body);
  // Runs a case that must throw an error of the library in the name of `op`.
  void run_raising(const std::string& id, const std::string& op, const std::function<void()>& body);

  ExitCode exit_code() const { return exit_code_; }

 private:
  void not_supported(const std::string& id, const std::string& reason);
  void failed(const std::string& id, const std::string& reason);

  ExitCode exit_code_ = kDone;
};

// Throws BadSpec naming the file.
Json read_json(const std::string& path);

// `file` as seen from the folder that `spec` lies in.
std::string beside(const std::string& spec, const std::string& file);

}  // namespace flow::conform
