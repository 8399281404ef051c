// One dispatched call, stored so that it can run again: with another kernel, on other memory, or on
// a simulated rank.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/kernel.h"
#include "core/op.h"
#include "core/tensor.h"
#include "tests/support/op_samples.h"
#include "tests/support/values.h"

namespace flow::contract {

struct RawCall {
  const OpDef* op = nullptr;
  Inputs inputs = {};  // values before the call; undefined: optional input, not given
  std::vector<std::byte> attrs = {};
  uint32_t mutates = 0;
  RandomStream random = {};

  const void* attrs_data() const { return op->attrs == nullptr ? nullptr : attrs.data(); }
};

// Returns the calls of sample.op that the sample's function dispatches for these inputs. Throws
// what the function throws.
std::vector<RawCall> capture(const OpSample& sample, const Inputs& inputs);
// The first such call for new inputs. Throws InternalError if there is none.
RawCall capture_first(const OpSample& sample, DType dtype, uint64_t seed);

// The result of the shape rule for these metas.
std::vector<OutputSpec> infer_outputs(const RawCall& call, std::span<const MetaPtr> inputs);
std::vector<MetaPtr> metas_of(const Inputs& inputs);
// Local metas of the logical outputs.
std::vector<MetaPtr> local_outputs(const RawCall& call);

// The generator's seed when a random op is called again.
inline constexpr uint64_t kDrawSeed = 1;
// Dispatch the call again on `inputs`. dispatch_again seeds the generator first.
std::vector<Tensor> dispatch_again(const RawCall& call, const Inputs& inputs);
std::vector<Tensor> dispatch_unseeded(const RawCall& call, const Inputs& inputs);

// How a kernel is run.
struct KernelRun {
  const KernelDef* kernel = nullptr;  // null: the best one that applies
  Fill fill = kOutputFill;            // of outputs, before the kernel writes them
  bool uses_views = true;             // whether view ops may be carried out without a kernel
  bool checks_guards = true;    // throw InternalError if memory outside the outputs was written
  RankContext* rank = nullptr;  // null: that of this thread
};

// Runs a kernel on `inputs`, whose metas may be parts of global tensors, and gives the outputs the
// metas `outputs`. Inputs that the op writes are written and returned. Empty if the kernel does not
// apply. Throws what the kernel throws.
std::optional<std::vector<Tensor>> run_kernel(const RawCall& call, const Inputs& inputs,
                                              std::span<const MetaPtr> outputs,
                                              const KernelRun& run = {});

// The kernels with which a call is tested: null for the best one, and each one of the op.
std::vector<const KernelDef*> kernels_to_try(const RawCall& call);

// The reference kernel that every op has. Throws InternalError, naming the op, if there is none.
const KernelDef& reference_kernel(const OpDef& op);

}  // namespace flow::contract
