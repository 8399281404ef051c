#include "ops/vendor/onednn_kernel.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "core/signals.h"

namespace flow::ops {
namespace {

void to_strided(const BlockedLayout& layout, const void* source, void* target);

// A BlockedLayout that this file created; detail points back to it.
struct Layout {
  BlockedLayout blocked;
  std::string name;
  Shape shape;
  MemoryDesc desc;
};

size_t hash_of(const Shape& shape) {
  Hasher hasher;
  for (const int64_t d : shape)
    hasher.add(static_cast<uint64_t>(d));
  return hasher.value();
}

// The intern table. Layouts live for the process; equal content is the same object. A shape has few
// layouts, but a program may have many shapes.
class LayoutTable {
 public:
  // nullptr for a contiguous layout.
  const BlockedLayout* intern(const Shape& shape, MemoryDescView view) {
    if (view == nullptr || is_contiguous(view)) return nullptr;
    const size_t hash = hash_of(shape);
    const std::lock_guard lock(mutex_);
    const auto [begin, end] = layouts_.equal_range(hash);
    for (auto known = begin; known != end; ++known) {
      const Layout& layout = *known->second;
      if (layout.shape == shape && same_layout(layout.desc.view(), view)) return &layout.blocked;
    }
    auto layout = std::make_unique<Layout>();
    layout->name = layout_name(view);
    layout->shape = shape;
    layout->desc = MemoryDesc::copy_of(view);
    layout->blocked = {.name = layout->name.c_str(),
                       .bytes = bytes_of(view),
                       .to_strided = to_strided,
                       .detail = layout.get()};
    return &layouts_.emplace(hash, std::move(layout))->second->blocked;
  }

 private:
  std::mutex mutex_;
  std::unordered_multimap<size_t, std::unique_ptr<const Layout>> layouts_;  // by hash of the shape
};

LayoutTable& layout_table() {
  static LayoutTable& table = *new LayoutTable;  // metas outlive everything
  return table;
}

// The kernels of to_strided. Their number is bounded, because each takes 12 KB and a program may
// meet new shapes as long as it runs.
class StridedReorders {
 public:
  using Kernel = std::shared_ptr<const OneDnnKernel>;

  Kernel of(const Layout& layout) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = kernels_.find(&layout);
      if (found != kernels_.end()) return found->second;
    }
    Kernel kernel = make_reorder(layout.shape, layout.desc, MemoryDesc::contiguous(layout.shape));
    const std::lock_guard lock(mutex_);
    if (kernels_.size() >= kMaxKernels) kernels_.clear();
    return kernels_.emplace(&layout, std::move(kernel)).first->second;
  }

 private:
  static constexpr size_t kMaxKernels = 1024;
  std::mutex mutex_;
  std::unordered_map<const Layout*, Kernel> kernels_;
};

struct Free {
  void operator()(void* p) const noexcept { std::free(p); }
};

void to_strided(const BlockedLayout& layout, const void* source, void* target) {
  static auto& reorders = *new StridedReorders;  // static tensors may use it
  const auto kernel = reorders.of(*static_cast<const Layout*>(layout.detail));
  constexpr size_t kAlignment = 64;
  const size_t bytes = (kernel->scratch_bytes() + kAlignment - 1) / kAlignment * kAlignment;
  const std::unique_ptr<void, Free> scratch(bytes == 0 ? nullptr
                                                       : std::aligned_alloc(kAlignment, bytes));
  if (bytes != 0 && scratch == nullptr) throw std::bad_alloc();
  kernel->run({.source = source, .destination = target, .scratch = scratch.get()});
}

// Whether the implementation that oneDNN chose computes by matrix products.
bool uses_products(const_dnnl_primitive_desc_t desc) {
  const char* name = nullptr;
  check_onednn(onednn_library().primitive_desc_query(desc, dnnl_query_impl_info_str, 0,
                                                     static_cast<void*>(&name)),
               "the name of an implementation");
  return std::string_view(name).find("gemm") != std::string_view::npos;
}

}  // namespace

MemoryDesc desc_of(const BlockedLayout* layout, const Shape& shape) {
  if (layout == nullptr) return MemoryDesc::contiguous(shape);
  if (layout == &kAnyLayout) return MemoryDesc::any(shape);
  FLOW_ASSERT(layout->to_strided == to_strided, "a layout of another library: ", layout->name);
  const auto& own = *static_cast<const Layout*>(layout->detail);
  FLOW_ASSERT(own.shape == shape, "layout ", own.name, " is of ", own.shape, ", used for ", shape);
  return MemoryDesc::copy_of(own.desc.view());
}

