#include "ops/loss/ctc_loss.h"

#include "ops/norm/softmax.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples ctc_loss_samples() {
  // Six time steps and five samples of up to two labels, with three classes besides the blank.
  const std::vector<SampleInput> inputs = {
      in({6, 5, 4}),
      {.shape = {5, 2}, .low = 1, .high = 3, .dtype = DType::kInt64},
      {.shape = {5}, .low = 4, .high = 6, .dtype = DType::kInt64},
      {.shape = {5}, .low = 0, .high = 2, .dtype = DType::kInt64},
  };
  const auto loss = [](const Inputs& x) {
    return ctc_loss(log_softmax(x[0], -1), x[1], x[2], x[3], {.reduction = "none"});
  };
  Samples samples = {
      {"ctc_loss", inputs, kFloats, loss},
      {"ctc_loss_backward", inputs, kFloats, backward_of(loss)},
  };
  // The gradient is that of logits to which a log_softmax was applied, as in PyTorch (tests/parity
  // compares it).
  samples[0].constant_inputs = 1;
  return samples;
}

}  // namespace flow::contract
