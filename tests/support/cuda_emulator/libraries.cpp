// What core/device/cuda_library.cpp does, with the emulated libraries in place of files.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "core/device/cuda_library.h"
#include "emulated_device.h"
#include "emulated_library.h"

namespace cuda_emulator {

namespace {

struct Library {
  std::string_view prefix;  // of the file's name
  std::span<const LibraryFunction> functions;
};

const std::vector<Library>& libraries() {
  static const auto& all = *new std::vector<Library>{
      {"libcublasLt.so.", cublas_lt_functions()},
      {"libcublas.so.", cublas_functions()},
      {"libcudnn.so.", cudnn_functions()},
      {"libnccl.so.", nccl_functions()},
  };
  return all;
}

// CUDA_EMULATOR_MISSING names libraries that are not found, such as libcudnn,libcublas.
bool is_missing(std::string_view name) {
  const char* const text = std::getenv("CUDA_EMULATOR_MISSING");
  std::string_view rest = text != nullptr ? text : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    if (end > 0 && name.starts_with(std::string(rest.substr(0, end)) + ".so")) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

struct State {
  std::mutex mutex;
  LibraryCalls calls;
  std::string last_mistake;
  std::vector<std::string> loaded;
  std::atomic<int> refused = 0;
  std::atomic<int64_t> objects = 0;
  std::atomic<bool> refuses_epilogues = false;
  std::atomic<int> failing_rank = -1;
  std::atomic<int> refused_rank = -1;
  std::atomic<int> failing_queued_rank = -1;

  State() {
    const char* const text = std::getenv("CUDA_EMULATOR_REFUSED_ALGORITHMS");
    if (text != nullptr) refused = std::atoi(text);
  }
};

State& state() {
  static State& instance = *new State;  // never destroyed: handles are destroyed late
  return instance;
}

}  // namespace

void refuse_algorithms(int count) {
  state().refused = count;
}

int refused_algorithms() {
  return state().refused;
}

void refuse_epilogues(bool refuses) {
  state().refuses_epilogues = refuses;
}

bool refuses_epilogues() {
  return state().refuses_epilogues;
}

void fail_nccl_of(int rank) {
  state().failing_rank = rank;
}

int failing_nccl_rank() {
  return state().failing_rank;
}

void refuse_nccl_of(int rank) {
  state().refused_rank = rank;
}

int refused_nccl_rank() {
  return state().refused_rank;
}

void fail_queued_nccl_of(int rank) {
  state().failing_queued_rank = rank;
}

int failing_queued_nccl_rank() {
  return state().failing_queued_rank;
}

LibraryCalls library_calls() {
  const std::lock_guard lock(state().mutex);
  return state().calls;
}

void count_call(int64_t LibraryCalls::*counter) {
  const std::lock_guard lock(state().mutex);
  ++(state().calls.*counter);
}

int64_t live_library_objects() {
  return state().objects;
}

LibraryObject::LibraryObject() {
  ++state().objects;
}

LibraryObject::~LibraryObject() {
  --state().objects;
}

void LibraryHandle::check_device(const char* call) const {
  if (device == current()) return;
  report_mistake(std::string(call) + ": the handle is of device " + std::to_string(device) +
                 ", but device " + std::to_string(current()) + " is current");
}

std::string last_mistake() {
  const std::lock_guard lock(state().mutex);
  return state().last_mistake;
}

void report_mistake(const std::string& text) {
  std::fprintf(stderr, "emulated CUDA: %s\n", text.c_str());
  {
    const std::lock_guard lock(state().mutex);
    state().last_mistake = text;
    ++state().calls.mistakes;
  }
  const std::lock_guard lock(device_mutex());
  report_failure(cudaErrorInvalidValue);
}

}  // namespace cuda_emulator

namespace flow::cuda {

void* load_library(std::initializer_list<std::string> names, const std::string& /*last_folder*/,
                   std::string& reason) {
  for (const std::string& name : names) {
    for (const auto& library : cuda_emulator::libraries()) {
      if (!name.starts_with(library.prefix) || cuda_emulator::is_missing(name)) continue;
      const std::lock_guard lock(cuda_emulator::state().mutex);
      cuda_emulator::state().loaded.push_back("emulated " + name);
      return const_cast<cuda_emulator::Library*>(&library);
    }
  }
  reason = "the emulated CUDA does not have it";
  return nullptr;
}

void* find_function(void* library, const char* name) {
  const auto& functions = static_cast<const cuda_emulator::Library*>(library)->functions;
  const auto found = std::find_if(functions.begin(), functions.end(),
                                  [&](const auto& function) { return function.name == name; });
  return found != functions.end() ? found->address : nullptr;
}

std::vector<std::string> loaded_libraries() {
  const std::lock_guard lock(cuda_emulator::state().mutex);
  return cuda_emulator::state().loaded;
}

}  // namespace flow::cuda
