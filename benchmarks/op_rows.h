// The rows of bench_ops: the calls that programs make most, at a small and a large size.
// tools/bench_torch.py makes the same calls with PyTorch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace flow::bench {

// The inputs of a row are described by words that tools/bench_torch.py reads as well:
//   f32[1000x1000]       normally distributed; also f64 and bf16
//   f32+[1000]           positive
//   f32.t[1000x10]       the transpose of a contiguous tensor: a (1000, 10) view
//   f32.s[8x4x16x3]      channels last: permute(0, 3, 1, 2) of a contiguous (8, 16, 3, 4) tensor
//   i64<50>[1000]        integers in [0, 50)
//   bool[1000]           true for one element of two
Tensor make_input(const std::string& words);

using Inputs = std::vector<Tensor>;

struct OpRow {
  std::string name;                // as PyTorch's function, with a variant: sum/dim0
  std::vector<std::string> small;  // the inputs; empty: no such row
  std::vector<std::string> large;
  std::function<Tensor(const Inputs& inputs)> call;
  int num_gradients = 0;  // > 0: a row for forward and backward to the first inputs
  std::function<Inputs(const Inputs& inputs)> parameters = {};  // that get gradients as well
};

const std::vector<OpRow>& op_rows();

}  // namespace flow::bench
