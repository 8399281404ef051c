#include "nn/job/layers.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "core/error.h"
#include "nn/job/rank_job.h"
#include "ops/conv/conv.h"
#include "ops/conv/pool.h"
#include "ops/elementwise/cast.h"
#include "ops/linear/matmul.h"
#include "ops/loss/cross_entropy.h"
#include "ops/random/dropout.h"
#include "ops/shape/concat.h"

namespace flow::job {

namespace {

// Parses "0:1" or "0:0-3" into ranks of machine 0. Returns an empty list for anything else.
std::vector<int64_t> parse_devices(std::string_view text) {
  const auto number = [&](int64_t& value) {
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return status == std::errc();
  };
  int64_t machine = 0, first = 0;
  if (!number(machine) || machine != 0 || !text.starts_with(':')) return {};
  text.remove_prefix(1);
  if (!number(first) || first < 0) return {};
  int64_t last = first;
  if (text.starts_with('-')) {
    text.remove_prefix(1);
    if (!number(last)) return {};
  }
  constexpr int64_t kMaxDevices = 4096;
  if (!text.empty() || last < first || last - first >= kMaxDevices) return {};
  std::vector<int64_t> ranks;
  for (int64_t rank = first; rank <= last; ++rank)
    ranks.push_back(rank);
  return ranks;
}

Placement parse_placement(std::string_view device, std::string_view devices, Site site) {
  const std::vector<int64_t> ranks = parse_devices(devices);
  if (ranks.empty()) {
    throw InvalidArgument(
        str("[job] the devices of placement() cannot be parsed; received \"", devices,
            "\"; give \"0:1\" for device 1 of machine 0, or \"0:0-3\" for devices 0 to 3"),
        site);
  }
  return {device, ranks};
}

// A bias is split with the outputs of its kernel.
Distribute bias_distribute(const Distribute& kernel) {
  return kernel == sbp::split(0) ? kernel : Distribute(sbp::broadcast);
}

struct Parameters {
  Tensor weight;
  Tensor bias;  // undefined without a bias
};

// `Options` is DenseOptions or Conv2dOptions.
template <class Options>
Parameters parameters_of(RankJob& job, const char* kind, const Shape& shape, const Tensor& x,
                         const Options& options, Site site) {
  const std::string name = options.name.empty() ? job.unique_name(kind) : options.name;
  Parameters parameters;
  parameters.weight = job.variable(name + "-weight", shape,
                                   {.dtype = x.dtype(),
                                    .initializer = options.kernel_initializer,
                                    .distribute = options.model_distribute},
                                   site);
  if (!options.use_bias) return parameters;
  const Initializer zeros = constant(0);
  parameters.bias =
      job.variable(name + "-bias", {shape[0]},
                   {.dtype = x.dtype(),
                    .initializer = options.bias_initializer ? options.bias_initializer : zeros,
                    .distribute = bias_distribute(options.model_distribute)},
                   site);
  return parameters;
}

void check_dims(const char* layer, const TensorArg& x, int64_t dims, const char* form) {
  if (x->dim() == dims) return;
  throw InvalidArgument(
      str("[", layer, "] the input must be ", form, "; received ", x->shape(), "; reshape it"),
      x.site());
}

// `sizes` holds one number for both dims, or one for each.
void check_sizes(const char* layer, const char* name, const Ints& sizes, Site site) {
  const std::vector<int64_t>& values = sizes.values();
  const bool is_good = (values.size() == 1 || values.size() == 2) &&
                       std::all_of(values.begin(), values.end(), [](int64_t n) { return n >= 1; });
  if (is_good) return;
  throw InvalidArgument(
      str("[", layer, "] ", name, " must be one or two numbers that are at least 1; received ",
          values.size() > 2 ? str(values.size(), " numbers") : str(Shape(values))),
      site);
}

Tensor activated(const Activation& activation, const Tensor& y) {
  return activation ? activation(y) : y;
}

}  // namespace

Scope::Scope(const Placement& placement, Site site)
    : outer_(RankJob::in_function("placement", site).enter(placement, site)) {}

Scope::~Scope() {
  RankJob::in_function("placement", Site::none()).leave(outer_);
}

Scope placement(std::string_view device, std::string_view devices, Site site) {
  return {parse_placement(device, devices, site), site};
}

namespace layers {

Blob dense(const TensorArg& x, int64_t units, const DenseOptions& options) {
  RankJob& job = RankJob::in_function("dense", x.site());
  if (x->dim() < 1 || units < 1) {
    throw InvalidArgument(
        str("[dense] the input must be (..., features) and units at least 1; received ", x->shape(),
            " and ", units, " units"),
        x.site());
  }
  const Tensor input = job.in_scope(x);
  const auto [weight, bias] =
      parameters_of(job, "dense", {units, input.size(-1)}, input, options, x.site());
  return activated(options.activation, linear(TensorArg(input, x.site()), weight, bias));
}

Blob conv2d(const TensorArg& x, int64_t filters, const Ints& kernel, const Conv2dOptions& options) {
  RankJob& job = RankJob::in_function("conv2d", x.site());
  check_dims("conv2d", x, 4, "(N, C, H, W)");
  if (filters < 1) {
    throw InvalidArgument(str("[conv2d] filters must be at least 1; received ", filters), x.site());
  }
  check_sizes("conv2d", "kernel", kernel, x.site());
  check_sizes("conv2d", "strides", options.strides, x.site());
  const std::vector<int64_t>& sizes = kernel.values();
  const Tensor input = job.in_scope(x);
  const auto [weight, bias] =
      parameters_of(job, "conv2d", {filters, input.size(1), sizes.front(), sizes.back()}, input,
                    options, x.site());
  return activated(options.activation,
                   flow::conv2d(TensorArg(input, x.site()), weight, bias,
                                {.stride = options.strides, .padding = options.padding}));
}

}  // namespace layers

Blob max_pool2d(const TensorArg& x, const PoolOptions& options) {
  RankJob& job = RankJob::in_function("max_pool2d", x.site());
  check_dims("max_pool2d", x, 4, "(N, C, H, W)");
  check_sizes("max_pool2d", "ksize", options.ksize, x.site());
  check_sizes("max_pool2d", "strides", options.strides, x.site());
  const Tensor input = job.in_scope(x);
  const TensorArg at(input, x.site());
  if (options.padding.mode() != Padding::Mode::kSame) {
    return flow::max_pool2d(at, options.ksize,
                            {.stride = options.strides, .padding = options.padding.numbers()});
  }
  const std::vector<int64_t>& sizes = options.ksize.values();
  const std::vector<int64_t>& strides = options.strides.values();
  std::vector<int64_t> padding;  // last dim first
  for (const int64_t dim : {3, 2}) {
    const int64_t size = dim == 2 ? sizes.front() : sizes.back();
    const int64_t stride = dim == 2 ? strides.front() : strides.back();
    const int64_t outputs = (input.size(dim) + stride - 1) / stride;
    const int64_t total = std::max<int64_t>((outputs - 1) * stride + size - input.size(dim), 0);
    padding.insert(padding.end(), {total / 2, total - total / 2});
  }
  const bool is_padded =
      std::any_of(padding.begin(), padding.end(), [](int64_t n) { return n > 0; });
  const Tensor padded =
      is_padded ? pad(at, padding, {.value = -std::numeric_limits<double>::infinity()}) : input;
  return flow::max_pool2d(TensorArg(padded, x.site()), options.ksize, {.stride = options.strides});
}

Blob dropout(const TensorArg& x, const DropoutOptions& options) {
  RankJob& job = RankJob::in_function("dropout", x.site());
  const Tensor input = job.in_scope(x);
  return flow::dropout(TensorArg(input, x.site()),
                       {.p = options.rate, .training = job.is_training()});
}

Blob sparse_softmax_cross_entropy_with_logits(const TensorArg& labels, const TensorArg& logits) {
  RankJob& job = RankJob::in_function("sparse_softmax_cross_entropy_with_logits", logits.site());
  const Tensor input = job.in_scope(logits);
  const Tensor targets = job.in_scope(labels);
  return cross_entropy(TensorArg(input, logits.site()), cast(targets, int64),
                       {.reduction = "none"});
}

}  // namespace flow::job
