#include "core/shape.h"

#include <ostream>

#include "core/error.h"

namespace flow {

namespace internal {
void throw_too_many_dims(size_t dims) {
  throw InvalidArgument(str("[shape] a tensor has at most ", kMaxDims, " dims; got ", dims,
                            "; merge dims with reshape"));
}
}  // namespace internal

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '(';
  for (int64_t i = 0; i < shape.size(); ++i)
    out << (i == 0 ? "" : ", ") << shape[i];
  return out << (shape.size() == 1 ? ",)" : ")");
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides = shape;
  int64_t step = 1;
  for (int64_t i = shape.size() - 1; i >= 0; --i) {
    strides[i] = step;
    // The other sizes of an empty tensor may be huge. Its strides are never used, so they may wrap
    // around.
    step = static_cast<int64_t>(static_cast<uint64_t>(step) *
                                static_cast<uint64_t>(std::max<int64_t>(shape[i], 1)));
  }
  return strides;
}

Padding::Padding(std::string_view word, Site site) {
  if (word == "same" || word == "SAME") {
    mode_ = Mode::kSame;
  } else if (word == "valid" || word == "VALID") {
    mode_ = Mode::kValid;
  } else {
    throw InvalidArgument(
        str("[padding] unknown word \"", word, "\"; use \"same\", \"valid\" or numbers"), site);
  }
}

int64_t normalize_dim(int64_t dim, int64_t ndim, const char* op) {
  const int64_t range = std::max<int64_t>(ndim, 1);
  if (dim < -range || dim >= range) {
    throw InvalidArgument(str("[", op, "] dim ", dim, " is out of range for a tensor of ", ndim,
                              " dims; use a dim in [", -range, ", ", range - 1, "]"));
  }
  return dim < 0 ? dim + range : dim;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op) {
  if (a == b) return a;
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const int64_t lead = longer.size() - shorter.size();
  for (int64_t i = 0; i < shorter.size(); ++i) {
    const int64_t x = longer[lead + i];
    const int64_t y = shorter[i];
    if (x != y && x != 1 && y != 1) {
      throw InvalidArgument(str("[", op, "] shapes do not broadcast: ", a, " and ", b,
                                " differ in dim ", lead + i,
                                "; sizes must be equal or one of them 1"));
    }
    result[lead + i] = x == 1 ? y : x;
  }
  return result;
}

}  // namespace flow
