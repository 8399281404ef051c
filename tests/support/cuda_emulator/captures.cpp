// Captures of streams, and the graphs that come of them. A launch runs the captured work with the
// parameters that it had when it was captured. The rules are those of the real runtime: a call that
// breaks one fails and makes the capture useless.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include "emulated_stream.h"
#include "library_hooks.h"

struct EmulatedGraph {
  std::vector<cuda_emulator::GraphNode> nodes;
};

struct EmulatedGraphExec {
  std::shared_ptr<const std::vector<cuda_emulator::GraphNode>> nodes;
};

namespace cuda_emulator {

namespace {

std::vector<std::shared_ptr<Capture>>& ongoing() {
  static auto& all = *new std::vector<std::shared_ptr<Capture>>;
  return all;
}

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

std::atomic<cudaError_t> error_of_graphs = cudaSuccess;
std::atomic<int64_t> graph_launches = 0;
std::atomic<int64_t> live_graphs = 0;

bool runs_last_first() {
  static const bool value = [] {
    const char* const order = std::getenv("CUDA_EMULATOR_ORDER");
    return order != nullptr && std::string_view(order) != "forward";
  }();
  return value;
}

// Runs the nodes in an order that their edges allow: as captured, or as unlike it as possible.
void run_nodes(const std::vector<GraphNode>& nodes) {
  std::vector<size_t> num_open(nodes.size());
  std::vector<std::vector<size_t>> next(nodes.size());
  std::set<size_t> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    num_open[i] = nodes[i].after.size();
    if (num_open[i] == 0) ready.insert(i);
    for (const size_t before : nodes[i].after)
      next[before].push_back(i);
  }
  while (!ready.empty()) {
    const auto chosen = runs_last_first() ? std::prev(ready.end()) : ready.begin();
    const size_t node = *chosen;
    ready.erase(chosen);
    {
      const AccessWindow window(nodes[node].work.devices);
      nodes[node].work.run();
    }
    for (const size_t i : next[node])
      if (--num_open[i] == 0) ready.insert(i);
  }
}

// Whether every node of `ends` is one of `from` or comes before it.
bool are_joined(const std::vector<GraphNode>& nodes, const std::vector<size_t>& from,
                const std::vector<size_t>& ends) {
  std::set<size_t> reached;
  std::vector<size_t> open = from;
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    if (!reached.insert(node).second) continue;
    open.insert(open.end(), nodes[node].after.begin(), nodes[node].after.end());
  }
  return std::all_of(ends.begin(), ends.end(), [&](size_t end) { return reached.contains(end); });
}

bool is_ongoing(const CapturePoint& at) {
  return std::find(ongoing().begin(), ongoing().end(), at.capture) != ongoing().end();
}

}  // namespace

cudaError_t invalidate(Capture& capture, cudaError_t error) {
  capture.is_valid = false;
  return error;
}

cudaError_t capture_work(CapturePoint& at, Work work) {
  Capture& capture = *at.capture;
  if (!capture.is_valid) return cudaErrorStreamCaptureInvalidated;
  capture.nodes.push_back({std::move(work), std::move(at.after)});
  at.after = {capture.nodes.size() - 1};
  return cudaSuccess;
}

cudaError_t refuse_unsafe_call() {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (const std::shared_ptr<Capture>& capture : ongoing()) {
    const bool is_own = capture->thread == std::this_thread::get_id();
    const bool forbids = is_own ? capture->mode != cudaStreamCaptureModeRelaxed
                                : capture->mode == cudaStreamCaptureModeGlobal &&
                                      thread_mode == cudaStreamCaptureModeGlobal;
    if (forbids) return invalidate(*capture, cudaErrorStreamCaptureUnsupported);
  }
  return cudaSuccess;
}

void refuse_graphs(cudaError_t error) {
  error_of_graphs = error;
}

int64_t num_graph_launches() {
  return graph_launches;
}

int64_t num_live_graphs() {
  return live_graphs;
}

}  // namespace cuda_emulator

