// Layers of job functions. Blobs are (N, C, H, W) or (N, features). Kernels are stored with the
// output dim first, so splitting axis 0 splits the output features. All functions must be called
// within a job function; otherwise they throw InvalidArgument.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/shape.h"
#include "core/tensor.h"
#include "nn/job/function.h"
#include "nn/job/variable.h"

namespace flow::job {

using Activation = std::function<Tensor(const Tensor&)>;

// While it lives, job ops and the variables that they make are placed on these devices; blobs from
// other devices are moved there. Available in consistent view only; otherwise InvalidArgument.
class [[nodiscard]] Scope {
 public:
  Scope(const Placement& placement, Site site);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Placement outer_;
};

// A scope on devices given as "machine:first-last" or "machine:device". The machine is 0.
Scope placement(std::string_view device, std::string_view devices, Site site = Site::here());

namespace layers {

struct DenseOptions {
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = {};  // unset: xavier_uniform
  Initializer bias_initializer = {};    // unset: zeros
  Distribute model_distribute = distribute::broadcast();
  std::string name = {};  // variables are NAME-weight and NAME-bias; unset: "dense1", "dense2", …
};

// y = x weightᵀ + bias. x: (..., features) -> (..., units); weight: (units, features).
Blob dense(const TensorArg& x, int64_t units, const DenseOptions& options = {});

struct Conv2dOptions {
  Ints strides = 1;
  Padding padding = "VALID";  // or "SAME" (ceil(size / stride) outputs), or amounts per side
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = {};
  Initializer bias_initializer = {};
  Distribute model_distribute = distribute::broadcast();
  std::string name = {};  // unset: "conv2d1", …
};

// 2-D convolution. x: (N, C, H, W) -> (N, filters, H', W'); weight: (filters, C, kH, kW).
Blob conv2d(const TensorArg& x, int64_t filters, const Ints& kernel,
            const Conv2dOptions& options = {});

}  // namespace layers

struct PoolOptions {
  Ints ksize = 2;
  Ints strides = 2;
  Padding padding = "VALID";  // or "SAME" (ceil(size / stride) outputs), or amounts per side
  std::string name = {};      // not used: a pool has no variables
};

// The maximum of each window. x: (N, C, H, W) -> (N, C, H', W'). With "SAME" x is padded on both
// sides; if the total is odd, the extra element is at the end.
Blob max_pool2d(const TensorArg& x, const PoolOptions& options);

struct DropoutOptions {
  double rate = 0.5;
};

// In functions of type "train": sets elements to 0 with probability `rate` and divides the others
// by 1 - rate. In other functions: returns x.
Blob dropout(const TensorArg& x, const DropoutOptions& options = {});

// Cross entropy of softmax(logits) with labels, one loss per sample. logits: (N, C); labels: (N),
// any integer dtype; result: (N).
Blob sparse_softmax_cross_entropy_with_logits(const TensorArg& labels, const TensorArg& logits);

}  // namespace flow::job
