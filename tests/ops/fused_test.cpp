// fused_elementwise gives the bits of the single ops: every op that a program can contain, in every
// dtype, for operands of any shapes and strides. Run with FLOW_CPU_ISA for the other instruction
// sets.
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "ops/elementwise/cast_op.h"
#include "ops/elementwise/fused_op.h"
#include "ops/elementwise/row_table.h"
#include "tests/support/closeness.h"
#include "tests/support/op_samples.h"
#include "tests/support/raw_call.h"
#include "tests/support/values.h"

namespace flow {
namespace {

using contract::Inputs;
using contract::OpSample;
using contract::RawCall;
using ops::FusedAttrs;
using ops::FusedOperand;
using ops::FusedProgram;

std::vector<Tensor> run_fused(const FusedProgram& program, const Inputs& inputs) {
  FusedAttrs attrs{program};
  RawCall call{.op = &ops::kFusedElementwise, .inputs = inputs};
  call.attrs.resize(sizeof(attrs));
  std::memcpy(call.attrs.data(), &attrs, sizeof(attrs));
  return contract::dispatch_unseeded(call, inputs);
}

FusedProgram parse(const std::string& text) {
  FusedProgram program;
  ops::parse_field(text, program);
  return program;
}

// The call alone, returned, and the call again with its result read by a cast, which is returned
// too: one result has an output to itself, the other a place between instructions.
FusedProgram program_of(const RawCall& call) {
  std::vector<FusedOperand> operands;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    operands.push_back(FusedOperand::input(i));
  FusedProgram program;
  EXPECT_TRUE(program.add(*call.op, operands, call.attrs_data()));
  EXPECT_TRUE(program.add(*call.op, operands, call.attrs_data()));
  const ops::CastAttrs wide{DType::kFloat64};
  const std::vector<FusedOperand> second{FusedOperand::result(1)};
  EXPECT_TRUE(program.add(ops::kCast, second, &wide));
  program.set_returned(0);
  program.set_returned(2);
  return program;
}

// The same values with the dims in another order in memory.
Tensor transposed_copy(const Tensor& x) {
  if (x.dim() < 2) return x;
  return x.transpose(0, -1).contiguous().transpose(0, -1);
}

void expect_bits_of_single_op(const RawCall& call, const Inputs& inputs, const std::string& name) {
  const std::vector<Tensor> fused = run_fused(program_of(call), inputs);
  const Tensor single = contract::dispatch_unseeded(call, inputs)[0];

  EXPECT_EQ(contract::difference(contract::read_values(fused[0]), contract::read_values(single),
                                 contract::kExact),
            "")
      << name;
  EXPECT_EQ(contract::difference(contract::read_values(fused[1]),
                                 contract::read_values(single.to(float64)), contract::kExact),
            "")
      << name << ", cast";
}

TEST(Fused, EveryOpGivesTheBitsOfTheSingleOp) {
  std::set<const OpDef*> ops;
  for (const OpSample& sample : contract::all_samples()) {
    const OpDef* op = op_table().find(sample.op);
    if (!FusedProgram::can_contain(*op)) continue;
    for (const DType dtype : contract::dtypes_of(sample)) {
      const RawCall call = contract::capture_first(sample, dtype, 1);
      if (call.mutates != 0) continue;
      ops.insert(op);
      const std::string name = str(contract::describe(sample), " of ", dtype);
      expect_bits_of_single_op(call, call.inputs, name);
      Inputs strided;
      for (const Tensor& input : call.inputs)
        strided.push_back(transposed_copy(input));
      expect_bits_of_single_op(call, strided, name + ", strided");
    }
  }
  EXPECT_GT(ops.size(), 120U) << "most elementwise ops can be part of a program";
}

// What compiled steps may write over an input (graph/passes/overwrite_inputs.h): ops of programs,
// and programs whose one result is that of the last instruction.
bool may_overwrite(const RawCall& call) {
  if (call.op != &ops::kFusedElementwise) return FusedProgram::can_contain(*call.op);
  const auto& program = static_cast<const FusedAttrs*>(call.attrs_data())->program;
  return contract::local_outputs(call).size() == 1 &&
         program.is_returned(program.num_instructions() - 1);
}

// Compares every kernel's result over input `target` with that in memory of its own. The other
// inputs are copied, on request with strides.
void expect_same_over_input(const RawCall& call, size_t target, bool has_strides,
                            const std::string& name) {
  const auto copies = [&] {
    Inputs copied;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const Tensor& input = call.inputs[i];
      const bool is_plain = i == target || !has_strides || !input.defined();
      copied.push_back(is_plain ? (input.defined() ? input.clone() : input)
                                : transposed_copy(input));
    }
    return copied;
  };
  const std::vector<MetaPtr> metas = contract::local_outputs(call);
  RawCall over = call;
  over.mutates = 1U << target;
  for (const KernelDef* kernel : contract::kernels_to_try(call)) {
    const contract::KernelRun run{.kernel = kernel, .uses_views = false};
    const auto expected = contract::run_kernel(call, copies(), metas, run);
    if (!expected) continue;
    const auto actual = contract::run_kernel(over, copies(), metas, run);
    ASSERT_TRUE(actual) << name;
    EXPECT_EQ(contract::difference(contract::read_values((*actual)[0]),
                                   contract::read_values((*expected)[0]), contract::kExact),
              "")
        << name << ", over input " << target << (has_strides ? ", strided" : "") << ", kernel "
        << (kernel == nullptr ? "chosen" : kernel->name);
  }
}

TEST(Fused, EveryOpMayWriteOverAnyInputLikeItsResult) {
  std::set<std::pair<const OpDef*, size_t>> written;
  for (const OpSample& sample : contract::all_samples()) {
    const OpDef* op = op_table().find(sample.op);
    if (!FusedProgram::can_contain(*op) && op != &ops::kFusedElementwise) continue;
    for (const DType dtype : contract::dtypes_of(sample)) {
      const RawCall call = contract::capture_first(sample, dtype, 1);
      if (call.mutates != 0 || !may_overwrite(call)) continue;
      const MetaPtr result = contract::local_outputs(call)[0];
      for (size_t i = 0; i < call.inputs.size(); ++i) {
        if (!call.inputs[i].defined() || call.inputs[i].meta_ptr() != result) continue;
        written.emplace(call.op, i);
        const std::string name = str(contract::describe(sample), " of ", dtype);
        expect_same_over_input(call, i, false, name);
        // Strides are handled alike for all dtypes.
        if (dtype == contract::dtypes_of(sample)[0]) expect_same_over_input(call, i, true, name);
      }
    }
  }
  EXPECT_GT(written.size(), 120U) << "most ops have an input like their result";
}

TEST(Fused, InputsRepeatAlongAnyDims) {
  manual_seed(1);
  const FusedProgram program =
      parse("[t0 = mul(x0, x1), t1 = sub(t0, x2), t2 = exp(t1), return t1 t2]");
  const std::vector<Shape> shapes{{7, 300, 5}, {300, 5},  {5},      {1},        {},
                                  {7, 1, 1},   {7, 1, 5}, {300, 1}, {1, 300, 1}};
  for (const Shape& a : shapes) {
    for (const Shape& b : shapes) {
      const Inputs x{randn({7, 300, 5}), randn(a), randn(b)};

      const std::vector<Tensor> fused = run_fused(program, x);

      const Tensor t1 = x[0] * x[1] - x[2];
      EXPECT_EQ(fused[0].to_vector<float>(), t1.to_vector<float>()) << a << b;
      EXPECT_EQ(fused[1].to_vector<float>(), exp(t1).to_vector<float>()) << a << b;
    }
  }
}

TEST(Fused, TextSurvives) {
  const std::string text =
      "[t0 = clamp(x1, min=-1, max=2.5), t1 = add(t0, x0, alpha=0.5), t2 = where(x2, t1, t0), "
      "return t0 t2]";
  const FusedProgram program = parse(text);

  EXPECT_EQ(ops::field_to_string(program), text);
  EXPECT_EQ(program.num_inputs(), 3U);
  EXPECT_TRUE(program == parse(text));
  EXPECT_FALSE(program == parse("[t0 = relu(x0), return t0]"));
}

TEST(Fused, OtherTextsAreRefused) {
  for (const char* text : {"", "[]", "[return t0]", "[t0 = relu(x0)]", "[t0 = relu(t0), return t0]",
                           "[t1 = relu(x0), return t1]", "[t0 = matmul(x0, x1), return t0]",
                           "[t0 = relu(x12), return t0]", "[t0 = relu(x0), return t1]",
                           "[t0 = relu(x0, x1), return t0]", "[t0 = add(x0, x1), return t0]",
                           "[t0 = add(x0, x1, alpha=), return t0]", "[t0 = sin(x0), return t0]",
                           "[t0 = relu(x0), return t0]]"}) {
    EXPECT_THROW(parse(text), InvalidArgument) << text;
  }
}

TEST(Fused, ACallMustFitItsProgram) {
  const FusedProgram sum = parse("[t0 = add(x0, x1, alpha=1), return t0]");
  EXPECT_THROW(run_fused(sum, {ones({2})}), InvalidArgument);
  EXPECT_THROW(run_fused(sum, {ones({2}), ones({3})}), InvalidArgument);
  EXPECT_THROW(run_fused(sum, {ones({2}), ones({2}, {.dtype = float64})}), InvalidArgument);
  const FusedProgram two_shapes = parse("[t0 = relu(x0), t1 = add(t0, x1, alpha=1), return t1]");
  EXPECT_THROW(run_fused(two_shapes, {ones({2}), ones({3, 2})}), InvalidArgument);
}

TEST(Fused, AProgramHasRoomForTwelveInstructions) {
  FusedProgram program;
  const std::vector<FusedOperand> operands{FusedOperand::input(0)};
  for (size_t i = 0; i < FusedProgram::kMaxInstructions; ++i)
    EXPECT_TRUE(program.add(ops::op_of<ops::Relu>(), operands, nullptr));
  EXPECT_FALSE(program.add(ops::op_of<ops::Relu>(), operands, nullptr));
}

}  // namespace
}  // namespace flow
