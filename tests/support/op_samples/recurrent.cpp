#include <array>

#include "core/dispatch.h"
#include "ops/linear/recurrent_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

template <size_t kOutputs>
void dispatch_all_of(const OpDef& op, const Inputs& x) {
  std::vector<const Tensor*> inputs;
  for (const Tensor& input : x)
    inputs.push_back(&input);
  std::array<Tensor, kOutputs> outputs;
  Call call{op, inputs, nullptr, Site::here()};
  dispatch(call, outputs.data());
}

}  // namespace

Samples recurrent_samples() {
  Samples samples;
  for (const auto& [leading, width] :
       std::vector<std::pair<Shape, int64_t>>{{{5, 2}, 3}, {{}, 2}, {{40}, 301}}) {
    const auto sized = [shape = leading](int64_t last) {
      Shape own = shape;
      own.push_back(last);
      return in(own);
    };
    const std::string label = str(leading, " of ", width);
    const SampleInput state = sized(width);
    const SampleInput four = sized(4 * width), three = sized(3 * width);
    const auto lstm = [](const Inputs& x) { ops::lstm_gates(x[0], x[1], x[2]); };
    const auto gru = [](const Inputs& x) { ops::gru_gates(x[0], x[1], x[2]); };
    const size_t first = samples.size();
    samples.push_back({"lstm_gates", {four, four, state}, kFloats, lstm, label});
    samples.push_back({"lstm_gates_backward",
                       {four, four, state, state, state},
                       kFloats,
                       [](const Inputs& x) { dispatch_all_of<2>(ops::kLstmGatesBackward, x); },
                       label});
    samples.push_back(
        {"lstm_gates_backward",
         {four, four, state, state},
         kFloats,
         [](const Inputs& x) {
           dispatch_all_of<2>(ops::kLstmGatesBackward, {x[0], x[1], x[2], x[3], Tensor()});
         },
         label + ", hidden alone"});
    samples.push_back({"gru_gates", {three, three, state}, kFloats, gru, label});
    samples.push_back({"gru_gates_backward",
                       {three, three, state, state},
                       kFloats,
                       [](const Inputs& x) { dispatch_all_of<3>(ops::kGruGatesBackward, x); },
                       label});
    for (size_t i = first; i < samples.size(); ++i)
      samples[i].only_kernels = width > 100;
  }
  return samples;
}

}  // namespace flow::contract
