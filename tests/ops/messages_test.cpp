// Errors name the function that was called, even if it is composed of others, and the line that
// called it.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"

namespace flow {
namespace {

struct BadCall {
  const char* function;
  std::function<void()> call;
};

const Tensor& m23() {
  static const Tensor x = ones({2, 3});
  return x;
}

Tensor wrong() {
  return ones({7, 5});
}

Tensor integers(const Shape& shape) {
  return ones(shape, {.dtype = int64});
}

std::vector<BadCall> products() {
  return {
      {"dot", [] { dot(ones({2}), ones({3})); }},
      {"dot", [] { dot(m23(), m23()); }},
      {"dot", [] { dot(ones({2}), integers({2})); }},
      {"mv", [] { mv(m23(), ones({2})); }},
      {"mm", [] { mm(m23(), m23()); }},
      {"mm",
       [] {
         mm(m23(), integers({3, 2}));
       }},
      {"bmm",
       [] {
         bmm(ones({2, 2, 3}), ones({2, 2, 3}));
       }},
      {"addmm", [] { addmm(m23(), m23(), m23()); }},
      {"addmm",
       [] {
         addmm(wrong(), m23(), ones({3, 2}));
       }},
      {"addmm",
       [] {
         addmm(ones({4, 2, 2}), m23(), ones({3, 2}));
       }},
      {"addmm",
       [] {
         addmm(ones({4, 1}), ones({1, 3}), ones({3, 2}));
       }},
      {"addmm",
       [] {
         addmm(ones({7}), m23(), ones({3, 2}), {.beta = 0});
       }},
      {"addmm",
       [] {
         addmm(integers({2}), integers({2, 3}), integers({3, 2}), {.alpha = 1e30});
       }},
      {"baddbmm",
       [] {
         baddbmm(wrong(), ones({2, 2, 3}), ones({2, 3, 2}));
       }},
      {"linear", [] { linear(m23(), ones({2})); }},
      {"linear",
       [] {
         linear(m23(), ones({4, 2}));
       }},
      {"linear", [] { linear(m23(), ones({3}), ones({7})); }},
      {"einsum",
       [] {
         einsum("ij,jk->ik", {m23(), m23()});
       }},
      {"einsum",
       [] {
         einsum("ij,jk->ik", {m23(), integers({3, 2})});
       }},
      {"tensordot", [] { tensordot(m23(), m23(), int64_t{1}); }},
  };
}

std::vector<BadCall> reductions() {
  return {
      {"var",
       [] {
         var(integers({2, 3}));
       }},
      {"var", [] { var(m23(), 5); }},
      {"std",
       [] {
         std(integers({2, 3}));
       }},
      {"std", [] { std(m23(), 5); }},
      {"norm",
       [] {
         norm(integers({2, 3}));
       }},
      {"vector_norm",
       [] {
         vector_norm(integers({2, 3}));
       }},
      {"vector_norm", [] { vector_norm(m23(), {.dim = 4}); }},
      {"logsumexp", [] { logsumexp(m23(), 2); }},
      {"mean",
       [] {
         mean(integers({2, 3}));
       }},
      {"argsort", [] { argsort(m23(), {.dim = 4}); }},
      {"max", [] { max(m23(), 4); }},
      {"max", [] { max(ones({0})); }},
      {"amin", [] { amin(ones({0})); }},
      {"min", [] { min(ones({0})); }},
      {"argmax", [] { argmax(ones({0})); }},
      {"argmin", [] { argmin(m23(), 3); }},
  };
}

std::vector<BadCall> comparisons() {
  return {
      {"normalize",
       [] {
         normalize(integers({2, 3}));
       }},
      {"normalize", [] { normalize(m23(), {.dim = 4}); }},
      {"cosine_similarity", [] { cosine_similarity(m23(), wrong()); }},
      {"cosine_similarity", [] { cosine_similarity(m23(), m23(), {.dim = 4}); }},
      {"cosine_similarity",
       [] {
         cosine_similarity(integers({2, 3}), integers({2, 3}));
       }},
      {"pairwise_distance", [] { pairwise_distance(m23(), wrong()); }},
      {"isclose", [] { isclose(m23(), wrong()); }},
      {"allclose", [] { allclose(m23(), wrong()); }},
      {"maximum", [] { maximum(m23(), wrong()); }},
      {"floor_divide", [] { floor_divide(m23(), wrong()); }},
      {"div", [] { div(m23(), wrong(), {.rounding_mode = "floor"}); }},
      {"xlogy", [] { xlogy(m23(), wrong()); }},
      {"hypot", [] { hypot(m23(), wrong()); }},
      {"logaddexp", [] { logaddexp(integers({2}), integers({2})); }},
      {"isclose", [] { isclose(m23(), m23(), {.atol = NAN}); }},
  };
}

std::vector<BadCall> elementwise() {
  return {
      {"addcmul", [] { addcmul(m23(), m23(), wrong()); }},
      {"addcmul", [] { addcmul(wrong(), m23(), m23()); }},
      {"addcdiv", [] { addcdiv(m23(), m23(), wrong()); }},
      {"addcmul_", [] { addcmul_(m23(), m23(), wrong()); }},
      {"addcdiv_", [] { addcdiv_(m23(), m23(), wrong()); }},
      {"lerp", [] { lerp(m23(), wrong(), 0.5); }},
      {"lerp", [] { lerp(m23(), m23(), wrong()); }},
      {"lerp", [] { lerp(integers({2}), integers({2}), 0.5); }},
      {"lerp_", [] { lerp_(m23(), wrong(), 0.5); }},
      {"where", [] { where(ones({2}, {.dtype = bool_}), wrong(), m23()); }},
      {"where", [] { where(m23(), 1, 2); }},
      {"where", [] { where(m23(), m23(), 2); }},
      {"masked_fill", [] { masked_fill(m23(), wrong(), 1); }},
      {"masked_fill", [] { masked_fill(m23(), wrong(), zeros({})); }},
      {"masked_fill_",
       [] {
         masked_fill_(m23(), ones({7, 5}, {.dtype = bool_}), 1);
       }},
      {"clamp", [] { clamp(m23(), wrong(), wrong()); }},
      {"clip", [] { clip(m23(), {}); }},
      {"clamp_", [] { clamp_(m23(), {}); }},
      {"sub_", [] { sub_(m23(), wrong()); }},
      {"div_", [] { div_(m23(), wrong(), {.rounding_mode = "floor"}); }},
      {"div_", [] { div_(integers({2}), ones({2})); }},
      {"pow_", [] { pow_(m23(), wrong()); }},
      {"fmod_", [] { fmod_(m23(), wrong()); }},
      {"tril_", [] { tril_(ones({2})); }},
      {"mul_", [] { integers({2}).mul_(0.5); }},
      {"mul_", [] { ones({1}).expand({3}).mul_(2); }},
      {"fill_", [] { ones({1}).expand({3}).fill_(2); }},
      {"zero_", [] { ones({1}).expand({3}).zero_(); }},
      {"normal_", [] { ones({1}).expand({3}).normal_(); }},
      {"normal_", [] { integers({2}).normal_(); }},
      {"uniform_", [] { ones({1}).expand({3}).uniform_(); }},
      {"uniform_", [] { integers({2}).uniform_(); }},
      {"exp_", [] { exp_(integers({2})); }},
      {"celu", [] { celu(integers({2})); }},
      {"selu", [] { selu(integers({2})); }},
      {"mish", [] { mish(integers({2})); }},
      {"hardswish", [] { hardswish(integers({2})); }},
      {"hardsigmoid", [] { hardsigmoid(integers({2})); }},
      {"softsign", [] { softsign(ones({2}, {.dtype = bool_})); }},
      {"logsigmoid", [] { logsigmoid(integers({2})); }},
      {"prelu", [] { prelu(m23(), ones({5})); }},
      {"prelu", [] { prelu(m23(), integers({1})); }},
      {"glu", [] { glu(m23()); }},
      {"glu",
       [] {
         glu(integers({2, 2}));
       }},
      {"glu", [] { glu(m23(), 5); }},
      {"rrelu", [] { rrelu(m23(), {.lower = -INFINITY}); }},
      {"relu6", [] { relu6(ones({2}, {.dtype = bool_})); }},
      {"hardtanh", [] { hardtanh(ones({2}, {.dtype = bool_})); }},
  };
}

std::vector<BadCall> losses() {
  return {
      {"mse_loss", [] { mse_loss(m23(), wrong()); }},
      {"kl_div", [] { kl_div(m23(), wrong()); }},
      {"binary_cross_entropy", [] { binary_cross_entropy(m23(), m23(), {.weight = wrong()}); }},
      {"binary_cross_entropy_with_logits",
       [] { binary_cross_entropy_with_logits(m23(), m23(), {.weight = wrong()}); }},
      {"binary_cross_entropy_with_logits",
       [] { binary_cross_entropy_with_logits(m23(), m23(), {.pos_weight = wrong()}); }},
      {"margin_ranking_loss", [] { margin_ranking_loss(m23(), wrong(), m23()); }},
      {"margin_ranking_loss", [] { margin_ranking_loss(m23(), m23(), wrong()); }},
      {"triplet_margin_loss", [] { triplet_margin_loss(m23(), wrong(), m23()); }},
      {"triplet_margin_loss", [] { triplet_margin_loss(m23(), m23(), wrong()); }},
      {"combined_margin_loss", [] { combined_margin_loss(m23(), integers({2}) * 7); }},
      {"cross_entropy", [] { cross_entropy(m23(), integers({3})); }},
      {"cross_entropy", [] { cross_entropy(m23(), wrong()); }},
      {"cross_entropy", [] { cross_entropy(m23(), integers({2}) * 9); }},
      {"nll_loss", [] { nll_loss(m23(), integers({2}) * 9); }},
      {"multi_margin_loss", [] { multi_margin_loss(m23(), integers({2}), {.weight = ones({2})}); }},
  };
}

std::vector<BadCall> shapes() {
  return {
      {"cat",
       [] {
         cat({m23(), wrong()}, 0);
       }},
      {"concat",
       [] {
         concat({m23(), wrong()}, 0);
       }},
      {"stack",
       [] {
         stack({m23(), wrong()}, 0);
       }},
      {"stack",
       [] {
         stack({m23(), m23()}, 7);
       }},
      {"tile", [] { tile(m23(), {-1}); }},
      {"repeat", [] { repeat(m23(), {1}); }},
      {"roll", [] { roll(m23(), 1, 5); }},
      {"roll",
       [] {
         roll(m23(), {1, 2}, 0);
       }},
      {"flip", [] { flip(m23(), 4); }},
      {"tril", [] { tril(ones({2})); }},
      {"pad",
       [] {
         pad(m23(), {1, 1, 1, 1, 1, 1});
       }},
      {"pad",
       [] {
         pad(m23(), {5, 5}, {.mode = "reflect"});
       }},
      {"split",
       [] {
         split(m23(), std::vector<int64_t>{1, 4}, 0);
       }},
      {"split", [] { split(m23(), 1, 5); }},
      {"chunk", [] { chunk(m23(), 0); }},
      {"chunk", [] { chunk(m23(), 2, 5); }},
      {"unbind", [] { unbind(m23(), 5); }},
      {"narrow", [] { narrow(m23(), 0, 1, 5); }},
      {"narrow", [] { narrow(m23(), 4, 0, 1); }},
      {"select", [] { select(m23(), 0, 9); }},
      {"slice_scatter", [] { slice_scatter(m23(), wrong()); }},
      {"select_scatter", [] { select_scatter(m23(), wrong(), 0, 0); }},
      {"select_scatter", [] { select_scatter(m23(), ones({3}), 0, 9); }},
      {"diagonal_scatter", [] { diagonal_scatter(m23(), wrong()); }},
      {"diag",
       [] {
         diag(ones({2, 2, 2}));
       }},
      {"diag_embed", [] { diag_embed(m23(), 0, 7, 8); }},
      {"swapaxes", [] { swapaxes(m23(), 0, 5); }},
      {"swapdims", [] { swapdims(m23(), 0, 5); }},
      {"transpose", [] { transpose(m23(), 0, 5); }},
      {"t",
       [] {
         t(ones({2, 2, 2}));
       }},
      {"movedim", [] { movedim(m23(), 0, 5); }},
      {"movedim",
       [] {
         movedim(m23(), {0, 0}, {1, 0});
       }},
      {"reshape_as", [] { reshape_as(m23(), wrong()); }},
      {"view_as", [] { view_as(m23(), wrong()); }},
      {"view", [] { view(m23().t(), {6}); }},
      {"expand_as", [] { expand_as(m23(), wrong()); }},
      {"broadcast_to", [] { broadcast_to(m23(), {7}); }},
      {"flatten", [] { flatten(m23(), 1, 0); }},
      {"unsqueeze", [] { unsqueeze(m23(), 7); }},
      {"squeeze", [] { squeeze(m23(), 7); }},
      {"diagonal", [] { diagonal(m23(), 0, 0, 5); }},
      {"diagonal_scatter", [] { diagonal_scatter(m23(), ones({2}), 0, 0, 5); }},
  };
}

std::vector<BadCall> indices() {
  return {
      {"index", [] { index(m23(), {IndexArg(integers({1}) * 9)}); }},
      {"index_select", [] { index_select(m23(), 0, integers({1}) * 9); }},
      {"index_select", [] { index_select(m23(), 5, integers({1})); }},
      {"index_put", [] { index_put(m23(), {IndexArg(integers({1}) * 9)}, ones({3})); }},
      {"index_put", [] { index_put(m23(), {IndexArg(integers({1}))}, ones({5})); }},
      {"masked_select", [] { masked_select(m23(), wrong()); }},
      {"gather",
       [] {
         gather(m23(), 0, integers({2, 3}) * 9);
       }},
      {"gather",
       [] {
         gather(m23(), 5, integers({2, 3}));
       }},
      {"scatter",
       [] {
         scatter(m23(), 0, integers({2, 3}) * 9, m23());
       }},
      {"scatter",
       [] {
         scatter(m23(), 0, integers({2, 3}) * 9, 1);
       }},
      {"scatter_add",
       [] {
         scatter_add(m23(), 0, integers({2, 3}) * 9, m23());
       }},
      {"scatter_reduce",
       [] {
         scatter_reduce(m23(), 0, integers({2, 3}) * 9, m23(), "sum");
       }},
      {"scatter_reduce",
       [] {
         scatter_reduce(m23(), 0, integers({2, 3}) * 9, m23(), "mean");
       }},
      {"scatter_reduce",
       [] {
         scatter_reduce(m23(), 0, integers({2, 3}) * 9, m23(), "amax");
       }},
      {"one_hot", [] { one_hot(integers({2}) * 9, 3); }},
      {"embedding", [] { embedding(integers({2}) * 9, m23()); }},
      {"topk", [] { topk(m23(), 9); }},
      {"sort", [] { sort(m23(), {.dim = 5}); }},
      {"cumsum", [] { cumsum(m23(), 5); }},
      {"cumprod", [] { cumprod(m23(), 5); }},
      {"index_put", [] { index_put(integers({2}), {IndexArg(integers({1}))}, ones({1})); }},
      {"embedding_bag", [] { embedding_bag(integers({3}), m23(), {.offsets = zeros({1})}); }},
  };
}

std::vector<BadCall> windows() {
  const Tensor images = ones({2, 3, 4, 4});
  return {
      {"max_pool1d",
       [] {
         max_pool1d(ones({1, 2, 3}), 9);
       }},
      {"max_pool1d",
       [] {
         max_pool1d(ones({1, 2, 3}, {.dtype = bool_}), 2);
       }},
      {"max_pool1d_with_indices",
       [] {
         max_pool1d_with_indices(ones({1, 2, 3}), 9);
       }},
      {"max_pool2d", [=] { max_pool2d(images, 9); }},
      {"max_pool2d", [] { max_pool2d(m23(), 2); }},
      {"max_pool2d_with_indices", [=] { max_pool2d_with_indices(images, 9); }},
      {"max_pool3d", [=] { max_pool3d(images, 9); }},
      {"max_pool3d_with_indices", [=] { max_pool3d_with_indices(images, 9); }},
      {"avg_pool1d",
       [] {
         avg_pool1d(ones({1, 2, 3}), 9);
       }},
      {"avg_pool2d", [=] { avg_pool2d(images, 9); }},
      {"avg_pool3d", [=] { avg_pool3d(images, 9); }},
      {"adaptive_avg_pool1d",
       [] {
         adaptive_avg_pool1d(integers({2, 3}), 1);
       }},
      {"adaptive_avg_pool2d", [] { adaptive_avg_pool2d(m23(), 1); }},
      {"adaptive_avg_pool3d",
       [] {
         adaptive_avg_pool3d(integers({1, 2, 2, 2}), 1);
       }},
      {"adaptive_max_pool1d",
       [] {
         adaptive_max_pool1d(ones({2, 3}, {.dtype = bool_}), 1);
       }},
      {"adaptive_max_pool2d",
       [] {
         adaptive_max_pool2d(ones({1, 2, 3}, {.dtype = bool_}), 1);
       }},
      {"adaptive_max_pool3d",
       [] {
         adaptive_max_pool3d(ones({1, 0, 2, 2}), 1);
       }},
      {"conv1d",
       [] {
         conv1d(ones({1, 2, 3}), ones({2, 3, 1}));
       }},
      {"conv2d",
       [=] {
         conv2d(images, ones({2, 3, 9, 9}));
       }},
      {"conv2d",
       [=] {
         conv2d(images, ones({2, 5, 2, 2}));
       }},
      {"conv3d", [] { conv3d(m23(), m23()); }},
      {"conv_transpose1d",
       [] {
         conv_transpose1d(ones({1, 2, 3}), ones({3, 2, 1}));
       }},
      {"conv_transpose2d",
       [=] {
         conv_transpose2d(images, ones({2, 2, 2, 2}));
       }},
      {"unfold", [=] { unfold(images, 9); }},
      {"unfold", [] { unfold(m23(), 1); }},
      {"fold",
       [] {
         fold(ones({1, 4, 3}), {2, 2}, 2);
       }},
      {"pixel_shuffle", [=] { pixel_shuffle(images, 2); }},
      {"pixel_unshuffle", [=] { pixel_unshuffle(images, 3); }},
      {"interpolate", [=] { interpolate(images, {}); }},
      {"interpolate",
       [] {
         interpolate(integers({1, 1, 4}), {.size = 3, .mode = "linear"});
       }},
      {"max_pool2d",
       [] {
         max_pool2d(ones({1, 1, 3, 0}), 2, {.padding = 1});
       }},
      {"avg_pool2d",
       [] {
         avg_pool2d(ones({1, 1, 0, 3}), 2, {.padding = 1});
       }},
      {"conv_transpose2d",
       [=] {
         conv_transpose2d(images, ones({3, 1, 2, 2}), ones({1}, {.dtype = float64}));
       }},
      {"max_unpool1d",
       [] {
         max_unpool1d(ones({1, 3}), integers({1, 3}), -1);
       }},
      {"max_unpool2d",
       [] {
         max_unpool2d(ones({1, 3, 3}), integers({1, 3, 3}), 2, {.padding = -1});
       }},
      {"max_unpool3d",
       [] {
         max_unpool3d(ones({1, 2, 2, 2}), integers({1, 2, 2, 2}), {2, 2});
       }},
  };
}

std::vector<BadCall> layers() {
  const Tensor none;
  return {
      {"layer_norm", [] { layer_norm(m23(), {4}); }},
      {"layer_norm", [] { layer_norm(m23(), {3}, {.weight = ones({4})}); }},
      {"rms_norm", [] { rms_norm(m23(), {4}); }},
      {"group_norm", [] { group_norm(m23(), 2); }},
      {"batch_norm", [=] { batch_norm(m23(), ones({5}), ones({5})); }},
      {"instance_norm",
       [] {
         instance_norm(ones({2, 3, 4}), {.weight = ones({5})});
       }},
      {"instance_norm",
       [] {
         instance_norm(integers({2, 3, 4}));
       }},
      {"instance_norm",
       [] {
         instance_norm(ones({2, 3, 4}), ones({5}), ones({5}), {.use_input_stats = false});
       }},
      {"lstm_cell",
       [=] {
         lstm_cell(m23(), {ones({2, 1}), ones({2, 1})}, ones({4, 2}), ones({4, 1}));
       }},
      {"lstm_cell",
       [=] {
         lstm_cell(m23(), {ones({2, 1}), ones({5, 1})}, ones({4, 3}), ones({4, 1}));
       }},
      {"lstm_cell",
       [=] {
         lstm_cell(m23(), {ones({2, 1}), ones({2, 1})}, ones({4, 3}), ones({4, 1}), ones({9}));
       }},
      {"gru_cell",
       [] {
         gru_cell(m23(), ones({7, 1}), ones({3, 3}), ones({3, 1}));
       }},
      {"gru_cell",
       [] {
         gru_cell(m23(), ones({2, 1}), ones({3, 3}), ones({3, 1}), ones({9}));
       }},
      {"rnn_tanh_cell",
       [] {
         rnn_tanh_cell(m23(), ones({7, 1}), ones({1, 3}), ones({1, 1}));
       }},
      {"rnn_relu_cell",
       [] {
         rnn_relu_cell(m23(), ones({7, 1}), ones({1, 3}), ones({1, 1}));
       }},
      {"scaled_dot_product_attention",
       [] {
         scaled_dot_product_attention(ones({1, 2, 3}), ones({1, 2, 4}), ones({1, 2, 4}));
       }},
      {"scaled_dot_product_attention", [] { scaled_dot_product_attention(m23(), m23(), wrong()); }},
      {"dropout", [] { dropout(m23(), {.p = 2}); }},
      {"softmax", [] { softmax(m23(), 5); }},
      {"log_softmax", [] { log_softmax(integers({2}), 0); }},
      {"normal", [] { normal(m23(), wrong()); }},
      {"normal", [] { normal(integers({2}), 1.0); }},
      {"bernoulli", [] { bernoulli(integers({2})); }},
      {"randn_like", [] { randn_like(integers({2})); }},
      {"rand_like", [] { rand_like(integers({2})); }},
      {"randint_like", [] { randint_like(m23(), 0); }},
      {"lstm_cell",
       [] {
         lstm_cell(m23(), {ones({1, 1}), ones({1, 1})}, ones({4, 3}), ones({4, 1}));
       }},
      {"rnn_tanh_cell",
       [] {
         rnn_tanh_cell(m23(), ones({1, 1}), ones({1, 3}), ones({1, 1}));
       }},
      {"rnn_relu_cell",
       [] {
         rnn_relu_cell(ones({3}), ones({2, 1}), ones({1, 3}), ones({1, 1}));
       }},
      {"scaled_dot_product_attention",
       [] {
         scaled_dot_product_attention(ones({1, 3}), m23(), m23(), {.attn_mask = ones({4, 2})});
       }},
      {"batch_norm", [] { batch_norm(m23(), ones({3}), ones({3}), {.eps = -1}); }},
      {"batch_norm", [] { batch_norm(m23(), integers({3}), ones({3})); }},
      {"batch_norm",
       [] {
         batch_norm(integers({2, 3}), ones({3}), ones({3}));
       }},
      {"instance_norm",
       [] {
         instance_norm(ones({2, 3, 4}), ones({3}), integers({3}));
       }},
  };
}

std::vector<BadCall> numbers() {
  return {
      {"trapezoid",
       [] {
         trapezoid(ones({2, 2}), {.x = ones({5})});
       }},
      {"cumulative_trapezoid",
       [] {
         cumulative_trapezoid(m23(), {.x = ones({2, 2})});
       }},
      {"arange", [] { arange(1.0, 2.0, -INFINITY); }},
      {"arange", [] { arange(3, {.dtype = bool_}); }},
      {"tensor",
       [] {
         tensor({1, 300}, {.dtype = uint8});
       }},
      {"tensor",
       [] {
         tensor(std::vector<double>{1, NAN}, {.dtype = int64});
       }},
      {"randint", [] { randint(-1, 3, {2}, {.dtype = uint8}); }},
      {"randint", [] { randint(3, {2}, {.dtype = bool_}); }},
      {"randperm", [] { randperm(3, {.dtype = bool_}); }},
      {"uniform_", [] { ones({2}).uniform_(-INFINITY, 0); }},
      {"uniform_", [] { ones({2}).uniform_(-3e38, 3e38); }},
      {"addcmul",
       [] { addcmul(integers({2}), integers({2}), integers({2}), {.value = INFINITY}); }},
      {"add", [] { add(integers({2}), integers({2}), {.alpha = 1e300}); }},
  };
}

void expect_named(const std::vector<BadCall>& calls) {
  for (size_t i = 0; i < calls.size(); ++i) {
    std::string message = "nothing was thrown";
    uint32_t line = 0;
    try {
      calls[i].call();
    } catch (const Error& error) {
      message = error.what();
      line = error.site().line();
    }
    const std::string prefix = str(__FILE__, ':', line, ": [", calls[i].function, "] ");
    EXPECT_EQ(message.substr(0, prefix.size()), prefix) << "row " << i << ": " << message;
  }
}

TEST(Messages, NameTheFunctionOfAProduct) {
  expect_named(products());
}

TEST(Messages, NameTheReduction) {
  expect_named(reductions());
}

TEST(Messages, NameTheComparison) {
  expect_named(comparisons());
}

TEST(Messages, NameTheElementwiseFunction) {
  expect_named(elementwise());
}

TEST(Messages, NameTheLoss) {
  expect_named(losses());
}

TEST(Messages, NameTheFunctionOfShapes) {
  expect_named(shapes());
}

TEST(Messages, NameTheFunctionOfIndices) {
  expect_named(indices());
}

TEST(Messages, NameTheFunctionOfWindows) {
  expect_named(windows());
}

TEST(Messages, NameTheFunctionOfALayer) {
  expect_named(layers());
}

TEST(Messages, NameTheFunctionWhoseNumbersDoNotFit) {
  expect_named(numbers());
}

TEST(Messages, ADtypeIsNoDevice) {
  EXPECT_EQ(message_of([] { m23().to("int16"); }),
            "[device] 'int16' is a dtype, not a device; give flow::int16");
  EXPECT_EQ(message_of([] { m23().to("complex64"); }),
            "[device] 'complex64' is no device, and flow has no complex dtypes; keep real and "
            "imaginary parts in a last dim of size 2");
  expect_named({{"device", [] { m23().to("tpu"); }}});
}

}  // namespace
}  // namespace flow
