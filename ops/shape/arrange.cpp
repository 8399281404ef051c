#include "ops/shape/arrange.h"

#include "core/error.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/index/index.h"
#include "ops/named_errors.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

template <class Fn>
std::vector<Tensor> each(const TensorListArg& tensors, const Fn& fn) {
  std::vector<Tensor> results;
  for (const Tensor& x : tensors.tensors)
    results.push_back(fn(TensorArg(x, tensors.site)));
  return results;
}

Tensor joined(const char* name, const TensorListArg& tensors, Tensor (*fit)(const TensorArg&),
              int64_t dim) {
  return ops::named(name, tensors.site, [&] {
    return cat({each(tensors, fit), tensors.site}, dim);
  });
}

Tensor as_column(const TensorArg& x) {
  return x->dim() <= 1 ? reshape(x, {x->numel(), 1}) : x.tensor();
}

}  // namespace

std::vector<Tensor> broadcast_tensors(const TensorListArg& tensors) {
  return ops::named("broadcast_tensors", tensors.site, [&] {
    Shape shape;
    for (const Tensor& x : tensors.tensors)
      shape = broadcast_shapes(shape, x.shape(), "broadcast_tensors");
    return each(tensors, [&](const TensorArg& x) { return expand(x, shape); });
  });
}

Tensor atleast_1d(const TensorArg& x) {
  return x->dim() == 0 ? reshape(x, {1}) : x.tensor();
}

Tensor atleast_2d(const TensorArg& x) {
  return x->dim() <= 1 ? reshape(x, {1, x->numel()}) : x.tensor();
}

Tensor atleast_3d(const TensorArg& x) {
  if (x->dim() <= 1) return reshape(x, {1, x->numel(), 1});
  return x->dim() == 2 ? unsqueeze(x, -1) : x.tensor();
}

Tensor hstack(const TensorListArg& tensors) {
  const bool are_vectors = !tensors.tensors.empty() && tensors.tensors[0].dim() <= 1;
  return joined("hstack", tensors, atleast_1d, are_vectors ? 0 : 1);
}

Tensor vstack(const TensorListArg& tensors) {
  return joined("vstack", tensors, atleast_2d, 0);
}

Tensor dstack(const TensorListArg& tensors) {
  return joined("dstack", tensors, atleast_3d, 2);
}

Tensor column_stack(const TensorListArg& tensors) {
  return joined("column_stack", tensors, as_column, 1);
}

Tensor block_diag(const TensorListArg& tensors) {
  return ops::named("block_diag", tensors.site, [&]() -> Tensor {
    const Site site = tensors.site;
    int64_t columns = 0;
    std::vector<Tensor> blocks;
    for (const Tensor& x : tensors.tensors) {
      if (x.dim() > 2) {
        throw InvalidArgument(str("[block_diag] takes matrices; received ", x.meta()), site);
      }
      blocks.push_back(atleast_2d({x, site}));
      columns += blocks.back().size(1);
    }
    int64_t before = 0;
    for (Tensor& block : blocks) {
      const int64_t own = block.size(1);
      block = pad({block, site}, {before, columns - before - own});
      before += own;
    }
    return cat({blocks, site}, 0);
  });
}

namespace {

// Into `count` parts, of which the first ones are larger by one element if need be.
std::vector<Tensor> nearly_equal_parts(const TensorArg& x, int64_t count, int64_t dim) {
  if (count <= 0) {
    throw InvalidArgument(str("[tensor_split] there are ", count, " sections; give at least 1"),
                          x.site());
  }
  const int64_t size = x->size(normalize_dim(dim, x->dim(), "tensor_split"));
  std::vector<int64_t> sizes(static_cast<size_t>(count), size / count);
  for (int64_t i = 0; i < size % count; ++i)
    ++sizes[static_cast<size_t>(i)];
  return split(x, sizes, dim);
}

}  // namespace

std::vector<Tensor> tensor_split(const TensorArg& x, const Sections& sections, int64_t dim) {
  return ops::named("tensor_split", x.site(), [&] {
    if (sections.is_number()) return nearly_equal_parts(x, sections.number(), dim);
    std::vector<Tensor> parts;
    int64_t begin = 0;
    for (const int64_t end : sections.list()) {
      parts.push_back(slice(x, dim, begin, end));
      begin = end;
    }
    parts.push_back(slice(x, dim, begin));
    return parts;
  });
}

