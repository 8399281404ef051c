// The report of a training run: one HTML file about its losses, its rate, its pipeline, its memory
// and what its ranks send each other.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nn/compiled_graph.h"
#include "nn/module.h"
#include "support/run_folder.h"

namespace examples {

struct RunReport {
  std::string title = {}, subtitle = {};
  std::vector<std::pair<std::string, std::string>> facts = {};  // rows of a table
  std::vector<StepRecord> steps = {};
  double unigram = 0, trigram = 0;       // losses of counting models
  double validation_loss = 0;            // at the end, on the whole text
  std::string prompt = {}, sample = {};  // the sample follows the prompt
};

// Writes run.report(), from the report, the plan of a step of `model` and the timelines in the
// folder; a part whose timeline is missing says so. The file is self-contained: no scripts, and
// nothing is loaded. Throws flow::IoError.
void write_report(const RunFolder& run, const RunReport& report,
                  const flow::nn::CompiledGraph& plan, const flow::nn::ModuleBase& model);

}  // namespace examples
