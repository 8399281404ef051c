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
  std::string reduction = "mean";  // of losses over the lengths of their targets
  bool zero_infinity = false;      // a target that does not fit its input costs 0, not infinity
};

// -log of the probability of all alignments of each target. log_probs: (T, N, C) or (T, C),
// logarithms of probabilities (log_softmax); targets: (N, S), or those of all samples one behind
// the other; input_lengths, target_lengths: (N), integers, at most T and S. As in PyTorch the
// gradient takes log_probs for the result of a log_softmax, through which alone it is that of the
// loss.
//   ctc_loss(log_softmax(model(x), -1), labels, lengths, label_lengths)
Tensor ctc_loss(const TensorArg& log_probs, const TensorArg& targets,
                const TensorArg& input_lengths, const TensorArg& target_lengths,
                const CtcOptions& options = {});
Tensor ctc_loss(const TensorArg& log_probs, const TensorArg& targets,
                const std::vector<int64_t>& input_lengths,
                const std::vector<int64_t>& target_lengths, const CtcOptions& options = {});

}  // namespace flow
