// The CUDA kernel of fused_elementwise: an interpreter. Each thread takes four neighbouring
// elements at a time and runs the program on them; values between instructions are in shared
// memory, which is fast enough because programs are short and wait for device memory. Each result
// is rounded to its dtype as the single ops do, and the formulas are theirs.
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "ops/elementwise/elementwise_formulas.h"
#include "ops/elementwise/fused_op.h"
#include "ops/elementwise/row_table.h"
#include "ops/elementwise/unary_formulas.h"
#include "ops/kernel/pack_cuda.cuh"

namespace flow::ops {

void register_fused_cuda(KernelTable& table);

namespace {

constexpr int kLanes = 4;           // elements that a thread takes at a time
constexpr size_t kMostNumbers = 8;  // bytes of a formula
constexpr size_t kInputs = FusedProgram::kMaxInputs;
constexpr size_t kInstructions = FusedProgram::kMaxInstructions;

struct Cast {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return x;
  }
};

// A formula of one or two operands.
template <class Row, int kCount>
struct Entry {
  using Formula = typename RowFormula<Row>::template Of<float>;
  static constexpr int kOperands = kCount;
};

template <class Row>
using One = Entry<Row, 1>;
template <class Row>
using Two = Entry<Row, 2>;

// In the order of kOpsOnCuda of fused_program.cpp.
using FusedFormulas =
    Rows<One<Cast>, Two<Add>, Two<Sub>, Two<Mul>, Two<Div>, One<AddNumber>, One<SubNumber>,
         One<NumberSub>, One<MulNumber>, One<DivNumber>, One<NumberDiv>, One<Neg>, One<Square>,
         One<Exp>, One<Sqrt>, One<Tanh>, One<Sigmoid>, One<Relu>, One<Gelu>, One<GeluTanh>,
         One<Silu>, Two<ReluGrad>, Two<TanhGrad>, Two<SigmoidGrad>, Two<GeluGrad>,
         Two<GeluTanhGrad>, Two<SiluGrad>>;

struct Lanes {
  float lane[kLanes];
};

// How an element is stored.
enum class Form : uint8_t { kFloat32, kBFloat16, kFloat16 };

struct DeviceInstruction {
  uint8_t code = 0;
  Form form = Form::kFloat32;  // of the result
  uint8_t operand[FusedProgram::kMaxOperands] = {};
  uint8_t result = 0;
  alignas(8) std::byte formula[kMostNumbers] = {};
};

struct DeviceInput {
  const void* data = nullptr;
  Form form = Form::kFloat32;
  uint8_t slot = 0;
  int64_t stride[kMaxDims] = {};
};

struct DeviceOutput {
  void* data = nullptr;
  Form form = Form::kFloat32;
  uint8_t slot = 0;
};

// The most that a block has: a value in a slot for each input and result. Every device since Ampere
// lets a block have 99 KiB.
static_assert((kInputs + kInstructions) * cuda::kBlockThreads * sizeof(Lanes) <= size_t{99} << 10);

struct DeviceProgram {
  int64_t numel = 0;
  int num_inputs = 0, num_instructions = 0, num_outputs = 0, num_slots = 0, num_dims = 0;
  int64_t size[kMaxDims] = {};
  DeviceInput input[kInputs];
  DeviceInstruction instruction[kInstructions];
  DeviceOutput output[kInstructions];
};

__device__ float rounded(float x, Form form) {
  switch (form) {
    case Form::kBFloat16:
      return widen(narrow<BFloat16>(x));
    case Form::kFloat16:
      return widen(narrow<Float16>(x));
    case Form::kFloat32:
      break;
  }
  return x;
}

template <class T>
__device__ Lanes load_lanes(const void* data, int64_t pack) {
  const auto elements = load_pack<kLanes>(static_cast<const T*>(data), pack);
  Lanes lanes;
  FLOW_UNROLL
  for (int j = 0; j < kLanes; ++j)
    lanes.lane[j] = widen(elements.element[j]);
  return lanes;
}

__device__ Lanes load_lanes(const DeviceInput& input, int64_t pack) {
  switch (input.form) {
    case Form::kBFloat16:
      return load_lanes<BFloat16>(input.data, pack);
    case Form::kFloat16:
      return load_lanes<Float16>(input.data, pack);
    case Form::kFloat32:
      break;
  }
  return load_lanes<float>(input.data, pack);
}

template <class T>
__device__ void store_lanes(void* data, int64_t pack, const Lanes& lanes) {
  Pack<T, kLanes> elements;
  FLOW_UNROLL
  for (int j = 0; j < kLanes; ++j)
    elements.element[j] = narrow<T>(lanes.lane[j]);
  store_pack(static_cast<T*>(data), pack, elements);
}

__device__ void store_lanes(const DeviceOutput& output, int64_t pack, const Lanes& lanes) {
  switch (output.form) {
    case Form::kBFloat16:
      return store_lanes<BFloat16>(output.data, pack, lanes);
    case Form::kFloat16:
      return store_lanes<Float16>(output.data, pack, lanes);
    case Form::kFloat32:
      return store_lanes<float>(output.data, pack, lanes);
  }
}

__device__ float load_element(const void* data, Form form, int64_t at) {
  switch (form) {
    case Form::kBFloat16:
      return widen(static_cast<const BFloat16*>(data)[at]);
    case Form::kFloat16:
      return widen(static_cast<const Float16*>(data)[at]);
    case Form::kFloat32:
      break;
  }
  return static_cast<const float*>(data)[at];
}

__device__ void store_element(void* data, Form form, int64_t at, float x) {
  switch (form) {
    case Form::kBFloat16:
      static_cast<BFloat16*>(data)[at] = narrow<BFloat16>(x);
      return;
    case Form::kFloat16:
      static_cast<Float16*>(data)[at] = narrow<Float16>(x);
      return;
    case Form::kFloat32:
      static_cast<float*>(data)[at] = x;
  }
}

// The position of element `i` of the result in an input.
__device__ int64_t place_of(const DeviceProgram& program, const DeviceInput& input, int64_t i) {
  int64_t at = 0;
  for (int d = program.num_dims - 1; d >= 0; --d) {
    at += i % program.size[d] * input.stride[d];
    i /= program.size[d];
  }
  return at;
}

// The values of this thread: slot `s` of thread t of a block is at s * threads + t.
class Slots {
 public:
  __device__ explicit Slots(Lanes* all) : own_(all + threadIdx.x) {}

