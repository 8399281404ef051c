// The kernel of fused_elementwise: walks through the elements in blocks that stay in the first
// cache and calls the kernels of the instructions' ops for each block. So the results are those of
// the single ops, bit for bit, and each tensor crosses memory once.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/elementwise/fused_op.h"
#include "ops/kernel/blocked_layout.h"
#include "ops/kernel/strided_loop.h"
#include "ops/register.h"

namespace flow::ops {

namespace {

// The most elements of a block. Smaller ones cost more calls, and three larger ones of float32
// leave the first cache.
constexpr int64_t kMostElements = 2048;
// The memory for what the blocks of one thread hold between instructions.
constexpr size_t kScratchBytes = size_t{64} << 10;
constexpr size_t kLine = 64;

// Where a block of an operand is.
struct Place {
  enum class Kind : uint8_t { kInput, kOutput, kSlot };

  Kind kind = Kind::kSlot;
  size_t index = 0;  // of the tensor, or of the slot in the scratch memory
  size_t bytes = 0;  // of an element of the tensor
};

// A kernel for blocks of one size.
struct BlockKernel {
  KernelFn fn = nullptr;
  KernelState state;
  std::vector<MetaPtr> inputs;
  MetaPtr output = nullptr;
};

struct Instruction {
  std::vector<Place> operands;
  Place result;
  BlockKernel whole;
  BlockKernel last;  // for the block that remains
};

// An input that is not dense: each block of it is copied to a slot.
struct StagedInput {
  size_t input = 0;
  size_t slot = 0;
  size_t bytes = 0;  // of an element
  LoopNest loop;
  int64_t period = 1;  // the elements after which the input repeats
};

struct FusedState {
  FusedProgram program;
  std::vector<Instruction> instructions;
  std::vector<StagedInput> staged;
  int64_t elements = 0;
  int64_t block = 1;
  size_t slot_bytes = 0;
  // Of a blocked layout: what the kernels of the library expect to be zero.
  ChannelBlocks channels;
  bool has_padding = false;
};

// Elements [first, first + n) of the loop.
template <class T>
void copy_elements(const LoopNest& loop, const std::byte* source, int64_t first, int64_t n,
                   std::byte* target) {
  const auto* x = reinterpret_cast<const T*>(source);
  auto* y = reinterpret_cast<T*>(target);
  const int64_t stride = loop.inner_stride()[1];
  int64_t column = first % loop.inner;
  int64_t left = n;
  for_rows(loop, first / loop.inner, (first + n - 1) / loop.inner + 1,
           [&](const LoopNest::Offsets& offsets) {
             const int64_t count = std::min(loop.inner - column, left);
             const T* row = x + offsets[1] + column * stride;
             if (stride == 1) {
               std::copy_n(row, count, y);
             } else if (stride == 0) {
               std::fill_n(y, count, *row);
             } else {
               for (int64_t i = 0; i < count; ++i)
                 y[i] = row[i * stride];
             }
             y += count;
             left -= count;
             column = 0;
           });
}

void stage(const StagedInput& input, const std::byte* source, int64_t first, int64_t n,
           std::byte* target) {
  switch (input.bytes) {
    case 1:
      return copy_elements<uint8_t>(input.loop, source, first, n, target);
    case 2:
      return copy_elements<uint16_t>(input.loop, source, first, n, target);
    case 4:
      return copy_elements<uint32_t>(input.loop, source, first, n, target);
    default:
      return copy_elements<uint64_t>(input.loop, source, first, n, target);
  }
}

// Computes blocks on one thread.
class BlockRunner {
 public:
  explicit BlockRunner(const KernelContext& ctx) : ctx_(ctx), state_(ctx.state_as<FusedState>()) {
    staged_at_.fill(-1);
  }

  void run(int64_t block) {
    first_ = block * state_.block;
    const int64_t n = std::min(state_.block, state_.elements - first_);
    for (size_t i = 0; i < state_.staged.size(); ++i)
      stage_block(i, n);
    for (size_t i = 0; i < state_.instructions.size(); ++i) {
      const Instruction& instruction = state_.instructions[i];
      const BlockKernel& kernel = n == state_.block ? instruction.whole : instruction.last;
      std::array<TensorView, FusedProgram::kMaxOperands> inputs;
      for (size_t k = 0; k < instruction.operands.size(); ++k)
        inputs[k] = {data_of(instruction.operands[k]), kernel.inputs[k]};
      const TensorView output{data_of(instruction.result), kernel.output};
      kernel.fn({.inputs = {inputs.data(), instruction.operands.size()},
                 .outputs = {&output, 1},
                 .attrs = state_.program.attrs(i),
                 .state = kernel.state.get(),
                 .random = {},
                 .rank = ctx_.rank,
                 .site = ctx_.site});
    }
  }

