#include "ops/shape/rows.h"

#include "core/error.h"
#include "ops/shape/slice.h"

namespace flow {

Tensor RowIterator::operator*() const {
  return select(TensorArg(tensor_, site_), 0, position_);
}

RowIterator begin(const TensorArg& x) {
  return {x, 0};
}

RowIterator end(const TensorArg& x) {
  if (x->dim() == 0) {
    throw InvalidArgument(str("[for] a tensor without dims has no rows; received ", x->meta(),
                              "; read its value with item()"),
                          x.site());
  }
  return {x, x->size(0)};
}

}  // namespace flow
