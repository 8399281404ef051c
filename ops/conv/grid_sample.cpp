#include "ops/conv/grid_sample.h"

#include <array>
#include <vector>

#include "core/dispatch.h"
#include "core/error.h"
#include "ops/autocast.h"
#include "ops/conv/grid_sample_op.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/linear/matmul.h"
#include "ops/named_errors.h"
#include "ops/shape/arrange.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

using Mode = ops::GridMode;
using Outside = ops::GridOutside;

Outside parse_outside(const std::string& word, Site site) {
  if (word == "zeros") return Outside::kZeros;
  if (word == "border") return Outside::kBorder;
  if (word == "reflection") return Outside::kReflection;
  throw InvalidArgument(
      str("[grid_sample] padding_mode is '", word, "'; give zeros, border or reflection"), site);
}

// Positions along one dim, in pixels.
class Axis {
 public:
  Axis(int64_t size, Outside outside, bool align_corners, Site site)
      : size_(size), outside_(outside), align_corners_(align_corners), site_(site) {}

  // Converted from [-1, 1].
  Tensor pixels(const Tensor& place) const {
    const auto size = static_cast<double>(size_);
    const Tensor from_edge = add({place, site_}, 1);
    if (align_corners_) return mul({from_edge, site_}, (size - 1) / 2);
    return sub({mul({from_edge, site_}, size / 2), site_}, 0.5);
  }

  // Moves positions outside the image inside, as the padding mode says. At its edges there is no
  // gradient, and a NaN becomes 0, both as in PyTorch.
  Tensor inside(const Tensor& at) const {
    if (outside_ == Outside::kZeros) return at;
    const Tensor place = outside_ == Outside::kReflection ? reflected(at) : at;
    const double last = static_cast<double>(size_ - 1);
    const Tensor below_last = where({lt({place, site_}, last), site_}, {place, site_}, last);
    return where({gt({place, site_}, 0), site_}, {below_last, site_}, 0);
  }

  // Integral positions as indices, and whether there is a pixel.
  std::pair<Tensor, Tensor> positions(const Tensor& whole) const {
    const double last = static_cast<double>(size_ - 1);
    const Tensor is_inside =
        logical_and({ge({whole, site_}, 0), site_}, {le({whole, site_}, last), site_});
    const Tensor kept = where({is_inside, site_}, {whole, site_}, 0);
    return {cast({kept, site_}, DType::kInt64), is_inside};
  }

  int64_t size() const { return size_; }

 private:
  // Reflects positions at the edges, or at the centres, of the outer pixels.
  Tensor reflected(const Tensor& at) const {
    const double low = align_corners_ ? 0 : -0.5;
    const auto span = static_cast<double>(align_corners_ ? size_ - 1 : size_);
    if (span == 0) return mul({at, site_}, 0);
    const Tensor distance = abs({sub({at, site_}, low), site_});
    const Tensor rest = fmod({distance, site_}, span);
    const Tensor folds = floor({div({distance, site_}, span), site_});
    const Tensor is_even = eq({fmod({folds, site_}, 2), site_}, 0);
    const Tensor back = span - TensorArg(rest, site_);
    return add({where({is_even, site_}, {rest, site_}, {back, site_}), site_}, low);
  }

  int64_t size_;
  Outside outside_;
  bool align_corners_;
  Site site_;
};

// What one output reads along one dim: a position and a weight (undefined: 1).
struct Tap {
  Tensor position;
  Tensor is_inside;
  Tensor weight;
};

// Keys's (1981) kernel with a = -3/4 at distance `t`, below 1 and beyond it.
Tensor cubic_near(const Tensor& t, Site site) {
  const Tensor inner = sub({mul({t, site}, 1.25), site}, 2.25);
  return add({mul({mul({inner, site}, t), site}, t), site}, 1);
}

Tensor cubic_far(const Tensor& t, Site site) {
  const Tensor inner = add({mul({t, site}, -0.75), site}, 3.75);
  const Tensor next = sub({mul({inner, site}, t), site}, 6);
  return add({mul({next, site}, t), site}, 3);
}

