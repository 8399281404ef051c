// What all probability distributions share. Their names, arguments, shapes and results are those of
// torch.distributions. All functions are composed of differentiable ops, so parameters may be
// learned, global, and traced.
//
//   const flow::distributions::Normal policy(mean, 0.5);
//   const flow::Tensor action = policy.sample();
//   const flow::Tensor loss = -(policy.log_prob(action) * reward).mean();
#pragma once

#include <type_traits>
#include <utility>

#include "core/shape.h"
#include "core/tensor.h"

namespace flow::distributions {

// A parameter: a tensor, or a number, which counts for all elements and takes the dtype and layout
// of the other parameter.
class Parameter {
 public:
  Parameter(Tensor tensor)  // NOLINT(google-explicit-constructor)
      : tensor_(std::move(tensor)) {}

  template <class T>

  // NOLINTNEXTLINE(google-explicit-constructor)
  requires std::is_arithmetic_v<T> Parameter(T number) : number_(static_cast<double>(number)) {}

  // Undefined for a number.
  const Tensor& tensor() const { return tensor_; }

  double number() const { return number_; }

  Shape shape() const { return tensor_.defined() ? tensor_.shape() : Shape(); }

 private:
  Tensor tensor_;
  double number_ = 0;
};

struct DistributionOptions {
  // Checks the parameters where they are given, and that the values of log_prob are possible draws.
  // This reads the tensors: for global ones it is a collective, and it waits for a device. While a
  // graph is traced nothing is checked, because there are no values.
  bool validate_args = true;
};

// A batch of independent distributions. batch_shape is the shape of the parameters, and event_shape
// that of one draw. Methods that a distribution does not have throw Unsupported. Values and results
// have the dtype of the parameters.
class Distribution {
 public:
  virtual ~Distribution() = default;

  const Shape& batch_shape() const { return batch_shape_; }

  const Shape& event_shape() const { return event_shape_; }

  // The name of the class.
  const char* name() const { return name_; }

  // Draws of the shape sample_shape + batch_shape + event_shape, without a gradient.
  Tensor sample(const Shape& sample_shape = {}, Site site = Site::here()) const;
  // Draws with a gradient with respect to the parameters (reparametrisation; Kingma and Welling
  // 2014).
  Tensor rsample(const Shape& sample_shape = {}, Site site = Site::here()) const;
  // The logarithm of the density, or of the probability, at `value`, whose shape broadcasts with
  // batch_shape + event_shape. The result has no event dims. Throws InvalidArgument for a value
  // that is not in the distribution's support, unless validate_args is false.
  Tensor log_prob(const Tensor& value, Site site = Site::here()) const;
  // The probability of a value up to `value`.
  Tensor cdf(const Tensor& value, Site site = Site::here()) const;
  // The inverse of cdf, for 0 < q < 1.
  Tensor icdf(const Tensor& q, Site site = Site::here()) const;
  Tensor entropy(Site site = Site::here()) const;
  virtual Tensor mean() const = 0;
  virtual Tensor variance() const = 0;
  Tensor stddev() const;

 protected:
  Distribution(const char* name, Shape batch_shape, Shape event_shape = {},
               const DistributionOptions& options = {});

  // A set of values and, for each value, whether it is in the set.
  struct Support {
    const char* name;
    Tensor contains;
  };

  // The values that can be drawn; by default all real numbers, so that only NaN is none. For a
  // distribution of several numbers, `contains` has no event dims.
  virtual Support support_at(const Tensor& value) const;

  // What the public functions return. By default, draw() is draw_with_gradient(), and the others
  // throw Unsupported.
  virtual Tensor draw(const Shape& sample_shape) const;
  virtual Tensor draw_with_gradient(const Shape& sample_shape) const;
  virtual Tensor compute_log_prob(const Tensor& value) const = 0;
  virtual Tensor compute_cdf(const Tensor& value) const;
  virtual Tensor compute_icdf(const Tensor& q) const;
  virtual Tensor compute_entropy() const;

  // sample_shape + batch_shape + event_shape.
  Shape extended(const Shape& sample_shape) const;

  [[noreturn]] void lacks(const char* method) const;

 private:
  const char* name_;
  bool checks_values_;
  Shape batch_shape_;
  Shape event_shape_;
};

}  // namespace flow::distributions
