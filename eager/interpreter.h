// Step 3 of a call in eager mode: redistributes the inputs, then runs the local kernel at once.
#pragma once

#include <string>

#include "core/dispatch.h"
#include "core/kernel.h"
#include "eager/decision_cache.h"

namespace flow::eager {

class EagerInterpreter final : public Interpreter {
 public:
  explicit EagerInterpreter(const KernelTable& kernels);

  void run(const Call& call, const Decision& decision, Tensor* outputs) override;
  void replace(const Tensor& target, const Tensor& value) override;

  uint32_t version_of(const Tensor& tensor) override { return tensor.impl().version(); }

  // Restricts the choice of kernels to one name ("reference", "avx2", …); empty: the best one.
  // Decisions that were made under another restriction must be dropped (KernelGuard drops them).
  void set_only_kernel(std::string name) { only_kernel_ = std::move(name); }

  const std::string& only_kernel() const { return only_kernel_; }

 private:
  // Decides the kernel call at the first run of a decision.
  const KernelCall& decide(const Call& call, std::span<const Tensor* const> inputs,
                           const CachedDecision& decision) const;

  const KernelTable& kernels_;
  std::string only_kernel_;
  bool checks_replicas_;  // FLOW_CHECK
};

// While it lives, this thread runs only kernels of the given name. A call throws Unsupported if it
// has no such kernel.
class [[nodiscard]] KernelGuard {
 public:
  explicit KernelGuard(std::string name);
  ~KernelGuard();
  KernelGuard(const KernelGuard&) = delete;
  KernelGuard& operator=(const KernelGuard&) = delete;

 private:
  std::string outer_;
};

}  // namespace flow::eager
