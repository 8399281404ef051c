// Convolutions, pooling, resizing.
#include "ops/conv.h"
#include "ops/interpolate.h"
#include "ops/pool.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

using Conv = Tensor (*)(const TensorArg&, const TensorArg&, const TensorArg&, const ConvOptions&);

void add_conv(Bindings& table, const char* name, Conv conv) {
  table.add(name, [conv](Case& c) {
    ConvOptions options;
    c.attrs.read("stride", options.stride);
    c.attrs.read("padding", options.padding);
    c.attrs.read("dilation", options.dilation);
    c.attrs.read("groups", options.groups);
    return conv(c.in(0), c.in(1), c.named("bias"), options);
  });
}

MaxPoolOptions max_pool_options(Case& c) {
  MaxPoolOptions options;
  c.attrs.read("stride", options.stride);
  c.attrs.read("padding", options.padding);
  c.attrs.read("dilation", options.dilation);
  c.attrs.read("ceil_mode", options.ceil_mode);
  return options;
}

AvgPoolOptions avg_pool_options(Case& c) {
  AvgPoolOptions options;
  c.attrs.read("stride", options.stride);
  c.attrs.read("padding", options.padding);
  c.attrs.read("ceil_mode", options.ceil_mode);
  c.attrs.read("count_include_pad", options.count_include_pad);
  c.attrs.read("divisor_override", options.divisor_override);
  return options;
}

Tensor resized(Case& c) {
  InterpolateOptions options;
  c.attrs.read("size", options.size);
  c.attrs.read("scale_factor", options.scale_factor);
  c.attrs.read("mode", options.mode);
  c.attrs.read("align_corners", options.align_corners);
  c.attrs.read("recompute_scale_factor", options.recompute_scale_factor);
  c.attrs.only("antialias", false);
  return interpolate(c.in(0), options);
}

}  // namespace

void bind_windows(Bindings& table) {
  add_conv(table, "conv1d", conv1d);
  add_conv(table, "conv2d", conv2d);
  add_conv(table, "conv3d", conv3d);
  table.add("conv_transpose2d", [](Case& c) {
    ConvTransposeOptions options;
    c.attrs.read("stride", options.stride);
    c.attrs.read("padding", options.padding);
    c.attrs.read("output_padding", options.output_padding);
    c.attrs.read("groups", options.groups);
    c.attrs.read("dilation", options.dilation);
    return conv_transpose2d(c.in(0), c.in(1), c.named("bias"), options);
  });
  table.add("max_pool2d", [](Case& c) -> Outputs {
    const auto kernel = c.attrs.get<Ints>("kernel_size");
    const MaxPoolOptions options = max_pool_options(c);
    if (!c.attrs.get<bool>("return_indices", false)) return {max_pool2d(c.in(0), kernel, options)};
    const ValuesIndices y = max_pool2d_with_indices(c.in(0), kernel, options);
    return {y.values, y.indices};
  });
  table.add("max_pool1d", [](Case& c) {
    c.attrs.only("return_indices", false);
    return max_pool1d(c.in(0), c.attrs.get<Ints>("kernel_size"), max_pool_options(c));
  });
  table.add("avg_pool1d", [](Case& c) {
    return avg_pool1d(c.in(0), c.attrs.get<Ints>("kernel_size"), avg_pool_options(c));
  });
  table.add("avg_pool2d", [](Case& c) {
    return avg_pool2d(c.in(0), c.attrs.get<Ints>("kernel_size"), avg_pool_options(c));
  });
  table.add("adaptive_avg_pool2d",
            [](Case& c) { return adaptive_avg_pool2d(c.in(0), c.attrs.get<Ints>("output_size")); });
  table.add("interpolate", resized);
}

}  // namespace flow::conform
