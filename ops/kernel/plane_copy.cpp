#include "ops/kernel/plane_copy.h"

namespace flow::ops {

PlaneCopy plane_copy(size_t element_bytes, CpuIsa isa) {
  return widest_variant(FLOW_ISA_VARIANTS(plane_copy_of), isa)(element_bytes);
}

PlaneCopy plane_copy(size_t element_bytes) {
  return plane_copy(element_bytes, active_isa());
}

}  // namespace flow::ops
