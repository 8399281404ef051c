// What the parts of the emulated cuDNN share.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "cudnn.h"
#include "emulated_library.h"

struct EmulatedCudnn : cuda_emulator::LibraryHandle {
  cudaStream_t stream = nullptr;
  std::atomic<std::thread::id> user = std::thread::id();  // who has set the stream

  // Reports that another thread has set the stream since the caller did: it uses the handle too.
  void check_user(const char* call) const;
};

namespace cuda_emulator {

// Returns `status`, and lets cudnnGetLastErrorString return the text on this thread.
cudnnStatus_t cudnn_refusal(cudnnStatus_t status, const std::string& text);
// The same for a caller's mistake (report_mistake).
cudnnStatus_t cudnn_mistake(const std::string& text, cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM);

size_t size_of(cudnnDataType_t type);

std::vector<LibraryFunction> cudnn_convolution_functions();
std::vector<LibraryFunction> cudnn_graph_functions();

}  // namespace cuda_emulator
