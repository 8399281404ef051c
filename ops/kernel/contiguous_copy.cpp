#include "ops/kernel/contiguous_copy.h"

#include <array>
#include <memory>
#include <utility>

#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/kernel/box_copy.h"

namespace flow::ops {

namespace {

struct CopyState {
  KernelChoice kernel;
  MetaPtr contiguous;
};

void run_on_copy(const KernelContext& ctx) {
  const auto& state = ctx.state_as<CopyState>();
  const Ref<Storage> copy = ctx.scratch(state.contiguous->local_bytes());
  const std::array inputs = {TensorView{copy->data(), state.contiguous}};
  copy_part(ctx.pool(), inputs[0], ctx.in(0));
  KernelContext on_copy = ctx;
  on_copy.inputs = inputs;
  on_copy.state = state.kernel.state.get();
  state.kernel.fn(on_copy);
}

}  // namespace

KernelChoice choose_for_copy(const KernelQuery& query, SelectFn select) {
  const MetaPtr x = query.inputs[0];
  if (x->is_contiguous || x->blocked != nullptr || x->local_numel == 0) return {};
  const MetaPtr contiguous = with_strides(x, contiguous_strides(x->local_shape));
  const std::array inputs = {contiguous};
  KernelChoice kernel = select({query.op, inputs, query.outputs, query.attrs});
  if (kernel.fn == nullptr) return {};
  KernelScratch scratch = scratch_of(kernel.state);
  scratch.push_back({static_cast<int64_t>(contiguous->local_bytes())});
  auto state = std::make_shared<CopyState>(CopyState{std::move(kernel), contiguous});
  return with_scratch({run_on_copy, std::move(state)}, std::move(scratch));
}

}  // namespace flow::ops
