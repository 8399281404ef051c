#include "ops/reduce/differences.h"

#include <algorithm>

#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/reduce/scan.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

std::vector<int64_t> dims_of(const TensorArg& x, const GradientOptions& options) {
  std::vector<int64_t> dims;
  if (options.dim.empty()) {
    for (int64_t d = 0; d < x->dim(); ++d)
      dims.push_back(d);
  }
  for (const int64_t d : options.dim)
    dims.push_back(normalize_dim(d, x->dim(), "gradient"));
  for (size_t i = 0; i < dims.size(); ++i) {
    if (std::count(dims.begin(), dims.end(), dims[i]) > 1) {
      throw InvalidArgument(str("[gradient] dim ", dims[i], " is given twice"), x.site());
    }
    if (x->size(dims[i]) < options.edge_order + 1) {
      throw InvalidArgument(
          str("[gradient] an edge_order of ", options.edge_order, " needs ", options.edge_order + 1,
              " samples along each dim; received ", x->shape()),
          x.site());
    }
  }
  return dims;
}

void check_options(const TensorArg& x, const GradientOptions& options, size_t num_dims) {
  if (options.edge_order != 1 && options.edge_order != 2) {
    throw InvalidArgument(str("[gradient] edge_order is ", options.edge_order, "; give 1 or 2"),
                          x.site());
  }
  const size_t given =
      options.coordinates.empty() ? options.spacing.size() : options.coordinates.size();
  if (given == num_dims || (given == 1 && options.coordinates.empty())) return;
  throw InvalidArgument(str("[gradient] takes the spacing of each of ", num_dims,
                            " dims, or one number; received ", given),
                        x.site());
}

// The derivative along dim d of samples that are `steps` (n - 1) apart. A parabola through three
// samples has these slopes, with s and t the steps on both sides:
//   in the middle  -t f0 / (s (s + t)) + (t - s) f1 / (s t) + s f2 / (t (s + t))
//   on the left    -(2 s + t) f0 / (s (s + t)) + (s + t) f1 / (s t) - s f2 / (t (s + t))
//   on the right   t f0 / (s (s + t)) - (s + t) f1 / (s t) + (2 t + s) f2 / (t (s + t))
class Derivative {
 public:
  Derivative(const Tensor& x, int64_t d, const Tensor& steps, Site site)
      : x_(x), d_(d), n_(x.size(d)), site_(site) {
    Shape along(std::vector<int64_t>(static_cast<size_t>(x.dim() - d), 1));
    along[0] = n_ - 1;
    steps_ = reshape({steps, site}, along);
  }

  Tensor operator()(int64_t edge_order) const {
    std::vector<Tensor> parts{edge_order == 1 ? rise(0) : parabola(0, 1, kLeft)};
    if (n_ > 2) parts.push_back(parabola(0, n_ - 2, kMiddle));
    parts.push_back(edge_order == 1 ? rise(n_ - 2) : parabola(n_ - 3, 1, kRight));
    return cat({parts, site_}, d_);
  }

 private:
  enum Place { kLeft, kMiddle, kRight };

  Tensor values(int64_t start, int64_t count) const {
    return narrow({x_, site_}, d_, start, count);
  }

  Tensor steps(int64_t start, int64_t count) const {
    return narrow({steps_, site_}, 0, start, count);
  }

  // (f1 - f0) / s
  Tensor rise(int64_t at) const { return (values(at + 1, 1) - values(at, 1)) / steps(at, 1); }

  Tensor parabola(int64_t start, int64_t count, Place place) const {
    const Tensor s = steps(start, count);
    const Tensor t = steps(start + 1, count);
    const Tensor both = s + t;
    Tensor first = t;
    Tensor second = s - t;
    Tensor third = s;
    if (place == kLeft) {
      first = s * 2 + t;
      second = -both;
      third = -s;
    } else if (place == kRight) {
      first = -t;
      second = both;
      third = t * 2 + s;
    }
    return values(start + 2, count) * (third / (t * both)) -
           values(start + 1, count) * (second / (s * t)) -
           values(start, count) * (first / (s * both));
  }

  Tensor x_;
  int64_t d_;
  int64_t n_;
  Site site_;
  Tensor steps_;
};

Tensor steps_of(const Tensor& x, int64_t d, size_t i, const GradientOptions& options, Site site) {
  if (options.coordinates.empty()) {
    const TensorOptions layout = ops::whole_like(x);
    return full({x.size(d) - 1}, options.spacing[options.spacing.size() == 1 ? 0 : i], layout,
                site);
  }
  const Tensor& places = options.coordinates[i];
  if (places.dim() != 1 || places.numel() != x.size(d)) {
    throw InvalidArgument(str("[gradient] takes ", x.size(d), " coordinates for dim ", d,
                              "; received ", places.meta()),
                          site);
  }
  return diff({cast({places, site}, x.dtype()), site});
}

}  // namespace

std::vector<Tensor> gradient(const TensorArg& x, const GradientOptions& options) {
  return ops::named("gradient", x.site(), [&]() -> std::vector<Tensor> {
    const Site site = x.site();
    const size_t num_dims =
        options.dim.empty() ? static_cast<size_t>(x->dim()) : options.dim.size();
    check_options(x, options, num_dims);
    const std::vector<int64_t> dims = dims_of(x, options);
    const Tensor values = ops::as_floating(x);
    std::vector<Tensor> slopes;
    for (size_t i = 0; i < dims.size(); ++i) {
      const Tensor steps = steps_of(values, dims[i], i, options, site);
      slopes.push_back(Derivative(values, dims[i], steps, site)(options.edge_order));
    }
    return slopes;
  });
}

}  // namespace flow
