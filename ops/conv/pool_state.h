// The state that the CPU kernels of pooling prepare once per decision.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "core/kernel.h"
#include "ops/conv/pool_op.h"
#include "ops/vendor/onednn.h"

namespace flow::ops {

// The elements of a dim that one output reads: first, first + step, ….
struct PoolTaps {
  int64_t first = 0;
  int64_t count = 0;
};

// One of the dims H and W.
struct PoolDim {
  int64_t in = 0;
  int64_t out = 0;
  int64_t step = 1;
  std::vector<PoolTaps> taps;    // one for each output
  std::vector<double> elements;  // divisor of each output; mean pooling only
  // Output o reads begin + o * stride + k * step for all k below `kernel`, unless this is outside
  // [0, in). stride = 0: the windows differ in size.
  int64_t begin = 0;
  int64_t stride = 0;
  int64_t kernel = 0;

  // The end of what windows read, at least `in`.
  int64_t end() const {
    return std::max(in, begin + (out - 1) * stride + std::max<int64_t>(0, kernel - 1) * step + 1);
  }

  // True if every element is read by exactly one output.
  bool tiles() const;
};

struct PoolState {
  std::array<PoolDim, 2> dims;
  double divisor = 0;  // if not 0, replaces the product of the elements

  // For the fast kernels: memory is (planes, H, W, lanes), where the `lanes` channels of a position
  // are contiguous.
  int64_t planes = 0;
  int64_t lanes = 1;
  // Converts input 1 to the layout that the kernel reads; null if it already has this layout.
  std::shared_ptr<const OneDnnKernel> reorder;
  size_t reordered_bytes = 0;

  int64_t in_size() const { return dims[0].in * dims[1].in; }

  int64_t out_size() const { return dims[0].out * dims[1].out; }
};

// Returns true if the local parts have the same planes. In layouts that no signature allows they
// may differ.
bool parts_agree(const KernelQuery& query);

// Computes the windows of the local parts.
PoolState prepare_pool(const KernelQuery& query);

// Adds the description of blocked or contiguous memory and the outputs' metas. Returns false if a
// layout is not supported.
bool prepare_layout(const KernelQuery& query, PoolState& state, std::vector<MetaPtr>& outputs);

}  // namespace flow::ops
