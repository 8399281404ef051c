// Activations as modules, for Sequential.
#pragma once

#include <string>

#include "nn/module.h"

namespace flow::nn {

class ReLU : public Module<ReLU> {
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

struct GELUOptions {
  std::string approximate = "none";  // "none": x Φ(x); "tanh": its tanh approximation
};

class GELU : public Module<GELU> {
 public:
  explicit GELU(GELUOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  GELUOptions options_;
};

struct FlattenOptions {
  int64_t start_dim = 1;
  int64_t end_dim = -1;
};

class Flatten : public Module<Flatten> {
 public:
  explicit Flatten(FlattenOptions options = {}) : options_(options) {}

  Tensor forward(const Tensor& x);

 private:
  FlattenOptions options_;
};

}  // namespace flow::nn