  __device__ Lanes& operator[](int slot) const { return own_[slot * blockDim.x]; }

 private:
  Lanes* own_;
};

template <class Row>
__device__ void run_formula(const DeviceInstruction& instruction, Slots slots) {
  union {
    typename Row::Formula formula;
    std::byte bytes[kMostNumbers];
  } call = {.bytes = {}};

  memcpy(call.bytes, instruction.formula, kMostNumbers);
  const Lanes a = slots[instruction.operand[0]];
  Lanes y;
  if constexpr (Row::kOperands == 1) {
    FLOW_UNROLL
    for (int j = 0; j < kLanes; ++j)
      y.lane[j] = rounded(call.formula(a.lane[j]), instruction.form);
  } else {
    const Lanes b = slots[instruction.operand[1]];
    FLOW_UNROLL
    for (int j = 0; j < kLanes; ++j)
      y.lane[j] = rounded(call.formula(a.lane[j], b.lane[j]), instruction.form);
  }
  slots[instruction.result] = y;
}

template <class... Row, size_t... kCode>
__device__ void run_instruction(const DeviceInstruction& instruction, Slots slots,
                                Rows<Row...> /*rows*/, std::index_sequence<kCode...> /*codes*/) {
  ((instruction.code == kCode ? run_formula<Row>(instruction, slots) : void()), ...);
}

__device__ void run_program(const DeviceProgram& program, Slots slots) {
  for (int i = 0; i < program.num_instructions; ++i) {
    run_instruction(program.instruction[i], slots, FusedFormulas(),
                    std::make_index_sequence<FusedFormulas::kSize>());
  }
}

// Contiguous operands of the result's shape whose packs are aligned.
__global__ void run_packs(DeviceProgram program, int64_t packs) {
  FLOW_CUDA_DYNAMIC_SHARED(Lanes, memory);
  const Slots slots(memory);
  for (int64_t pack = grid_thread(); pack < packs; pack += grid_threads()) {
    for (int i = 0; i < program.num_inputs; ++i) {
      const DeviceInput& input = program.input[i];
      slots[input.slot] = load_lanes(input, pack);
    }
    run_program(program, slots);
    for (int i = 0; i < program.num_outputs; ++i)
      store_lanes(program.output[i], pack, slots[program.output[i].slot]);
  }
}

// Any strides, from element `first` on. A thread takes one element; the other lanes repeat it.
__global__ void run_elements(DeviceProgram program, int64_t first) {
  FLOW_CUDA_DYNAMIC_SHARED(Lanes, memory);
  const Slots slots(memory);
  for (int64_t item = first + grid_thread(); item < program.numel; item += grid_threads()) {
    for (int i = 0; i < program.num_inputs; ++i) {
      const DeviceInput& input = program.input[i];
      const float x = load_element(input.data, input.form, place_of(program, input, item));
      slots[input.slot] = {{x, x, x, x}};
    }
    run_program(program, slots);
    for (int i = 0; i < program.num_outputs; ++i) {
      const DeviceOutput& output = program.output[i];
      store_element(output.data, output.form, item, slots[output.slot].lane[0]);
    }
  }
}

// ---- on the host

Form form_of(DType dtype) {
  if (dtype == DType::kBFloat16) return Form::kBFloat16;
  return dtype == DType::kFloat16 ? Form::kFloat16 : Form::kFloat32;
}

template <class... Row, size_t... kCode>
void make_formula(size_t code, const void* attrs, std::byte* bytes, Rows<Row...> /*rows*/,
                  std::index_sequence<kCode...> /*codes*/) {
  const auto make = [&]<class Formula>(std::type_identity<Formula>) {
    static_assert(sizeof(Formula) <= kMostNumbers && std::is_trivially_copyable_v<Formula>);
    const Formula formula(attrs);
    std::memcpy(bytes, &formula, sizeof(formula));
  };
  ((code == kCode ? make(std::type_identity<typename Row::Formula>()) : void()), ...);
}

// Gives values slots, which later values take over after the last reader of the value.
class SlotPlan {
 public:
  explicit SlotPlan(const FusedProgram& program) : last_read_(kInputs + kInstructions, -1) {
    for (size_t i = 0; i < program.num_instructions(); ++i)
      for (const FusedOperand& operand : program.operands(i))
        last_read_[value_of(operand)] = static_cast<int64_t>(i);
    for (size_t i = 0; i < program.num_instructions(); ++i)
      if (program.is_returned(i)) last_read_[kInputs + i] = kInstructions;
  }

