#include "eager/runtime.h"

#include <memory>

#include "autograd/recorder.h"
#include "boxing/comm/comm_thread.h"
#include "boxing/comm/communicator.h"
#include "boxing/ranks/process_ranks.h"
#include "boxing/register.h"
#include "core/context.h"
#include "core/dispatch.h"
#include "core/kernel.h"
#include "core/timeline/timeline_log.h"
#include "eager/chooser.h"
#include "eager/interpreter.h"
#include "eager/timeline_observer.h"
#include "ops/register.h"

namespace flow {

namespace {

struct Tables {
  OpTable ops;
  KernelTable kernels;

  Tables() {
    register_ops(ops);
    boxing::register_ops(ops);
    register_cpu_kernels(kernels);
    register_cuda_kernels(kernels);
    boxing::register_cpu_kernels(kernels);
  }
};

// Built at the first use of any op. Only register_op and register_kernel add to it.
Tables& tables() {
  static Tables& instance = *new Tables;  // outlives static tensors
  return instance;
}

// Ranks that exist for planning only run nothing.
void observe_for_timeline(ThreadState& state) {
  RankContext& rank = *state.context;
  if (rank.world_size() > 1 && !boxing::has_running_peers(rank)) return;
  auto lane = timeline::attach_timeline(rank, boxing::is_comm_thread());
  if (lane == nullptr) return;
  auto observer = std::make_shared<eager::TimelineObserver>(std::move(lane));
  state.observer = observer.get();
  state.owned.push_back(std::move(observer));
}

void attach_thread(ThreadState& state) {
  auto chooser = std::make_shared<eager::CachingChooser>();
  auto interpreter = std::make_shared<eager::EagerInterpreter>(tables().kernels);
  std::shared_ptr<Recorder> recorder = autograd::make_recorder();
  state.chooser = chooser.get();
  state.interpreter = interpreter.get();
  state.recorder = recorder.get();
  state.owned = {std::move(chooser), std::move(interpreter), std::move(recorder)};
  observe_for_timeline(state);
}

}  // namespace

const OpTable& op_table() {
  return tables().ops;
}

const KernelTable& kernel_table() {
  return tables().kernels;
}

void register_op(const OpDef& op) {
  tables().ops.add(op);
}

void register_kernel(const OpDef& op, DeviceType device, const KernelDef& kernel) {
  tables().kernels.add(op, device, kernel);
}

namespace internal {
bool install_runtime() {
  RuntimeHooks hooks;
  hooks.process_identity = boxing::join_process_ranks;
  hooks.attach_thread = attach_thread;
  install_runtime_hooks(hooks);
  return true;
}
}  // namespace internal

}  // namespace flow
