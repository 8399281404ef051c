#include "tests/support/kernel_reach.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/dispatch.h"
#include "eager/runtime.h"
#include "ops/kernel/cpu_features.h"
#include "ops/vendor/onednn.h"
#include "tests/support/unreached_kernels.h"

namespace flow::contract {

namespace {

bool is_instruction_set(std::string_view name) {
  return name == "baseline" || name == "avx2" || name == "avx512";
}

bool names(const UnreachedKernel& entry, const OpDef& op, const KernelDef& kernel) {
  const std::string name = number_name(op, kernel);
  if (entry.op != op.name) return false;
  if (entry.kernel == name) return true;
  return is_instruction_set(kernel.name) &&
         entry.kernel == "isa" + name.substr(std::string_view(kernel.name).size());
}

bool is_unreached(std::string_view facet, const OpDef& op, const KernelDef& kernel) {
  return std::any_of(kUnreachedKernels.begin(), kUnreachedKernels.end(),
                     [&](const UnreachedKernel& entry) {
                       return entry.facet == facet && names(entry, op, kernel);
                     });
}

struct Preferred {
  const OpDef* op = nullptr;
  const KernelDef* kernel = nullptr;
  bool was_chosen = false;
};

thread_local Preferred preferred;

template <bool kAcceptsBlocked>
KernelChoice select_preferred(const KernelQuery& query) {
  if (preferred.op != &query.op || preferred.kernel->accepts_blocked != kAcceptsBlocked) return {};
  KernelChoice choice = preferred.kernel->select(query);
  preferred.was_chosen |= choice.fn != nullptr;
  return choice;
}

}  // namespace

bool takes(const KernelDef& kernel, const RawCall& call) {
  const std::vector<MetaPtr> inputs = metas_of(call.inputs);
  std::vector<MetaPtr> outputs = local_outputs(call);
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if ((call.mutates >> i & 1U) != 0) outputs[next++] = inputs[i];
  }
  return kernel.select({*call.op, inputs, outputs, call.attrs_data()}).fn != nullptr;
}

std::vector<DType> facet_dtypes(const OpSample& sample) {
  std::vector<DType> dtypes = widest_and_float32(sample);
  std::set<const KernelDef*> taken;
  const auto add_kernels = [&](DType dtype) {
    const RawCall call = capture_first(sample, dtype, 1);
    bool is_any_new = false;
    for (const KernelDef& kernel : kernel_table().kernels(*call.op, DeviceType::kCpu)) {
      if (!taken.contains(&kernel) && takes(kernel, call))
        is_any_new |= taken.insert(&kernel).second;
    }
    return is_any_new;
  };
  for (const DType dtype : dtypes)
    add_kernels(dtype);
  for (const DType dtype : dtypes_of(sample)) {
    if (std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end()) continue;
    if (add_kernels(dtype)) dtypes.push_back(dtype);
  }
  return dtypes;
}

std::string number_name(const OpDef& op, const KernelDef& kernel) {
  int number = 0;
  for (const KernelDef& other : kernel_table().kernels(op, DeviceType::kCpu)) {
    if (std::string_view(other.name) == kernel.name) ++number;
    if (&other == &kernel) break;
  }
  return str(kernel.name, ' ', number);
}

void ReachedKernels::expect_all(std::string_view facet) const {
  for (const KernelDef& kernel : kernel_table().kernels(op_, DeviceType::kCpu)) {
    // Without oneDNN nothing is blocked.
    if (kernel.accepts_blocked && !ops::has_onednn() && !reached_.contains(&kernel)) continue;
    const bool is_listed = is_unreached(facet, op_, kernel);
    if (reached_.contains(&kernel)) {
      EXPECT_FALSE(is_listed) << "kernel " << number_name(op_, kernel) << " is reached";
    } else {
      EXPECT_TRUE(is_listed) << "no sample reaches kernel " << number_name(op_, kernel)
                             << "; add one, or list the kernel in unreached_kernels.h";
    }
  }
}

bool names_kernel(const UnreachedKernel& entry) {
  const OpDef* op = op_table().find(entry.op);
  if (op == nullptr) return false;
  // Some ops have no kernel for the baseline alone.
  if (entry.kernel.starts_with("isa") && ops::active_isa() == ops::CpuIsa::kBaseline) return true;
  const auto kernels = kernel_table().kernels(*op, DeviceType::kCpu);
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const KernelDef& kernel) { return names(entry, *op, kernel); });
}

const KernelTable& table_of_preferences() {
  static const KernelTable table = [] {
    KernelTable copy = kernel_table();
    for (const OpDef* op : op_table().all()) {
      copy.add(*op, DeviceType::kCpu, {"preferred", select_preferred<false>});
      copy.add(*op, DeviceType::kCpu, {"preferred", select_preferred<true>, true});
    }
    return copy;
  }();
  return table;
}

KernelPreference::KernelPreference(const OpDef& op, const KernelDef& kernel) {
  preferred = {&op, &kernel};
}

KernelPreference::~KernelPreference() {
  preferred = {};
}

bool KernelPreference::was_chosen() const {
  return preferred.was_chosen;
}

}  // namespace flow::contract
