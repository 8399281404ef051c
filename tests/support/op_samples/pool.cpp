#include "ops/conv/pool.h"

#include "core/dispatch.h"
#include "ops/conv/max_unpool.h"
#include "ops/conv/pool_op.h"
#include "ops/index/sort.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

using Pool = Tensor (*)(const Inputs& x);

Tensor max_halves(const Inputs& x) {
  return max_pool2d(x[0], 2);
}

Tensor max_overlapping(const Inputs& x) {
  return max_pool2d(x[0], {3, 2}, {.stride = 1, .padding = {1, 0}});
}

Tensor max_overlapping_halves(const Inputs& x) {
  return max_pool2d(x[0], 3, {.stride = 2, .padding = 1});
}

Tensor max_ceil(const Inputs& x) {
  return max_pool2d(x[0], 2, {.ceil_mode = true});
}

Tensor max_dilated(const Inputs& x) {
  return max_pool2d(x[0], 2, {.stride = 3, .padding = 1, .dilation = 2, .ceil_mode = true});
}

Tensor avg_halves(const Inputs& x) {
  return avg_pool2d(x[0], 2);
}

Tensor avg_padded(const Inputs& x) {
  return avg_pool2d(x[0], 3, {.stride = 2, .padding = 1, .count_include_pad = false});
}

Tensor avg_overlapping(const Inputs& x) {
  return avg_pool2d(x[0], {2, 3}, {.stride = 1, .padding = {0, 1}});
}

Tensor avg_sparse(const Inputs& x) {
  return avg_pool2d(x[0], 2, {.stride = 3});
}

Tensor avg_ceil(const Inputs& x) {
  return avg_pool2d(x[0], 2, {.ceil_mode = true, .divisor_override = 3});
}

Tensor avg_ceil_padded(const Inputs& x) {
  return avg_pool2d(x[0], {3, 2}, {.stride = 2, .padding = {1, 0}, .ceil_mode = true});
}

Tensor adaptive(const Inputs& x) {
  return adaptive_avg_pool2d(x[0], {3, 2});
}

Tensor to_one(const Inputs& x) {
  return adaptive_avg_pool2d(x[0], 1);
}

Tensor max_adaptive(const Inputs& x) {
  return adaptive_max_pool2d(x[0], {3, 2});
}

Tensor max_adaptive_halves(const Inputs& x) {
  return adaptive_max_pool2d(x[0], {2, 2});
}

Tensor unpooled(const Inputs& x) {
  return max_unpool1d(x[0], argsort(x[1]), 2);
}

void add(Samples& samples, const char* op, const char* backward, const SampleInput& x, Pool pool,
         const char* label) {
  samples.push_back({op, {x}, kFloats, pool, label});
  samples.push_back({backward, {x}, kFloats, backward_of(pool), label});
  SampleInput many = x;
  many.shape = {3, 20, 33, 30};
  for (const auto& [name, call] :
       std::vector<std::pair<const char*, std::function<void(const Inputs&)>>>{
           {op, pool}, {backward, backward_of(pool)}}) {
    samples.push_back({name, {many}, kFloats, call, std::string("many, ") + label});
    samples.back().only_kernels = true;
  }
}

}  // namespace

