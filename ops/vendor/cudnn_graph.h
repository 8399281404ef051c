// Graphs of operations that cuDNN 9 runs as one kernel, by its backend interface. The library is
// loaded at its first use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <cudnn.h>

#include "core/context.h"

namespace flow::ops {

// True if a libcudnn.so.9 is found that is recent enough. Logs once why not.
bool has_cudnn_graphs();

// A backend descriptor.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;

  // These throw CudnnRefusal if the library does not take what they are given.
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, int64_t value);
  void set(cudnnBackendAttributeName_t name, float value);
  void set(cudnnBackendAttributeName_t name, bool value);
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  void finalize();

  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

// The library does not support a graph, an attribute or a plan.
struct CudnnRefusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A graph that has been prepared for this rank's device.
class CudnnPlan {
 public:
  CudnnPlan(CudnnDescriptor plan, size_t workspace_bytes)
      : plan_(std::move(plan)), workspace_bytes_(workspace_bytes) {}

  size_t workspace_bytes() const { return workspace_bytes_; }

  // Queues the plan on the rank's stream. `ids` are those of CudnnGraph's tensors that are not
  // virtual; addresses of numbers are in host memory. Throws CudnnRefusal.
  void run(RankContext& rank, std::span<const int64_t> ids, std::span<void* const> addresses,
           void* workspace) const;

 private:
  CudnnDescriptor plan_;
  size_t workspace_bytes_;
};

// Tensors have four dims. A tensor's id is its number.
class CudnnGraph {
 public:
  using Dims = std::array<int64_t, 4>;
  using Id = int64_t;

  Id tensor(cudnnDataType_t type, const Dims& size, const Dims& stride);
  // A value between two operations, which is never in memory; row-major.
  Id between(cudnnDataType_t type, const Dims& size);
  Id between(cudnnDataType_t type, const Dims& size, const Dims& stride);
  // A float in host memory.
  Id number();

  void multiply(Id a, Id b, Id c);
  // y = mode(x, b), or t ? x : b; b and t may be kNone.
  void apply(cudnnPointwiseMode_t mode, Id x, Id b, Id y, Id t = kNone);
  // y = the position of each element of x along `axis`.
  void index(int64_t axis, Id x, Id y);
  // y = 1 where a >= b.
  void at_least(Id a, Id b, Id y);
  void reduce(cudnnReduceTensorOp_t op, Id x, Id y);
  void reshape(Id x, Id y);

  // The first plan of the library's heuristics that works on the device. Throws CudnnRefusal.
  std::unique_ptr<CudnnPlan> plan(RankContext& rank);

  static constexpr Id kNone = -1;

 private:
  Id add(cudnnDataType_t type, const Dims& size, const Dims& stride, bool is_between,
         bool is_number);
  void add_pointwise(CudnnDescriptor function, Id x, Id b, Id y, Id t);

  const CudnnDescriptor& tensor_of(Id id) const { return tensors_[static_cast<size_t>(id)]; }

  std::vector<CudnnDescriptor> tensors_;
  std::vector<CudnnDescriptor> functions_;
  std::vector<CudnnDescriptor> operations_;
};

}  // namespace flow::ops
