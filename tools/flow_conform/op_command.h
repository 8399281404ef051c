// flow-conform op: runs the cases of a spec and writes what came out.
#pragma once

#include <string>

#include "core/dtype.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

// What every command takes.
struct RunOptions {
  std::string device = "cpu";
  DType floating = float32;  // of inputs, and the default

  // Reads "f32" or "f64".
  void set_dtype(const std::string& word);
};

struct OpOptions {
  RunOptions run;
  std::string cases;
  std::string folder;
  std::string out;
  std::string only;    // an id; empty: all
  std::string layout;  // empty: local tensors
  bool in_graph = false;
};

enum ExitCode : int { kDone = 0, kFailed = 1, kBadSpec = 2, kNotSupported = 3 };

// Lines of the report: what is not supported or failed on standard error, what raised on standard
// output; rank 0 writes them.
ExitCode run_ops(const OpOptions& options);

// Throws BadSpec naming the file.
Json read_json(const std::string& path);

// The words of one line.
std::string on_one_line(std::string text);

}  // namespace flow::conform
