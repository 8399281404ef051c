#include "nn/init.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include "autograd/tensor_autograd.h"
#include "core/calls/site_scope.h"
#include "core/context.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/shared_draws.h"
#include "ops/creation/creation.h"

namespace flow::nn::init {

namespace {
// How the initial values of a parameter were drawn, so that they can be drawn again from other
// streams.
struct InitialDraw {
  std::function<void(const Tensor&)> draw;
  Generator::State begin;    // before the draw
  uint64_t num_streams = 0;  // of this draw and of those that it replaced
  // The tensor still has the drawn values if it shows this memory in this version.
  const Storage* memory = nullptr;
  uint32_t version = 0;
};

InitialDraw* initial_draw_of(const Tensor& tensor) {
  const autograd::TensorAutograd* slot = autograd::find_autograd(tensor.impl());
  return slot == nullptr ? nullptr : static_cast<InitialDraw*>(slot->initial_draw.get());
}

// Local values are the same on every rank.
void draw_values(const Tensor& tensor, const std::function<void(const Tensor&)>& draw) {
  const NoGradGuard no_grad;
  const SharedDraws same_on_all_ranks;
  draw(tensor);
}

void draw_from(const Generator::State& begin, const Tensor& tensor, InitialDraw& initial) {
  initial.begin = begin;
  draw_values(tensor, initial.draw);
  initial.memory = tensor.impl().storage.get();
  initial.version = tensor.impl().version();
}

bool has_drawn_values(const Tensor& tensor, const InitialDraw& initial) {
  return initial.memory == tensor.impl().storage.get() &&
         initial.version == tensor.impl().version();
}
}  // namespace

namespace internal {
const Tensor& draw_initial(const Tensor& tensor, std::function<void(const Tensor&)> draw) {
  const ThreadState& state = thread_state();
  if (state.trace != nullptr) {
    draw_values(tensor, draw);
    return tensor;
  }
  auto initial = std::make_shared<InitialDraw>();
  if (const InitialDraw* old = initial_draw_of(tensor)) initial->num_streams = old->num_streams;
  initial->draw = std::move(draw);
  const Generator::State begin = state.context->generator().state();
  draw_from(begin, tensor, *initial);
  initial->num_streams += state.context->generator().state().next_stream - begin.next_stream;
  autograd::make_autograd(tensor.impl()).initial_draw = std::move(initial);
  return tensor;
}

bool are_noted(const std::vector<Tensor>& tensors, const Generator::State& begin, uint64_t end) {
  uint64_t num_streams = 0;
  for (const Tensor& tensor : tensors) {
    const InitialDraw* initial = initial_draw_of(tensor);
    if (initial == nullptr) continue;
    if (initial->begin.seed != begin.seed) return false;
    num_streams += initial->num_streams;
  }
  return num_streams == end - begin.next_stream;
}

void draw_again(const std::vector<Tensor>& tensors, int64_t shift) {
  Generator& generator = thread_state().context->generator();
  for (const Tensor& tensor : tensors) {
    InitialDraw* initial = initial_draw_of(tensor);
    if (initial == nullptr) continue;
    Generator::State from = initial->begin;
    from.next_stream += static_cast<uint64_t>(shift);
    if (has_drawn_values(tensor, *initial)) {
      generator.set_state(from);
      draw_from(from, tensor, *initial);
    } else {
      initial->begin = from;
    }
  }
}
}  // namespace internal

namespace {
// Writes logical values, which every rank has.
const Tensor& assign(const Tensor& target, const std::vector<double>& values) {
  const NoGradGuard no_grad;
  return target.copy_(tensor(values, target.shape(), options_like(target)));
}

// Random logical values of the shape of `tensor`, drawn in float64.
std::vector<double> uniform_values(const Tensor& tensor) {
  const NoGradGuard no_grad;
  return empty_like(tensor, {.dtype = float64}).uniform_(0, 1).to_vector<double>();
}

std::vector<double> normal_values(const Tensor& tensor) {
  const NoGradGuard no_grad;
  return empty_like(tensor, {.dtype = float64}).normal_(0, 1).to_vector<double>();
}

void check_floating(const char* caller, const Tensor& tensor) {
  if (is_floating(tensor.dtype())) return;
  throw InvalidArgument(
      str("[", caller, "] a floating tensor is needed; cast it; received ", tensor.meta()));
}

double normal_probability(double x) {
  return std::erfc(-x / std::numbers::sqrt2) / 2;
}

// The inverse of normal_probability, by bisection. Initial values are drawn once, so speed does not
// matter.
double normal_quantile(double p) {
  double low = -40, high = 40;
  for (int i = 0; i < 64; ++i) {
    const double middle = (low + high) / 2;
    (normal_probability(middle) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

void draw_sparse(const Tensor& tensor, double sparsity, double std) {
  const int64_t rows = tensor.size(0), columns = tensor.size(1);
  const auto num_zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(rows)));
  std::vector<double> values = normal_values(tensor);
  const std::vector<double> keys = uniform_values(tensor);
  std::vector<int64_t> order(static_cast<size_t>(rows));
  for (int64_t c = 0; c < columns; ++c) {
    const auto at = [&](int64_t row) { return static_cast<size_t>(row * columns + c); };
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](int64_t a, int64_t b) { return keys[at(a)] < keys[at(b)]; });
    for (int64_t i = 0; i < rows; ++i) {
      double& value = values[at(order[static_cast<size_t>(i)])];
      value = i < num_zeros ? 0 : value * std;
    }
  }
  assign(tensor, values);
}

void draw_trunc_normal(const Tensor& tensor, const TruncNormalOptions& options) {
  // Inverse transform sampling: a uniform probability between those of the bounds, mapped through
  // the quantile function.
  const double low = normal_probability((options.a - options.mean) / options.std);
  const double high = normal_probability((options.b - options.mean) / options.std);
  std::vector<double> values = uniform_values(tensor);
  for (double& value : values) {
    const double p = low + value * (high - low);
    value = std::clamp(options.mean + options.std * normal_quantile(p), options.a, options.b);
  }
  assign(tensor, values);
}

void draw_orthogonal(const Tensor& tensor, double gain) {
  const auto rows = static_cast<size_t>(tensor.size(0));
  const size_t columns = static_cast<size_t>(tensor.numel()) / rows;
  std::vector<double> values = normal_values(tensor);
  // The vectors are the rows, or the columns if there are fewer columns. Element e of vector v is
  // at v × to_vector + e × to_element.
  const bool by_rows = rows <= columns;
  const size_t count = by_rows ? rows : columns, length = by_rows ? columns : rows;
  const size_t to_vector = by_rows ? columns : 1, to_element = by_rows ? 1 : columns;
  const auto at = [&](size_t v, size_t e) -> double& {
    return values[v * to_vector + e * to_element];
  };
  for (size_t v = 0; v < count; ++v) {
    // Gram-Schmidt, twice, which makes the vectors orthogonal to rounding.
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t w = 0; w < v; ++w) {
        double product = 0;
        for (size_t e = 0; e < length; ++e)
          product += at(v, e) * at(w, e);
        for (size_t e = 0; e < length; ++e)
          at(v, e) -= product * at(w, e);
      }
      double square = 0;
      for (size_t e = 0; e < length; ++e)
        square += at(v, e) * at(v, e);
      for (size_t e = 0; e < length; ++e)
        at(v, e) /= std::sqrt(square);
    }
  }
  for (double& value : values)
    value *= gain;
  assign(tensor, values);
}

