// The runtime: the tables of ops and kernels, and the parts of dispatch that every thread gets.
// Including this header (as <flow/flow.h> does) installs it before main.
#pragma once

#include "core/device.h"

namespace flow {

struct OpDef;
struct KernelDef;
class OpTable;
class KernelTable;

const OpTable& op_table();
const KernelTable& kernel_table();

// Adds a user's op. Throws InvalidArgument if the name is taken or a facet is missing. `op` must
// live as long as the process. Not thread safe: call it before other threads dispatch.
void register_op(const OpDef& op);
// Adds a kernel, which is preferred over kernels of the same op that were registered before. Call
// it before the op: calls like those that a thread has made, and compiled steps, keep their
// kernels.
void register_kernel(const OpDef& op, DeviceType device, const KernelDef& kernel);

namespace internal {
bool install_runtime();
// Makes the linker take the runtime from a static library, and installs it.
inline const bool kRuntimeInstalled = install_runtime();
}  // namespace internal

}  // namespace flow