 private:
  void stage_block(size_t index, int64_t n) {
    const StagedInput& input = state_.staged[index];
    const int64_t position = first_ % input.period;
    if (staged_at_[index] == position) return;  // no block is longer than the first one
    stage(input, ctx_.inputs[input.input].data, first_, n, slot(input.slot));
    staged_at_[index] = position;
  }

  std::byte* slot(size_t index) { return scratch_.data() + index * state_.slot_bytes; }

  std::byte* data_of(const Place& place) {
    if (place.kind == Place::Kind::kSlot) return slot(place.index);
    const TensorView& tensor =
        place.kind == Place::Kind::kInput ? ctx_.inputs[place.index] : ctx_.outputs[place.index];
    return tensor.data + static_cast<size_t>(first_) * place.bytes;
  }

  const KernelContext& ctx_;
  const FusedState& state_;
  int64_t first_ = 0;
  // Where in its period the block of an input is that its slot holds.
  std::array<int64_t, FusedProgram::kMaxInputs> staged_at_;
  // Left uninitialised on purpose.
  alignas(kLine) std::array<std::byte, kScratchBytes> scratch_;
};

void run_fused(const KernelContext& ctx) {
  const auto& state = ctx.state_as<FusedState>();
  const int64_t blocks = (state.elements + state.block - 1) / state.block;
  const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / state.block);
  ctx.pool().parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
    BlockRunner runner(ctx);
    for (int64_t block = begin; block < end; ++block)
      runner.run(block);
  });
  if (!state.has_padding) return;
  for (const TensorView& output : ctx.outputs)
    clear_padding(state.channels, output.as<float>());
}

// ---- choosing

// Makes the kernel state of a call whose tensors are read as `elements` elements in a row, apart
// from the inputs that are staged.
class FusedPlan {
 public:
  FusedPlan(const KernelQuery& query, std::string_view only)
      : query_(query), only_(only), state_(std::make_shared<FusedState>()) {
    state_->program = query.attrs_as<FusedAttrs>().program;
    results_ = infer_results(program(), query.inputs);
  }

  const std::vector<MetaPtr>& results() const { return results_; }

  // Requires outputs that are contiguous.
  KernelChoice strided() {
    state_->elements = query_.output(0).local_numel;
    for (size_t i = 0; i < query_.inputs.size(); ++i)
      add_input(i);
    return finish({});
  }

  // All tensors have this layout.
  KernelChoice blocked(const BlockedLayout& layout, const ChannelBlocks& channels,
                       bool has_padding) {
    state_->elements = static_cast<int64_t>(layout.bytes / sizeof(float));
    state_->channels = channels;
    state_->has_padding = has_padding;
    for (size_t i = 0; i < query_.inputs.size(); ++i)
      inputs_.push_back({Place::Kind::kInput, i, sizeof(float)});
    std::vector<MetaPtr> outputs;
    for (const MetaPtr output : query_.outputs)
      outputs.push_back(with_blocked(output, &layout));
    return finish(std::move(outputs));
  }

 private:
  const FusedProgram& program() const { return state_->program; }

  void add_input(size_t index) {
    const MetaPtr meta = query_.inputs[index];
    const size_t bytes = dtype_size(meta->dtype);
    const LoopNest loop = make_loop_nest(query_.output(0), {&meta, 1});
    if (loop.is_flat() || state_->elements == 0) {
      inputs_.push_back({Place::Kind::kInput, index, bytes});
      return;
    }
    const bool repeats = loop.stride[0][1] == 0;
    const int64_t period = !repeats             ? state_->elements
                           : loop.num_dims == 1 ? 1
                                                : state_->elements / loop.size[0];
    inputs_.push_back({Place::Kind::kSlot, num_slots_, bytes});
    state_->staged.push_back({index, num_slots_++, bytes, loop, period});
    widest_ = std::max(widest_, bytes);
  }

