// The steps of a program in the form in which the executor runs them. They are loaded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "boxing/comm/background_work.h"
#include "boxing/comm/communicator.h"
#include "boxing/route.h"
#include "core/kernel.h"
#include "core/site.h"
#include "core/storage.h"
#include "graph/program/program.h"

namespace flow::graph {

// A tensor without dims in host memory that a step on a device reads. The step gets a copy.
struct MovedNumber {
  size_t input;
  TensorView there;
  Ref<Storage> memory;  // of `there`
};

// A kernel or a collective.
struct LoadedKernel {
  KernelFn fn = nullptr;
  KernelState state = nullptr;
  const void* attrs = nullptr;
  int64_t draw = -1;
  bool draws_globally = false;
  std::vector<MovedNumber> numbers = {};
};

struct LoadedBucket {
  const boxing::Route* route = nullptr;
  boxing::Communicator* group = nullptr;
};

// A message in progress.
struct PendingMessage {
  int32_t micro_batch = kNoMicroBatch;
  boxing::Transfer transfer = {};
};

struct LoadedMessage {
  int64_t peer = -1;
  int64_t tag = 0;
  std::vector<PendingMessage> pending = {};
};

struct LoadedSend : LoadedMessage {};

struct LoadedReceive : LoadedMessage {};

struct LoadedStep {
  std::span<const TensorView> inputs;  // in the memory of the executor
  std::span<const TensorView> outputs;
  BufferId guard = kNoBuffer;
  const TensorView* guard_view = nullptr;
  Site site = Site::none();
  const std::string* module_path = nullptr;  // lives for ever
  bool depends_on_run = false;  // whether or with which kernel it runs, or in which thread
  bool in_background = false;
  boxing::BackgroundWork work = {};  // of a step in the background that has not ended
  StepTurn turn = StepTurn::kEvery;
  std::variant<LoadedKernel, LoadedBucket, ConvertStep, LoadedSend, LoadedReceive, WaitStep> body =
      {};
  // The kernels of a positional op, by micro-batch; otherwise empty.
  std::vector<LoadedKernel> kernels = {};
};

// A view whose memory or meta differs between micro-batches.
struct MovingView {
  // Elements of `scale` bytes to add to the place.
  struct Begin {
    TableId table;
    int64_t scale;
  };

  size_t view = 0;
  int32_t external = -1;  // of the memory, or -1: the arena
  DeviceType device = DeviceType::kCpu;
  int64_t offset = 0;  // bytes
  int32_t frame = -1;
  std::vector<Begin> begins = {};
  std::vector<MetaPtr> metas = {};  // by micro-batch; empty: all have one
};

struct LoadedBlock {
  size_t first_step = 0;
  size_t end_step = 0;
  std::vector<MovingView> moving = {};
  int32_t bound_to = kNoMicroBatch;  // the micro-batch in which the views are
};

}  // namespace flow::graph
