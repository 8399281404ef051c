// Models by their spec, and their training.
#pragma once

#include "nn/module.h"
#include "tools/conform/spec.h"

namespace flow::conform {

nn::AnyModule make_model(const Json& spec);

struct StepRecord {
  double loss, grad_norm, lr;
};

// x, y: stacked over batches; step s takes batch s mod batches. Loss: mean cross entropy.
std::vector<StepRecord> run_training(nn::AnyModule model, const Json& spec, const Tensor& x,
                                     const Tensor& y, int64_t steps, nn::StateDict* first_grads);

}  // namespace flow::conform
