// flow-conform op: runs the cases of a spec and writes what came out.
#pragma once

#include <string>

#include "core/dtype.h"
#include "nn/module.h"
#include "tools/flow_conform/case.h"
#include "tools/flow_conform/report.h"

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

ExitCode run_ops(const OpOptions& options);

// One case on tensors in.NAME and gout.NAME: ID/out.NAME and ID/grad.NAME. Throws what the op
// throws.
nn::StateDict run_case(const OpOptions& options, const Bindings& table, const Json& spec,
                       const nn::StateDict& tensors);

}  // namespace flow::conform
