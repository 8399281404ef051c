// Layers of job functions. Blobs are (N, C, H, W) or (N, features); kernels are stored with outputs
// first, so that splitting axis 0 splits output features.
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

// While it lives, job ops and the variables that they make lie on these devices; blobs from
// elsewhere are moved there. Consistent view only.
class [[nodiscard]] Scope {
 public:
  Scope(const Placement& placement, Site site);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Placement outer_;
};

// Devices as "machine:first-last" or "machine:device"; the machine is 0.
Scope placement(std::string_view device, std::string_view devices, Site site = Site::here());

namespace layers {

struct DenseOptions {
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = {};  // xavier_uniform
  Initializer bias_initializer = {};    // zeros
  Distribute model_distribute = distribute::broadcast();
  std::string name = {};  // variables are NAME-weight, NAME-bias; unset: "dense1", "dense2", …
};

// (..., features) -> (..., units): x weightᵀ + bias, weight (units, features).
Blob dense(const TensorArg& x, int64_t units, const DenseOptions& options = {});

struct Conv2dOptions {
  Ints strides = 1;
  Padding padding = "VALID";  // or "SAME": ceil(size / stride) outputs; or numbers
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = {};
  Initializer bias_initializer = {};
  Distribute model_distribute = distribute::broadcast();
  std::string name = {};  // unset: "conv2d1", …
};

// (N, C, H, W) -> (N, filters, H', W'); weight (filters, C, kernel...).
Blob conv2d(const TensorArg& x, int64_t filters, const Ints& kernel,
            const Conv2dOptions& options = {});

}  // namespace layers

struct PoolOptions {
  Ints ksize = 2;
  Ints strides = 2;
  Padding padding = "VALID";  // or "SAME": ceil(size / stride) outputs; or numbers
  std::string name = {};      // for reading: a pool has no variables
};

// (N, C, H, W) -> (N, C, H', W'). With "SAME" windows stick out on both sides, further at the end.
Blob max_pool2d(const TensorArg& x, const PoolOptions& options);

struct DropoutOptions {
  double rate = 0.5;
};

// Elements are 0 with probability `rate`, else divided by 1 - rate.
Blob dropout(const TensorArg& x, const DropoutOptions& options = {});

// Cross entropy of softmax(logits (N, C)) with labels (N) of any integer dtype: (N), unreduced.
Blob sparse_softmax_cross_entropy_with_logits(const TensorArg& labels, const TensorArg& logits);

}  // namespace flow::job
