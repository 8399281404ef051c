// Convolutions, pooling, unfold and fold, resizing.
#include "ops/conv/conv.h"
#include "ops/conv/fold.h"
#include "ops/conv/fractional_pool.h"
#include "ops/conv/interpolate.h"
#include "ops/conv/max_unpool.h"
#include "ops/conv/pool.h"
#include "ops/conv/pool_volume.h"
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
  // PyTorch's avg_pool1d has no such argument.
  if (c.op() != "avg_pool1d") c.attrs.read("divisor_override", options.divisor_override);
  return options;
}

using ConvTranspose = Tensor (*)(const TensorArg&, const TensorArg&, const TensorArg&,
                                 const ConvTransposeOptions&);

void add_conv_transpose(Bindings& table, const char* name, ConvTranspose conv) {
  table.add(name, [conv](Case& c) {
    ConvTransposeOptions options;
    c.attrs.read("stride", options.stride);
    c.attrs.read("padding", options.padding);
    c.attrs.read("output_padding", options.output_padding);
    c.attrs.read("groups", options.groups);
    c.attrs.read("dilation", options.dilation);
    return conv(c.in(0), c.in(1), c.named("bias"), options);
  });
}

using MaxPool = Tensor (*)(const TensorArg&, const Ints&, const MaxPoolOptions&);
using MaxPoolWithIndices = ValuesIndices (*)(const TensorArg&, const Ints&, const MaxPoolOptions&);

void add_max_pool(Bindings& table, const char* name, MaxPool pool,
                  MaxPoolWithIndices pool_with_indices) {
  table.add(name, [=](Case& c) -> Outputs {
    const auto kernel = c.attrs.get<Ints>("kernel_size");
    const MaxPoolOptions options = max_pool_options(c);
    if (!c.attrs.get<bool>("return_indices", false)) return {pool(c.in(0), kernel, options)};
    const ValuesIndices y = pool_with_indices(c.in(0), kernel, options);
    return {y.values, y.indices};
  });
}

using FractionalPool = Tensor (*)(const TensorArg&, const Ints&, const FractionalMaxPoolOptions&);
using FractionalPoolWithIndices = ValuesIndices (*)(const TensorArg&, const Ints&,
                                                    const FractionalMaxPoolOptions&);

void add_fractional_pool(Bindings& table, const char* name, FractionalPool pool,
                         FractionalPoolWithIndices pool_with_indices) {
  table.add(name, [=](Case& c) -> Outputs {
    const auto kernel = c.attrs.get<Ints>("kernel_size");
    FractionalMaxPoolOptions options{.random_samples = c.named("random_samples")};
    c.attrs.read("output_size", options.output_size);
    c.attrs.read("output_ratio", options.output_ratio);
    if (!c.attrs.get<bool>("return_indices", false)) return {pool(c.in(0), kernel, options)};
    const ValuesIndices y = pool_with_indices(c.in(0), kernel, options);
    return {y.values, y.indices};
  });
}

using MaxUnpool = Tensor (*)(const TensorArg&, const TensorArg&, const Ints&,
                             const MaxUnpoolOptions&);

void add_max_unpool(Bindings& table, const char* name, MaxUnpool unpool) {
  table.add(name, [unpool](Case& c) {
    MaxUnpoolOptions options;
    c.attrs.read("stride", options.stride);
    c.attrs.read("padding", options.padding);
    c.attrs.read("output_size", options.output_size);
    return unpool(c.in(0), c.in(1), c.attrs.get<Ints>("kernel_size"), options);
  });
}

using AvgPool = Tensor (*)(const TensorArg&, const Ints&, const AvgPoolOptions&);

void add_avg_pool(Bindings& table, const char* name, AvgPool pool) {
  table.add(name, [pool](Case& c) {
    return pool(c.in(0), c.attrs.get<Ints>("kernel_size"), avg_pool_options(c));
  });
}

using AdaptivePool = Tensor (*)(const TensorArg&, const Ints&);

void add_adaptive(Bindings& table, const char* name, AdaptivePool pool) {
  table.add(name, [pool](Case& c) { return pool(c.in(0), c.attrs.get<Ints>("output_size")); });
}