namespace {

int64_t dim_of_split(const char* name, const TensorArg& x, int64_t dim) {
  if (x->dim() > dim) return dim;
  if (x->dim() == 1 && dim == 1) return 0;
  throw InvalidArgument(str("[", name, "] splits dim ", dim, "; received ", x->meta()), x.site());
}

// As in PyTorch, a number of parts must divide the size.
std::vector<Tensor> split_along(const char* name, const TensorArg& x, const Sections& sections,
                                int64_t dim) {
  return ops::named(name, x.site(), [&] {
    const int64_t d = dim_of_split(name, x, dim);
    if (sections.is_number() && (sections.number() < 1 || x->size(d) % sections.number() != 0)) {
      throw InvalidArgument(
          str("[", name, "] dim ", d, " of ", x->meta(), " cannot be divided into ",
              sections.number(), " equal parts; use tensor_split"),
          x.site());
    }
    return tensor_split(x, sections, d);
  });
}

}  // namespace

std::vector<Tensor> hsplit(const TensorArg& x, const Sections& sections) {
  return split_along("hsplit", x, sections, 1);
}

std::vector<Tensor> vsplit(const TensorArg& x, const Sections& sections) {
  if (x->dim() < 2) dim_of_split("vsplit", x, 2);
  return split_along("vsplit", x, sections, 0);
}

std::vector<Tensor> dsplit(const TensorArg& x, const Sections& sections) {
  return split_along("dsplit", x, sections, 2);
}

Tensor unflatten(const TensorArg& x, int64_t dim, const Shape& sizes) {
  return ops::named("unflatten", x.site(), [&]() -> Tensor {
    const int64_t d = normalize_dim(dim, x->dim(), "unflatten");
    int64_t known = 1;
    int64_t unknown = -1;
    for (int64_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == -1 && unknown < 0) {
        unknown = i;
      } else {
        known *= sizes[i];
      }
    }
    const int64_t size = x->shape()[d];
    const bool fits = unknown < 0 ? known == size : known > 0 && size % known == 0;
    if (!fits || sizes.empty()) {
      throw InvalidArgument(str("[unflatten] sizes ", sizes, " do not multiply to the size of dim ",
                                d, " of shape ", x->shape(), "; give sizes with that product"),
                            x.site());
    }
    Shape shape;
    for (int64_t i = 0; i < x->dim(); ++i) {
      if (i != d) {
        shape.push_back(x->shape()[i]);
        continue;
      }
      for (int64_t k = 0; k < sizes.size(); ++k)
        shape.push_back(k == unknown ? size / known : sizes[k]);
    }
    return view(x, shape);
  });
}

Tensor fliplr(const TensorArg& x) {
  if (x->dim() < 2) {
    throw InvalidArgument(
        str("[fliplr] takes two dims or more; received ", x->meta(), "; use flip"), x.site());
  }
  return flip(x, 1);
}

Tensor flipud(const TensorArg& x) {
  if (x->dim() < 1) {
    throw InvalidArgument(str("[flipud] takes one dim or more; received ", x->meta()), x.site());
  }
  return ops::named("flipud", x.site(), [&] { return flip(x, 0); });
}

Tensor rot90(const TensorArg& x, int64_t k, const Ints& dims) {
  return ops::named("rot90", x.site(), [&]() -> Tensor {
    if (dims.size() != 2 || x->dim() < 2 ||
        normalize_dim(dims[0], x->dim(), "rot90") == normalize_dim(dims[1], x->dim(), "rot90")) {
      throw InvalidArgument(str("[rot90] rotates in the plane of two different dims; received ",
                                Shape(dims.values()), " for shape ", x->shape(), "; give two dims"),
                            x.site());
    }
    const Site site = x.site();
    switch ((k % 4 + 4) % 4) {
      case 1:
        return transpose({flip(x, dims[1]), site}, dims[0], dims[1]);
      case 2:
        return flip(x, dims);
      case 3:
        return transpose({flip(x, dims[0]), site}, dims[0], dims[1]);
      default:
        return x->clone(site);
    }
  });
}