int64_t kernel_elements(const char* caller, const Tensor& weight) {
  if (weight.dim() < 2) {
    throw InvalidArgument(str("[", caller,
                              "] fan-in and fan-out need at least two dims (out, in, …); received ",
                              weight.meta()));
  }
  int64_t elements = 1;
  for (int64_t i = 2; i < weight.dim(); ++i)
    elements *= weight.size(i);
  return elements;
}
}  // namespace

int64_t fan_in(const Tensor& weight, Site site) {
  const SiteScope scope(site);
  const int64_t elements = kernel_elements("fan_in", weight);
  return weight.size(1) * elements;
}

int64_t fan_out(const Tensor& weight, Site site) {
  const SiteScope scope(site);
  const int64_t elements = kernel_elements("fan_out", weight);
  return weight.size(0) * elements;
}

const Tensor& uniform_(const Tensor& tensor, double a, double b, Site site) {
  const SiteScope scope(site);
  return internal::draw_initial(tensor, [=](const Tensor& target) { target.uniform_(a, b); });
}

const Tensor& normal_(const Tensor& tensor, double mean, double std, Site site) {
  const SiteScope scope(site);
  return internal::draw_initial(tensor, [=](const Tensor& target) { target.normal_(mean, std); });
}

const Tensor& constant_(const Tensor& tensor, double value, Site site) {
  const SiteScope scope(site);
  const NoGradGuard no_grad;
  return tensor.fill_(value);
}

const Tensor& ones_(const Tensor& tensor, Site site) {
  const SiteScope scope(site);
  return constant_(tensor, 1);
}

const Tensor& zeros_(const Tensor& tensor, Site site) {
  const SiteScope scope(site);
  return constant_(tensor, 0);
}

const Tensor& eye_(const Tensor& tensor, Site site) {
  const SiteScope scope(site);
  if (tensor.dim() != 2) {
    throw InvalidArgument(
        str("[eye_] the tensor must have two dims; received ", tensor.meta(), "; reshape it"));
  }
  std::vector<double> values(static_cast<size_t>(tensor.numel()));
  for (int64_t i = 0; i < std::min(tensor.size(0), tensor.size(1)); ++i)
    values[static_cast<size_t>(i * tensor.size(1) + i)] = 1;
  return assign(tensor, values);
}