std::optional<const BlockedLayout*> layout_like(const BlockedLayout* layout, const Shape& shape) {
  if (layout == nullptr) return nullptr;

  struct Order {
    std::string_view name;
    dnnl_format_tag_t tag;
  };

  static constexpr std::array kOrders{
      Order{"aBc4b", dnnl_aBc4b},       Order{"aBc8b", dnnl_aBc8b},
      Order{"aBc16b", dnnl_aBc16b},     Order{"acb", dnnl_acb},
      Order{"aBcd4b", dnnl_aBcd4b},     Order{"aBcd8b", dnnl_aBcd8b},
      Order{"aBcd16b", dnnl_aBcd16b},   Order{"acdb", dnnl_acdb},
      Order{"aBcde4b", dnnl_aBcde4b},   Order{"aBcde8b", dnnl_aBcde8b},
      Order{"aBcde16b", dnnl_aBcde16b}, Order{"acdeb", dnnl_acdeb}};
  const auto* order = std::find_if(kOrders.begin(), kOrders.end(), [&](const Order& candidate) {
    return candidate.name == layout->name;
  });
  if (order == kOrders.end()) return std::nullopt;
  return layout_table().intern(shape, MemoryDesc::of_tag(shape, order->tag).view());
}

PreparedKernel::PreparedKernel(OneDnnPrimitiveDesc desc)
    : desc_(std::move(desc)), uses_products_(uses_products(desc_.get())) {
  dnnl_primitive_t primitive = nullptr;
  check_onednn(onednn_library().primitive_create(&primitive, desc_.get()), "a primitive");
  primitive_.reset(primitive);
  scratch_bytes_ =
      bytes_of(add(DNNL_ARG_SCRATCHPAD, dnnl_query_scratchpad_md, 0, &OneDnnArguments::scratch));
}

MemoryDescView PreparedKernel::add(int argument, dnnl_query_t query, int index, Address address) {
  const MemoryDescView view = onednn_library().primitive_desc_query_md(desc_.get(), query, index);
  if (bytes_of(view) == 0) return nullptr;
  slots_.push_back({argument, address, MemoryDesc::copy_of(view)});
  return view;
}

void PreparedKernel::add_source(int argument, dnnl_query_t query, const Shape& shape) {
  source_ = layout_table().intern(shape, add(argument, query, 0, &OneDnnArguments::source));
}

void PreparedKernel::add_weights(int argument, dnnl_query_t query, const Shape& shape) {
  weights_ = layout_table().intern(shape, add(argument, query, 0, &OneDnnArguments::weights));
}

void PreparedKernel::add_destination(int argument, dnnl_query_t query, const Shape& shape) {
  destination_ =
      layout_table().intern(shape, add(argument, query, 0, &OneDnnArguments::destination));
}

void PreparedKernel::add_bias(int argument, dnnl_query_t query) {
  add(argument, query, 1, &OneDnnArguments::bias);
}

void PreparedKernel::add_data() {
  add(DNNL_ARG_SRC, dnnl_query_src_md, 0, &OneDnnArguments::data);
}

void PreparedKernel::add_workspace() {
  workspace_bytes_ =
      bytes_of(add(DNNL_ARG_WORKSPACE, dnnl_query_workspace_md, 0, &OneDnnArguments::workspace));
}

void PreparedKernel::run(const OneDnnArguments& arguments) const {
  const OneDnnLibrary& library = onednn_library();
  const OneThreadScope one_thread(library);
  std::unique_ptr<MemorySet> set = take_memories();
  for (size_t i = 0; i < slots_.size(); ++i) {
    const void* address = arguments.*slots_[i].address;
    FLOW_ASSERT(address != nullptr, "oneDNN argument ", slots_[i].argument, " is missing");
    if (address == set->addresses[i]) continue;
    check_onednn(library.memory_set_data_handle(set->memories[i].get(), const_cast<void*>(address)),
                 "an address");
    set->addresses[i] = address;
  }
  {
    std::optional<HeldSignals> held;
    if (uses_products_ && library.moves_stack) held.emplace();
    check_onednn(
        library.primitive_execute(primitive_.get(), set->stream.get(),
                                  static_cast<int>(set->arguments.size()), set->arguments.data()),
        "a run");
  }
  check_onednn(library.stream_wait(set->stream.get()), "the end of a run");
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(set));
}

std::unique_ptr<PreparedKernel::MemorySet> PreparedKernel::take_memories() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<MemorySet> set = std::move(idle_.back());
      idle_.pop_back();
      return set;
    }
  }
  const OneDnnLibrary& library = onednn_library();
  auto set = std::make_unique<MemorySet>();
  for (const Slot& slot : slots_) {
    dnnl_memory_t memory = nullptr;
    check_onednn(library.memory_create(&memory, slot.desc.view(), library.engine, DNNL_MEMORY_NONE),
                 "a memory");
    set->memories.emplace_back(memory);
    set->addresses.push_back(nullptr);
    set->arguments.push_back({slot.argument, memory});
  }
  dnnl_stream_t stream = nullptr;
  check_onednn(library.stream_create(&stream, library.engine, dnnl_stream_default_flags),
               "a stream");
  set->stream.reset(stream);
  return set;
}

std::shared_ptr<const OneDnnKernel> make_reorder(const Shape& shape, const MemoryDesc& from,
                                                 const MemoryDesc& to) {
  const OneThreadScope one_thread(onednn_library());
  auto kernel = std::make_shared<PreparedKernel>(describe_reorder(from, to));
  kernel->add_source(DNNL_ARG_FROM, dnnl_query_src_md, shape);
  kernel->add_destination(DNNL_ARG_TO, dnnl_query_dst_md, shape);
  return kernel;
}

}  // namespace flow::ops
