#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "ops/elementwise/activation_op.h"
#include "ops/elementwise/cast_op.h"
#include "ops/elementwise/fused_op.h"
#include "ops/elementwise/row_table.h"
#include "ops/elementwise/special_op.h"
#include "ops/elementwise/unary_op.h"

namespace flow::ops {

namespace {

// Attrs begin at multiples of this.
constexpr size_t kAttrsAlignment = 8;

std::vector<const OpDef*> list_ops() {
  std::vector<const OpDef*> ops;
  for (const OpDef& op : kTableOps)
    ops.push_back(&op);
  ops.insert(ops.end(), {&kCast,
                         &kLeakyRelu,
                         &kElu,
                         &kSoftplus,
                         &kCelu,
                         &kSelu,
                         &kHardtanh,
                         &kReluGrad,
                         &kTanhGrad,
                         &kSigmoidGrad,
                         &kGeluGrad,
                         &kGeluTanhGrad,
                         &kSiluGrad,
                         &kLeakyReluGrad,
                         &kEluGrad,
                         &kSoftplusGrad,
                         &kScaledEluGrad,
                         &kMishGrad,
                         &kHardswishGrad,
                         &kHardsigmoidGrad,
                         &kHardtanhGrad,
                         &kSoftsignGrad,
                         &kLogsigmoidGrad,
                         &kLgamma,
                         &kPolygamma,
                         &kErfinv});
  FLOW_ASSERT(ops.size() <= std::numeric_limits<uint8_t>::max(), "too many ops for a byte");
  return ops;
}

// The ops that a program can contain. An instruction names one by its position.
const std::vector<const OpDef*>& all_ops() {
  static const std::vector<const OpDef*> ops = list_ops();
  return ops;
}

size_t position_of(const OpDef& op) {
  const bool is_row = &op >= kTableOps.data() && &op < kTableOps.data() + kTableOps.size();
  if (is_row) return static_cast<size_t>(&op - kTableOps.data());
  const auto& ops = all_ops();
  return static_cast<size_t>(std::find(ops.begin() + kTableOps.size(), ops.end(), &op) -
                             ops.begin());
}

// In the order of FusedFormulas of fused_cuda.cu. kCast only converts.
const OpDef* const kOpsOnCuda[] = {
    &kCast,
    &op_of<Add>(),
    &op_of<Sub>(),
    &op_of<Mul>(),
    &op_of<Div>(),
    &op_of<AddNumber>(),
    &op_of<SubNumber>(),
    &op_of<NumberSub>(),
    &op_of<MulNumber>(),
    &op_of<DivNumber>(),
    &op_of<NumberDiv>(),
    &op_of<Neg>(),
    &op_of<Square>(),
    &op_of<Exp>(),
    &op_of<Sqrt>(),
    &op_of<Tanh>(),
    &op_of<Sigmoid>(),
    &op_of<Relu>(),
    &op_of<Gelu>(),
    &op_of<GeluTanh>(),
    &op_of<Silu>(),
    &kReluGrad,
    &kTanhGrad,
    &kSigmoidGrad,
    &kGeluGrad,
    &kGeluTanhGrad,
    &kSiluGrad,
};

// The vector forms of these compute a whole vector in another way if one element is large, so a
// result may depend on which elements share a vector.
bool sees_neighbours(const OpDef& op) {
  return &op == &op_of<Sin>() || &op == &op_of<Cos>() || &op == &op_of<Tan>();
}

const OpDef* op_named(std::string_view name) {
  const auto& ops = all_ops();
  const auto found =
      std::find_if(ops.begin(), ops.end(), [&](const OpDef* op) { return name == op->name; });
  return found == ops.end() || sees_neighbours(**found) ? nullptr : *found;
}

}  // namespace

std::optional<size_t> fused_code_on_cuda(const OpDef& op) {
  const auto* found = std::find(std::begin(kOpsOnCuda), std::end(kOpsOnCuda), &op);
  if (found == std::end(kOpsOnCuda)) return {};
  return static_cast<size_t>(found - std::begin(kOpsOnCuda));
}

bool is_fused_on_cuda(DType dtype) {
  return is_floating(dtype) && dtype != DType::kFloat64;
}

bool FusedProgram::can_contain(const OpDef& op) {
  return position_of(op) < all_ops().size() && !sees_neighbours(op);
}

bool FusedProgram::add(const OpDef& op, std::span<const FusedOperand> operands, const void* attrs) {
  const size_t bytes = op.attrs == nullptr ? 0 : op.attrs->size;
  const size_t taken = (bytes + kAttrsAlignment - 1) / kAttrsAlignment * kAttrsAlignment;
  if (num_instructions_ == kMaxInstructions || attrs_size_ + taken > kMaxAttrsBytes) return false;
  Instruction& added = instructions_[num_instructions_++];
  added.op = static_cast<uint8_t>(position_of(op));
  added.attrs_begin = attrs_size_;
  if (bytes > 0) std::memcpy(attrs_.data() + attrs_size_, attrs, bytes);
  attrs_size_ = static_cast<uint8_t>(attrs_size_ + taken);
  std::copy(operands.begin(), operands.end(), added.operands.begin());
  for (const FusedOperand& operand : operands) {
    if (!operand.is_result())
      num_inputs_ = std::max(num_inputs_, static_cast<uint8_t>(operand.index() + 1));
  }
  return true;
}

const OpDef& FusedProgram::op(size_t instruction) const {
  return *all_ops()[instructions_[instruction].op];
}

std::span<const FusedOperand> FusedProgram::operands(size_t instruction) const {
  return {instructions_[instruction].operands.data(),
          static_cast<size_t>(op(instruction).num_inputs)};
}

const void* FusedProgram::attrs(size_t instruction) const {
  return op(instruction).attrs == nullptr ? nullptr
                                          : attrs_.data() + instructions_[instruction].attrs_begin;
}

bool operator==(const FusedProgram& a, const FusedProgram& b) {
  if (a.num_instructions_ != b.num_instructions_ || a.returned_ != b.returned_) return false;
  for (size_t i = 0; i < a.num_instructions_; ++i) {
    if (a.instructions_[i].op != b.instructions_[i].op ||
        !std::ranges::equal(a.operands(i), b.operands(i))) {
      return false;
    }
    const AttrsDef* attrs = a.op(i).attrs;
    if (attrs != nullptr && !attrs->equal(a.attrs(i), b.attrs(i), true)) return false;
  }
  return true;
}

// ---- text and hash

void hash_field(Hasher& hasher, const FusedProgram& program) {
  for (size_t i = 0; i < program.num_instructions(); ++i) {
    const OpDef& op = program.op(i);
    hasher.add(&op);
    for (const FusedOperand& operand : program.operands(i))
      hasher.add(uint64_t{operand.index()} * 2 + (operand.is_result() ? 1 : 0));
    if (op.attrs != nullptr) hasher.add(op.attrs->hash(program.attrs(i), true));
    hasher.add(uint64_t{program.is_returned(i)});
  }
}

std::string field_to_string(const FusedProgram& program) {
  std::string text = "[", returned;
  for (size_t i = 0; i < program.num_instructions(); ++i) {
    const OpDef& op = program.op(i);
    text += str("t", i, " = ", op.name, "(");
    std::string arguments;
    for (const FusedOperand& operand : program.operands(i)) {
      arguments +=
          str(arguments.empty() ? "" : ", ", operand.is_result() ? "t" : "x", operand.index());
    }
    const std::string attrs = op.attrs == nullptr ? "" : op.attrs->to_string(program.attrs(i));
    text += str(arguments, attrs.empty() ? "" : ", ", attrs, "), ");
    if (program.is_returned(i)) returned += str(returned.empty() ? "" : " ", "t", i);
  }
  return text + "return " + returned + "]";
}

namespace {

// Reads the text of a program from left to right.
class ProgramText {
 public:
  explicit ProgramText(std::string_view text) : text_(text), rest_(text) {}

