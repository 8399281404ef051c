// Products and distances of vectors, sampling grids, bags of embeddings, shrinking activations,
// and functions of neighbouring elements.
#include "ops/conv/grid_sample.h"
#include "ops/conv/neighbourhood.h"
#include "ops/creation/copy.h"
#include "ops/elementwise/shrink.h"
#include "ops/index/embedding_bag.h"
#include "ops/linear/vector_algebra.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

void bind_algebra(Bindings& table) {
  table.add("cross", [](Case& c) {
    CrossOptions options;
    c.attrs.read("dim", options.dim);
    return cross(c.in(0), c.in(1), options);
  });
  table.add("inner", [](Case& c) { return inner(c.in(0), c.in(1)); });
  table.add("dist", [](Case& c) { return dist(c.in(0), c.in(1), c.attrs.get<double>("p", 2)); });
  table.add("kron", [](Case& c) { return kron(c.in(0), c.in(1)); });
  table.add("cdist", [](Case& c) {
    CdistOptions options;
    c.attrs.read("p", options.p);
    return cdist(c.in(0), c.in(1), options);
  });
  table.add("pdist", [](Case& c) { return pdist(c.in(0), c.attrs.get<double>("p", 2)); });
  table.add("cov", [](Case& c) {
    CovOptions options{.fweights = c.named("fweights"), .aweights = c.named("aweights")};
    c.attrs.read("correction", options.correction);
    return cov(c.in(0), options);
  });
  table.add("corrcoef", [](Case& c) { return corrcoef(c.in(0)); });
  table.add("renorm", [](Case& c) {
    return renorm(c.in(0), c.attrs.get<double>("p"), c.attrs.get<int64_t>("dim"),
                  c.attrs.get<double>("maxnorm"));
  });
  table.add("trapezoid", [](Case& c) {
    TrapezoidOptions options;
    if (c.num_inputs() > 1) options.x = c.in(1);
    c.attrs.read("dx", options.dx);
    c.attrs.read("dim", options.dim);
    return trapezoid(c.in(0), options);
  });
  table.add("cartesian_prod", [](Case& c) { return cartesian_prod(c.all()); });
  table.add("combinations", [](Case& c) {
    return combinations(c.in(0), c.attrs.get<int64_t>("r", 2),
                        c.attrs.get<bool>("with_replacement", false));
  });
  table.add("vander", [](Case& c) {
    VanderOptions options;
    c.attrs.read("N", options.N);
    c.attrs.read("increasing", options.increasing);
    return vander(c.in(0), options);
  });
  table.add("bilinear", [](Case& c) {
    return bilinear(c.in(0), c.in(1), c.in(2), c.num_inputs() > 3 ? c.in(3) : Tensor());
  });
}

void bind_grids(Bindings& table) {
  table.add("grid_sample", [](Case& c) {
    GridSampleOptions options;
    c.attrs.read("mode", options.mode);
    c.attrs.read("padding_mode", options.padding_mode);
    c.attrs.read("align_corners", options.align_corners);
    return grid_sample(c.in(0), c.in(1), options);
  });
  table.add("affine_grid", [](Case& c) {
    AffineGridOptions options;
    c.attrs.read("align_corners", options.align_corners);
    return affine_grid(c.in(0), c.attrs.get<Shape>("size"), options);
  });
  table.add("embedding_bag", [](Case& c) {
    EmbeddingBagOptions options{.offsets = c.named("offsets"),
                                .per_sample_weights = c.named("per_sample_weights")};
    c.attrs.read("max_norm", options.max_norm);
    c.attrs.read("norm_type", options.norm_type);
    c.attrs.read("mode", options.mode);
    c.attrs.read("include_last_offset", options.include_last_offset);
    c.attrs.read("padding_idx", options.padding_idx);
    c.attrs.only("sparse", false);
    c.attrs.only("scale_grad_by_freq", false);
    // Writes the rows that are too long, so it gets a copy of the case's tensor.
    const Tensor weight = options.max_norm ? clone(c.in(1)) : c.in(1);
    return embedding_bag(c.in(0), weight, options);
  });
}

void bind_shrinks(Bindings& table) {
  table.add({"hardshrink", "softshrink"}, [](Case& c) {
    ShrinkOptions options;
    c.attrs.read("lambd", options.lambd);
    return c.op() == "hardshrink" ? hardshrink(c.in(0), options) : softshrink(c.in(0), options);
  });
  table.add("tanhshrink", [](Case& c) { return tanhshrink(c.in(0)); });
  table.add("threshold", [](Case& c) {
    return threshold(c.in(0), c.attrs.get<double>("threshold"), c.attrs.get<double>("value"));
  });
  table.add("softmin", [](Case& c) { return softmin(c.in(0), c.attrs.get<int64_t>("dim")); });
  table.add("rrelu", [](Case& c) {
    RReluOptions options;
    c.attrs.read("lower", options.lower);
    c.attrs.read("upper", options.upper);
    c.attrs.only("training", false);
    return rrelu(c.in(0), options);
  });
}

void bind_neighbours(Bindings& table) {
  table.add("local_response_norm", [](Case& c) {
    LocalResponseNormOptions options;
    c.attrs.read("alpha", options.alpha);
    c.attrs.read("beta", options.beta);
    c.attrs.read("k", options.k);
    return local_response_norm(c.in(0), c.attrs.get<int64_t>("size"), options);
  });
  table.add({"lp_pool1d", "lp_pool2d", "lp_pool3d"}, [](Case& c) {
    LpPoolOptions options;
    c.attrs.read("stride", options.stride);
    c.attrs.read("ceil_mode", options.ceil_mode);
    const auto norm_type = c.attrs.get<double>("norm_type");
    const auto kernel = c.attrs.get<Ints>("kernel_size");
    const auto pool = c.op() == "lp_pool1d"   ? lp_pool1d
                      : c.op() == "lp_pool2d" ? lp_pool2d
                                              : lp_pool3d;
    return pool(c.in(0), norm_type, kernel, options);
  });
  table.add("channel_shuffle",
            [](Case& c) { return channel_shuffle(c.in(0), c.attrs.get<int64_t>("groups")); });
}

}  // namespace

void bind_vectors(Bindings& table) {
  bind_algebra(table);
  bind_grids(table);
  bind_shrinks(table);
  bind_neighbours(table);
}

}  // namespace flow::conform