const Tensor& dirac_(const Tensor& tensor, int64_t groups, Site site) {
  const SiteScope scope(site);
  if (tensor.dim() < 3 || tensor.dim() > 5 || groups < 1 || tensor.size(0) % groups != 0) {
    throw InvalidArgument(
        str("[dirac_] the tensor must be (out, in / groups, …) with one to three ",
            "spatial dims, and out must be divisible by groups; received ", tensor.meta(), " and ",
            groups, " groups; give a tensor of such a shape"));
  }
  std::vector<double> values(static_cast<size_t>(tensor.numel()));
  if (values.empty()) return tensor;
  const int64_t outputs = tensor.size(0) / groups, inputs = tensor.size(1);
  const int64_t elements = kernel_elements("dirac_", tensor);
  int64_t middle = 0;
  for (int64_t i = 2; i < tensor.dim(); ++i)
    middle = middle * tensor.size(i) + tensor.size(i) / 2;
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t d = 0; d < std::min(outputs, inputs); ++d) {
      const int64_t kernel = (g * outputs + d) * inputs + d;
      values[static_cast<size_t>(kernel * elements + middle)] = 1;
    }
  }
  return assign(tensor, values);
}

const Tensor& sparse_(const Tensor& tensor, double sparsity, double std, Site site) {
  const SiteScope scope(site);
  if (tensor.dim() != 2 || !(sparsity >= 0 && sparsity <= 1)) {
    throw InvalidArgument(
        str("[sparse_] the tensor must have two dims, and sparsity must be from 0 to 1; received ",
            tensor.meta(), " and ", sparsity, "; reshape the tensor or change sparsity"));
  }
  check_floating("sparse_", tensor);
  return internal::draw_initial(tensor,
                                [=](const Tensor& target) { draw_sparse(target, sparsity, std); });
}

const Tensor& trunc_normal_(const Tensor& tensor, const TruncNormalOptions& options, Site site) {
  const SiteScope scope(site);
  if (!(options.std > 0) || !(options.a < options.b)) {
    throw InvalidArgument(str("[trunc_normal_] std must be positive and a below b; received ",
                              options.std, ", ", options.a, ", ", options.b));
  }
  check_floating("trunc_normal_", tensor);
  return internal::draw_initial(tensor,
                                [=](const Tensor& target) { draw_trunc_normal(target, options); });
}

double calculate_gain(std::string_view nonlinearity, double param, Site site) {
  const SiteScope scope(site);
  for (const char* plain : {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
                            "conv_transpose2d", "conv_transpose3d", "sigmoid"}) {
    if (nonlinearity == plain) return 1;
  }
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") return std::sqrt(2.0 / (1 + param * param));
  if (nonlinearity == "selu") return 0.75;
  throw InvalidArgument(str("[calculate_gain] unknown nonlinearity; received '", nonlinearity,
                            "'; use linear, conv2d, sigmoid, tanh, relu, leaky_relu or selu"));
}

namespace {
// The standard deviation of a weight (He et al. 2015).
double kaiming_std(const char* caller, const Tensor& tensor, const KaimingOptions& options) {
  if (options.mode != "fan_in" && options.mode != "fan_out") {
    throw InvalidArgument(
        str("[", caller, "] unknown mode; received '", options.mode, "'; use fan_in or fan_out"));
  }
  kernel_elements(caller, tensor);
  const int64_t fan = options.mode == "fan_in" ? fan_in(tensor) : fan_out(tensor);
  return calculate_gain(options.nonlinearity, options.a) / std::sqrt(static_cast<double>(fan));
}

double xavier_std(const char* caller, const Tensor& tensor, double gain) {
  kernel_elements(caller, tensor);
  return gain * std::sqrt(2.0 / static_cast<double>(fan_in(tensor) + fan_out(tensor)));
}
}  // namespace

const Tensor& kaiming_uniform_(const Tensor& tensor, const KaimingOptions& options, Site site) {
  const SiteScope scope(site);
  const double bound = std::sqrt(3.0) * kaiming_std("kaiming_uniform_", tensor, options);
  return tensor.numel() == 0 ? tensor : uniform_(tensor, -bound, bound);
}

const Tensor& kaiming_normal_(const Tensor& tensor, const KaimingOptions& options, Site site) {
  const SiteScope scope(site);
  const double std = kaiming_std("kaiming_normal_", tensor, options);
  return tensor.numel() == 0 ? tensor : normal_(tensor, 0, std);
}

const Tensor& xavier_uniform_(const Tensor& tensor, double gain, Site site) {
  const SiteScope scope(site);
  const double bound = std::sqrt(3.0) * xavier_std("xavier_uniform_", tensor, gain);
  return uniform_(tensor, -bound, bound);
}

const Tensor& xavier_normal_(const Tensor& tensor, double gain, Site site) {
  const SiteScope scope(site);
  return normal_(tensor, 0, xavier_std("xavier_normal_", tensor, gain));
}

const Tensor& orthogonal_(const Tensor& tensor, double gain, Site site) {
  const SiteScope scope(site);
  if (tensor.dim() < 2) {
    throw InvalidArgument(str("[orthogonal_] the tensor must have at least two dims; received ",
                              tensor.meta(), "; use another initialization for vectors"));
  }
  check_floating("orthogonal_", tensor);
  if (tensor.numel() == 0) return tensor;
  return internal::draw_initial(tensor,
                                [=](const Tensor& target) { draw_orthogonal(target, gain); });
}

}  // namespace flow::nn::init