std::vector<Tensor> meshgrid(const TensorListArg& vectors, const MeshgridOptions& options) {
  return ops::named("meshgrid", vectors.site, [&] {
    const bool is_swapped = options.indexing == "xy";
    if (!is_swapped && options.indexing != "ij") {
      throw InvalidArgument(str("[meshgrid] indexing is '", options.indexing, "'; give ij or xy"),
                            vectors.site);
    }
    Shape shape;
    for (const Tensor& v : vectors.tensors) {
      if (v.dim() > 1) {
        throw InvalidArgument(str("[meshgrid] takes vectors; received ", v.meta(), "; flatten it"),
                              vectors.site);
      }
      shape.push_back(v.numel());
    }
    std::vector<Tensor> grids;
    for (const Tensor& v : vectors.tensors) {
      Shape own = Shape::filled(shape.size(), 1);
      own[static_cast<int64_t>(grids.size())] = v.numel();
      const TensorArg line(v, vectors.site);
      grids.push_back(expand({reshape(line, own), vectors.site}, shape));
    }
    if (is_swapped && shape.size() > 1) {
      for (Tensor& grid : grids)
        grid = transpose({grid, vectors.site}, 0, 1);
    }
    return grids;
  });
}

Tensor repeat_interleave(const TensorArg& x, int64_t repeats, std::optional<int64_t> dim) {
  return ops::named("repeat_interleave", x.site(), [&]() -> Tensor {
    if (repeats < 0) {
      throw InvalidArgument(str("[repeat_interleave] repeats is ", repeats, "; give 0 or more"),
                            x.site());
    }
    const Site site = x.site();
    if (!dim) return repeat_interleave({reshape(x, {-1}), site}, repeats, 0);
    const int64_t d = normalize_dim(*dim, x->dim(), "repeat_interleave");
    Shape wide = x->shape();
    wide.insert(d + 1, repeats);
    Shape shape = x->shape();
    shape[d] *= repeats;
    const Tensor copy = clone({expand({unsqueeze(x, d + 1), site}, wide), site});
    return reshape({copy, site}, shape);
  });
}

// Windows are selected by their positions, so the result is a copy.
Tensor ShapeMethods::unfold(int64_t dim, int64_t size, int64_t step, Site site) const {
  return ops::named("unfold", site, [&]() -> Tensor {
    const TensorArg x(self(), site);
    if (self().dim() == 0) {  // a single window, without a dim that counts windows
      return flow::reshape(x, {1}).unfold(dim, size, step, site).select(0, 0, site);
    }
    const int64_t d = normalize_dim(dim, self().dim(), "unfold");
    if (size < 0 || size > self().size(d) || step <= 0) {
      throw InvalidArgument(
          str("[unfold] needs 0 <= size <= ", self().size(d), " and step > 0; received size ", size,
              ", step ", step, " for dim ", d, " of ", self().meta(), "; make the windows smaller"),
          site);
    }
    const TensorOptions layout = ops::whole_like(self(), DType::kInt64);
    const int64_t count = (self().size(d) - size) / step + 1;
    const Tensor starts = flow::mul({arange(count, layout, site).unsqueeze(1, site), site}, step);
    const Tensor places = flow::add({starts, site}, arange(size, layout, site));
    const Tensor picked = flow::index_select(x, d, {places.reshape({-1}, site), site});
    return flow::movedim({flow::unflatten({picked, site}, d, {count, size}), site}, d + 1, -1);
  });
}

Tensor ShapeMethods::unflatten(int64_t dim, const Shape& sizes, Site site) const {
  return flow::unflatten(TensorArg(self(), site), dim, sizes);
}

std::vector<Tensor> ShapeMethods::tensor_split(const Sections& sections, int64_t dim,
                                               Site site) const {
  return flow::tensor_split(TensorArg(self(), site), sections, dim);
}

Tensor ShapeMethods::repeat_interleave(int64_t repeats, std::optional<int64_t> dim,
                                       Site site) const {
  return flow::repeat_interleave(TensorArg(self(), site), repeats, dim);
}

Tensor ShapeMethods::fliplr(Site site) const {
  return flow::fliplr(TensorArg(self(), site));
}

Tensor ShapeMethods::flipud(Site site) const {
  return flow::flipud(TensorArg(self(), site));
}

Tensor ShapeMethods::rot90(int64_t k, const Ints& dims, Site site) const {
  return flow::rot90(TensorArg(self(), site), k, dims);
}

std::vector<Tensor> ShapeMethods::hsplit(const Sections& sections, Site site) const {
  return flow::hsplit(TensorArg(self(), site), sections);
}

std::vector<Tensor> ShapeMethods::vsplit(const Sections& sections, Site site) const {
  return flow::vsplit(TensorArg(self(), site), sections);
}

std::vector<Tensor> ShapeMethods::dsplit(const Sections& sections, Site site) const {
  return flow::dsplit(TensorArg(self(), site), sections);
}

}  // namespace flow
