// The steps of a program in the form in which the executor runs them. They are loaded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "boxing/comm/communicator.h"
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

struct LoadedSend {
  int64_t peer = -1;
  int64_t tag = 0;
  boxing::Transfer transfer = {};  // null except while the send is in progress
  Ref<Storage> sent = {};          // the host copy of what is sent from a device
};

struct LoadedStep {
  std::span<const TensorView> inputs;  // in the memory of the executor
  std::span<const TensorView> outputs;
  BufferId guard = kNoBuffer;
  const TensorView* guard_view = nullptr;
  Site site = Site::none();
  std::variant<LoadedKernel, ConvertStep, LoadedSend, ReceiveStep, WaitStep> body = {};
};

}  // namespace flow::graph
