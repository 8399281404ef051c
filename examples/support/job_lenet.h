// LeNet's convolutions in a job function, shared by job_consistent_lenet and job_mixed_lenet.
#pragma once

#include "flow/flow.h"

namespace examples {

// (N, 1, 28, 28) -> (N, 64 · 7 · 7)
inline flow::job::Blob lenet_features(const flow::job::Blob& data) {
  namespace job = flow::job;
  auto init = job::truncated_normal(0.1);
  auto conv1 = job::layers::conv2d(
      data, 32, 5,
      {.padding = "SAME", .activation = flow::relu, .kernel_initializer = init, .name = "conv1"});
  auto pool1 =
      job::max_pool2d(conv1, {.ksize = 2, .strides = 2, .padding = "SAME", .name = "pool1"});
  auto conv2 = job::layers::conv2d(
      pool1, 64, 5,
      {.padding = "SAME", .activation = flow::relu, .kernel_initializer = init, .name = "conv2"});
  auto pool2 =
      job::max_pool2d(conv2, {.ksize = 2, .strides = 2, .padding = "SAME", .name = "pool2"});
  return flow::reshape(pool2, {pool2.size(0), -1});
}

}  // namespace examples
