#include <algorithm>

#include "ops/elementwise/fused_op.h"

namespace flow::ops {

namespace {

// Compositions with more signatures than this are rare, and the rest of them is dropped: signatures
// may be missing, but none is wrong.
constexpr size_t kMaxSignatures = 64;

void infer(InferContext& ctx) {
  const FusedProgram& program = ctx.attrs<FusedAttrs>().program;
  ctx.check(program.num_instructions() > 0, "the program is empty");
  ctx.check(static_cast<size_t>(ctx.num_inputs()) == program.num_inputs(), "the program takes ",
            program.num_inputs(), " tensors, ", ctx.num_inputs(), " are given");
  const std::vector<MetaPtr> results = infer_results(program, ctx.inputs());
  for (size_t i = 0; i < results.size(); ++i) {
    ctx.check(results[i]->shape == results[0]->shape, "the results of the program have shapes ",
              results[0]->shape, " and ", results[i]->shape, "; they must have one");
    if (program.is_returned(i)) ctx.add_output(results[i]->shape, results[i]->dtype);
  }
  ctx.check(!ctx.outputs().empty(), "the program returns nothing");
}

// Layouts of the inputs, as far as the instructions so far have read them, and of their results.
struct Composition {
  std::vector<std::optional<Sbp>> inputs;
  std::vector<Sbp> results;
  bool is_positional = false;

  friend bool operator==(const Composition&, const Composition&) = default;
};

// Adds an instruction that has this signature. Returns nothing if the layouts do not agree.
std::optional<Composition> extended(Composition all, const SbpSignature& signature,
                                    std::span<const FusedOperand> operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    const size_t index = operands[i].index();
    const Sbp& wanted = signature.inputs[i];
    if (operands[i].is_result()) {
      if (!(all.results[index] == wanted)) return {};
    } else if (all.inputs[index] && !(*all.inputs[index] == wanted)) {
      return {};
    } else {
      all.inputs[index] = wanted;
    }
  }
  all.results.push_back(signature.outputs[0]);
  all.is_positional |= signature.is_positional;
  return all;
}

// The signatures of an instruction, "all B" included.
std::vector<SbpSignature> signatures_of(const OpDef& op, std::span<const MetaPtr> inputs,
                                        const void* attrs, int64_t num_ranks) {
  InferContext infer(op, inputs, attrs);
  op.infer(infer);
  SbpContext ctx(op, inputs, attrs, infer.outputs(), num_ranks);
  op.sbp(ctx);
  std::vector<SbpSignature> signatures = ctx.signatures();
  signatures.push_back({std::vector<Sbp>(inputs.size(), sbp::broadcast), {sbp::broadcast}});
  return signatures;
}

// The instructions have legal signatures that agree on what they share.
void sbp(SbpContext& ctx) {
  const FusedProgram& program = ctx.attrs<FusedAttrs>().program;
  const std::vector<MetaPtr> results = infer_results(program, ctx.inputs());
  std::vector<Composition> all(1);
  all[0].inputs.resize(program.num_inputs());
  for (size_t i = 0; i < program.num_instructions(); ++i) {
    const std::vector<MetaPtr> metas = operand_metas(program, i, ctx.inputs(), results);
    const std::vector<SbpSignature> signatures =
        signatures_of(program.op(i), metas, program.attrs(i), ctx.num_ranks());
    std::vector<Composition> longer;
    for (const Composition& begun : all) {
      for (const SbpSignature& signature : signatures) {
        auto next = extended(begun, signature, program.operands(i));
        if (!next || longer.size() == kMaxSignatures) continue;
        if (std::find(longer.begin(), longer.end(), *next) == longer.end())
          longer.push_back(std::move(*next));
      }
    }
    all = std::move(longer);
  }
  for (const Composition& composition : all) {
    SbpSignature signature;
    signature.is_positional = composition.is_positional;
    for (const std::optional<Sbp>& input : composition.inputs)
      signature.inputs.push_back(input.value_or(sbp::broadcast));
    for (size_t i = 0; i < composition.results.size(); ++i) {
      if (program.is_returned(i)) signature.outputs.push_back(composition.results[i]);
    }
    const bool is_whole = std::all_of(signature.inputs.begin(), signature.inputs.end(),
                                      [](const Sbp& entry) { return entry.is_broadcast(); });
    const auto& known = ctx.signatures();
    if (!is_whole && std::find(known.begin(), known.end(), signature) == known.end())
      ctx.add(std::move(signature));
  }
}

}  // namespace

std::vector<MetaPtr> operand_metas(const FusedProgram& program, size_t instruction,
                                   std::span<const MetaPtr> inputs,
                                   std::span<const MetaPtr> results) {
  std::vector<MetaPtr> metas;
  for (const FusedOperand& operand : program.operands(instruction))
    metas.push_back(operand.is_result() ? results[operand.index()] : inputs[operand.index()]);
  return metas;
}

std::vector<MetaPtr> infer_results(const FusedProgram& program, std::span<const MetaPtr> inputs) {
  std::vector<MetaPtr> results;
  for (size_t i = 0; i < program.num_instructions(); ++i) {
    const OpDef& op = program.op(i);
    const std::vector<MetaPtr> metas = operand_metas(program, i, inputs, results);
    InferContext ctx(op, metas, program.attrs(i));
    op.infer(ctx);
    const OutputSpec& spec = ctx.outputs()[0];
    results.push_back(local_meta(spec.shape, spec.dtype, inputs[0]->device));
  }
  return results;
}

const OpDef kFusedElementwise{.name = "fused_elementwise",
                              .num_inputs = kVariadic,
                              .num_outputs = kVariadic,
                              .attrs = attrs_def<FusedAttrs>(),
                              .infer = infer,
                              .sbp = sbp,
                              .grad = not_differentiable};

void register_fused(OpTable& table);

void register_fused(OpTable& table) {
  table.add(kFusedElementwise);
}

}  // namespace flow::ops
