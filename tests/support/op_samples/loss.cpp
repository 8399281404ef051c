#include "ops/loss/loss.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

using Loss = std::function<Tensor(const Inputs& x, const std::string& reduction)>;

// Adds samples of every reduction, small and large.
void add(Samples& samples, const std::string& op, const SampleInput& x, const SampleInput& t,
         const Loss& loss) {
  for (const std::string reduction : {"none", "mean", "sum"}) {
    const auto call = [loss, reduction](const Inputs& in) { return loss(in, reduction); };
    samples.push_back({op, {x, t}, kFloats, call, reduction});
    samples.push_back({op + "_backward", {x, t}, kFloats, backward_of(call), reduction});
    SampleInput many_x = x;
    SampleInput many_t = t;
    many_x.shape = many_t.shape = {3, 7001};
    samples.push_back({op, {many_x, many_t}, kFloats, call, reduction + " many"});
    samples.back().only_kernels = true;
    samples.push_back(
        {op + "_backward", {many_x, many_t}, kFloats, backward_of(call), reduction + " many"});
    samples.back().only_kernels = true;
  }
}

void add_kernels(Samples& samples, const std::string& op, const SampleInput& x, const Loss& loss,
                 const char* label) {
  const auto call = [loss](const Inputs& in) { return loss(in, "none"); };
  const SampleInput target = in(x.shape, 0, 1);
  samples.push_back({op, {x, target}, kFloats, call, label});
  samples.back().only_kernels = true;
  samples.push_back({op + "_backward", {x, target}, kFloats, backward_of(call, 0b10), label});
  samples.back().only_kernels = true;
}

}  // namespace

Samples loss_samples() {
  Samples samples;
  const SampleInput x = in({5, 2});
  const SampleInput probability = in({5, 2}, 0.05, 0.95);
  add(samples, "mse_loss", x, x, [](const Inputs& in, const std::string& reduction) {
    return mse_loss(in[0], in[1], {.reduction = reduction});
  });
  add(samples, "l1_loss", x, x, [](const Inputs& in, const std::string& reduction) {
    return l1_loss(in[0], in[1], {.reduction = reduction});
  });
  add(samples, "smooth_l1_loss", x, x, [](const Inputs& in, const std::string& reduction) {
    return smooth_l1_loss(in[0], in[1], {.reduction = reduction, .beta = 0.8});
  });
  add(samples, "huber_loss", x, x, [](const Inputs& in, const std::string& reduction) {
    return huber_loss(in[0], in[1], {.reduction = reduction, .delta = 0.8});
  });
  add(samples, "binary_cross_entropy", probability, probability,
      [](const Inputs& in, const std::string& reduction) {
        return binary_cross_entropy(in[0], in[1], {.reduction = reduction});
      });
  add(samples, "binary_cross_entropy_with_logits", x, probability,
      [](const Inputs& in, const std::string& reduction) {
        return binary_cross_entropy_with_logits(in[0], in[1], {.reduction = reduction});
      });
  const Loss sharp = [](const Inputs& in, const std::string& reduction) {
    return smooth_l1_loss(in[0], in[1], {.reduction = reduction, .beta = 0});
  };
  const Loss certain = [](const Inputs& in, const std::string& reduction) {
    return binary_cross_entropy(in[0], in[1], {.reduction = reduction});
  };
  const Loss logits = [](const Inputs& in, const std::string& reduction) {
    return binary_cross_entropy_with_logits(in[0], in[1], {.reduction = reduction});
  };
  SampleInput wide = in({30, 30});
  wide.extremes = 0.3;
  SampleInput zero_or_more = in({30, 30}, 0, 1);
  zero_or_more.zeros = 0.3;
  add_kernels(samples, "smooth_l1_loss", sparse({30, 30}, 0.5), sharp, "no curve");
  add_kernels(samples, "binary_cross_entropy", zero_or_more, certain, "zeros");
  add_kernels(samples, "binary_cross_entropy_with_logits", wide, logits, "extremes");
  return samples;
}

}  // namespace flow::contract
