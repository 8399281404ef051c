// Activations as modules, for Sequential; the formulas stand at the functions of
// ops/elementwise/unary.h.
#pragma once

#include <string>

#include "nn/module.h"
#include "ops/elementwise/unary.h"

namespace flow::nn {

// x.
class Identity : public Module<Identity> {
 public:
  Tensor forward(const Tensor& x);
};

class ReLU : public Module<ReLU> {
 public:
  Tensor forward(const Tensor& x);
};

// min(max(x, 0), 6).
class ReLU6 : public Module<ReLU6> {
 public:
  Tensor forward(const Tensor& x);
};

class Tanh : public Module<Tanh> {
 public:
  Tensor forward(const Tensor& x);
};

class Sigmoid : public Module<Sigmoid> {
 public:
  Tensor forward(const Tensor& x);
};

class GELU : public Module<GELU> {
 public:
  explicit GELU(GeluOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  GeluOptions options_;
};

class SiLU : public Module<SiLU> {
 public:
  Tensor forward(const Tensor& x);
};

class LeakyReLU : public Module<LeakyReLU> {
 public:
  explicit LeakyReLU(LeakyReluOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  LeakyReluOptions options_;
};

class ELU : public Module<ELU> {
 public:
  explicit ELU(EluOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  EluOptions options_;
};

class Softplus : public Module<Softplus> {
 public:
  explicit Softplus(SoftplusOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  SoftplusOptions options_;
};

class Softmax : public Module<Softmax> {
 public:
  explicit Softmax(int64_t dim) : dim_(dim) {}

  Tensor forward(const Tensor& x);

 private:
  int64_t dim_;
};

// softmax(-x, dim).
class Softmin : public Module<Softmin> {
 public:
  explicit Softmin(int64_t dim) : dim_(dim) {}

  Tensor forward(const Tensor& x);

 private:
  int64_t dim_;
};

// Softmax over the channels of (N, C, H, W) or (C, H, W).
class Softmax2d : public Module<Softmax2d> {
 public:
  Tensor forward(const Tensor& x);
};

class LogSoftmax : public Module<LogSoftmax> {
 public:
  explicit LogSoftmax(int64_t dim) : dim_(dim) {}

  Tensor forward(const Tensor& x);

 private:
  int64_t dim_;
};

struct FlattenOptions {
  int64_t start_dim = 1;
  int64_t end_dim = -1;
};

class Flatten : public Module<Flatten> {
 public:
  explicit Flatten(FlattenOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  FlattenOptions options_;
};

}  // namespace flow::nn
