#include "ops/linear/attention_cudnn.h"

namespace flow::ops {

KernelChoice select_attention_cudnn(const KernelQuery& /*query*/,
                                    const KernelChoice& /*fallback*/) {
  return {};
}

}  // namespace flow::ops
