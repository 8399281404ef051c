#include "ops/optimizer/update.h"

#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/optimizer/adaptive_update.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

SampleInput number(double low, double high) {
  return {.shape = {}, .low = low, .high = high, .dtype = DType::kFloat64};
}

Samples sgd_samples(const Shape& shape, const char* label) {
  const SampleInput x = in(shape);
  return {
      {"sgd_update",
       {x, x},
       kFloats,
       [](const Inputs& t) { sgd_update(t[0], t[1], Tensor(), {.lr = 0.1, .weight_decay = 0.01}); },
       label},
      {"sgd_update",
       {x, x, number(0.1, 0.2)},
       kFloats,
       [](const Inputs& t) {
         sgd_update(t[0], t[1], Tensor(), {.maximize = true, .lr_tensor = t[2]});
       },
       label},
      {"sgd_momentum_update",
       {x, x, x},
       kFloats,
       [](const Inputs& t) {
         sgd_update(t[0], t[1], t[2], {.lr = 0.1, .momentum = 0.9, .dampening = 0.2});
       },
       label},
      {"sgd_momentum_update",
       {x, x, x, number(0.1, 0.2), number(0.8, 0.9)},
       kFloats,
       [](const Inputs& t) {
         sgd_update(t[0], t[1], t[2],
                    {.nesterov = true, .lr_tensor = t[3], .momentum_tensor = t[4]});
       },
       label},
  };
}

Samples adam_samples(const Shape& shape, const char* label) {
  const SampleInput x = in(shape);
  const SampleInput square = in(shape, 0.5, 2);
  return {
      {"adam_update",
       {x, x, x, square},
       kFloats,
       [](const Inputs& t) {
         adam_update(t[0], t[1], t[2], t[3], {.weight_decay = 0.1, .step = 3});
       },
       label},
      {"adam_update",
       {x, x, x, square, number(0.1, 0.2), number(3, 4), number(0.8, 0.9)},
       kFloats,
       [](const Inputs& t) {
         adamw_update(
             t[0], t[1], t[2], t[3],
             {.weight_decay = 0.1, .lr_tensor = t[4], .step_tensor = t[5], .beta1_tensor = t[6]});
       },
       label},
      {"amsgrad_update",
       {x, x, x, square, square},
       kFloats,
       [](const Inputs& t) {
         adamw_update(t[0], t[1], t[2], t[3],
                      {.lr = 0.1, .maximize = true, .max_exp_avg_sq = t[4]});
       },
       label},
  };
}

constexpr DTypeSet kHalves = only(DType::kFloat16) | only(DType::kBFloat16);

// A master that rounds to the parameter, but is another number.
Tensor master_of(const Tensor& parameter) {
  return mul(cast(parameter, float32), 1 + 0x1p-13);
}

// Masters that belong to their parameters, and, as inputs, random ones that do not.
Samples master_samples(const Shape& shape, const char* label) {
  const SampleInput x = in(shape);
  SampleInput wide = in(shape), square = in(shape, 0.5, 2);
  wide.dtype = square.dtype = DType::kFloat32;
  return {
      {"sgd_master_update",
       {x, x},
       kHalves,
       [](const Inputs& t) {
         sgd_update(t[0], t[1], Tensor(),
                    {.lr = 0.1, .weight_decay = 0.01, .master = master_of(t[0])});
       },
       label},
      {"sgd_master_update",
       {x, x, wide, number(0.1, 0.2)},
       kHalves,
       [](const Inputs& t) {
         sgd_update(t[0], t[1], Tensor(), {.maximize = true, .master = t[2], .lr_tensor = t[3]});
       },
       label},
      {"sgd_momentum_master_update",
       {x, x, wide, number(0.1, 0.2), number(0.8, 0.9)},
       kHalves,
       [](const Inputs& t) {
         sgd_update(t[0], t[1], t[2],
                    {.nesterov = true,
                     .master = master_of(t[0]),
                     .lr_tensor = t[3],
                     .momentum_tensor = t[4]});
       },
       label},
      {"adam_master_update",
       {x, x, wide, square, wide},
       kHalves,
       [](const Inputs& t) {
         adam_update(t[0], t[1], t[2], t[3], {.weight_decay = 0.1, .step = 3, .master = t[4]});
       },
       label},
      {"adam_master_update",
       {x, x, wide, square, number(0.1, 0.2), number(3, 4), number(0.8, 0.9)},
       kHalves,
       [](const Inputs& t) {
         adamw_update(t[0], t[1], t[2], t[3],
                      {.weight_decay = 0.1,
                       .master = master_of(t[0]),
                       .lr_tensor = t[4],
                       .step_tensor = t[5],
                       .beta1_tensor = t[6]});
       },
       label},
      {"amsgrad_master_update",
       {x, x, wide, square, square},
       kHalves,
       [](const Inputs& t) {
         adamw_update(t[0], t[1], t[2], t[3],
                      {.maximize = true, .max_exp_avg_sq = t[4], .master = master_of(t[0])});
       },
       label},
  };
}