using cuda_emulator::Capture;
using cuda_emulator::invalidate;
using cuda_emulator::ongoing;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(cuda_emulator::device_mutex());
  if (cuda_emulator::failure_of_calls() != cudaSuccess) return cuda_emulator::failure_of_calls();
  if (stream == nullptr) return cudaErrorStreamCaptureUnsupported;
  if (stream->at.capture != nullptr) return cudaErrorIllegalState;
  auto capture = std::make_shared<Capture>(
      Capture{.origin = stream, .thread = std::this_thread::get_id(), .mode = mode});
  stream->at = {capture, {}};
  ongoing().push_back(std::move(capture));
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(cuda_emulator::device_mutex());
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream == nullptr ? nullptr : stream->at.capture;
  if (capture == nullptr) return cudaErrorIllegalState;
  if (capture->origin != stream) return invalidate(*capture, cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return invalidate(*capture, cudaErrorStreamCaptureWrongThread);
  }
  const std::vector<size_t> end = stream->at.after;
  bool joined = true;
  for (cudaStream_t other : cuda_emulator::streams()) {
    if (other->at.capture != capture) continue;
    joined &= cuda_emulator::are_joined(capture->nodes, end, other->at.after);
    other->at = {};
  }
  std::erase(ongoing(), capture);
  if (!capture->is_valid) return cudaErrorStreamCaptureInvalidated;
  if (!joined) return cudaErrorStreamCaptureUnjoined;
  *graph = new EmulatedGraph{std::move(capture->nodes)};
  ++cuda_emulator::live_graphs;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(cuda_emulator::device_mutex());
  const Capture* const capture = stream == nullptr ? nullptr : stream->at.capture.get();
  *status = capture == nullptr  ? cudaStreamCaptureStatusNone
            : capture->is_valid ? cudaStreamCaptureStatusActive
                                : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, cuda_emulator::thread_mode);
  return cudaSuccess;
}

// The stream of a capture takes in an event of the same capture. Another stream that waits for a
// captured event becomes part of its capture.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  cuda_emulator::use_context("cudaStreamWaitEvent");
  const std::lock_guard lock(cuda_emulator::device_mutex());
  if (cuda_emulator::failure_of_calls() != cudaSuccess) return cuda_emulator::failure_of_calls();
  if (stream == nullptr) return cudaErrorInvalidValue;
  const cuda_emulator::CapturePoint& from = event->at;
  cuda_emulator::CapturePoint& to = stream->at;
  if (from.capture != nullptr) {
    if (!cuda_emulator::is_ongoing(from)) return cudaErrorCapturedEvent;
    if (to.capture != nullptr && to.capture != from.capture) {
      invalidate(*to.capture, cudaErrorStreamCaptureMerge);
      return invalidate(*from.capture, cudaErrorStreamCaptureMerge);
    }
    to.capture = from.capture;
    for (const size_t node : from.after)
      if (std::find(to.after.begin(), to.after.end(), node) == to.after.end())
        to.after.push_back(node);
    return cudaSuccess;
  }
  if (event->is_foreign) {
    const int64_t number = event->shared->made;
    if (to.capture != nullptr) return invalidate(*to.capture, cudaErrorStreamCaptureIsolation);
    return cuda_emulator::queue(
        stream, {[] {}, 0, [shared = event->shared, number] { return shared->reached >= number; }});
  }
  if (event->mark == nullptr) return cudaSuccess;  // never recorded
  if (to.capture != nullptr) return invalidate(*to.capture, cudaErrorStreamCaptureIsolation);
  return cuda_emulator::queue(
      stream, {[mark = event->mark] { cuda_emulator::run_to(mark); }, cuda_emulator::DeviceSet{0}});
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  cuda_emulator::use_context("cudaGraphInstantiate");
  if (cuda_emulator::failure_of_calls() != cudaSuccess) return cuda_emulator::failure_of_calls();
  if (cuda_emulator::error_of_graphs != cudaSuccess) return cuda_emulator::error_of_graphs;
  *exec = new EmulatedGraphExec{
      std::make_shared<const std::vector<cuda_emulator::GraphNode>>(graph->nodes)};
  ++cuda_emulator::live_graphs;
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* num_nodes) {
  if (nodes != nullptr) return cudaErrorInvalidValue;  // flow asks for their number only
  *num_nodes = graph->nodes.size();
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  cuda_emulator::use_context("cudaGraphLaunch");
  const std::lock_guard lock(cuda_emulator::device_mutex());
  if (stream == nullptr || stream->device != cuda_emulator::current()) {
    return cudaErrorInvalidResourceHandle;
  }
  // The real runtime would add a node that is a graph; flow does not.
  if (stream->at.capture != nullptr) {
    return invalidate(*stream->at.capture, cudaErrorStreamCaptureUnsupported);
  }
  ++cuda_emulator::graph_launches;
  cuda_emulator::DeviceSet devices = 0;
  for (const cuda_emulator::GraphNode& node : *exec->nodes)
    devices |= node.work.devices;
  return cuda_emulator::queue(
      stream, {[nodes = exec->nodes] { cuda_emulator::run_nodes(*nodes); }, devices});
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  --cuda_emulator::live_graphs;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  cuda_emulator::use_context("cudaGraphExecDestroy");
  if (cuda_emulator::failure_of_calls() != cudaSuccess) return cuda_emulator::failure_of_calls();
  delete exec;
  --cuda_emulator::live_graphs;
  return cudaSuccess;
}
