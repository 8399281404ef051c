#include "ops/conv/grid_sample.h"

#include <array>

#include "core/dispatch.h"
#include "ops/conv/grid_sample_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

// Positions in and around an image whose sizes are these. None is near the centre or the edge of a
// pixel, where the derivatives of some modes jump.
SampleInput places(const Shape& shape, std::initializer_list<int64_t> sizes, bool align_corners) {
  SampleInput input = in(shape, -1.6, 1.6);
  input.gap = 0.02;
  for (const int64_t size : sizes) {
    const double step = 2.0 / static_cast<double>(align_corners ? size - 1 : size);
    for (int64_t half = -2 * size; half <= 4 * size; ++half)
      input.avoid.push_back(-1 + static_cast<double>(half) * step / 2);
  }
  return input;
}

}  // namespace

Samples grid_sample_samples() {
  Samples samples;
  using Function = std::function<Tensor(const Inputs&)>;
  const auto add_kernels = [&](const SampleInput& x, const SampleInput& grid, const Function& call,
                               const std::string& label, bool only_kernels) {
    samples.push_back({"grid_sample", {x, grid}, kFloats, call, label, only_kernels});
    samples.push_back({"grid_sample_backward_x",
                       {x, grid},
                       kFloats,
                       backward_of(call, 0b10),
                       label,
                       only_kernels});
  };
  const auto add_backward_grid = [&](const SampleInput& x, const SampleInput& grid,
                                     const Function& call, const std::string& label,
                                     bool only_kernels) {
    samples.push_back({"grid_sample_backward_grid",
                       {x, grid},
                       kFloats,
                       backward_of(call, 0b01),
                       label,
                       only_kernels});
  };
  const auto add = [&](const GridSampleOptions& options, bool is_volume) {
    const Function call = [=](const Inputs& in) { return grid_sample(in[0], in[1], options); };
    const std::string label =
        str(options.mode, ", ", options.padding_mode, options.align_corners ? ", aligned" : "",
            is_volume ? ", 3d" : "");
    const SampleInput x = in(is_volume ? Shape{2, 5, 2, 3, 2} : Shape{2, 5, 3, 2});
    const SampleInput grid = is_volume ? places({2, 2, 5, 2, 3}, {2, 3}, options.align_corners)
                                       : places({2, 5, 2, 2}, {2, 3}, options.align_corners);
    add_kernels(x, grid, call, label, false);
    // Whole vectors of channels and a rest, more than one group of them, more samples than a chunk.
    const SampleInput many = in(is_volume ? Shape{3, 37, 3, 5, 4} : Shape{3, 149, 7, 6});
    const SampleInput many_places = is_volume
                                        ? places({3, 5, 3, 9, 3}, {3, 4, 5}, options.align_corners)
                                        : places({3, 9, 11, 2}, {6, 7}, options.align_corners);
    add_kernels(many, many_places, call, "many, " + label, true);
    SampleInput few = many;
    few.shape[1] = 2;
    add_kernels(few, many_places, call, "few channels, " + label, true);
    if (options.mode == "nearest") return;  // has no gradient by the grid
    add_backward_grid(x, grid, call, label, false);
    add_backward_grid(many, many_places, call, "many, " + label, true);
    add_backward_grid(few, many_places, call, "few channels, " + label, true);
  };
  for (const char* mode : {"nearest", "bilinear", "bicubic"}) {
    for (const char* padding_mode : {"zeros", "border", "reflection"}) {
      for (const bool align_corners : {false, true})
        add({.mode = mode, .padding_mode = padding_mode, .align_corners = align_corners}, false);
    }
  }
  add({}, true);
  add({.mode = "nearest", .padding_mode = "border"}, true);
  add({.padding_mode = "reflection", .align_corners = true}, true);
  // Derivatives of the weights, which second derivatives of the function use.
  for (const auto& orders :
       {ops::SpatialInts{1, 0}, ops::SpatialInts{0, 2}, ops::SpatialInts{1, 1}}) {
    const ops::GridSampleAttrs attrs{.mode = ops::GridMode::kBicubic, .orders = orders};
    const Function call = [=](const Inputs& x) {
      return dispatch(ops::kGridSample, {&x[0], &x[1]}, attrs, Site::here());
    };
    const SampleInput x = in({2, 5, 3, 2});
    const SampleInput grid = places({2, 5, 2, 2}, {2, 3}, false);
    const std::string label = str("derivatives ", orders[0], ", ", orders[1]);
    add_kernels(x, grid, call, label, false);
    add_backward_grid(x, grid, call, label, false);
  }
  const Function call = [](const Inputs& x) { return grid_sample(x[0], x[1]); };
  add_kernels(specials({2, 5, 3, 4}), places({2, 3, 7, 2}, {3, 4}, false), call, "specials", true);
  return samples;
}

}  // namespace flow::contract
