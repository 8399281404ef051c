// explain() and dump(): what a plan does, as texts for people.
#include <algorithm>
#include <filesystem>
#include <ostream>
#include <utility>
#include <vector>

#include <unistd.h>

#include "boxing/transfer_log.h"
#include "core/context.h"
#include "core/error.h"
#include "graph/ir/ir_text.h"
#include "graph/program/buffer_uses.h"
#include "nn/compiled_graph.h"
#include "nn/compiled_graph_state.h"
#include "nn/file.h"
#include "pipeline/report.h"

namespace flow::nn {

namespace {

// A redistribution of a program, at one line.
struct Redistribution {
  std::string text;  // line, layouts, route, and the next best route
  double bytes = 0;  // per time
  double time_us = 0;
  int64_t count = 0;
};

// The costliest first.
std::vector<Redistribution> redistributions_of(const graph::Program& program) {
  std::vector<Redistribution> all;
  const auto add = [&](const graph::Step& step, int64_t num_runs) {
    const boxing::Route* route = step.route();
    if (route == nullptr || route->steps.empty()) return;
    const Site site = step.line != 0 ? Site::here(step.file.c_str(), step.line) : Site::none();
    std::string text = str(boxing::describe(site, *route));
    if (step.inputs.size() > 1) {
      text += str("  the ", route->steps[0].is_mean ? "means" : "sums", " of ", step.inputs.size(),
                  " tensors, the first of this line\n");
    }
    auto known = std::find_if(all.begin(), all.end(),
                              [&](const Redistribution& other) { return other.text == text; });
    if (known == all.end()) {
      known = all.insert(all.end(), {text, route->bytes(), route->time_us()});
    }
    known->count += num_runs;
  };
  const graph::ProgramRuns runs(program);
  const graph::BlockTimes times(program);
  for (size_t block = 0; block < runs.blocks().size(); ++block) {
    const auto num_runs =
        static_cast<int64_t>(times.num_runs(static_cast<graph::BlockIndex>(block)));
    for (size_t i = runs.blocks()[block].first_step; i < runs.blocks()[block].end_step; ++i)
      add(program.steps[i], num_runs);
  }
  std::stable_sort(all.begin(), all.end(), [](const Redistribution& a, const Redistribution& b) {
    return a.time_us * static_cast<double>(a.count) > b.time_us * static_cast<double>(b.count);
  });
  return all;
}

std::string describe_passes(const graph::Graph& traced, const graph::CompiledStep& plan) {
  std::string text = str("passes, which made ", plan.graph().nodes.size(), " nodes of ",
                         traced.nodes.size(), " traced ones:\n");
  for (const graph::PassResult& pass : plan.passes())
    text += str("  ", pass.name, ": ", pass.changes, " changes\n");
  return text;
}

std::string describe_redistributions(const graph::Program& program) {
  const std::vector<Redistribution> all = redistributions_of(program);
  if (all.empty()) return str("rank ", env::rank(), " redistributes nothing\n");
  std::string text = str("redistributions of rank ", env::rank(), ", the costliest first:\n");
  for (const Redistribution& it : all) {
    const auto count = static_cast<double>(it.count);
    const auto bytes = static_cast<int64_t>(it.bytes * count);
    text += str(it.text, "  ", it.count, it.count == 1 ? " time" : " times", " in a run: ", bytes,
                " bytes, predicted ", it.time_us * count, " us\n");
  }
  return text;
}

// A folder that is removed unless it is committed.
class NewFolder {
 public:
  explicit NewFolder(const std::string& parent)
      : path_(str(parent, "/.dump_", getpid(), "_", env::rank())) {
    std::error_code failure;
    std::filesystem::create_directories(path_, failure);
    if (!failure) return;
    throw IoError(str("[graph] dump(): the folder ", parent,
                      " cannot be written: ", failure.message(), "; give a writable folder"));
  }

  ~NewFolder() {
    std::error_code ignored;  // what remains is named by no reader
    std::filesystem::remove_all(path_, ignored);
  }

  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  void write(const std::string& name, const std::string& text) const {
    OutputFile file(path_ + "/" + name);
    file.write(text.data(), text.size());
    file.commit();
  }

  void commit(const std::string& target) const { commit_folder(path_, target); }

 private:
  std::string path_;
};

// "03_name.ir".
std::string ir_file(size_t number, const std::string& name) {
  return str(number < 10 ? "0" : "", number, '_', name, ".ir");
}

}  // namespace

std::string CompiledGraph::explain() const {
  const graph::CompiledStep& plan = *state_->plan;
  const graph::Graph& step = plan.graph();
  std::string text = describe_passes(state_->traced, plan) +
                     describe_redistributions(plan.program()) + plan.cuda_graphs_explanation();
  const pipeline::MicroBatching& batching = state_->batching;
  if (!batching.is_needed(step)) return text;
  return text + pipeline::describe(step, batching.cut(step), batching.schedule(step),
                                   to_string(batching.rule));
}

void CompiledGraph::dump(const std::string& folder) const {
  const NewFolder files(folder);
  files.write(ir_file(0, "traced"), to_string(state_->traced));
  size_t number = 0;
  graph::UnloweredStep step{state_->traced};
  graph::run_passes(step, state_->passes,
                    [&](const graph::PassResult& pass, const graph::Graph& graph) {
                      ++number;
                      if (pass.changes != 0)
                        files.write(ir_file(number, pass.name), to_string(graph));
                    });
  files.write("program.txt", to_string(state_->plan->program(), env::rank()));
  files.write("certificate.txt", to_string(state_->plan->certificate()));
  files.write("explain.txt", explain());
  files.write("summary.txt", summary());
  files.commit(str(folder, "/rank_", env::rank()));
}

}  // namespace flow::nn
