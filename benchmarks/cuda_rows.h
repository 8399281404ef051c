// The calls that bench_cuda measures on device cuda. tools/gpu_check_torch.py measures the same
// calls, by the same names, with PyTorch.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace flow::bench {

// What a row's time is compared with.
enum class CudaWork {
  kBytes,   // bytes that any implementation reads and writes
  kFlops,   // floating-point operations, 2 for a multiply-add
  kTokens,  // tokens of a training step
  kCalls    // calls
};

struct CudaRow {
  std::string name;  // FAMILY/DTYPE, and /bwd for forward and backward
  CudaWork work;
  double amount;  // of one call
  // Makes the inputs, on the current rank's device. Each call of the result queues the work once.
  std::function<std::function<void()>()> make;
};

std::vector<CudaRow> cuda_rows();

}  // namespace flow::bench
