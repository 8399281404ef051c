// Which kernels of an op a facet of the contract reaches, and the reviewed list of those it does
// not.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel.h"
#include "tests/support/op_samples.h"
#include "tests/support/raw_call.h"

namespace flow::contract {

// True if the kernel applies to the call.
bool takes(const KernelDef& kernel, const RawCall& call);

// The dtypes with which a facet runs a sample: the widest, float32, and others as far as some
// kernel takes neither.
std::vector<DType> facet_dtypes(const OpSample& sample);

// Prints the kernel's name and its position among the op's kernels of that name, from 1: "avx2 3".
std::string number_name(const OpDef& op, const KernelDef& kernel);

class ReachedKernels {
 public:
  explicit ReachedKernels(const OpDef& op) : op_(op) {}

  void add(const KernelDef& kernel) { reached_.insert(&kernel); }

  std::set<const KernelDef*>& kernels() { return reached_; }

  bool contains(const KernelDef& kernel) const { return reached_.contains(&kernel); }

  // Fails for each kernel that was not reached and is not listed for the facet, and for each listed
  // one that was reached.
  void expect_all(std::string_view facet) const;

 private:
  const OpDef& op_;
  std::set<const KernelDef*> reached_;
};

struct UnreachedKernel;
// True if an op has the kernel that the entry of the list names, or if only a CPU with wider
// instructions has it.
bool names_kernel(const UnreachedKernel& entry);

// The kernel table of the library, with a kernel before all others of its op while a
// KernelPreference names it.
const KernelTable& table_of_preferences();

// While it exists, this thread chooses `kernel` of `op` where it applies. Used with
// table_of_preferences().
class [[nodiscard]] KernelPreference {
 public:
  KernelPreference(const OpDef& op, const KernelDef& kernel);
  ~KernelPreference();
  KernelPreference(const KernelPreference&) = delete;
  KernelPreference& operator=(const KernelPreference&) = delete;

  // True if a call has chosen the kernel.
  bool was_chosen() const;
};

}  // namespace flow::contract
