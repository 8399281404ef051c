#include "graph/run/captured_steps.h"

#include <algorithm>
#include <utility>

#include "core/device/joined_launch.h"
#include "core/error.h"

namespace flow::graph {

namespace {

// To queue a graph takes the host the time of a few launches.
constexpr size_t kLeastSteps = 4;
// Graphs take memory for each node, on the host and on the device.
constexpr size_t kMostStepsOfPart = 4096;
constexpr size_t kMostSteps = size_t{1} << 15;

bool uses_host_memory(const LoadedStep& step) {
  const auto is_on_host = [](const TensorView& view) {
    return view.meta != nullptr && view.meta->device == DeviceType::kCpu;
  };
  return step.outputs.empty() || std::any_of(step.inputs.begin(), step.inputs.end(), is_on_host) ||
         std::any_of(step.outputs.begin(), step.outputs.end(), is_on_host);
}

// Why a step cannot be captured, as far as the program says; empty: perhaps it can.
std::string reason_of(const Step& step, const LoadedStep& loaded) {
  if (step.as<WaitStep>() != nullptr) return "the host waits for a transfer";
  if (step.in_background) return "it runs in the background";
  const boxing::Route* route = step.route();
  if (step.starts() || (route != nullptr && !route->steps.empty())) return "ranks exchange data";
  if (!std::holds_alternative<LoadedKernel>(loaded.body) || uses_host_memory(loaded)) {
    return "it uses host memory";
  }
  const auto moves_numbers = [](const LoadedKernel& kernel) { return !kernel.numbers.empty(); };
  if (moves_numbers(std::get<LoadedKernel>(loaded.body)) ||
      std::any_of(loaded.kernels.begin(), loaded.kernels.end(), moves_numbers)) {
    return "it reads a number in host memory";
  }
  return {};
}

std::string place_of(const Step& step) {
  return step.line == 0 ? std::string() : str(" at ", step.file, ":", step.line);
}

}  // namespace

CapturedSteps::CapturedSteps(const Program& program, const ProgramRuns& runs,
                             std::span<const LoadedStep> steps)
    : program_(program) {
  for (size_t i = 0; i < steps.size(); ++i)
    reasons_.push_back(reason_of(program.steps[i], steps[i]));
  for (const BlockRun& run : runs.runs()) {
    const auto index = static_cast<size_t>(&run - runs.runs().data());
    const Block& block = runs.block_of(run);
    for (size_t i = block.first_step; i < block.end_step; ++i)
      if (takes_turn(steps[i].turn, run)) order_.push_back({index, i});
  }
}

size_t CapturedSteps::end_of_part(size_t begin) const {
  const BufferId guard = program_.steps[order_[begin].step].guard;
  const size_t most = std::min({order_.size(), begin + kMostStepsOfPart, kMostSteps});
  size_t end = begin;
  while (end < most && reasons_[order_[end].step].empty() &&
         program_.steps[order_[end].step].guard == guard) {
    ++end;
  }
  return end;
}

void CapturedSteps::capture(RankContext& rank, const std::shared_ptr<CaptureMemory>& memory,
                            const QueueStep& queue) {
  forget();
  // After a failure the steps of a part are captured again, each with the launches that it has put
  // off, so that a failing launch is that of its step.
  bool joins = true;
  for (size_t begin = 0; begin < order_.size();) {
    const size_t end = end_of_part(begin);
    if (end < begin + kLeastSteps) {
      begin = std::max(end, begin + 1);
      continue;
    }
    size_t at = begin;
    try {
      DeviceGraph graph = DeviceGraph::capture(rank, memory, [&] {
        for (; at < end; ++at) {
          queue(order_[at]);
          if (!joins) cuda::queue_joined();
        }
      });
      parts_.push_back({begin, end, std::move(graph)});
      begin = end;
      joins = true;
    } catch (const OutOfMemory&) {
      forget();
      throw;
    } catch (const Error& error) {
      if (joins) {
        joins = false;
        continue;
      }
      joins = true;
      // A step that failed is left out; all are if the graph of them cannot be made.
      const size_t last = at < end ? at + 1 : end;
      for (size_t i = at < end ? at : begin; i < last; ++i)
        reasons_[order_[i].step] = error.what();
    }
  }
}

bool CapturedSteps::draws() const {
  return std::any_of(order_.begin(), order_.end(), [&](const ScheduledStep& at) {
    const auto* kernel = program_.steps[at.step].as<KernelStep>();
    return kernel != nullptr && kernel->draw >= 0 && reasons_[at.step].empty();
  });
}

std::string CapturedSteps::summary() const {
  size_t num_captured = 0;
  for (const Part& part : parts_)
    num_captured += part.end - part.begin;
  return str("CUDA graphs: ", parts_.size(),
             parts_.size() == 1 ? " graph queues " : " graphs queue ", num_captured, " of ",
             order_.size(), " steps of a run\n");
}

std::string CapturedSteps::explain() const {
  struct Line {
    std::string text;
    size_t count;
  };

  std::vector<Line> lines;
  const auto add = [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const Step& step = program_.steps[order_[i].step];
      const std::string& reason = reasons_[order_[i].step];
      const std::string text =
          str("  ", step.name(), place_of(step), ": ",
              !reason.empty()   ? reason
              : i >= kMostSteps ? str("a run has more than ", kMostSteps, " steps")
                                : str("fewer than ", kLeastSteps, " such steps in a row"));
      const auto known = std::find_if(lines.begin(), lines.end(),
                                      [&](const Line& line) { return line.text == text; });
      if (known == lines.end()) {
        lines.push_back({text, 1});
      } else {
        ++known->count;
      }
    }
  };
  size_t next = 0;
  for (const Part& part : parts_) {
    add(next, part.begin);
    next = part.end;
  }
  add(next, order_.size());
  std::string all = lines.empty() ? std::string() : "steps of a run that are in no CUDA graph:\n";
  for (const Line& line : lines)
    all += str(line.text, line.count == 1 ? "" : str(", ", line.count, " times"), "\n");
  return all;
}

}  // namespace flow::graph