Samples pool_samples() {
  Samples samples;
  const SampleInput planes = distinct({2, 3, 5, 4});
  add(samples, "max_pool", "max_pool_backward", planes, max_halves, "halves");
  add(samples, "max_pool", "max_pool_backward", planes, max_overlapping, "overlapping");
  add(samples, "max_pool", "max_pool_backward", planes, max_overlapping_halves,
      "overlapping halves");
  add(samples, "max_pool", "max_pool_backward", distinct({5, 3, 3}), max_ceil, "ceil");
  samples.push_back({"max_pool", {in({2, 3, 5, 4})}, kIntegers, max_halves, "integers"});
  samples.push_back({"max_pool_with_indices",
                     {in({2, 3, 5, 4})},
                     kIntegers,
                     [](const Inputs& x) { max_pool2d_with_indices(x[0], 2); },
                     "integers"});
  samples.push_back({"avg_pool", {in({2, 3, 5, 4})}, only(DType::kInt64), avg_halves, "integers"});
  add(samples, "avg_pool", "avg_pool_backward", planes, avg_halves, "halves");
  add(samples, "avg_pool", "avg_pool_backward", planes, avg_padded, "padded");
  add(samples, "avg_pool", "avg_pool_backward", planes, avg_overlapping, "overlapping");
  add(samples, "avg_pool", "avg_pool_backward", planes, avg_sparse, "sparse");
  add(samples, "avg_pool", "avg_pool_backward", distinct({5, 3, 3}), avg_ceil, "ceil");
  add(samples, "max_pool", "max_pool_backward", distinct({2, 6, 5}), max_dilated, "dilated");
  add(samples, "avg_pool", "avg_pool_backward", distinct({2, 6, 5}), avg_ceil_padded,
      "ceil, padded");
  add(samples, "max_pool", "max_pool_backward", planes, max_adaptive, "adaptive, uneven");
  add(samples, "max_pool", "max_pool_backward", distinct({2, 4, 6}), max_adaptive_halves,
      "adaptive, halves");
  add(samples, "max_pool", "max_pool_backward", distinct({2, 2, 3}), max_adaptive,
      "adaptive, more than there are");
  for (const Pool pool : {max_overlapping, max_overlapping_halves, max_dilated, max_adaptive}) {
    samples.push_back({"max_pool", {specials({4, 5, 20, 20})}, kFloats, pool, "specials"});
    samples.back().only_kernels = true;
    samples.push_back(
        {"max_pool_backward", {sparse({4, 5, 20, 20}, 0.7)}, kFloats, backward_of(pool), "ties"});
    samples.back().only_kernels = true;
  }
  add(samples, "adaptive_avg_pool", "adaptive_avg_pool_backward", planes, adaptive, "uneven");
  add(samples, "adaptive_avg_pool", "adaptive_avg_pool_backward", distinct({2, 2, 3}), adaptive,
      "more than there are");
  add(samples, "adaptive_avg_pool", "adaptive_avg_pool_backward", planes, to_one, "to one");
  for (const Shape& shape : {Shape{5, 2, 4}, Shape{3, 20, 33}}) {
    samples.push_back({"max_unpool", {in(shape), in(shape)}, kFloats, unpooled, str(shape)});
    samples.back().only_kernels = shape.numel() > 1000;
    samples.back().constant_inputs = 0b10;
    samples.back().is_general = false;  // no index occurs twice
  }
  samples.push_back({"max_unpool",
                     {in({5, 2, 4}), positions({5, 2, 4}, 8)},
                     kFloats,
                     [](const Inputs& x) { max_unpool1d(x[0], x[1], 2); },
                     "indices that come twice"});
  samples.back().constant_inputs = 0b01;  // an overwritten element still has its gradient
  for (const Shape& shape : {Shape{2, 3, 5, 4}, Shape{3, 20, 33, 30}}) {
    samples.push_back({"max_pool_with_indices",
                       {distinct(shape)},
                       kFloats,
                       [](const Inputs& x) {
                         adaptive_max_pool2d_with_indices(x[0], {3, 2});
                       },
                       str("adaptive, ", shape)});
    samples.back().only_kernels = shape.numel() > 1000;
    samples.push_back({"max_pool_with_indices",
                       {distinct(shape)},
                       kFloats,
                       [](const Inputs& x) { max_pool2d_with_indices(x[0], 2); },
                       str(shape)});
    samples.back().only_kernels = shape.numel() > 1000;
    samples.push_back({"max_pool_gather",
                       {distinct(shape), in(shape)},
                       kFloats,
                       [](const Inputs& x) {
                         const ops::MaxPoolAttrs attrs{.kernel = {2, 3}, .stride = {1, 2}};
                         dispatch(ops::kMaxPoolGather, {&x[0], &x[1]}, attrs, Site::here());
                       },
                       str(shape)});
    samples.back().only_kernels = shape.numel() > 1000;
  }
  return samples;
}

}  // namespace flow::contract