  static size_t value_of(const FusedOperand& operand) {
    return operand.is_result() ? kInputs + operand.index() : operand.index();
  }

  // For a value that instruction `time` makes; time is -1 for inputs.
  uint8_t take(size_t value, int64_t time) {
    size_t slot = 0;
    while (slot < holder_.size() && last_read_[holder_[slot]] > time)
      ++slot;
    if (slot == holder_.size()) holder_.push_back(value);
    holder_[slot] = value;
    slot_of_[value] = static_cast<uint8_t>(slot);
    return slot_of_[value];
  }

  uint8_t slot_of(size_t value) const { return slot_of_[value]; }

  int num_slots() const { return static_cast<int>(holder_.size()); }

 private:
  std::vector<int64_t> last_read_;  // the last instruction that reads a value
  std::vector<size_t> holder_;      // the value that is in a slot
  std::array<uint8_t, kInputs + kInstructions> slot_of_ = {};
};

struct FusedState {
  DeviceProgram program;
  bool is_flat = true;
};

std::optional<FusedState> prepare(const KernelQuery& query) {
  const FusedProgram& program = query.attrs_as<FusedAttrs>().program;
  const TensorMeta& y = query.output(0);
  FusedState state;
  DeviceProgram& device = state.program;
  device.numel = y.local_numel;
  device.num_dims = static_cast<int>(y.local_shape.size());
  for (int d = 0; d < device.num_dims; ++d)
    device.size[d] = y.local_shape[d];
  SlotPlan slots(program);
  for (size_t i = 0; i < program.num_inputs(); ++i) {
    const TensorMeta& x = query.input(static_cast<int>(i));
    if (!is_fused_on_cuda(x.dtype)) return {};
    DeviceInput& input = device.input[device.num_inputs++];
    input.form = form_of(x.dtype);
    input.slot = slots.take(i, -1);
    const int64_t missing = device.num_dims - x.local_shape.size();
    for (int64_t d = 0; d < x.local_shape.size(); ++d)
      if (x.local_shape[d] != 1) input.stride[d + missing] = x.strides[d];
    state.is_flat &= x.is_contiguous && x.local_shape == y.local_shape;
  }
  std::vector<MetaPtr> inputs(query.inputs.begin(), query.inputs.end());
  const std::vector<MetaPtr> results = infer_results(program, inputs);
  int returned = 0;
  for (size_t i = 0; i < program.num_instructions(); ++i) {
    const std::optional<size_t> code = fused_code_on_cuda(program.op(i));
    if (!code || !is_fused_on_cuda(results[i]->dtype)) return {};
    DeviceInstruction& instruction = device.instruction[device.num_instructions++];
    instruction.code = static_cast<uint8_t>(*code);
    instruction.form = form_of(results[i]->dtype);
    make_formula(*code, program.attrs(i), instruction.formula, FusedFormulas(),
                 std::make_index_sequence<FusedFormulas::kSize>());
    const auto operands = program.operands(i);
    for (size_t k = 0; k < operands.size(); ++k)
      instruction.operand[k] = slots.slot_of(SlotPlan::value_of(operands[k]));
    instruction.result = slots.take(kInputs + i, static_cast<int64_t>(i));
    if (!program.is_returned(i)) continue;
    const TensorMeta& output = query.output(returned++);
    if (!output.is_contiguous) return {};
    device.output[device.num_outputs++] = {nullptr, instruction.form, instruction.result};
  }
  device.num_slots = slots.num_slots();
  return state;
}

void run(const KernelContext& ctx) {
  const auto& state = ctx.state_as<FusedState>();
  DeviceProgram program = state.program;
  bool is_aligned = state.is_flat;
  const auto check = [&](const void* data, Form form) {
    const size_t bytes = kLanes * (form == Form::kFloat32 ? sizeof(float) : sizeof(uint16_t));
    is_aligned = is_aligned && reinterpret_cast<uintptr_t>(data) % bytes == 0;
  };
  for (int i = 0; i < program.num_inputs; ++i) {
    program.input[i].data = ctx.in(i).data;
    check(program.input[i].data, program.input[i].form);
  }
  for (int i = 0; i < program.num_outputs; ++i) {
    program.output[i].data = ctx.out(i).data;
    check(program.output[i].data, program.output[i].form);
  }
  const size_t shared =
      cuda::kBlockThreads * sizeof(Lanes) * static_cast<size_t>(program.num_slots);
  const int64_t packs = is_aligned ? program.numel / kLanes : 0;
  const int64_t rest = program.numel - packs * kLanes;
  if (packs > 0) {
    cuda::launch(run_packs, cuda::blocks_for(packs), cuda::kBlockThreads, shared,
                 cuda::stream_of(ctx), program, packs);
  }
  if (rest > 0) {
    cuda::launch(run_elements, cuda::blocks_for(rest), cuda::kBlockThreads, shared,
                 cuda::stream_of(ctx), program, packs * kLanes);
  }
}

KernelChoice select(const KernelQuery& query) {
  std::optional<FusedState> state = prepare(query);
  if (!state) return {};
  return {run, std::make_shared<const FusedState>(*state)};
}

}  // namespace

void register_fused_cuda(KernelTable& table) {
  table.add(kFusedElementwise, DeviceType::kCuda, {"cuda", select});
}

}  // namespace flow::ops
