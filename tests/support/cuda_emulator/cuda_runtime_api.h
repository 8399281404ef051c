// Captures of streams, graphs and their errors. The real header has all functions that C can call;
// this one has those that kernels never need.
#pragma once

#include "cuda_runtime.h"

constexpr auto cudaErrorIllegalState = static_cast<cudaError_t>(401);
constexpr auto cudaErrorStreamCaptureUnsupported = static_cast<cudaError_t>(900);
constexpr auto cudaErrorStreamCaptureInvalidated = static_cast<cudaError_t>(901);
constexpr auto cudaErrorStreamCaptureMerge = static_cast<cudaError_t>(902);
constexpr auto cudaErrorStreamCaptureUnmatched = static_cast<cudaError_t>(903);
constexpr auto cudaErrorStreamCaptureUnjoined = static_cast<cudaError_t>(904);
constexpr auto cudaErrorStreamCaptureIsolation = static_cast<cudaError_t>(905);
constexpr auto cudaErrorCapturedEvent = static_cast<cudaError_t>(907);
constexpr auto cudaErrorStreamCaptureWrongThread = static_cast<cudaError_t>(908);

struct EmulatedGraph;
struct EmulatedGraphExec;
using cudaGraph_t = EmulatedGraph*;
using cudaGraphExec_t = EmulatedGraphExec*;
using cudaGraphNode_t = void*;

enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2,
};

enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2,
};

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* num_nodes);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

namespace cuda_emulator {

// Makes cudaGraphInstantiate fail with this error. Default: cudaSuccess, it works.
void refuse_graphs(cudaError_t error);

}  // namespace cuda_emulator
