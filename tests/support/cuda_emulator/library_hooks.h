// How tests steer and observe the emulated libraries, and observe the runtime; see also
// refuse_products in cuda_runtime.h.
#pragma once

#include <cstdint>
#include <string>

struct EmulatedStream;

namespace cuda_emulator {

// cuBLASLt and cuDNN's convolutions refuse calls with the first `count` algorithms that a search
// proposes, although it proposed them. Default: the environment variable
// CUDA_EMULATOR_REFUSED_ALGORITHMS, else 0.
void refuse_algorithms(int count);
int refused_algorithms();

// cuBLASLt's searches find no algorithm for products that do more than add a bias. Default: false.
void refuse_epilogues(bool refuses);
bool refuses_epilogues();

// NCCL's calls of this rank of a communicator fail. Default: -1, no rank's.
void fail_nccl_of(int rank);
int failing_nccl_rank();

// NCCL refuses to connect this rank of a communicator, and the others wait for it. Default: -1, no
// rank.
void refuse_nccl_of(int rank);
int refused_nccl_rank();

// NCCL fails in work of this rank of a communicator after it has told that the work is queued: the
// device waits until the communicator is aborted. Default: -1, no rank's.
void fail_queued_nccl_of(int rank);
int failing_queued_nccl_rank();

// Calls since the start of the process.
struct LibraryCalls {
  int64_t lt_products = 0;    // that cuBLASLt took
  int64_t lt_sums = 0;        // of these, that sum an operand too
  int64_t lt_gelus = 0;       // of these, with gelu and its argument, or its gradient
  int64_t lt_refusals = 0;    // of an algorithm that its search had proposed
  int64_t products = 0;       // that cuBLAS took
  int64_t convolutions = 0;   // that cuDNN took
  int64_t conv_refusals = 0;  // of an algorithm that its search had proposed
  int64_t graphs = 0;         // of operations that cuDNN ran
  int64_t nccl = 0;           // sends, receives and reductions that NCCL began
  int64_t mistakes = 0;       // of callers
};

LibraryCalls library_calls();

// Blocks of other processes that were opened since the start of the process.
int64_t num_opened_blocks();

// From now on a context on a second device is a mistake: it takes hundreds of MiB there, on device
// 0 for each process whose threads call CUDA before they choose a device.
void allow_one_context();

// Questions for the properties of a device since the start of the process.
int64_t num_property_queries();

// Launches of kernels since the start of the process, those of the libraries too. What is captured
// is not launched, and what graphs launch is not counted.
int64_t num_launches();

// The launch of a kernel with this number, from 0, of those that are captured from now on fails.
// Default: -1, none does.
void fail_captured_launch(int64_t number);
// Whether that launch has not come yet.
bool has_captured_launch_to_fail();

// Calls that queued anything on a stream since the start of the process: a kernel, a copy, an
// event, a wait for one, or a graph.
int64_t num_queued();

// Bytes that copies between host memory and devices have moved since the start of the process.
int64_t num_host_bytes();

// How much of the work that was queued on a stream has begun: kernels, copies, events, waits for
// events, and graphs.
int64_t num_run(const EmulatedStream* stream);

// Launches of graphs since the start of the process.
int64_t num_graph_launches();

// Graphs, executable ones too, that have not been destroyed.
int64_t num_live_graphs();

// Objects of the libraries (handles, descriptors) that have not been destroyed.
int64_t live_library_objects();

// The text of the last mistake that a caller of a library made; empty: none so far.
std::string last_mistake();

}  // namespace cuda_emulator