  FusedProgram parse() {
    FusedProgram program;
    expect("[");
    while (!accept("return "))
      parse_instruction(program);
    do {
      program.set_returned(parse_index("t", program.num_instructions()));
    } while (accept(" "));
    expect("]");
    if (!rest_.empty()) fail("the end");
    return program;
  }

 private:
  [[noreturn]] void fail(const std::string& wanted) const {
    throw InvalidArgument(str("[attrs] cannot read '", text_, "' as a program; expected ", wanted,
                              " at '", rest_, "'"));
  }

  bool accept(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  void expect(std::string_view word) {
    if (!accept(word)) fail(str("'", word, "'"));
  }

  // A number below `end` after this letter.
  size_t parse_index(std::string_view letter, size_t end) {
    expect(letter);
    size_t index = 0;
    const auto [last, status] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), index);
    if (status != std::errc() || index >= end) fail(str("a number below ", end));
    rest_.remove_prefix(static_cast<size_t>(last - rest_.data()));
    return index;
  }

  // Everything before the bracket that closes the arguments.
  std::string_view rest_of_arguments() {
    size_t depth = 0;
    for (size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '(' || rest_[i] == '[') ++depth;
      if (rest_[i] != ')' && rest_[i] != ']') continue;
      if (depth == 0) {
        const std::string_view arguments = rest_.substr(0, i);
        rest_.remove_prefix(i);
        return arguments;
      }
      --depth;
    }
    fail("')'");
  }

  void parse_instruction(FusedProgram& program) {
    const size_t number = program.num_instructions();
    if (parse_index("t", number + 1) != number) fail(str("instruction t", number));
    expect(" = ");
    const size_t end = rest_.find('(');
    const OpDef* op = op_named(rest_.substr(0, end));
    if (end == std::string_view::npos || op == nullptr) fail("an elementwise op");
    rest_.remove_prefix(end + 1);
    std::vector<FusedOperand> operands;
    for (int i = 0; i < op->num_inputs; ++i) {
      if (i > 0) expect(", ");
      operands.push_back(rest_.starts_with("t")
                             ? FusedOperand::result(parse_index("t", number))
                             : FusedOperand::input(parse_index("x", FusedProgram::kMaxInputs)));
    }
    alignas(std::max_align_t) std::array<std::byte, kMaxAttrsBytes> attrs{};
    if (op->attrs != nullptr) {
      expect(", ");
      op->attrs->parse(rest_of_arguments(), attrs.data());
    }
    expect("), ");
    if (!program.add(*op, operands, attrs.data())) fail("fewer instructions");
  }

  std::string_view text_;
  std::string_view rest_;
};

}  // namespace

void parse_field(std::string_view text, FusedProgram& program) {
  program = ProgramText(text).parse();
}

}  // namespace flow::ops
