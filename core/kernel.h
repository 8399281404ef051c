// Kernels: device code for ops. A kernel is chosen from an ordered list when a call is first
// decided.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/generator.h"
#include "core/op.h"
#include "core/site.h"
#include "core/storage.h"
#include "core/tensor_meta.h"

namespace flow {

class RankContext;
class ThreadPool;

// This rank's part of one tensor as a kernel sees it. data points at its first element; local_shape
// and strides of the meta describe it. If data and meta are null, an optional input is not given.
struct TensorView {
  std::byte* data = nullptr;
  MetaPtr meta = nullptr;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }

  const Shape& shape() const { return meta->local_shape; }

  const Strides& strides() const { return meta->strides; }

  int64_t numel() const { return meta->local_numel; }
};

// What a kernel is chosen by. The metas are those that the kernel will see.
struct KernelQuery {
  const OpDef& op;
  std::span<const MetaPtr> inputs;
  std::span<const MetaPtr> outputs;
  const void* attrs;

  const TensorMeta& input(int i) const { return *inputs[static_cast<size_t>(i)]; }

  bool has_input(int i) const {
    return static_cast<size_t>(i) < inputs.size() && inputs[static_cast<size_t>(i)] != nullptr;
  }

  const TensorMeta& output(int i) const { return *outputs[static_cast<size_t>(i)]; }

  template <class A>
  const A& attrs_as() const {
    return *static_cast<const A*>(attrs);
  }
};

struct KernelContext {
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  const void* attrs;
  const void* state;  // the kernel state that select() prepared
  RandomStream random;
  RankContext& rank;
  Site site = Site::none();  // of the call, for reports

  const TensorView& in(int i) const { return inputs[static_cast<size_t>(i)]; }

  const TensorView& out(int i) const { return outputs[static_cast<size_t>(i)]; }

  bool has_input(int i) const {
    return static_cast<size_t>(i) < inputs.size() && inputs[static_cast<size_t>(i)].meta != nullptr;
  }

  template <class A>
  const A& attrs_as() const {
    return *static_cast<const A*>(attrs);
  }

  template <class State>
  const State& state_as() const {
    return *static_cast<const State*>(state);
  }

  ThreadPool& pool() const;
  // Temporary memory of the rank's allocator. It is freed with the handle.
  Ref<Storage> scratch(size_t bytes) const;
};

using KernelFn = void (*)(const KernelContext& ctx);

// What a kernel prepares once for the metas of a call: loop bounds, library primitives.
using KernelState = std::shared_ptr<const void>;

// A function and what it prepared for these metas and key attrs (loop bounds, library primitives).
// If fn is null, the kernel is not applicable and the next one of the list is tried. A kernel that
// writes a blocked layout returns the metas that its outputs get instead of the queried ones.
struct KernelChoice {
  KernelFn fn = nullptr;
  KernelState state = nullptr;
  std::vector<MetaPtr> outputs = {};
};

struct KernelDef {
  const char* name;  // "reference", "avx2", "onednn", …
  KernelChoice (*select)(const KernelQuery& query);
  // True if it takes inputs in blocked layouts; otherwise they are made strided first.
  bool accepts_blocked = false;
};

// Kernels by op and device. Of the kernels of an op, the one registered last is tried first.
// Reference kernels are therefore registered first and must accept everything that the op accepts.
class KernelTable {
 public:
  void add(const OpDef& op, DeviceType device, const KernelDef& kernel);
  // Returns the first applicable kernel. `only` restricts the choice to one name (tests). Throws
  // Unsupported, with op, device and dtypes, if there is none.
  KernelChoice select(const KernelQuery& query, DeviceType device, std::string_view only = {},
                      const KernelDef** chosen = nullptr) const;
  std::span<const KernelDef> kernels(const OpDef& op, DeviceType device) const;

 private:
  std::map<std::pair<const OpDef*, DeviceType>, std::vector<KernelDef>> kernels_;
};

// A select() that always applies.
template <KernelFn kFn>
KernelChoice always(const KernelQuery& /*query*/) {
  return {kFn};
}

}  // namespace flow
