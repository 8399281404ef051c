// Optimizer steps other than Adam that adapt the rate of each element. The conventions are those of
// ops/optimizer/update.h.
#pragma once

#include "core/tensor.h"

namespace flow {

struct AdamaxUpdateOptions {
  double lr = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;
  int64_t step = 1;  // counts from 1
  Tensor lr_tensor = {};
  Tensor step_tensor = {};
  Tensor beta1_tensor = {};
};

// Adamax (Kingma and Ba 2015). g = grad + weight_decay param
// m = beta1 m + (1 - beta1) g;  u = max(beta2 u, |g| + eps);  param -= lr / (1 - beta1^step) m / u
void adamax_update(const TensorArg& param, const TensorArg& grad, const TensorArg& exp_avg,
                   const TensorArg& exp_inf, const AdamaxUpdateOptions& options);

struct RAdamUpdateOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;
  bool maximize = false;
  int64_t step = 1;  // counts from 1
  Tensor lr_tensor = {};
  Tensor step_tensor = {};
  Tensor beta1_tensor = {};
};

// RAdam (Liu et al. 2020). m, v as in adam_update, c1 = 1 - beta1^step, c2 = 1 - beta2^step,
// l = 2 / (1 - beta2) - 1,  n = l - 2 step beta2^step / c2,
// r^2 = (n - 4) (n - 2) l / ((l - 4) (l - 2) n)
// param -= n > 5 ? lr r sqrt(c2) / c1 m / (sqrt(v) + eps) : lr / c1 m
// With decoupled_weight_decay the parameter shrinks first, as in adamw_update.
void radam_update(const TensorArg& param, const TensorArg& grad, const TensorArg& exp_avg,
                  const TensorArg& exp_avg_sq, const RAdamUpdateOptions& options);

// The rates change with the number of the step, which the caller knows. Rates given as tensors take
// precedence.
struct NAdamUpdateOptions {
  double grad_rate = 1e-3;     // lr (1 - mu) / (1 - mu_product)
  double average_rate = 1e-3;  // lr next_mu / (1 - mu_product next_mu)
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double decay = 0;  // of the gradient, or decoupled: lr weight_decay
  bool decoupled_weight_decay = false;
  bool maximize = false;
  double correction2 = 1;  // 1 - beta2^step
  Tensor grad_rate_tensor = {};
  Tensor average_rate_tensor = {};
  Tensor decay_tensor = {};
  Tensor correction2_tensor = {};
  Tensor beta1_tensor = {};
};

// NAdam (Dozat 2016). g = grad + decay param, or decoupled: param *= 1 - decay
// m, v as in adam_update;  d = sqrt(v / correction2) + eps
// param -= grad_rate g / d + average_rate m / d
void nadam_update(const TensorArg& param, const TensorArg& grad, const TensorArg& exp_avg,
                  const TensorArg& exp_avg_sq, const NAdamUpdateOptions& options);

struct RMSpropUpdateOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool maximize = false;
  Tensor grad_avg = {};         // given: centered (Graves 2013)
  Tensor momentum_buffer = {};  // given: with momentum
  Tensor lr_tensor = {};
  Tensor momentum_tensor = {};
};

// RMSprop (Tieleman and Hinton 2012). g = grad + weight_decay param
// v = alpha v + (1 - alpha) g^2;  centered: a = alpha a + (1 - alpha) g, v - a^2 below
// d = g / (sqrt(v) + eps);  with momentum: b = momentum b + d, d = b;  param -= lr d
void rmsprop_update(const TensorArg& param, const TensorArg& grad, const TensorArg& square_avg,
                    const RMSpropUpdateOptions& options);

struct AdagradUpdateOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double eps = 1e-10;
  double weight_decay = 0;
  bool maximize = false;
  int64_t step = 1;  // counts from 1
  Tensor lr_tensor = {};
  Tensor step_tensor = {};
};

// Adagrad (Duchi et al. 2011). g = grad + weight_decay param
// s += g^2;  param -= lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps)
void adagrad_update(const TensorArg& param, const TensorArg& grad, const TensorArg& sum,
                    const AdagradUpdateOptions& options);

struct AdadeltaUpdateOptions {
  double lr = 1;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;
  Tensor lr_tensor = {};
};

// Adadelta (Zeiler 2012). g = grad + weight_decay param
// v = rho v + (1 - rho) g^2;  d = sqrt(a + eps) / sqrt(v + eps) g
// a = rho a + (1 - rho) d^2;  param -= lr d
void adadelta_update(const TensorArg& param, const TensorArg& grad, const TensorArg& square_avg,
                     const TensorArg& acc_delta, const AdadeltaUpdateOptions& options);

struct LambUpdateOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = true;
  bool maximize = false;
  int64_t step = 1;  // counts from 1
  Tensor lr_tensor = {};
  Tensor step_tensor = {};
  Tensor beta1_tensor = {};
};

// LAMB (You et al. 2020). m, v as in adam_update, of g = grad + weight_decay param, or
// decoupled_weight_decay: of g = grad;
// u = m / (1 - beta1^step) / (sqrt(v) / sqrt(1 - beta2^step) + eps), decoupled: + weight_decay
// param param -= lr |param| / |u| u, with the norms of the whole parameter; lr u where one of them
// is 0.
void lamb_update(const TensorArg& param, const TensorArg& grad, const TensorArg& exp_avg,
                 const TensorArg& exp_avg_sq, const LambUpdateOptions& options);

}  // namespace flow
