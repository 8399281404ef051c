// The functions of cuDNN that are about no operation.
#include "cudnn.h"

#include <cstring>

#include "emulated_cudnn.h"

namespace cuda_emulator {

namespace {

std::string& last_error() {
  static thread_local std::string text;
  return text;
}

}  // namespace

cudnnStatus_t cudnn_refusal(cudnnStatus_t status, const std::string& text) {
  last_error() = text;
  return status;
}

cudnnStatus_t cudnn_mistake(const std::string& text, cudnnStatus_t status) {
  report_mistake(text);
  return cudnn_refusal(status, text);
}

size_t size_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return 8;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
      return 4;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    case CUDNN_DATA_BOOLEAN:
      return 1;
  }
  return 1;
}

std::span<const LibraryFunction> cudnn_functions() {
  static const auto& functions = *new std::vector<LibraryFunction>([] {
    std::vector<LibraryFunction> all{
        library_function("cudnnGetVersion", cudnnGetVersion),
        library_function("cudnnGetErrorString", cudnnGetErrorString),
        library_function("cudnnGetLastErrorString", cudnnGetLastErrorString),
        library_function("cudnnCreate", cudnnCreate),
        library_function("cudnnDestroy", cudnnDestroy),
        library_function("cudnnSetStream", cudnnSetStream),
    };
    for (const auto& more : {cudnn_convolution_functions(), cudnn_graph_functions()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }());
  return functions;
}

}  // namespace cuda_emulator

size_t cudnnGetVersion() {
  return 90700;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return "CUDNN_STATUS_SUCCESS";
  constexpr int kNotSupported = CUDNN_STATUS_NOT_SUPPORTED, kEnd = 4000;
  return status >= kNotSupported && status < kEnd ? "CUDNN_STATUS_NOT_SUPPORTED"
                                                  : "CUDNN_STATUS_BAD_PARAM";
}

void cudnnGetLastErrorString(char* message, size_t size) {
  if (size == 0) return;
  std::strncpy(message, cuda_emulator::last_error().c_str(), size - 1);
  message[size - 1] = 0;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new EmulatedCudnn;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  handle->check_device("cudnnDestroy");
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (handle == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  handle->check_device("cudnnSetStream");
  handle->stream = stream;
  const std::thread::id last = handle->user.exchange(std::this_thread::get_id());
  const bool is_shared = last != std::thread::id() && last != std::this_thread::get_id();
  if (is_shared) std::this_thread::yield();  // who uses the handle at the same time comes now
  return CUDNN_STATUS_SUCCESS;
}

void EmulatedCudnn::check_user(const char* call) const {
  const std::thread::id last = user;
  if (last == std::thread::id() || last == std::this_thread::get_id()) return;
  cuda_emulator::report_mistake(std::string(call) +
                                ": another thread uses the handle at the same time");
}
