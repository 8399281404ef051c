// Connectionist temporal classification: the loss of a sequence of labels without an alignment
// (Graves et al. 2006).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace flow {

struct CtcOptions {
  int64_t blank = 0;
  std::string reduction = "mean";  // divides each loss by the length of its target
  bool zero_infinity = false;      // a target that does not fit its input costs 0, not infinity
};

// The negative logarithm of the total probability of all alignments of each target. log_probs: (T,
// N, C) or (T, C), logarithms of probabilities (from log_softmax); targets: (N, S), or one vector
// to whose size target_lengths add up (a graph does not check tensors); input_lengths,
// target_lengths: (N), integers, at most T and S. As in PyTorch, the gradient is correct only if
// log_probs is the result of log_softmax and the gradient passes through it.
//   ctc_loss(log_softmax(model(x), -1), labels, lengths, label_lengths)
Tensor ctc_loss(const TensorArg& log_probs, const TensorArg& targets,
                const TensorArg& input_lengths, const TensorArg& target_lengths,
                const CtcOptions& options = {});
Tensor ctc_loss(const TensorArg& log_probs, const TensorArg& targets,
                const std::vector<int64_t>& input_lengths,
                const std::vector<int64_t>& target_lengths, const CtcOptions& options = {});

}  // namespace flow