  // A result that is returned is written to its output. Any other takes a slot until its last use.
  void place_results() {
    const size_t count = program().num_instructions();
    std::vector<size_t> last_use(count, 0);
    for (size_t i = 0; i < count; ++i) {
      for (const FusedOperand& operand : program().operands(i)) {
        if (operand.is_result()) last_use[operand.index()] = i;
      }
    }
    std::vector<size_t> free;
    size_t num_outputs = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t bytes = dtype_size(results_[i]->dtype);
      Instruction& instruction = state_->instructions.emplace_back();
      for (const FusedOperand& operand : program().operands(i)) {
        instruction.operands.push_back(operand.is_result()
                                           ? state_->instructions[operand.index()].result
                                           : inputs_[operand.index()]);
      }
      if (program().is_returned(i)) {
        instruction.result = {Place::Kind::kOutput, num_outputs++, bytes};
      } else {
        if (free.empty()) free.push_back(num_slots_++);
        instruction.result = {Place::Kind::kSlot, free.back(), bytes};
        free.pop_back();
        widest_ = std::max(widest_, bytes);
      }
      for (size_t k = 0; k < i; ++k) {
        const Place& earlier = state_->instructions[k].result;
        if (last_use[k] == i && earlier.kind == Place::Kind::kSlot) free.push_back(earlier.index);
      }
    }
  }

  // A multiple of the periods of the inputs, if that is possible: each input is then staged once.
  void choose_block() {
    int64_t most = kMostElements;
    if (num_slots_ > 0)
      most = std::min(most,
                      static_cast<int64_t>(kScratchBytes / kLine / num_slots_ * kLine / widest_));
    int64_t common = 1;
    for (const StagedInput& input : state_->staged) {
      if (input.period > most) continue;
      const int64_t multiple = std::lcm(common, input.period);
      if (multiple <= most) common = multiple;
    }
    state_->block = std::clamp<int64_t>(state_->elements, 1, most / common * common);
    state_->slot_bytes = (static_cast<size_t>(state_->block) * widest_ + kLine - 1) / kLine * kLine;
  }

  BlockKernel kernel_for(size_t index, int64_t elements) const {
    BlockKernel kernel;
    const auto row_of = [&](MetaPtr meta) {
      return local_meta({elements}, meta->dtype, DeviceType::kCpu);
    };
    for (const MetaPtr meta : operand_metas(program(), index, query_.inputs, results_))
      kernel.inputs.push_back(row_of(meta));
    kernel.output = row_of(results_[index]);
    KernelChoice choice = cpu_kernels().select(
        {program().op(index), kernel.inputs, {&kernel.output, 1}, program().attrs(index)},
        DeviceType::kCpu, only_);
    kernel.fn = choice.fn;
    kernel.state = std::move(choice.state);
    return kernel;
  }

  KernelChoice finish(std::vector<MetaPtr> outputs) {
    place_results();
    choose_block();
    const int64_t rest = state_->elements % state_->block;
    for (size_t i = 0; i < program().num_instructions(); ++i) {
      Instruction& instruction = state_->instructions[i];
      if (state_->elements >= state_->block) instruction.whole = kernel_for(i, state_->block);
      if (rest > 0) instruction.last = kernel_for(i, rest);
    }
    return {run_fused, std::move(state_), std::move(outputs)};
  }

  const KernelQuery& query_;
  std::string_view only_;
  std::shared_ptr<FusedState> state_;
  std::vector<MetaPtr> results_;  // of all instructions
  std::vector<Place> inputs_;
  size_t num_slots_ = 0;
  size_t widest_ = 1;  // bytes of an element in a slot
};

KernelChoice select_reference(const KernelQuery& query) {
  return FusedPlan(query, "reference").strided();
}

KernelChoice select_blocks(const KernelQuery& query) {
  return FusedPlan(query, {}).strided();
}

// As the kernels of single ops (choose_blocked of ops/elementwise/elementwise_run.h).
KernelChoice select_blocked(const KernelQuery& query) {
  const BlockedLayout* layout = query.input(0).blocked;
  if (layout == nullptr) return {};
  FusedPlan plan(query, {});
  const auto is_like_output = [&](MetaPtr meta) {
    return meta->dtype == DType::kFloat32 && meta->local_shape == query.output(0).local_shape;
  };
  const bool is_one_layout =
      std::all_of(
          query.inputs.begin(), query.inputs.end(),
          [&](MetaPtr input) { return input->blocked == layout && is_like_output(input); }) &&
      std::all_of(plan.results().begin(), plan.results().end(),
                  [](MetaPtr result) { return result->dtype == DType::kFloat32; });
  if (!is_one_layout) return {};
  const TensorMeta& output = query.output(0);
  const ChannelBlocks channels = channel_blocks(*layout, output.local_shape);
  const bool is_known = channels.lanes != 0;
  const bool is_padded = static_cast<int64_t>(layout->bytes / sizeof(float)) != output.local_numel;
  if (!is_known && is_padded) return {};
  return plan.blocked(*layout, channels, is_known && channels.has_padding());
}

}  // namespace

void register_fused(KernelTable& table);

void register_fused(KernelTable& table) {
  table.add(kFusedElementwise, DeviceType::kCpu, {"reference", select_reference});
  table.add(kFusedElementwise, DeviceType::kCpu, {"blocks", select_blocks});
  table.add(kFusedElementwise, DeviceType::kCpu, {"blocked", select_blocked, true});
}

}  // namespace flow::ops
