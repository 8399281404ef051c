#include "benchmarks/op_rows.h"

#include <charconv>
#include <memory>
#include <string_view>

#include "core/error.h"
#include "nn/flow.h"

namespace flow::bench {

namespace {

Shape parse_shape(std::string_view words) {
  Shape shape;
  const char* at = words.data();
  const char* const end = at + words.size();
  while (at < end) {
    int64_t size = 0;
    at = std::from_chars(at, end, size).ptr + 1;
    shape.push_back(size);
  }
  return shape;
}

Tensor make_floats(std::string_view kind, const Shape& shape) {
  const Tensor x = kind.ends_with('+') ? rand(shape) + 0.1 : randn(shape);
  if (kind.starts_with("bf16")) return x.to(bfloat16);
  return kind.starts_with("f64") ? x.to(float64) : x;
}

// A contiguous tensor whose view `view` has the shape.
Tensor make_strided(std::string_view kind, char view, const Shape& shape) {
  if (view == 't') return make_floats(kind, {shape[1], shape[0]}).t();
  return make_floats(kind, {shape[0], shape[2], shape[3], shape[1]}).permute({0, 3, 1, 2});
}

}  // namespace

Tensor make_input(const std::string& words) {
  const size_t open = words.find('[');
  const std::string_view kind = std::string_view(words).substr(0, open);
  const Shape shape =
      parse_shape(std::string_view(words).substr(open + 1, words.size() - open - 2));
  if (kind == "bool") return lt(rand(shape), 0.5);
  if (kind.starts_with("i64<")) return randint(0, std::stoll(words.substr(4)), shape);
  const size_t dot = kind.find('.');
  if (dot == std::string_view::npos) return make_floats(kind, shape);
  return make_strided(kind.substr(0, dot), kind[dot + 1], shape);
}

namespace {

using Rows = std::vector<OpRow>;
using Words = std::vector<std::string>;

const std::string kVector = "f32[1024]", kMatrix = "f32[1024x1024]";

// A function of one tensor, at 1,024 and 1,048,576 elements.
void add_unary(Rows& rows, const std::string& name, Tensor (*f)(const TensorArg& x),
               int num_gradients = 0, const std::string& kind = "f32") {
  rows.push_back({name,
                  {kind + "[1024]"},
                  {kind + "[1024x1024]"},
                  [f](const Inputs& in) { return f(in[0]); },
                  num_gradients});
}

void add_elementwise(Rows& rows) {
  add_unary(rows, "exp", exp);
  add_unary(rows, "log", log, 0, "f32+");
  add_unary(rows, "sqrt", sqrt, 0, "f32+");
  add_unary(rows, "rsqrt", rsqrt, 0, "f32+");
  add_unary(rows, "abs", abs);
  add_unary(rows, "neg", neg);
  add_unary(rows, "sin", sin);
  add_unary(rows, "cos", cos);
  add_unary(rows, "erf", erf);
  add_unary(rows, "tanh", tanh, 1);
  add_unary(rows, "sigmoid", sigmoid, 1);
  add_unary(rows, "relu", relu, 1);
  add_unary(rows, "silu", silu, 1);
  rows.push_back({"gelu", {kVector}, {kMatrix}, [](const Inputs& in) { return gelu(in[0]); }, 1});
  rows.push_back({"gelu/tanh",
                  {kVector},
                  {kMatrix},
                  [](const Inputs& in) { return gelu(in[0], {.approximate = "tanh"}); },
                  1});
  rows.push_back(
      {"softplus", {kVector}, {kMatrix}, [](const Inputs& in) { return softplus(in[0]); }, 1});
  rows.push_back(
      {"leaky_relu", {kVector}, {kMatrix}, [](const Inputs& in) { return leaky_relu(in[0]); }});
  rows.push_back({"pow/2", {kVector}, {kMatrix}, [](const Inputs& in) { return pow(in[0], 2); }});
  rows.push_back(
      {"pow/tensor", {"f32+[1024]", kVector}, {"f32+[1024x1024]", kMatrix}, [](const Inputs& in) {
         return pow(in[0], in[1]);
       }});
  rows.push_back({"clamp", {kVector}, {kMatrix}, [](const Inputs& in) {
                    return clamp(in[0], {.min = -1, .max = 1});
                  }});

  const auto sum_of_two = [](const Inputs& in) { return in[0] + in[1]; };
  rows.push_back({"add", {kVector, kVector}, {kMatrix, kMatrix}, sum_of_two, 2});
  rows.push_back({"add/bf16",
                  {"bf16[1024]", "bf16[1024]"},
                  {"bf16[1024x1024]", "bf16[1024x1024]"},
                  sum_of_two});
  rows.push_back({"add/row", {"f32[32x32]", "f32[32]"}, {kMatrix, "f32[1024]"}, sum_of_two, 2});
  rows.push_back(
      {"add/column", {"f32[32x32]", "f32[32x1]"}, {kMatrix, "f32[1024x1]"}, sum_of_two, 2});
  rows.push_back({"add/channel",
                  {"f32[2x8x8x8]", "f32[8x1x1]"},
                  {"f32[16x64x32x32]", "f32[64x1x1]"},
                  sum_of_two});
  rows.push_back({"add/outer", {"f32[32x1]", "f32[32]"}, {"f32[1024x1]", "f32[1024]"}, sum_of_two});
  rows.push_back({"add/transposed",
                  {"f32.t[32x32]", "f32[32x32]"},
                  {"f32.t[1024x1024]", kMatrix},
                  sum_of_two});
  rows.push_back(
      {"add/number", {kVector}, {kMatrix}, [](const Inputs& in) { return in[0] + 1.5; }});
  const auto product = [](const Inputs& in) { return in[0] * in[1]; };
  rows.push_back({"mul", {kVector, kVector}, {kMatrix, kMatrix}, product, 2});
  rows.push_back({"mul/column", {"f32[32x32]", "f32[32x1]"}, {kMatrix, "f32[1024x1]"}, product});
  rows.push_back(
      {"mul/bf16", {"bf16[1024]", "bf16[1024]"}, {"bf16[1024x1024]", "bf16[1024x1024]"}, product});
  rows.push_back(
      {"div", {kVector, "f32+[1024]"}, {kMatrix, "f32+[1024x1024]"}, [](const Inputs& in) {
         return in[0] / in[1];
       }});
  rows.push_back({"maximum", {kVector, kVector}, {kMatrix, kMatrix}, [](const Inputs& in) {
                    return maximum(in[0], in[1]);
                  }});
  rows.push_back({"gt", {kVector, kVector}, {kMatrix, kMatrix}, [](const Inputs& in) {
                    return gt(in[0], in[1]);
                  }});
  rows.push_back({"eq/number", {"i64<9>[1024]"}, {"i64<9>[1024x1024]"}, [](const Inputs& in) {
                    return eq(in[0], 3);
                  }});
  rows.push_back({"where",
                  {"bool[1024]", kVector, kVector},
                  {"bool[1024x1024]", kMatrix, kMatrix},
                  [](const Inputs& in) { return where(in[0], in[1], in[2]); }});
  rows.push_back(
      {"masked_fill", {kVector, "bool[1024]"}, {kMatrix, "bool[1024x1024]"}, [](const Inputs& in) {
         return masked_fill(in[0], in[1], 0.5);
       }});
  rows.push_back(
      {"addcmul", {kVector, kVector, kVector}, {kMatrix, kMatrix, kMatrix}, [](const Inputs& in) {
         return addcmul(in[0], in[1], in[2]);
       }});
  rows.push_back({"lerp", {kVector, kVector}, {kMatrix, kMatrix}, [](const Inputs& in) {
                    return lerp(in[0], in[1], 0.3);
                  }});
  rows.push_back(
      {"to/bf16", {kVector}, {kMatrix}, [](const Inputs& in) { return in[0].to(bfloat16); }});
  rows.push_back({"to/f32", {"bf16[1024]"}, {"bf16[1024x1024]"}, [](const Inputs& in) {
                    return in[0].to(float32);
                  }});
  rows.push_back(
      {"to/i64", {kVector}, {kMatrix}, [](const Inputs& in) { return in[0].to(int64); }});
  rows.push_back({"add_", {kVector, kVector}, {kMatrix, kMatrix}, [](const Inputs& in) {
                    in[0].add_(in[1]);
                    return in[0];
                  }});
  rows.push_back({"mul_/number", {kVector}, {kMatrix}, [](const Inputs& in) {
                    in[0].mul_(1.0);
                    return in[0];
                  }});
}

template <class F>
void add_reduction(Rows& rows, const std::string& name, F f, int num_gradients = 0) {
  rows.push_back(
      {name, {"f32[32x32]"}, {kMatrix}, [f](const Inputs& in) { return f(in[0]); }, num_gradients});
}

void add_reductions(Rows& rows) {
  add_reduction(
      rows, "sum", [](const Tensor& x) { return sum(x); }, 1);
  add_reduction(rows, "sum/dim0", [](const Tensor& x) { return sum(x, 0); });
  add_reduction(
      rows, "sum/dim1", [](const Tensor& x) { return sum(x, 1); }, 1);
  rows.push_back({"sum/middle", {"f32[4x16x16]"}, {"f32[32x256x128]"}, [](const Inputs& in) {
                    return sum(in[0], 1);
                  }});
  rows.push_back({"sum/bf16", {"bf16[32x32]"}, {"bf16[1024x1024]"}, [](const Inputs& in) {
                    return sum(in[0], 1);
                  }});
  rows.push_back({"sum/transposed", {"f32.t[32x32]"}, {"f32.t[1024x1024]"}, [](const Inputs& in) {
                    return sum(in[0], 1);
                  }});
  add_reduction(
      rows, "mean/dim1", [](const Tensor& x) { return mean(x, 1); }, 1);
  add_reduction(
      rows, "var/dim1", [](const Tensor& x) { return var(x, 1); }, 1);
  add_reduction(rows, "std", [](const Tensor& x) { return flow::std(x); });
  add_reduction(rows, "prod/dim1", [](const Tensor& x) { return prod(x, 1); });
  add_reduction(
      rows, "norm", [](const Tensor& x) { return norm(x); }, 1);
  add_reduction(rows, "norm/dim1", [](const Tensor& x) { return norm(x, {.dim = 1}); });
  add_reduction(rows, "norm/3", [](const Tensor& x) { return norm(x, {.p = 3, .dim = 1}); });
  add_reduction(rows, "max", [](const Tensor& x) { return max(x); });
  add_reduction(rows, "max/dim0", [](const Tensor& x) { return max(x, 0).values; });
  add_reduction(
      rows, "max/dim1", [](const Tensor& x) { return max(x, 1).values; }, 1);
  add_reduction(rows, "amax/dim1", [](const Tensor& x) { return amax(x, 1); });
  add_reduction(rows, "argmax/dim0", [](const Tensor& x) { return argmax(x, 0); });
  add_reduction(rows, "argmax/dim1", [](const Tensor& x) { return argmax(x, 1); });
  add_reduction(rows, "logsumexp/dim0", [](const Tensor& x) { return logsumexp(x, 0); });
  add_reduction(
      rows, "logsumexp/dim1", [](const Tensor& x) { return logsumexp(x, 1); }, 1);
  rows.push_back(
      {"all", {"bool[1024]"}, {"bool[1024x1024]"}, [](const Inputs& in) { return all(in[0]); }});
  add_reduction(rows, "cumsum/dim0", [](const Tensor& x) { return cumsum(x, 0); });
  add_reduction(
      rows, "cumsum/dim1", [](const Tensor& x) { return cumsum(x, 1); }, 1);
  add_reduction(rows, "cumprod/dim1", [](const Tensor& x) { return cumprod(x, 1); });
  add_reduction(rows, "median/dim1", [](const Tensor& x) { return median(x, 1).values; });
  rows.push_back(
      {"clip_grad_norm_", {"f32[32x32]", "f32[32x32]"}, {kMatrix, kMatrix}, [](const Inputs& in) {
         in[0].set_grad(in[1]);
         return nn::utils::clip_grad_norm_({in[0]}, 1e9);
       }});
}

void add_sorting(Rows& rows) {
  const auto sorted = [](const Inputs& in) { return sort(in[0]).values; };
  rows.push_back({"sort", {kVector}, {"f32[1048576]"}, sorted});
  rows.push_back({"sort/rows", {"f32[32x32]"}, {kMatrix}, sorted});
  rows.push_back({"sort/i64", {"i64<1000000>[1024]"}, {"i64<1000000>[1048576]"}, sorted});
  rows.push_back(
      {"argsort", {kVector}, {"f32[1048576]"}, [](const Inputs& in) { return argsort(in[0]); }});
  rows.push_back({"topk/5", {"f32[32x32]"}, {kMatrix}, [](const Inputs& in) {
                    return topk(in[0], 5).values;
                  }});
  rows.push_back({"topk/50", {"f32[8x128]"}, {"f32[64x16384]"}, [](const Inputs& in) {
                    return topk(in[0], 50).values;
                  }});
  rows.push_back({"unique", {"i64<100>[1024]"}, {"i64<1000>[1048576]"}, [](const Inputs& in) {
                    return unique(in[0]).output;
                  }});
  rows.push_back({"bincount", {"i64<100>[1024]"}, {"i64<1000>[1048576]"}, [](const Inputs& in) {
                    return bincount(in[0]);
                  }});
  rows.push_back(
      {"unique_consecutive", {"i64<2>[1024]"}, {"i64<2>[1048576]"}, [](const Inputs& in) {
         return unique_consecutive(in[0]).output;
       }});
  rows.push_back({"histc", {kVector}, {"f32[1048576]"}, [](const Inputs& in) {
                    return histc(in[0], {.bins = 100, .min = -3, .max = 3});
                  }});
  rows.push_back({"searchsorted", {"f32+[1024]"}, {"f32+[1048576]"}, [](const Inputs& in) {
                    static const Tensor edges = linspace(0, 1, 100);
                    return searchsorted(edges, in[0]);
                  }});
  rows.push_back({"nonzero", {"bool[1024]"}, {"bool[1024x1024]"}, [](const Inputs& in) {
                    return nonzero(in[0]);
                  }});
  rows.push_back({"masked_select",
                  {kVector, "bool[1024]"},
                  {kMatrix, "bool[1024x1024]"},
                  [](const Inputs& in) { return masked_select(in[0], in[1]); }});
}

void add_indexing(Rows& rows) {
  const Words small = {"f32[32x32]", "i64<32>[32x32]"};
  const Words large = {kMatrix, "i64<1024>[1024x1024]"};
  rows.push_back(
      {"gather/dim0", small, large, [](const Inputs& in) { return gather(in[0], 0, in[1]); }});
  rows.push_back(
      {"gather/dim1", small, large, [](const Inputs& in) { return gather(in[0], 1, in[1]); }, 1});
  rows.push_back({"gather/labels",
                  {"f32[64x10]", "i64<10>[64x1]"},
                  {"f32[4096x1000]", "i64<1000>[4096x1]"},
                  [](const Inputs& in) { return gather(in[0], 1, in[1]); }});
  const Words small_source = {"f32[32x32]", "i64<32>[32x32]", "f32[32x32]"};
  const Words large_source = {kMatrix, "i64<1024>[1024x1024]", kMatrix};
  rows.push_back({"scatter/dim1", small_source, large_source,
                  [](const Inputs& in) { return scatter(in[0], 1, in[1], in[2]); }});
  rows.push_back({"scatter_add/dim0", small_source, large_source,
                  [](const Inputs& in) { return scatter_add(in[0], 0, in[1], in[2]); }});
  rows.push_back({"scatter_add/dim1", small_source, large_source,
                  [](const Inputs& in) { return scatter_add(in[0], 1, in[1], in[2]); }});
  rows.push_back({"index_select/dim0",
                  {"f32[100x16]", "i64<100>[64]"},
                  {"f32[10000x128]", "i64<10000>[8192]"},
                  [](const Inputs& in) { return index_select(in[0], 0, in[1]); },
                  1});
  rows.push_back({"index_select/dim1",
                  {"f32[16x100]", "i64<100>[64]"},
                  {"f32[1024x1024]", "i64<1024>[1024]"},
                  [](const Inputs& in) { return index_select(in[0], 1, in[1]); }});
  rows.push_back({"index_add/dim0",
                  {"f32[100x16]", "i64<100>[64]", "f32[64x16]"},
                  {"f32[10000x128]", "i64<10000>[8192]", "f32[8192x128]"},
                  [](const Inputs& in) { return index_add(in[0], 0, in[1], in[2]); }});
  rows.push_back({"index/rows",
                  {"f32[100x16]", "i64<100>[64]"},
                  {"f32[10000x128]", "i64<10000>[8192]"},
                  [](const Inputs& in) { return in[0].index({in[1]}); }});
  rows.push_back({"index/pairs",
                  {"f32[64x64]", "i64<64>[1024]", "i64<64>[1024]"},
                  {kMatrix, "i64<1024>[1048576]", "i64<1024>[1048576]"},
                  [](const Inputs& in) {
                    return in[0].index({in[1], in[2]});
                  }});
  rows.push_back(
      {"index/mask", {kVector, "bool[1024]"}, {kMatrix, "bool[1024x1024]"}, [](const Inputs& in) {
         return in[0].index({in[1]});
       }});
  rows.push_back({"index_put/mask",
                  {kVector, "bool[1024]"},
                  {kMatrix, "bool[1024x1024]"},
                  [](const Inputs& in) {
                    in[0].index_put_({in[1]}, 0.5);
                    return in[0];
                  }});
  rows.push_back({"index_put/rows",
                  {"f32[100x16]", "i64<100>[64]", "f32[64x16]"},
                  {"f32[10000x128]", "i64<10000>[8192]", "f32[8192x128]"},
                  [](const Inputs& in) {
                    in[0].index_put_({in[1]}, in[2]);
                    return in[0];
                  }});
  rows.push_back({"embedding",
                  {"f32[100x32]", "i64<100>[4x16]"},
                  {"f32[50000x256]", "i64<50000>[16x256]"},
                  [](const Inputs& in) { return embedding(in[1], in[0]); },
                  1});
  rows.push_back({"one_hot", {"i64<10>[64]"}, {"i64<1000>[4096]"}, [](const Inputs& in) {
                    return one_hot(in[0], in[0].numel() == 64 ? 10 : 1000);
                  }});
}

void add_shapes(Rows& rows) {
  rows.push_back({"cat/dim0",
                  {"f32[16x32]", "f32[16x32]"},
                  {"f32[512x1024]", "f32[512x1024]"},
                  [](const Inputs& in) {
                    return cat({in[0], in[1]}, 0);
                  },
                  2});
  rows.push_back({"cat/dim1",
                  {"f32[32x16]", "f32[32x16]"},
                  {"f32[1024x512]", "f32[1024x512]"},
                  [](const Inputs& in) {
                    return cat({in[0], in[1]}, 1);
                  }});
  rows.push_back(
      {"stack", {"f32[512]", "f32[512]"}, {"f32[512x1024]", "f32[512x1024]"}, [](const Inputs& in) {
         return stack({in[0], in[1]});
       }});
  rows.push_back(
      {"flip/dim0", {"f32[32x32]"}, {kMatrix}, [](const Inputs& in) { return flip(in[0], 0); }});
  rows.push_back(
      {"flip/dim1", {"f32[32x32]"}, {kMatrix}, [](const Inputs& in) { return flip(in[0], 1); }});
  rows.push_back(
      {"roll", {"f32[32x32]"}, {kMatrix}, [](const Inputs& in) { return roll(in[0], 3, 1); }});
  rows.push_back({"repeat", {"f32[16x16]"}, {"f32[512x512]"}, [](const Inputs& in) {
                    return repeat(in[0], {2, 2});
                  }});
  rows.push_back({"repeat_interleave", {"f32[512]"}, {"f32[512x1024]"}, [](const Inputs& in) {
                    return repeat_interleave(in[0], 2, 0);
                  }});
  rows.push_back({"pad/constant",
                  {"f32[1x2x16x16]"},
                  {"f32[16x16x64x64]"},
                  [](const Inputs& in) {
                    return pad(in[0], {1, 1, 1, 1});
                  },
                  1});
  rows.push_back({"pad/reflect",
                  {"f32[1x2x16x16]"},
                  {"f32[16x16x64x64]"},
                  [](const Inputs& in) {
                    return pad(in[0], {2, 2, 2, 2}, {.mode = "reflect"});
                  },
                  1});
  rows.push_back({"pad/replicate", {"f32[1x2x16x16]"}, {"f32[16x16x64x64]"}, [](const Inputs& in) {
                    return pad(in[0], {2, 2, 2, 2}, {.mode = "replicate"});
                  }});
  rows.push_back({"tril", {"f32[32x32]"}, {kMatrix}, [](const Inputs& in) { return tril(in[0]); }});
  rows.push_back(
      {"contiguous/transposed", {"f32.t[32x32]"}, {"f32.t[1024x1024]"}, [](const Inputs& in) {
         return in[0].contiguous();
       }});
  rows.push_back({"contiguous/heads", {"f32[2x8x4x16]"}, {"f32[8x256x8x64]"}, [](const Inputs& in) {
                    return in[0].permute({0, 2, 1, 3}).contiguous();
                  }});
  rows.push_back({"contiguous/channels_last",
                  {"f32.s[1x8x16x8]"},
                  {"f32.s[16x64x32x32]"},
                  [](const Inputs& in) { return in[0].contiguous(); }});
  rows.push_back({"contiguous/expanded", {"f32[32x1]"}, {"f32[1024x1]"}, [](const Inputs& in) {
                    return in[0].expand({in[0].size(0), in[0].size(0)}).contiguous();
                  }});
  rows.push_back({"clone", {kVector}, {kMatrix}, [](const Inputs& in) { return clone(in[0]); }});
  rows.push_back({"copy_/slice",
                  {"f32[32x32]", "f32[32x16]"},
                  {kMatrix, "f32[1024x512]"},
                  [](const Inputs& in) {
                    in[0].narrow(1, 4, in[1].size(1)).copy_(in[1]);
                    return in[1];
                  }});
  rows.push_back(
      {"zeros", {kVector}, {kMatrix}, [](const Inputs& in) { return zeros_like(in[0]); }});
  rows.push_back({"rand", {kVector}, {kMatrix}, [](const Inputs& in) { return rand_like(in[0]); }});
  rows.push_back(
      {"randn", {kVector}, {kMatrix}, [](const Inputs& in) { return randn_like(in[0]); }});
  rows.push_back(
      {"arange", {"i64<2>[1]"}, {"i64<2>[1]"}, [](const Inputs&) { return arange(4096); }});
}

// x: (N, T, F).
template <class Module>
OpRow recurrent_row(const std::string& name) {
  const auto modules = std::make_shared<std::map<int64_t, Module>>();
  const auto module_for = [modules](const Inputs& in) -> Module& {
    const int64_t size = in[0].size(-1);
    auto at = modules->find(size);
    if (at == modules->end())
      at = modules->emplace(size, Module(size, size, {.batch_first = true})).first;
    return at->second;
  };
  return {.name = name,
          .small = {"f32[4x8x32]"},
          .large = {"f32[16x32x256]"},
          .call = [module_for](const Inputs& in) { return module_for(in)(in[0]).output; },
          .num_gradients = 1,
          .parameters = [module_for](const Inputs& in) { return module_for(in).parameters(); }};
}

void add_layers(Rows& rows) {
  rows.push_back({"softmax/dim1",
                  {"f32[32x32]"},
                  {kMatrix},
                  [](const Inputs& in) { return softmax(in[0], 1); },
                  1});
  rows.push_back({"softmax/dim0",
                  {"f32[32x32]"},
                  {kMatrix},
                  [](const Inputs& in) { return softmax(in[0], 0); },
                  1});
  rows.push_back({"log_softmax/dim1",
                  {"f32[32x32]"},
                  {kMatrix},
                  [](const Inputs& in) { return log_softmax(in[0], 1); },
                  1});
  rows.push_back({"layer_norm",
                  {"f32[16x64]", "f32[64]", "f32[64]"},
                  {"f32[2048x512]", "f32[512]", "f32[512]"},
                  [](const Inputs& in) {
                    return layer_norm(in[0], {in[0].size(1)}, {.weight = in[1], .bias = in[2]});
                  },
                  3});
  rows.push_back(
      {"rms_norm",
       {"f32[16x64]", "f32[64]"},
       {"f32[2048x512]", "f32[512]"},
       [](const Inputs& in) { return rms_norm(in[0], {in[0].size(1)}, {.weight = in[1]}); },
       2});
  rows.push_back(
      {"group_norm",
       {"f32[2x8x8x8]", "f32[8]", "f32[8]"},
       {"f32[16x64x32x32]", "f32[64]", "f32[64]"},
       [](const Inputs& in) { return group_norm(in[0], 4, {.weight = in[1], .bias = in[2]}); },
       3});
  const auto norm_of_batches = [](bool training) {
    return [training](const Inputs& in) {
      return batch_norm(in[0], in[1], in[2],
                        {.weight = in[3], .bias = in[4], .training = training});
    };
  };
  const Words small_batch = {"f32[2x8x8x8]", "f32[8]", "f32+[8]", "f32[8]", "f32[8]"};
  const Words large_batch = {"f32[16x64x32x32]", "f32[64]", "f32+[64]", "f32[64]", "f32[64]"};
  rows.push_back({"batch_norm/train", small_batch, large_batch, norm_of_batches(true), 1});
  rows.push_back({"batch_norm/eval", small_batch, large_batch, norm_of_batches(false)});
  const Words small_image = {"f32[1x4x16x16]"}, large_image = {"f32[16x64x32x32]"};
  rows.push_back({"normalize",
                  {"f32[32x32]"},
                  {kMatrix},
                  [](const Inputs& in) { return normalize(in[0]); },
                  1});
  rows.push_back({"max_pool2d", small_image, large_image,
                  [](const Inputs& in) { return max_pool2d(in[0], 2); }, 1});
  rows.push_back(
      {"max_pool2d/3x3", small_image, large_image,
       [](const Inputs& in) { return max_pool2d(in[0], 3, {.stride = 2, .padding = 1}); }, 1});
  rows.push_back({"avg_pool2d", small_image, large_image,
                  [](const Inputs& in) { return avg_pool2d(in[0], 2); }, 1});
  rows.push_back({"adaptive_avg_pool2d", small_image, large_image,
                  [](const Inputs& in) { return adaptive_avg_pool2d(in[0], 1); }, 1});
  rows.push_back({"interpolate/nearest", small_image, large_image,
                  [](const Inputs& in) { return interpolate(in[0], {.scale_factor = {2.0}}); }, 1});
  rows.push_back({"interpolate/bilinear", small_image, large_image,
                  [](const Inputs& in) {
                    return interpolate(in[0], {.scale_factor = {2.0}, .mode = "bilinear"});
                  },
                  1});
  rows.push_back({"grid_sample",
                  {"f32[1x4x16x16]", "f32[1x8x8x2]"},
                  {"f32[16x64x32x32]", "f32[16x32x32x2]"},
                  [](const Inputs& in) { return grid_sample(in[0], in[1]); },
                  2});
  rows.push_back({"conv2d/3x3",
                  {"f32[1x4x16x16]", "f32[8x4x3x3]", "f32[8]"},
                  {"f32[8x64x32x32]", "f32[64x64x3x3]", "f32[64]"},
                  [](const Inputs& in) { return conv2d(in[0], in[1], in[2], {.padding = 1}); },
                  3});
  rows.push_back({"conv2d/1x1",
                  {"f32[1x4x16x16]", "f32[8x4x1x1]"},
                  {"f32[8x128x16x16]", "f32[256x128x1x1]"},
                  [](const Inputs& in) { return conv2d(in[0], in[1]); },
                  2});
  rows.push_back(
      {"dropout", {kVector}, {kMatrix}, [](const Inputs& in) { return dropout(in[0]); }, 1});
  rows.push_back({"scaled_dot_product_attention",
                  {"f32[2x2x16x16]", "f32[2x2x16x16]", "f32[2x2x16x16]"},
                  {"f32[4x8x256x64]", "f32[4x8x256x64]", "f32[4x8x256x64]"},
                  [](const Inputs& in) {
                    return scaled_dot_product_attention(in[0], in[1], in[2], {.is_causal = true});
                  },
                  3});
  rows.push_back(recurrent_row<nn::LSTM>("lstm"));
  rows.push_back(recurrent_row<nn::GRU>("gru"));
}

void add_losses(Rows& rows) {
  rows.push_back({"mse_loss",
                  {kVector, kVector},
                  {kMatrix, kMatrix},
                  [](const Inputs& in) { return mse_loss(in[0], in[1]); },
                  1});
  rows.push_back({"l1_loss",
                  {kVector, kVector},
                  {kMatrix, kMatrix},
                  [](const Inputs& in) { return l1_loss(in[0], in[1]); },
                  1});
  rows.push_back({"smooth_l1_loss",
                  {kVector, kVector},
                  {kMatrix, kMatrix},
                  [](const Inputs& in) { return smooth_l1_loss(in[0], in[1]); },
                  1});
  rows.push_back({"binary_cross_entropy_with_logits",
                  {kVector, "f32+[1024]"},
                  {kMatrix, "f32+[1024x1024]"},
                  [](const Inputs& in) { return binary_cross_entropy_with_logits(in[0], in[1]); },
                  1});
  rows.push_back({"cross_entropy",
                  {"f32[64x10]", "i64<10>[64]"},
                  {"f32[1024x1000]", "i64<1000>[1024]"},
                  [](const Inputs& in) { return cross_entropy(in[0], in[1]); },
                  1});
}

void add_products(Rows& rows) {
  const auto product = [](const Inputs& in) { return matmul(in[0], in[1]); };
  rows.push_back(
      {"matmul", {"f32[32x32]", "f32[32x32]"}, {"f32[512x512]", "f32[512x512]"}, product, 2});
  rows.push_back({"matmul/transposed",
                  {"f32[32x32]", "f32.t[32x32]"},
                  {"f32[512x512]", "f32.t[512x512]"},
                  product});
  rows.push_back({"matmul/skinny",
                  {"f32[1x512]", "f32[512x512]"},
                  {"f32[16x4096]", "f32[4096x4096]"},
                  product});
  rows.push_back({"matmul/batched",
                  {"f32[8x16x16]", "f32[8x16x16]"},
                  {"f32[32x256x64]", "f32[32x64x256]"},
                  product});
  rows.push_back({"cdist",
                  {"f32[32x16]", "f32[32x16]"},
                  {"f32[1024x64]", "f32[1024x64]"},
                  [](const Inputs& in) { return cdist(in[0], in[1]); },
                  2});
  rows.push_back({"linear",
                  {"f32[16x32]", "f32[32x32]", "f32[32]"},
                  {"f32[256x512]", "f32[2048x512]", "f32[2048]"},
                  [](const Inputs& in) { return linear(in[0], in[1], in[2]); },
                  3});
}

}  // namespace

const std::vector<OpRow>& op_rows() {
  static const Rows rows = [] {
    Rows all;
    add_elementwise(all);
    add_reductions(all);
    add_sorting(all);
    add_indexing(all);
    add_shapes(all);
    add_layers(all);
    add_losses(all);
    add_products(all);
    return all;
  }();
  return rows;
}

}  // namespace flow::bench