std::vector<Tap> taps(const Axis& axis, const Tensor& place, Mode mode, Site site) {
  const Tensor at = axis.pixels(place);
  std::vector<Tap> result;
  const auto add_tap = [&](const Tensor& whole, const Tensor& weight) {
    auto [position, is_inside] = axis.positions(whole);
    result.push_back({std::move(position), std::move(is_inside), weight});
  };
  if (mode == Mode::kNearest) {
    add_tap(round({axis.inside(at), site}), {});
  } else if (mode == Mode::kBilinear) {
    const Tensor kept = axis.inside(at);
    const Tensor below = floor({kept, site}).detach();
    const Tensor rest = sub({kept, site}, below);
    add_tap(below, 1 - TensorArg(rest, site));
    add_tap(add({below, site}, 1), rest);
  } else {
    const Tensor below = floor({at, site}).detach();
    const Tensor rest = sub({at, site}, below);
    const Tensor to_next = 1 - TensorArg(rest, site);
    const std::array<Tensor, 4> weights = {cubic_far(add({rest, site}, 1), site),
                                           cubic_near(rest, site), cubic_near(to_next, site),
                                           cubic_far(add({to_next, site}, 1), site)};
    for (size_t i = 0; i < weights.size(); ++i) {
      const Tensor whole = add({below, site}, static_cast<double>(i) - 1);
      add_tap(round({axis.inside(whole), site}), weights[i]);
    }
  }
  return result;
}

Mode parse_mode(const TensorArg& x, const std::string& word) {
  if (word == "nearest") return Mode::kNearest;
  if (word == "bilinear") return Mode::kBilinear;
  if (word == "bicubic" && x->dim() == 4) return Mode::kBicubic;
  throw InvalidArgument(str("[grid_sample] mode '", word, "' does not fit ", x->meta(),
                            "; give bilinear, nearest, or bicubic for 4 dims"),
                        x.site());
}

void check(const TensorArg& x, const TensorArg& grid) {
  const bool has_dims = (x->dim() == 4 || x->dim() == 5) && grid->dim() == x->dim();
  if (!has_dims || grid->size(-1) != x->dim() - 2 || grid->size(0) != x->size(0) ||
      x->dtype() != grid->dtype() || !is_floating(x->dtype())) {
    throw InvalidArgument(
        str("[grid_sample] takes x (N, C, H, W) and grid (N, h, w, 2), or x (N, C, D, H, W) and ",
            "grid (N, d, h, w, 3), of one floating dtype; received ", x->meta(), ", ",
            grid->meta()),
        x.site());
  }
  for (int64_t i = 2; i < x->dim(); ++i) {
    if (x->size(i) == 0) {
      throw InvalidArgument(str("[grid_sample] x has no pixels to sample; received ", x->meta()),
                            x.site());
    }
  }
}

