// What the bases of Tensor that declare its methods share.
#pragma once

namespace flow {

class Tensor;

// `Family` is an empty base of Tensor, which declares the methods of one subject. As each family
// derives from a different type, all of them have offset 0, and a tensor stays one pointer.
template <class Family>
class MethodFamily {
 protected:
  // The tensor that the method was called on.
  const Tensor& self() const;
  // A temporary, which may be moved from.
  Tensor& temporary_self();
};

}  // namespace flow
