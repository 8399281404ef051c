#include "ops/linear/grouped_mm.h"

#include <cstdint>
#include <vector>

#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/cast.h"
#include "ops/linear/matmul.h"
#include "ops/named_errors.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"

namespace flow {

namespace {

// The ends of the groups of a dim of this size.
std::vector<int64_t> group_ends(const TensorArg& a, const Tensor& offs, int64_t size) {
  const Site site = a.site();
  if (!offs.defined() || offs.dim() != 1 || is_floating(offs.dtype())) {
    throw InvalidArgument(
        "[grouped_mm] needs offs, a vector of integers, unless both operands are stacks", site);
  }
  const Tensor whole = cast({offs.detach(), site}, DType::kInt64);
  std::vector<int64_t> ends = whole.to_vector<int64_t>();
  int64_t last = 0;
  for (const int64_t end : ends) {
    if (end < last || end > size) {
      throw InvalidArgument(str("[grouped_mm] offs must rise from 0 to at most ", size,
                                "; received ", end, " after ", last),
                            site);
    }
    last = end;
  }
  return ends;
}

void check_groups(const TensorArg& a, const Tensor& stack, size_t groups) {
  if (static_cast<size_t>(stack.size(0)) == groups) return;
  throw InvalidArgument(
      str("[grouped_mm] offs has ", groups, " groups for a stack of ", stack.size(0), " matrices"),
      a.site());
}

}  // namespace

Tensor grouped_mm(const TensorArg& a, const TensorArg& b, const GroupedMmOptions& options) {
  return ops::named("grouped_mm", a.site(), [&]() -> Tensor {
    const Site site = a.site();
    const bool has_stack_a = a->dim() == 3;
    const bool has_stack_b = b->dim() == 3;
    if ((!has_stack_a && a->dim() != 2) || (!has_stack_b && b->dim() != 2)) {
      throw InvalidArgument(str("[grouped_mm] takes matrices and stacks of them; received ",
                                a->meta(), ", ", b->meta()),
                            site);
    }
    if (has_stack_a && has_stack_b) {
      if (!options.offs.defined()) return bmm(a, b);
      throw InvalidArgument(
          "[grouped_mm] two stacks have one matrix for each group; leave offs out", site);
    }
    const int64_t size = has_stack_b ? a->size(0) : has_stack_a ? b->size(1) : a->size(1);
    const std::vector<int64_t> ends = group_ends(a, options.offs, size);
    if (has_stack_a) check_groups(a, a, ends.size());
    if (has_stack_b) check_groups(a, b, ends.size());
    std::vector<Tensor> products;
    int64_t begin = 0;
    for (size_t group = 0; group <= ends.size(); ++group) {
      const bool is_rest = group == ends.size();
      const int64_t count = (is_rest ? size : ends[group]) - begin;
      const auto at = static_cast<int64_t>(group);
      if (is_rest && (count == 0 || (!has_stack_a && !has_stack_b))) break;
      // The rest is the product with zeros, which has the layout of the others.
      const auto matrix = [&](const TensorArg& stack) {
        const Tensor own = select(stack, 0, is_rest ? 0 : at);
        return is_rest ? zeros_like({own, site}) : own;
      };
      Tensor left;
      Tensor right;
      if (has_stack_b) {
        left = narrow(a, 0, begin, count);
        right = matrix(b);
      } else if (has_stack_a) {
        left = matrix(a);
        right = narrow(b, 1, begin, count);
      } else {
        left = narrow(a, 1, begin, count);
        right = narrow(b, 0, begin, count);
      }
      products.push_back(mm({left, site}, {right, site}));
      begin += count;
    }
    if (has_stack_a || has_stack_b) return cat({products, site}, has_stack_b ? 0 : 1);
    return stack({products, site}, 0);
  });
}

}  // namespace flow