Samples adaptive_samples(const Shape& shape, const char* label) {
  const SampleInput x = in(shape);
  const SampleInput square = in(shape, 0.5, 2);
  const SampleInput lr = number(0.1, 0.2), step = number(3, 4), beta1 = number(0.8, 0.9);
  return {
      {"adamax_update",
       {x, x, x, square},
       kFloats,
       [](const Inputs& t) {
         adamax_update(t[0], t[1], t[2], t[3], {.weight_decay = 0.1, .step = 3});
       },
       label},
      {"adamax_update",
       {x, x, x, square, lr, step, beta1},
       kFloats,
       [](const Inputs& t) {
         adamax_update(
             t[0], t[1], t[2], t[3],
             {.maximize = true, .lr_tensor = t[4], .step_tensor = t[5], .beta1_tensor = t[6]});
       },
       label},
      {"radam_update",
       {x, x, x, square},
       kFloats,
       [](const Inputs& t) {
         radam_update(t[0], t[1], t[2], t[3], {.lr = 0.1, .weight_decay = 0.1, .step = 3});
       },
       label},
      {"radam_update",
       {x, x, x, square, lr, number(9, 10), beta1},
       kFloats,
       [](const Inputs& t) {
         radam_update(t[0], t[1], t[2], t[3],
                      {.weight_decay = 0.1,
                       .decoupled_weight_decay = true,
                       .maximize = true,
                       .lr_tensor = t[4],
                       .step_tensor = t[5],
                       .beta1_tensor = t[6]});
       },
       label},
      {"nadam_update",
       {x, x, x, square},
       kFloats,
       [](const Inputs& t) {
         nadam_update(t[0], t[1], t[2], t[3],
                      {.grad_rate = 0.1, .average_rate = 0.2, .decay = 0.1, .correction2 = 0.5});
       },
       label},
      {"nadam_update",
       {x, x, x, square},
       kFloats,
       [](const Inputs& t) {
         nadam_update(
             t[0], t[1], t[2], t[3],
             {.grad_rate = 0.1, .decay = 0.1, .decoupled_weight_decay = true, .maximize = true});
       },
       label},
      {"rmsprop_update",
       {x, x, square},
       kFloats,
       [](const Inputs& t) { rmsprop_update(t[0], t[1], t[2], {.lr = 0.1, .weight_decay = 0.1}); },
       label},
      {"rmsprop_centered_update",
       {x, x, square, in(shape, -0.1, 0.1), lr},
       kFloats,
       [](const Inputs& t) {
         rmsprop_update(t[0], t[1], t[2], {.grad_avg = t[3], .lr_tensor = t[4]});
       },
       label},
      {"rmsprop_momentum_update",
       {x, x, square, x, number(0.8, 0.9)},
       kFloats,
       [](const Inputs& t) {
         rmsprop_update(
             t[0], t[1], t[2],
             {.lr = 0.1, .maximize = true, .momentum_buffer = t[3], .momentum_tensor = t[4]});
       },
       label},
      {"rmsprop_centered_momentum_update",
       {x, x, square, in(shape, -0.1, 0.1), x},
       kFloats,
       [](const Inputs& t) {
         rmsprop_update(t[0], t[1], t[2],
                        {.lr = 0.1, .momentum = 0.9, .grad_avg = t[3], .momentum_buffer = t[4]});
       },
       label},
      {"adagrad_update",
       {x, x, square},
       kFloats,
       [](const Inputs& t) {
         adagrad_update(t[0], t[1], t[2], {.lr = 0.1, .lr_decay = 0.1, .step = 3});
       },
       label},
      {"adagrad_update",
       {x, x, square, lr, step},
       kFloats,
       [](const Inputs& t) {
         adagrad_update(t[0], t[1], t[2],
                        {.lr_decay = 0.1,
                         .weight_decay = 0.1,
                         .maximize = true,
                         .lr_tensor = t[3],
                         .step_tensor = t[4]});
       },
       label},
      {"adadelta_update",
       {x, x, square, square, lr},
       kFloats,
       [](const Inputs& t) {
         adadelta_update(t[0], t[1], t[2], t[3], {.weight_decay = 0.1, .lr_tensor = t[4]});
       },
       label},
      {"lamb_direction",
       {x, x, x, square, step, beta1},
       kFloats,
       [](const Inputs& t) {
         lamb_update(t[0], t[1], t[2], t[3],
                     {.weight_decay = 0.1, .step_tensor = t[4], .beta1_tensor = t[5]});
       },
       label},
      {"lamb_update",
       {x, x, x, square, lr},
       kFloats,
       [](const Inputs& t) {
         lamb_update(t[0], t[1], t[2], t[3],
                     {.weight_decay = 0.1,
                      .decoupled_weight_decay = false,
                      .maximize = true,
                      .step = 3,
                      .lr_tensor = t[4]});
       },
       label},
  };
}

}  // namespace

Samples update_samples() {
  Samples samples;
  for (const Shape& shape : {Shape{5, 2}, Shape{3, 7000}}) {
    for (const auto& family : {sgd_samples, adam_samples, master_samples, adaptive_samples}) {
      for (OpSample& sample : family(shape, shape.numel() > 100 ? "many" : "")) {
        sample.only_kernels = shape.numel() > 100;
        samples.push_back(std::move(sample));
      }
    }
  }
  return samples;
}

}  // namespace flow::contract
