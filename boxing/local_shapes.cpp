#include "boxing/local_shapes.h"

#include <algorithm>
#include <array>
#include <vector>

#include "boxing/comm/communicator.h"
#include "core/context.h"
#include "core/error.h"

namespace flow::boxing {

namespace {

[[noreturn]] void throw_no_fit(std::span<const Shape> parts, const Layout& layout,
                               const std::string& why) {
  std::string received;
  for (size_t i = 0; i < parts.size(); ++i) {
    received += str(i == 0 ? "" : ", ", parts[i], " on rank ", layout.placement.ranks()[i]);
  }
  throw InvalidArgument(str("[to_global] local shapes do not form a tensor of ", layout, ": ", why,
                            "; received ", received,
                            "; give equal shapes, or along split dims the shapes of the balanced "
                            "split (the first ranks have one element more)"));
}

// The sum of the sizes of `dim` over the ranks that split it: those that differ from the first
// position along axes that split `dim`.
int64_t joined_size(std::span<const Shape> parts, const Layout& layout, int64_t dim) {
  int64_t sum = 0;
  for (size_t position = 0; position < parts.size(); ++position) {
    bool counts = true;
    for (int64_t axis = 0; axis < layout.nd_sbp.size(); ++axis) {
      const Sbp entry = layout.nd_sbp[axis];
      const bool cuts = entry.is_split() && entry.dim() == dim;
      counts &= cuts || layout.placement.coordinate(static_cast<int64_t>(position), axis) == 0;
    }
    if (counts) sum += parts[position][dim];
  }
  return sum;
}

}  // namespace

Shape join_shapes(std::span<const Shape> parts, const Layout& layout) {
  const int64_t num_dims = parts[0].size();
  for (const Shape& part : parts) {
    if (part.size() != num_dims) throw_no_fit(parts, layout, "the numbers of dims differ");
  }
  Shape logical = parts[0];
  for (int64_t dim = 0; dim < num_dims; ++dim)
    logical[dim] = joined_size(parts, layout, dim);
  for (size_t position = 0; position < parts.size(); ++position) {
    const Box box =
        box_of(logical, layout.placement, layout.nd_sbp, static_cast<int64_t>(position));
    if (!(box.size == parts[position])) {
      throw_no_fit(parts, layout,
                   str("rank ", layout.placement.ranks()[position], " should hold ", box.size,
                       " of ", logical));
    }
  }
  return logical;
}

namespace {

// One rank's part in the form in which it is sent.
struct PartShape {
  std::array<int64_t, kMaxDims> sizes;
  int32_t num_dims;
  DType dtype;
  bool requires_grad;
};

}  // namespace

JoinedParts join_parts(const Tensor& local, const Layout& layout, Site site) {
  RankContext& context = *thread_state().context;
  PartShape mine{};
  mine.num_dims = static_cast<int32_t>(local.dim());
  mine.dtype = local.dtype();
  mine.requires_grad = local.requires_grad();
  std::copy(local.shape().begin(), local.shape().end(), mine.sizes.begin());
  std::vector<PartShape> all(static_cast<size_t>(context.world_size()));
  const std::vector<int64_t> bytes(all.size(), sizeof(PartShape));
  world_communicator(context).all_gather(&mine, all.data(), bytes,
                                         {.op = "to_global", .to = layout, .site = site});
  const auto shape_of = [](const PartShape& part) {
    return Shape(std::span<const int64_t>(part.sizes).first(static_cast<size_t>(part.num_dims)));
  };
  // Checks only data that all ranks know, so that all ranks throw. The tensors of ranks outside the
  // placement are ignored.
  const auto first = static_cast<size_t>(layout.placement.ranks()[0]);
  check_layout(layout, first < all.size() ? shape_of(all[first]) : local.shape(),
               context.world_size(), "to_global");
  std::vector<Shape> parts;
  const DType dtype = all[first].dtype;
  bool requires_grad = false;
  for (const int64_t rank : layout.placement.ranks()) {
    const PartShape& part = all[static_cast<size_t>(rank)];
    parts.push_back(shape_of(part));
    requires_grad |= part.requires_grad;
    if (part.dtype != dtype) {
      throw InvalidArgument(str("[to_global] the parts have different dtypes: rank ", rank,
                                " passes ", part.dtype, ", rank ", layout.placement.ranks()[0],
                                " passes ", dtype, "; cast all parts to one dtype"),
                            site);
    }
  }
  return {join_shapes(parts, layout), dtype, requires_grad};
}

}  // namespace flow::boxing
