// How one call of an op runs on this rank. The decision is a pure function of op, attrs and metas.
// Eager decisions and the steps of programs store it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/kernel.h"
#include "core/kernel_scratch.h"

namespace flow {

// How an input is converted before a kernel or a view sees it.
enum class InputForm : uint8_t {
  kAsIs,
  kStrided,   // the strided twin of a blocked tensor (core/strided_twin.h)
  kOnDevice,  // a copy, on the device of the outputs, of a tensor without dims in host memory
};

// What a kernel call is decided by. The metas are those of this rank. A null input is an optional
// input that is not given.
struct KernelCallQuery {
  const OpDef& op;
  std::span<const MetaPtr> inputs;
  std::span<const MetaPtr> outputs;  // as the op's rules want them; those of written inputs follow
  const void* attrs = nullptr;
  uint32_t mutates = 0;  // bit i: input i is written; the outputs are these inputs in order
  // If false, the op runs as a kernel even if its output could be a view.
  bool allows_view = true;
  // If false, the caller runs the op along a route, for which all inputs are strided.
  bool chooses_kernel = true;
};

// A decided call. It is immutable once it is made.
struct KernelCall {
  enum class Kind : uint8_t {
    kNothing,  // this rank holds no part of any input or output
    kView,     // outputs[0] shows the memory of input 0 from view_offset on
    kKernel,
  };

  Kind kind = Kind::kNothing;
  bool has_blocked_input = false;  // before the inputs are converted
  // Only for kNothing: the op would make a view, so the output shares the empty storage of input 0.
  bool shares_input = false;
  KernelFn fn = nullptr;
  KernelState state = nullptr;
  KernelScratch scratch = {};
  int64_t view_offset = 0;       // in elements
  std::vector<InputForm> forms;  // of each input
  std::vector<MetaPtr> inputs;   // as the kernel or the view sees them
  std::vector<MetaPtr> outputs;  // as the call gives them
  bool moves_numbers = false;    // some form is kOnDevice
};

// Decides how a call runs. `only` restricts the choice to kernels of that name. Throws Unsupported
// if no kernel takes the inputs.
KernelCall make_kernel_call(const KernelCallQuery& query, const KernelTable& kernels,
                            std::string_view only = {});

// The memory of an input that the output of a view op shares.
struct BoundView {
  MetaPtr meta;    // `output` with the strides of the view
  int64_t offset;  // in elements, from the input's first
};

// Returns how `output` shows the memory of `input`. Returns nothing if the op is no view op or if
// its view rule says that strides cannot express the view. Requires: `input` is strided.
std::optional<BoundView> bind_view(const OpDef& op, MetaPtr input, MetaPtr output,
                                   const void* attrs);

// Returns the element at which the view of a decided call begins for these attrs. Unlike the
// strides it may depend on value attrs (the start of a slice), in which calls of one eager decision
// differ.
int64_t view_offset(const KernelCall& call, const OpDef& op, const void* attrs);

// Returns whether ranks see different data in these inputs, so that the call may fail on only one
// of them.
bool has_sharded_input(std::span<const TensorView> inputs);

}  // namespace flow
