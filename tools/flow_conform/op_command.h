// flow-conform op runs the cases of a spec and writes their results.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "nn/module.h"
#include "tools/flow_conform/case.h"
#include "tools/flow_conform/report.h"

namespace flow::conform {

// The options of every command.
struct RunOptions {
  std::string device = "cpu";
  DType floating = float32;  // the dtype of floating-point inputs, and the default dtype

  // Parses "f32" or "f64".
  void set_dtype(const std::string& word);
};

struct OpOptions {
  RunOptions run;
  std::string cases;
  std::string folder;
  std::string out;
  std::string only;    // the id of a case; empty: all cases
  std::string layout;  // empty: local tensors
  bool in_graph = false;
  // Called, if set, with what the binding of a case read, unless it raises.
  std::function<void(const Json& spec, const std::vector<ArgumentUse>& uses)> on_arguments;
};

ExitCode run_ops(const OpOptions& options);

// Runs one case on the tensors in.NAME and gout.NAME. Returns ID/out.NUMBER and ID/grad.NAME.
// Throws the errors of the op.
nn::StateDict run_case(const OpOptions& options, const Bindings& table, const Json& spec,
                       const nn::StateDict& tensors);

}  // namespace flow::conform