// For devices without a kernel: gathers the pixels, corner by corner.
Tensor sum_of_corners(const TensorArg& x, const TensorArg& grid,
                      const ops::GridSampleAttrs& attrs) {
  return ops::named("grid_sample", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    const int64_t rank = x->dim() - 2;
    const int64_t batch = x->size(0);
    const int64_t channels = x->size(1);
    Shape out = {batch, channels};
    int64_t count = 1;
    for (int64_t i = 1; i <= rank; ++i) {
      out.push_back(grid->size(i));
      count *= grid->size(i);
    }
    const Tensor places = reshape(grid, {batch, count, rank});
    int64_t area = 1;
    for (int64_t i = 2; i < x->dim(); ++i)
      area *= x->size(i);
    const Tensor pixels = reshape(x, {batch, channels, area});
    // Positions of all pixels that contribute, dim by dim: the last coordinate of the grid is the
    // first of x.
    std::vector<Tap> corners = {{}};
    for (int64_t i = 0; i < rank; ++i) {
      const Axis axis(x->size(i + 2), attrs.outside, attrs.align_corners, site);
      const Tensor place = select({places, site}, 2, rank - 1 - i);
      std::vector<Tap> joined;
      for (const Tap& tap : taps(axis, place, attrs.mode, site)) {
        for (const Tap& before : corners) {
          if (!before.position.defined()) {
            joined.push_back(tap);
            continue;
          }
          Tap both;
          both.position = add({mul({before.position, site}, axis.size()), site}, tap.position);
          both.is_inside = logical_and({before.is_inside, site}, tap.is_inside);
          if (tap.weight.defined()) both.weight = mul({before.weight, site}, tap.weight);
          joined.push_back(both);
        }
      }
      corners = std::move(joined);
    }
    Tensor y;
    for (const Tap& corner : corners) {
      const Tensor index =
          expand({unsqueeze({corner.position, site}, 1), site}, {batch, channels, count});
      Tensor part = gather({pixels, site}, 2, {index, site});
      if (corner.weight.defined()) part = mul({part, site}, unsqueeze({corner.weight, site}, 1));
      if (attrs.outside == Outside::kZeros) {
        part = where({unsqueeze({corner.is_inside, site}, 1), site}, {part, site}, 0);
      }
      y = y.defined() ? add({y, site}, part) : part;
    }
    return reshape({y, site}, out);
  });
}

}  // namespace

Tensor grid_sample(const TensorArg& input, const TensorArg& positions,
                   const GridSampleOptions& options) {
  const auto sampled = [&](const TensorArg& x, const TensorArg& grid) -> Tensor {
    check(x, grid);
    const ops::GridSampleAttrs attrs{.mode = parse_mode(x, options.mode),
                                     .outside = parse_outside(options.padding_mode, x.site()),
                                     .align_corners = options.align_corners};
    if (x->device() != DeviceType::kCpu) return sum_of_corners(x, grid, attrs);
    return dispatch(ops::kGridSample, {&x.tensor(), &grid.tensor()}, attrs, x.site());
  };
  return ops::in_widest_dtype(sampled, input, positions);
}

Tensor affine_grid(const TensorArg& theta, const Shape& size, const AffineGridOptions& options) {
  return ops::named("affine_grid", theta.site(), [&]() -> Tensor {
    const Site site = theta.site();
    const int64_t rank = size.size() - 2;
    if ((rank != 2 && rank != 3) || theta->shape() != Shape{size[0], rank, rank + 1} ||
        !is_floating(theta->dtype()) || size.numel() <= 0) {
      throw InvalidArgument(
          str("[affine_grid] takes floating theta (N, 2, 3) for size (N, C, H, ",
              "W), or (N, 3, 4) for (N, C, D, H, W), with positive sizes; received ", theta->meta(),
              " for ", size),
          site);
    }
    const TensorOptions layout = ops::whole_like(theta);
    Shape grid;
    for (int64_t i = 2; i < size.size(); ++i)
      grid.push_back(size[i]);
    // The position of each pixel, the last dim's first, and a one.
    std::vector<Tensor> places;
    for (int64_t i = rank - 1; i >= 0; --i) {
      const auto count = static_cast<double>(grid[i]);
      const double end = grid[i] == 1 ? 0 : options.align_corners ? 1 : (count - 1) / count;
      const Tensor along = linspace(-end, end, grid[i], layout, site);
      Shape shape(std::vector<int64_t>(static_cast<size_t>(rank), 1));
      shape[i] = grid[i];
      places.push_back(expand({reshape({along, site}, shape), site}, grid));
    }
    places.push_back(ones(grid, layout, site));
    const Tensor base = reshape({stack({places, site}, -1), site}, {-1, rank + 1});
    const Tensor turned = matmul({base, site}, {transpose(theta, 1, 2), site});
    Shape out = {size[0]};
    for (const int64_t n : grid)
      out.push_back(n);
    out.push_back(rank);
    return reshape({turned, site}, out);
  });
}

}  // namespace flow
