#pragma once

// oneDNN for float32 on the calling thread, behind an interface without oneDNN's types. The library
// is loaded at first use into a private symbol scope. Only ops with float32 tensors call it; other
// ops convert their operands first or use other kernels.
//
// A kernel is prepared once for a specification, names the memory layouts that it needs, and runs
// any number of times:
//
//    const auto conv = make_onednn({.batch = 32, .in_channels = 64, ...});
//    const auto reorder = make_onednn(ReorderSpec{.shape = spec.weights_shape(),
//                                                 .to = conv->weights()});
//    reorder->run({.source = w, .destination = w_blocked});
//    conv->run({.source = x, .weights = w_blocked, .destination = y, .scratch = scratch});
//
// Preparing takes 3 to 300 us: op kernels do it in select() and keep the result in their state.
// Prepared kernels are immutable and may run on several threads at once; each run uses only the
// calling thread.
//
// Layouts are core's BlockedLayout, interned: equal content is the same pointer, and nullptr means
// row-major contiguous.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/shape.h"
#include "core/tensor_meta.h"

namespace flow::ops {

// Loads the library at the first call. False if flow was built without it or it cannot be used.
bool has_onednn();

// The version, or the reason why the library is absent.
const std::string& onednn_description();

// Multiplies as gemm in ops/linear/gemm.h does. Returns false and leaves C unchanged if the library
// rejects the product. Requires: has_onednn(), sizes > 0.
bool onednn_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                 const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                 int64_t ldc);

// In a specification, lets oneDNN choose the layout.
extern const BlockedLayout kAnyLayout;

// Returns the layout of an array of another shape with the same number of dims, ordered and blocked
// as in `layout`; nullptr stays nullptr. Empty for orders that neither convolutions nor pooling
// use.
std::optional<const BlockedLayout*> layout_like(const BlockedLayout* layout, const Shape& shape);

// Sliding window over 1 to 3 spatial dims (W; H, W; D, H, W), which fill the front of the arrays.
// dilation = 1: dense.
struct Window {
  int num_dims = 2;
  std::array<int64_t, 3> in{};
  std::array<int64_t, 3> kernel{};
  std::array<int64_t, 3> stride{1, 1, 1};
  std::array<int64_t, 3> dilation{1, 1, 1};
  std::array<int64_t, 3> padding_begin{};
  std::array<int64_t, 3> padding_end{};

  // Rounded down; a window that may stick out (ceil mode) is given more padding_end.
  int64_t out(int dim) const;
};

//  kForward:         reads source, weights, bias; writes destination.
//  kBackwardSource:  reads weights, destination (dy); writes source (dx). With the roles of x and y
//                    swapped, this is the forward pass of a transposed convolution.
//  kBackwardWeights: reads source, destination (dy); writes weights (dw), bias (db).
enum class ConvolutionPass { kForward, kBackwardSource, kBackwardWeights };

struct ConvolutionSpec {
  ConvolutionPass pass = ConvolutionPass::kForward;
  int64_t batch = 1;
  int64_t in_channels = 1;
  int64_t out_channels = 1;
  int64_t groups = 1;
  Window window;
  bool has_bias = false;
  const BlockedLayout* source = &kAnyLayout;
  const BlockedLayout* weights = &kAnyLayout;
  const BlockedLayout* destination = &kAnyLayout;

  Shape source_shape() const;  // (batch, in_channels, in...)
  Shape weights_shape()
      const;  // (out_channels, in_channels, kernel...), with groups (groups, out / groups, ...)
  Shape destination_shape() const;  // (batch, out_channels, out...)
};

// kForward:  reads source; writes destination and, for kMax, workspace.
// kBackward: reads destination (dy) and, for kMax, the workspace of forward; writes source (dx).
enum class PoolingPass { kForward, kBackward };
enum class PoolingMode { kMax, kMeanWithPadding, kMeanWithoutPadding };

// Both passes are given the layout of forward's source; dx has the same layout, and the layout of
// the destination follows from it.
struct PoolingSpec {
  PoolingPass pass = PoolingPass::kForward;
  PoolingMode mode = PoolingMode::kMax;
  int64_t batch = 1;
  int64_t channels = 1;
  Window window;
  const BlockedLayout* source = nullptr;

  Shape source_shape() const;
  Shape destination_shape() const;
};

// max(x, 0). kForward reads source, writes destination; kBackward reads data (x) and destination
// (dy), writes source (dx). All have one layout.
enum class ReluPass { kForward, kBackward };

struct ReluSpec {
  ReluPass pass = ReluPass::kForward;
  Shape shape;
  const BlockedLayout* layout = nullptr;
};

// Copies source to destination and changes the layout.
struct ReorderSpec {
  Shape shape;
  const BlockedLayout* from = nullptr;
  const BlockedLayout* to = nullptr;
};

// The memory that a run reads and writes; outputs must be writable. Unused pointers are null.
struct OneDnnArguments {
  const void* source = nullptr;
  const void* weights = nullptr;
  const void* bias = nullptr;
  const void* destination = nullptr;
  const void* data = nullptr;
  const void* workspace = nullptr;
  const void* scratch = nullptr;  // scratch_bytes() of any content, 64-byte aligned
};

class OneDnnKernel {
 public:
  virtual ~OneDnnKernel() = default;
  OneDnnKernel(const OneDnnKernel&) = delete;
  OneDnnKernel& operator=(const OneDnnKernel&) = delete;

  // The layouts of the arguments; nullptr: contiguous.
  const BlockedLayout* source() const { return source_; }

  const BlockedLayout* weights() const { return weights_; }

  const BlockedLayout* destination() const { return destination_; }

  size_t workspace_bytes() const { return workspace_bytes_; }

  size_t scratch_bytes() const { return scratch_bytes_; }

  virtual void run(const OneDnnArguments& arguments) const = 0;

 protected:
  OneDnnKernel() = default;

  const BlockedLayout* source_ = nullptr;
  const BlockedLayout* weights_ = nullptr;
  const BlockedLayout* destination_ = nullptr;
  size_t workspace_bytes_ = 0;
  size_t scratch_bytes_ = 0;
};

// Requires: sizes > 0 and a window that fits. Throws Unsupported where oneDNN is absent or has no
// such kernel.
std::shared_ptr<const OneDnnKernel> make_onednn(const ConvolutionSpec& spec);
std::shared_ptr<const OneDnnKernel> make_onednn(const PoolingSpec& spec);
std::shared_ptr<const OneDnnKernel> make_onednn(const ReluSpec& spec);
std::shared_ptr<const OneDnnKernel> make_onednn(const ReorderSpec& spec);

}  // namespace flow::ops
