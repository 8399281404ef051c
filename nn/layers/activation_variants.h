// Activations that are met less often; formulas not given here stand at the functions of
// ops/elementwise/activation.h.
#pragma once

#include "nn/module.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/shrink.h"

namespace flow::nn {

// max(x, 0) + min(alpha (exp(x / alpha) - 1), 0) (Barron 2017).
class CELU : public Module<CELU> {
 public:
  explicit CELU(CeluOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  CeluOptions options_;
};

// 1.0507… elu(x) with alpha 1.6732… (Klambauer et al. 2017).
class SELU : public Module<SELU> {
 public:
  Tensor forward(const Tensor& x);
};

// x tanh(softplus(x)) (Misra 2020).
class Mish : public Module<Mish> {
 public:
  Tensor forward(const Tensor& x);
};

// min(max(x + 3, 0), 6) / 6.
class Hardsigmoid : public Module<Hardsigmoid> {
 public:
  Tensor forward(const Tensor& x);
};

// x times Hardsigmoid (Howard et al. 2019).
class Hardswish : public Module<Hardswish> {
 public:
  Tensor forward(const Tensor& x);
};

// min(max(x, min_val), max_val).
class Hardtanh : public Module<Hardtanh> {
 public:
  explicit Hardtanh(HardtanhOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  HardtanhOptions options_;
};

using flow::ShrinkOptions;

// x where |x| > lambd, else 0.
class Hardshrink : public Module<Hardshrink> {
 public:
  explicit Hardshrink(ShrinkOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  ShrinkOptions options_;
};

// x moved towards 0 by lambd, at most to 0.
class Softshrink : public Module<Softshrink> {
 public:
  explicit Softshrink(ShrinkOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  ShrinkOptions options_;
};

// x - tanh(x).
class Tanhshrink : public Module<Tanhshrink> {
 public:
  Tensor forward(const Tensor& x);
};

// x / (1 + |x|).
class Softsign : public Module<Softsign> {
 public:
  Tensor forward(const Tensor& x);
};

// log(sigmoid(x)).
class LogSigmoid : public Module<LogSigmoid> {
 public:
  Tensor forward(const Tensor& x);
};

// x sigmoid(1.702 x).
class QuickGELU : public Module<QuickGELU> {
 public:
  Tensor forward(const Tensor& x);
};

// max(x, 0)².
class SquareReLU : public Module<SquareReLU> {
 public:
  Tensor forward(const Tensor& x);
};

struct GLUOptions {
  int64_t dim = -1;
};

// The first half along dim times the sigmoid of the second (Dauphin et al. 2017).
class GLU : public Module<GLU> {
 public:
  explicit GLU(GLUOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  GLUOptions options_;
};

struct RReLUOptions {
  double lower = 1.0 / 8;
  double upper = 1.0 / 3;
};

// x where x > 0, else a x, a drawn from U(lower, upper) for each element in training, their mean in
// evaluation (Xu et al. 2015).
class RReLU : public Module<RReLU> {
 public:
  explicit RReLU(RReLUOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  RReLUOptions options_;
};

// x where x > threshold, else value.
class Threshold : public Module<Threshold> {
 public:
  Threshold(double threshold, double value) : threshold_(threshold), value_(value) {}

  Tensor forward(const Tensor& x);

 private:
  double threshold_, value_;
};

struct PReLUOptions {
  int64_t num_parameters = 1;  // or the number of channels, dim 1 of x
  double init = 0.25;
};

// x where x > 0, else weight x (He et al. 2015).
class PReLU : public Module<PReLU> {
 public:
  explicit PReLU(PReLUOptions options = {});
  Tensor forward(const Tensor& x);

  Tensor weight;
};

}  // namespace flow::nn
