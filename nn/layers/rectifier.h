// Rectifiers and other piecewise activations as modules, for use in Sequential. Each one calls the
// function of its name in ops/elementwise/unary.h, ops/elementwise/activation.h or
// ops/elementwise/shrink.h. The input and the result have the same shape. A negative
// num_parameters, bounds in the wrong order and a negative lambd of Softshrink are InvalidArgument.
#pragma once

#include "nn/module.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/shrink.h"
#include "ops/elementwise/unary.h"

namespace flow::nn {

// max(x, 0).
class ReLU : public Module<ReLU> {
 public:
  Tensor forward(const Tensor& x);
};

// min(max(x, 0), 6).
class ReLU6 : public Module<ReLU6> {
 public:
  Tensor forward(const Tensor& x);
};

// max(x, 0)².
class SquareReLU : public Module<SquareReLU> {
 public:
  Tensor forward(const Tensor& x);
};

// x where x > 0, else negative_slope x.
class LeakyReLU : public Module<LeakyReLU> {
 public:
  explicit LeakyReLU(LeakyReluOptions options = {});
  Tensor forward(const Tensor& x);

 private:
  LeakyReluOptions options_;
};

struct PReLUOptions {
  int64_t num_parameters =
      1;               // 1, or the number of channels (dim 1 of x) for one slope per channel
  double init = 0.25;  // initial value of every slope
};

// x where x > 0, else weight x, with learned slopes (He et al. 2015). x: any shape with one slope,
// or (N, C, …) with C slopes.
class PReLU : public Module<PReLU> {
 public:
  explicit PReLU(PReLUOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);

  Tensor weight;  // (num_parameters)
};

struct RReLUOptions {
  double lower = 1.0 / 8;
  double upper = 1.0 / 3;
};

// x where x >= 0, else a x. In training a is drawn from U(lower, upper) for each element; in
// evaluation it is (lower + upper) / 2 (Xu et al. 2015).
class RReLU : public Module<RReLU> {
 public:
  explicit RReLU(RReLUOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  RReLUOptions options_;
};

// x where x > 0, else alpha (exp(x) - 1) (Clevert et al. 2016).
class ELU : public Module<ELU> {
 public:
  explicit ELU(EluOptions options = {});
  Tensor forward(const Tensor& x);

 private:
  EluOptions options_;
};

// max(x, 0) + min(alpha (exp(x / alpha) - 1), 0) (Barron 2017).
class CELU : public Module<CELU> {
 public:
  explicit CELU(CeluOptions options = {});
  Tensor forward(const Tensor& x);

 private:
  CeluOptions options_;
};

// 1.0507… elu(x) with alpha = 1.6732… (Klambauer et al. 2017).
class SELU : public Module<SELU> {
 public:
  Tensor forward(const Tensor& x);
};

// min(max(x, min_val), max_val).
class Hardtanh : public Module<Hardtanh> {
 public:
  explicit Hardtanh(HardtanhOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  HardtanhOptions options_;
};

// x where x > threshold, else value.
class Threshold : public Module<Threshold> {
 public:
  Threshold(double threshold, double value);
  Tensor forward(const Tensor& x);

 private:
  double threshold_, value_;
};

using flow::ShrinkOptions;

// x where |x| > lambd, else 0.
class Hardshrink : public Module<Hardshrink> {
 public:
  explicit Hardshrink(ShrinkOptions options = {});
  Tensor forward(const Tensor& x);

 private:
  ShrinkOptions options_;
};

// x - lambd where x > lambd, x + lambd where x < -lambd, else 0.
class Softshrink : public Module<Softshrink> {
 public:
  explicit Softshrink(ShrinkOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  ShrinkOptions options_;
};

}  // namespace flow::nn
