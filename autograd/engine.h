// Running the backward graph.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace flow {

struct BackwardOptions {
  bool retain_graph = false;  // keep saved values, so that backward can run again
  bool create_graph = false;  // record backward itself, for higher derivatives; retains the graph
  // Gradients of global leaves that are to be added up over replicas are sent in pieces of this
  // size, the first 1, while backward goes on; 0, or with create_graph: one by one, at once.
  double bucket_mb = 25;
};

// Adds to the grad() of every leaf that requires grad the gradient of `outputs`, weighted by
// `gradients` (same shapes and dtypes; an undefined one, or none at all, stands for 1 and needs an
// output of one element). Leaves get their gradient in their own placement and SBP, collectively
// for global tensors: as soon as all its parts are known, or, where it is added up over replicas,
// at the end. Nodes run in the reverse order of their
// recording. Two threads must not run backward through the same tensors at once.
//   flow::backward({loss_a, loss_b});
void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients = {},
              BackwardOptions options = {}, Site site = Site::here());

struct GradOptions {
  std::vector<Tensor> grad_outputs = {};  // as `gradients` of backward
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;  // an input the outputs do not depend on gives an undefined gradient
};

// The gradients of `outputs` with respect to `inputs`; no grad() changes. Computes only what leads
// to the inputs.
//   auto dx = flow::grad({y}, {x}, {.create_graph = true})[0];
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options = {}, Site site = Site::here());

}  // namespace flow
