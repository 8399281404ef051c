// The part that does not need the library: shapes of the specifications.

#include "ops/vendor/onednn.h"

namespace flow::ops {

const BlockedLayout kAnyLayout{.name = "any", .bytes = 0, .to_strided = nullptr, .detail = nullptr};

int64_t Window::out(int dim) const {
  const auto at = static_cast<size_t>(dim);
  const int64_t reach = dilation[at] * (kernel[at] - 1) + 1;
  return (in[at] + padding_begin[at] + padding_end[at] - reach) / stride[at] + 1;
}

Shape ConvolutionSpec::source_shape() const {
  Shape shape{batch, in_channels};
  for (int i = 0; i < window.num_dims; ++i)
    shape.push_back(window.in[static_cast<size_t>(i)]);
  return shape;
}

Shape ConvolutionSpec::weights_shape() const {
  Shape shape = groups == 1 ? Shape{out_channels, in_channels}
                            : Shape{groups, out_channels / groups, in_channels / groups};
  for (int i = 0; i < window.num_dims; ++i)
    shape.push_back(window.kernel[static_cast<size_t>(i)]);
  return shape;
}

Shape ConvolutionSpec::destination_shape() const {
  Shape shape{batch, out_channels};
  for (int i = 0; i < window.num_dims; ++i)
    shape.push_back(window.out(i));
  return shape;
}

Shape PoolingSpec::source_shape() const {
  Shape shape{batch, channels};
  for (int i = 0; i < window.num_dims; ++i)
    shape.push_back(window.in[static_cast<size_t>(i)]);
  return shape;
}

Shape PoolingSpec::destination_shape() const {
  Shape shape{batch, channels};
  for (int i = 0; i < window.num_dims; ++i)
    shape.push_back(window.out(i));
  return shape;
}

}  // namespace flow::ops
