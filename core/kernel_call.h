// How one call of an op is carried out on this rank. The decision is a pure function of op, attrs
// and metas; eager decisions and the steps of programs keep its result.
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

// What an input has to become before a kernel or a view sees it.
enum class InputForm : uint8_t {
  kAsIs,
  kStrided,   // the strided twin of a blocked tensor (core/strided_twin.h)
  kOnDevice,  // a copy, on the device of the outputs, of a tensor without dims in host memory
};

// What a kernel call is decided from. The metas are those of this rank; a null input is an optional
// one that is not given.
struct KernelCallQuery {
  const OpDef& op;
  std::span<const MetaPtr> inputs;
  std::span<const MetaPtr> outputs;  // as the op's rules want them; those of written inputs follow
  const void* attrs = nullptr;
  uint32_t mutates = 0;  // bit i: input i is written; the outputs are these inputs in order
  // False: the op runs as a kernel even where its output could be a view.
  bool allows_view = true;
  // False: the caller carries out the op by a route; all inputs are strided for it.
  bool chooses_kernel = true;
};

// A decided call. Immutable once it is made.
struct KernelCall {
  enum class Kind : uint8_t {
    kNothing,  // this rank holds no part of any input or output
    kView,     // outputs[0] shows the memory of input 0 from view_offset on
    kKernel,
  };

  Kind kind = Kind::kNothing;
  bool has_blocked_input = false;  // before the inputs are converted
  // Of kNothing: the op would make a view, so the output shares the empty storage of input 0.
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

// Decides how a call is carried out. `only` restricts the choice to kernels of that name. Throws
// Unsupported where no kernel takes the inputs.
KernelCall make_kernel_call(const KernelCallQuery& query, const KernelTable& kernels,
                            std::string_view only = {});

// Memory that a view op's output shares with its input.
struct BoundView {
  MetaPtr meta;    // `output` with the strides of the view
  int64_t offset;  // in elements, from the input's first
};

// How `output` shows the memory of `input`; nothing where a view op's rule says that strides cannot
// express it, and for ops that are no views. Requires: a strided input.
std::optional<BoundView> bind_view(const OpDef& op, MetaPtr input, MetaPtr output,
                                   const void* attrs);

// Where the view of a decided call begins for these attrs, in elements. Unlike the strides it may
// follow value attrs (the start of a slice), in which calls of one eager decision differ.
int64_t view_offset(const KernelCall& call, const OpDef& op, const void* attrs);

// Whether ranks see different data in these inputs, so that the call may fail on one of them alone.
bool has_sharded_input(std::span<const TensorView> inputs);

}  // namespace flow
