#pragma once

// The kernels that ops/vendor/onednn.h hands out: a primitive, the layouts of its arguments, and
// memory objects for its runs.

#include <memory>
#include <mutex>
#include <vector>

#include "core/shape.h"
#include "ops/vendor/onednn.h"
#include "ops/vendor/onednn_desc.h"
#include "ops/vendor/onednn_library.h"

namespace flow::ops {

// The description of an array of this shape in this layout.
MemoryDesc desc_of(const BlockedLayout* layout, const Shape& shape);

// Built by adding arguments, then immutable.
class PreparedKernel final : public OneDnnKernel {
 public:
  explicit PreparedKernel(OneDnnPrimitiveDesc desc);

  void add_source(int argument, dnnl_query_t query, const Shape& shape);
  void add_weights(int argument, dnnl_query_t query, const Shape& shape);
  void add_destination(int argument, dnnl_query_t query, const Shape& shape);
  void add_bias(int argument, dnnl_query_t query);
  void add_data();
  void add_workspace();

  void run(const OneDnnArguments& arguments) const override;

 private:
  using Address = const void* OneDnnArguments::*;

  struct Slot {
    int argument;
    Address address;
    MemoryDesc desc;
  };

  // Memory objects of one run. oneDNN stores the address in them, so overlapping runs need separate
  // ones.
  struct MemorySet {
    std::vector<OneDnnMemory> memories;
    std::vector<const void*> addresses;
    std::vector<dnnl_exec_arg_t> arguments;
    OneDnnStream stream;
  };

  // Declares an argument; returns its layout, owned by desc_ and nullptr if the kernel does not
  // have it.
  MemoryDescView add(int argument, dnnl_query_t query, int index, Address address);
  std::unique_ptr<MemorySet> take_memories() const;

  OneDnnPrimitiveDesc desc_;
  bool uses_products_;
  OneDnnPrimitive primitive_;
  std::vector<Slot> slots_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<MemorySet>> idle_;  // guarded by mutex_
};

std::shared_ptr<const OneDnnKernel> make_reorder(const Shape& shape, const MemoryDesc& from,
                                                 const MemoryDesc& to);

}  // namespace flow::ops
