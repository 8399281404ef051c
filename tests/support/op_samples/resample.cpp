#include "core/dispatch.h"
#include "ops/conv/interpolate.h"
#include "ops/conv/resample_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples resample_samples() {
  Samples samples;
  // The last dim, and a dim with others after it; rows of the matrix with 1, 2, 4 and other numbers
  // of entries.
  using Function = std::function<Tensor(const Inputs&)>;
  const auto add = [&](const Shape& shape, const Function& call, const char* label) {
    const auto backward = backward_of(call);
    samples.push_back({"resample", {in(shape)}, kFloats, call, label});
    samples.push_back({"resample_backward", {in(shape)}, kFloats, backward, label});
    Shape many = shape;
    many[0] = 3;
    many[1] = 7;
    many[2] = 29;
    if (many.size() > 3) many[3] = 37;
    for (const auto& [op, run] :
         std::vector<std::pair<const char*, std::function<void(const Inputs&)>>>{
             {"resample", call}, {"resample_backward", backward}}) {
      samples.push_back({op, {in(many)}, kFloats, run, str("many, ", label), true});
      samples.push_back({op, {specials(many)}, kFloats, run, str("specials, ", label), true});
    }
  };
  const auto add_mode = [&](const Shape& shape, const InterpolateOptions& options,
                            const char* label) {
    add(
        shape, [options](const Inputs& x) { return interpolate(x[0], options); }, label);
  };
  // interpolate takes integers in other ways.
  const auto add_nearest = [&](int64_t dim, ops::SampleMode mode, double step, const char* label) {
    add(
        {2, 3, 4, 5},
        [=](const Inputs& x) {
          const int64_t in = x[0].size(dim);
          const auto out = static_cast<int64_t>(static_cast<double>(in) / step);
          const ops::ResampleAttrs attrs{
              .dim = dim, .in = in, .out = out, .mode = mode, .step = step};
          return dispatch(ops::kResample, {&x[0]}, attrs, Site::here());
        },
        label);
  };
  add_nearest(3, ops::SampleMode::kNearest, 0.5, "nearest, last dim");
  add_nearest(2, ops::SampleMode::kNearestExact, 4.0 / 3, "nearest, fewer");
  add_mode({2, 3, 5}, {.size = 8, .mode = "linear"}, "linear, last dim");
  add_mode({2, 3, 4, 5}, {.size = {9, 5}, .mode = "bilinear"}, "linear");
  add_mode({2, 3, 4, 5}, {.size = {7, 11}, .mode = "bicubic"}, "cubic");
  add_mode({2, 3, 4, 5}, {.size = {3, 4}, .mode = "bicubic", .antialias = true}, "antialias");
  return samples;
}

}  // namespace flow::contract
