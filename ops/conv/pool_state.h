// What the CPU kernels of pooling prepare once per decision.
#pragma once

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

// H or W.
struct PoolDim {
  int64_t in = 0;
  int64_t out = 0;
  int64_t step = 1;
  std::vector<PoolTaps> taps;    // of each output
  std::vector<double> elements;  // that each output divides by; mean pooling only

  // Whether every element is read by exactly one output.
  bool tiles() const;
};

struct PoolState {
  std::array<PoolDim, 2> dims;
  double divisor = 0;  // instead of the product of the elements, unless 0

  // Of the fast kernels: memory is (planes, H, W, lanes), lanes channels lying side by side.
  int64_t planes = 0;
  int64_t lanes = 1;
  // Brings input 1 into the layout the kernel walks; null where it has it.
  std::shared_ptr<const OneDnnKernel> reorder;
  size_t reordered_bytes = 0;

  int64_t in_size() const { return dims[0].in * dims[1].in; }

  int64_t out_size() const { return dims[0].out * dims[1].out; }
};

// Whether the local parts have the same planes. Layouts that no signature allows need not.
bool parts_agree(const KernelQuery& query);

// The windows of the local parts.
PoolState prepare_pool(const KernelQuery& query);

// Adds how to walk blocked or contiguous memory, and the outputs' metas; false where some layout
// is not known.
bool prepare_layout(const KernelQuery& query, PoolState& state, std::vector<MetaPtr>& outputs);

}  // namespace flow::ops
