#include "tools/flow_ops/other_functions.h"

#include "nn/flow.h"

namespace flow::tools {

namespace {

using Calls = std::vector<std::pair<std::string, std::function<void()>>>;

void add_drawing(Calls& calls) {
  const Tensor x = full({2, 3, 4, 4}, 0.5);
  calls.insert(calls.end(),
               {
                   {"rand", [] { rand({2}); }},
                   {"rand_like", [x] { rand_like(x); }},
                   {"randn", [] { randn({2}); }},
                   {"randn_like", [x] { randn_like(x); }},
                   {"randint", [] { randint(9, {2}); }},
                   {"randint_like", [x] { randint_like(x, 9); }},
                   {"randperm", [] { randperm(5); }},
                   {"normal", [x] { normal(0, 1, {2}), normal(x, x); }},
                   {"bernoulli", [x] { bernoulli(x); }},
                   {"poisson", [x] { poisson(x); }},
                   {"binomial", [x] { binomial(x * 8, x); }},
                   {"multinomial", [] { multinomial(ones({4}), 2); }},
                   {"gumbel_softmax", [x] { gumbel_softmax(x); }},
                   {"alpha_dropout", [x] { alpha_dropout(x, {.training = true}); }},
                   {"feature_alpha_dropout", [x] { feature_alpha_dropout(x, {.training = true}); }},
                   {"dropout", [x] { dropout(x); }},
                   {"dropout1d", [x] { dropout1d(x[0]); }},
                   {"dropout2d", [x] { dropout2d(x); }},
                   {"dropout3d", [x] { dropout3d(x); }},
               });
}

void add_creating(Calls& calls) {
  const Tensor x = ones({2, 3});
  calls.insert(calls.end(), {
                                {"tensor", [] { tensor({{1.f}}); }},
                                {"empty", [] { empty({2}); }},
                                {"empty_like", [x] { empty_like(x); }},
                                {"new_empty", [x] { new_empty(x, {2}); }},
                                {"new_tensor", [x] { new_tensor(x, {1.f}); }},
                                {"bartlett_window", [] { bartlett_window(4); }},
                                {"hann_window", [] { hann_window(4); }},
                                {"hamming_window", [] { hamming_window(4); }},
                                {"blackman_window", [] { blackman_window(4); }},
                                {"kaiser_window", [] { kaiser_window(4); }},
                                {"tril_indices", [] { tril_indices(2, 2); }},
                                {"triu_indices", [] { triu_indices(2, 2); }},
                            });
}

void add_others(Calls& calls) {
  const Tensor x = ones({4, 4});
  const Tensor batch = ones({1, 1, 4, 4, 4});
  calls.insert(
      calls.end(),
      {
          {"allclose", [x] { allclose(x, x); }},
          {"float_power", [x] { float_power(x, x), float_power(x, 2), float_power(2, x); }},
          {"multigammaln", [x] { multigammaln(x + 3, 2); }},
          {"embedding_renorm_",
           [x] {
             embedding_renorm_(x.clone(), tensor({0, 1}), 1);
           }},
          {"segment_reduce",
           [x] {
             segment_reduce(x, "sum", {.lengths = tensor({1, 3})});
           }},
          {"svd_lowrank", [x] { svd_lowrank(x, {.q = 2}); }},
          {"pca_lowrank", [x] { pca_lowrank(x, {.q = 2}); }},
          {"grouped_mm", [x] { grouped_mm(x.unsqueeze(0), x.unsqueeze(0)); }},
          {"conv_tbc",
           [x] {
             conv_tbc(x.unsqueeze(0), ones({1, 4, 2}), ones({2}));
           }},
          {"equal", [x] { equal(x, x); }},
          {"sum_to", [x] { sum_to(x, {4}); }},
          {"to_device", [x] { to_device(x, DeviceType::kCpu); }},
          {"slice_scatter",
           [x] {
             slice_scatter(x, ones({2, 4}), 0, 0, 2);
           }},
          {"select_scatter", [x] { select_scatter(x, ones({4}), 0, 1); }},
          {"diagonal_scatter", [x] { diagonal_scatter(x, ones({4})); }},
          {"max_pool1d_with_indices", [x] { max_pool1d_with_indices(x, 2); }},
          {"max_pool2d_with_indices", [x] { max_pool2d_with_indices(x.unsqueeze(0), 2); }},
          {"max_pool3d_with_indices", [batch] { max_pool3d_with_indices(batch, 2); }},
          {"fractional_max_pool2d_with_indices",
           [x] { fractional_max_pool2d_with_indices(x.unsqueeze(0), 2, {.output_size = 2}); }},
          {"fractional_max_pool3d_with_indices",
           [batch] { fractional_max_pool3d_with_indices(batch, 2, {.output_size = 2}); }},
          {"adaptive_max_pool1d_with_indices", [x] { adaptive_max_pool1d_with_indices(x, 2); }},
          {"adaptive_max_pool2d_with_indices",
           [x] {
             adaptive_max_pool2d_with_indices(x.unsqueeze(0), {2, 2});
           }},
          {"adaptive_max_pool3d_with_indices",
           [batch] {
             adaptive_max_pool3d_with_indices(batch, {2, 2, 2});
           }},
          {"triplet_margin_with_distance_loss",
           [x] { triplet_margin_with_distance_loss(x, x, x); }},
          {"combined_margin_loss", [x] { combined_margin_loss(x, zeros({4}, {.dtype = int64})); }},
          {"distributed_partial_fc_sample",
           [x] { distributed_partial_fc_sample(x, zeros({1}, {.dtype = int64}), 2); }},
      });
}

void add_composed(Calls& calls) {
  const Tensor x = full({4, 4}, 0.5);
  const Tensor index = tensor({0, 2});
  calls.insert(calls.end(), {
                                {"celu_", [x] { celu_(x.clone()); }},
                                {"elu_", [x] { elu_(x.clone()); }},
                                {"hardtanh_", [x] { hardtanh_(x.clone()); }},
                                {"leaky_relu_", [x] { leaky_relu_(x.clone()); }},
                                {"rrelu_", [x] { rrelu_(x.clone()); }},
                                {"selu_", [x] { selu_(x.clone()); }},
                                {"threshold_", [x] { threshold_(x.clone(), 0.1, 0); }},
                                {"ldexp", [x] { ldexp(x, x); }},
                                {"signbit", [x] { signbit(x); }},
                                {"mvlgamma", [x] { mvlgamma(x + 3, 2); }},
                                {"unravel_index",
                                 [index] {
                                   unravel_index(index, {4, 4});
                                 }},
                                {"put", [x, index] { put(x, index, ones({2})); }},
                                {"index_reduce",
                                 [x, index] {
                                   index_reduce(x, 0, index, ones({2, 4}), "prod");
                                 }},
                                {"cumulative_trapezoid", [x] { cumulative_trapezoid(x); }},
                            });
}

}  // namespace

const Calls& other_functions() {
  static const Calls all = [] {
    Calls calls;
    add_drawing(calls);
    add_creating(calls);
    add_others(calls);
    add_composed(calls);
    return calls;
  }();
  return all;
}

}  // namespace flow::tools