void add_adaptive_max(Bindings& table, const char* name, AdaptivePool pool,
                      ValuesIndices (*pool_with_indices)(const TensorArg&, const Ints&)) {
  table.add(name, [=](Case& c) -> Outputs {
    const auto size = c.attrs.get<Ints>("output_size");
    if (!c.attrs.get<bool>("return_indices", false)) return {pool(c.in(0), size)};
    const ValuesIndices y = pool_with_indices(c.in(0), size);
    return {y.values, y.indices};
  });
}

FoldOptions fold_options(Case& c) {
  FoldOptions options;
  c.attrs.read("dilation", options.dilation);
  c.attrs.read("padding", options.padding);
  c.attrs.read("stride", options.stride);
  return options;
}

void bind_folds(Bindings& table) {
  table.add("unfold", [](Case& c) {
    return unfold(c.in(0), c.attrs.get<Ints>("kernel_size"), fold_options(c));
  });
  table.add("fold", [](Case& c) {
    const auto size = c.attrs.get<Ints>("output_size");
    return fold(c.in(0), size, c.attrs.get<Ints>("kernel_size"), fold_options(c));
  });
  table.add("pixel_shuffle",
            [](Case& c) { return pixel_shuffle(c.in(0), c.attrs.get<int64_t>("upscale_factor")); });
  table.add("pixel_unshuffle", [](Case& c) {
    return pixel_unshuffle(c.in(0), c.attrs.get<int64_t>("downscale_factor"));
  });
}

Tensor resized(Case& c) {
  InterpolateOptions options;
  c.attrs.read("size", options.size);
  c.attrs.read("scale_factor", options.scale_factor);
  c.attrs.read("mode", options.mode);
  c.attrs.read("align_corners", options.align_corners);
  c.attrs.read("recompute_scale_factor", options.recompute_scale_factor);
  c.attrs.read("antialias", options.antialias);
  return interpolate(c.in(0), options);
}

}  // namespace

void bind_windows(Bindings& table) {
  add_conv(table, "conv1d", conv1d);
  add_conv(table, "conv2d", conv2d);
  add_conv(table, "conv3d", conv3d);
  add_conv_transpose(table, "conv_transpose1d", conv_transpose1d);
  add_conv_transpose(table, "conv_transpose2d", conv_transpose2d);
  add_conv_transpose(table, "conv_transpose3d", conv_transpose3d);
  add_max_pool(table, "max_pool1d", max_pool1d, max_pool1d_with_indices);
  add_max_pool(table, "max_pool2d", max_pool2d, max_pool2d_with_indices);
  add_max_pool(table, "max_pool3d", max_pool3d, max_pool3d_with_indices);
  add_fractional_pool(table, "fractional_max_pool2d", fractional_max_pool2d,
                      fractional_max_pool2d_with_indices);
  add_fractional_pool(table, "fractional_max_pool3d", fractional_max_pool3d,
                      fractional_max_pool3d_with_indices);
  add_max_unpool(table, "max_unpool1d", max_unpool1d);
  add_max_unpool(table, "max_unpool2d", max_unpool2d);
  add_max_unpool(table, "max_unpool3d", max_unpool3d);
  add_avg_pool(table, "avg_pool1d", avg_pool1d);
  add_avg_pool(table, "avg_pool2d", avg_pool2d);
  add_avg_pool(table, "avg_pool3d", avg_pool3d);
  add_adaptive(table, "adaptive_avg_pool1d", adaptive_avg_pool1d);
  add_adaptive(table, "adaptive_avg_pool2d", adaptive_avg_pool2d);
  add_adaptive(table, "adaptive_avg_pool3d", adaptive_avg_pool3d);
  add_adaptive_max(table, "adaptive_max_pool1d", adaptive_max_pool1d,
                   adaptive_max_pool1d_with_indices);
  add_adaptive_max(table, "adaptive_max_pool2d", adaptive_max_pool2d,
                   adaptive_max_pool2d_with_indices);
  add_adaptive_max(table, "adaptive_max_pool3d", adaptive_max_pool3d,
                   adaptive_max_pool3d_with_indices);
  bind_folds(table);
  table.add("interpolate", resized);
}

}  // namespace flow::conform
