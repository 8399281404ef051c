// Operands of kernels that compute on contiguous float or double arrays, whatever the tensors are.
#pragma once

#include "core/kernel.h"
#include "core/kernel_scratch.h"

namespace flow::ops {

// This rank's part as a contiguous array of C (float or double): the tensor's memory if it is one
// (or blocked), else a converted copy.
template <class C>
class ContiguousInput {
 public:
  ContiguousInput(const KernelContext& ctx, int input);

  const C* data() const { return data_; }

 private:
  // Both are kept until the kernel ends, as contiguous_scratch() states.
  Ref<Storage> gathered_;
  Ref<Storage> converted_;
  const C* data_;
};

// An array of C to compute into: the output's memory, or one that finish() converts.
template <class C>
class ContiguousOutput {
 public:
  ContiguousOutput(const KernelContext& ctx, int output);

  C* data() const { return data_; }

  void finish(const KernelContext& ctx) const;

 private:
  int output_;
  Ref<Storage> buffer_;  // null where the output holds C
  C* data_;
};

// The scratch memory that ContiguousInput and ContiguousOutput of dtype `computed` need for all
// tensors of a call.
KernelScratch contiguous_scratch(const KernelQuery& query, DType computed);

}  // namespace flow::ops
