// Smooth and gated activations as modules, for use in Sequential. Each one calls the function of
// its name in ops/elementwise/unary.h or ops/elementwise/activation.h. The input and the result
// have the same shape unless a comment says otherwise. Rectifiers are in nn/layers/rectifier.h,
// softmax and its relatives in nn/layers/softmax.h.
#pragma once

#include "nn/module.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/unary.h"

namespace flow::nn {

// Returns x itself.
class Identity : public Module<Identity> {
 public:
  Tensor forward(const Tensor& x);
};

// tanh(x).
class Tanh : public Module<Tanh> {
 public:
  Tensor forward(const Tensor& x);
};

// 1 / (1 + exp(-x)).
class Sigmoid : public Module<Sigmoid> {
 public:
  Tensor forward(const Tensor& x);
};

// log(sigmoid(x)), computed without overflow.
class LogSigmoid : public Module<LogSigmoid> {
 public:
  Tensor forward(const Tensor& x);
};

// min(max(x + 3, 0), 6) / 6.
class Hardsigmoid : public Module<Hardsigmoid> {
 public:
  Tensor forward(const Tensor& x);
};

// x times the distribution function of the standard normal distribution at x, exact or in the tanh
// approximation (Hendrycks and Gimpel 2016).
class GELU : public Module<GELU> {
 public:
  explicit GELU(GeluOptions options = {});
  Tensor forward(const Tensor& x);

 private:
  GeluOptions options_;
};

// x sigmoid(1.702 x), a cheap approximation of GELU (Hendrycks and Gimpel 2016).
class QuickGELU : public Module<QuickGELU> {
 public:
  Tensor forward(const Tensor& x);
};

// x sigmoid(x).
class SiLU : public Module<SiLU> {
 public:
  Tensor forward(const Tensor& x);
};

// x tanh(softplus(x)) (Misra 2020).
class Mish : public Module<Mish> {
 public:
  Tensor forward(const Tensor& x);
};

// x hardsigmoid(x) (Howard et al. 2019).
class Hardswish : public Module<Hardswish> {
 public:
  Tensor forward(const Tensor& x);
};

// log(1 + exp(beta x)) / beta; x itself where beta x exceeds the threshold.
class Softplus : public Module<Softplus> {
 public:
  explicit Softplus(SoftplusOptions options = {});
  Tensor forward(const Tensor& x);

 private:
  SoftplusOptions options_;
};

// x / (1 + |x|).
class Softsign : public Module<Softsign> {
 public:
  Tensor forward(const Tensor& x);
};

// x - tanh(x).
class Tanhshrink : public Module<Tanhshrink> {
 public:
  Tensor forward(const Tensor& x);
};

struct GLUOptions {
  int64_t dim = -1;  // its size is even and is halved
};

// The first half of x along dim times the sigmoid of the second half (Dauphin et al. 2017).
class GLU : public Module<GLU> {
 public:
  explicit GLU(GLUOptions options = {});
  Tensor forward(const Tensor& x);

 private:
  GLUOptions options_;
};

}  // namespace flow::nn
