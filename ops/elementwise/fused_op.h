// fused_elementwise: several elementwise ops in one pass over memory. Only the compiler of graphs
// makes calls of it (graph/passes/fuse_elementwise.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/op.h"

namespace flow::ops {

// An operand of an instruction: an input of the program or the result of an earlier instruction.
class FusedOperand {
 public:
  FusedOperand() = default;

  static FusedOperand input(size_t index) { return FusedOperand(index); }

  static FusedOperand result(size_t index) { return FusedOperand(index + kFirstResult); }

  bool is_result() const { return code_ >= kFirstResult; }

  size_t index() const { return is_result() ? code_ - kFirstResult : code_; }

  friend bool operator==(const FusedOperand&, const FusedOperand&) = default;

 private:
  static constexpr size_t kFirstResult = 128;

  explicit FusedOperand(size_t code) : code_(static_cast<uint8_t>(code)) {}

  uint8_t code_ = 0;
};

// A straight line of calls of elementwise ops. The tensors that it is applied to are x0, x1, …;
// t0, t1, … are the results of its instructions, which all have one shape. Some of them are
// returned. As text: [t0 = mul(x0, x1), t1 = add(t0, x2, alpha=1), return t1].
class FusedProgram {
 public:
  static constexpr size_t kMaxInstructions = 12;
  static constexpr size_t kMaxInputs = 12;
  static constexpr size_t kMaxOperands = 3;

  // False for ops that cannot be part of a program.
  static bool can_contain(const OpDef& op);

  // Adds an instruction. Returns false if there is no room for it. Requires: can_contain(op), an
  // operand for each input of the op, inputs below kMaxInputs, results of earlier instructions.
  bool add(const OpDef& op, std::span<const FusedOperand> operands, const void* attrs);

  void set_returned(size_t result) { returned_ |= uint32_t{1} << result; }

  size_t num_inputs() const { return num_inputs_; }

  size_t num_instructions() const { return num_instructions_; }

  bool is_returned(size_t result) const { return (returned_ >> result & 1U) != 0; }

  const OpDef& op(size_t instruction) const;
  std::span<const FusedOperand> operands(size_t instruction) const;
  const void* attrs(size_t instruction) const;

  friend bool operator==(const FusedProgram& a, const FusedProgram& b);

 private:
  static constexpr size_t kMaxAttrsBytes = 184;

  struct Instruction {
    uint8_t op = 0;  // position in the list of ops that a program can contain
    uint8_t attrs_begin = 0;
    std::array<FusedOperand, kMaxOperands> operands = {};
  };

  alignas(8) std::array<std::byte, kMaxAttrsBytes> attrs_{};
  std::array<Instruction, kMaxInstructions> instructions_{};
  uint32_t returned_ = 0;
  uint8_t attrs_size_ = 0;
  uint8_t num_inputs_ = 0;
  uint8_t num_instructions_ = 0;
};

// The number by which CUDA's kernel knows an op; none if a program for it cannot contain the op.
std::optional<size_t> fused_code_on_cuda(const OpDef& op);

// True if CUDA's kernel computes with the dtype.
bool is_fused_on_cuda(DType dtype);

// How attrs (core/attrs.h) read and write a program.
void hash_field(Hasher& hasher, const FusedProgram& program);
std::string field_to_string(const FusedProgram& program);
void parse_field(std::string_view text, FusedProgram& program);

struct FusedAttrs {
  FusedProgram program;

  static constexpr auto fields() { return std::tuple(key_field("program", &FusedAttrs::program)); }
};

// (x0, x1, …) -> the returned results, in their order.
extern const OpDef kFusedElementwise;

// The shapes and dtypes of the results of all instructions, for inputs with these metas. Throws
// InvalidArgument if an op refuses its operands.
std::vector<MetaPtr> infer_results(const FusedProgram& program, std::span<const MetaPtr> inputs);

// The metas of an instruction's operands. `results`: of the earlier instructions.
std::vector<MetaPtr> operand_metas(const FusedProgram& program, size_t instruction,
                                   std::span<const MetaPtr> inputs,
                                   std::span<const MetaPtr> results);

}  // namespace flow::ops
