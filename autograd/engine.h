// Runs the backward graph.
#pragma once

#include <vector>

#include "autograd/bucket_size.h"
#include "core/tensor.h"

namespace flow {

struct BackwardOptions {
  bool retain_graph = false;  // keep saved values, so that backward can run again
  bool create_graph = false;  // record backward, for higher derivatives; also retains the graph
  // Gradients of global leaves that must be summed over replicas are sent in buckets of this size
  // (the first: at most 1 MB) while backward continues. With 0, or with create_graph, each is sent
  // separately and immediately.
  double bucket_mb = autograd::kBucketMb;
};

// Adds the gradient of `outputs`, weighted by `gradients`, to the grad() of every leaf that
// requires grad. `gradients` must have the shapes and dtypes of the outputs. If one is undefined,
// or the list is empty, it is 1, and the output must have one element. Leaves get their gradient in
// their own placement and SBP; for global tensors this is collective. A gradient is ready when all
// its contributions are known, or, if it is summed over replicas, at the end. Nodes run in the
// reverse order of their recording. Two threads must not run backward through the same tensors at
// the same time.
//   flow::backward({loss_a, loss_b});
void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients = {},
              BackwardOptions options = {}, Site site = Site::here());

struct GradOptions {
  std::vector<Tensor> grad_outputs = {};  // like `gradients` of backward
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;  // an input without influence gets an undefined gradient
};

// Returns the gradients of `outputs` with respect to `inputs` and changes no grad(). Runs only the
// nodes on paths to the inputs.
//   auto dx = flow::grad({y}, {x}, {.create_graph = true})[0];
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options = {}, Site site = Site::here());

}  // namespace flow
