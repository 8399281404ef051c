// Ops of users whose rules do not fit: each call raises an error that names the op and the mistake.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "core/dispatch.h"
#include "core/kernel.h"
#include "core/op.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "tests/support/error_of.h"

namespace flow {
namespace {

void infer_same(InferContext& ctx) {
  ctx.add_output_like(0);
}

void infer_two(InferContext& ctx) {
  ctx.add_output_like(0);
  ctx.add_output_like(0);
}

void copy_floats(const KernelContext& ctx) {
  const auto* const x = ctx.in(0).as<float>();
  auto* const y = ctx.out(0).as<float>();
  for (int64_t i = 0; i < ctx.out(0).numel(); ++i)
    y[i] = x[i];
}

KernelChoice select_copy(const KernelQuery& /*query*/) {
  return {copy_floats};
}

// The op is known by its address, so it lives until the program ends.
const OpDef& registered(const OpDef& op) {
  auto& made = *new OpDef(op);
  register_op(made);
  register_kernel(made, DeviceType::kCpu, {"reference", select_copy});
  return made;
}

OpDef named(const char* name) {
  return {.name = name, .infer = infer_same, .sbp = only_broadcast, .grad = not_differentiable};
}

TEST(WrongRules, TheNumberOfOutputsIsChecked) {
  OpDef op = named("wrong_outputs_for_test");
  op.infer = infer_two;
  const OpDef& made = registered(op);
  const Tensor x = ones({2});

  EXPECT_EQ(
      message_of([&] { dispatch(made, {&x}, Site::here()); }),
      "[wrong_outputs_for_test] the op's infer rule adds 2 outputs, and its num_outputs is 1; "
      "received (2,) float32");
}

void too_few(SbpContext& ctx) {
  ctx.add({}, {sbp::split(0)});
}

void dim_of_no_input(SbpContext& ctx) {
  ctx.add({sbp::split(7)}, {sbp::split(0)});
}

void dim_of_no_output(SbpContext& ctx) {
  ctx.add({sbp::split(0)}, {sbp::split(1)});
}

TEST(WrongRules, SignaturesAreChecked) {
  struct Case {
    const char* name;
    SbpFn rule;
    const char* signature;
  };

  for (const auto& [name, rule, signature] :
       {Case{"too_few_for_test", too_few, " -> S(0)"},
        Case{"no_input_dim_for_test", dim_of_no_input, "S(7) -> S(0)"},
        Case{"no_output_dim_for_test", dim_of_no_output, "S(0) -> S(1)"}}) {
    OpDef op = named(name);
    op.sbp = rule;
    const OpDef& made = registered(op);
    run_ranks(4, [&, text = std::string(signature)] {
      const Tensor x = ones({4}, {.placement = Placement("cpu", {{0, 1}, {2, 3}}),
                                  .sbp = {sbp::split(0), sbp::broadcast}});
      const std::string error = message_of([&] { dispatch(made, {&x}, Site::here()); });
      EXPECT_NE(error.find(std::string(made.name) + "] the op's sbp rule adds the signature " +
                           text + ", which does not fit 1 inputs and 1 outputs"),
                std::string::npos)
          << error;
    });
  }
}

TEST(WrongRules, WhatAGradientRuleReadsIsChecked) {
  struct Case {
    const char* name;
    GradFn rule;
    const char* mistake;
  };

  for (const auto& [name, rule, mistake] : {
           Case{"reads_input_for_test", [](GradContext& ctx) { ctx.set(0, ctx.input(0)); },
                "reads input 0, which the op does not save; set bit 0 of saved_inputs"},
           Case{"reads_output_for_test", [](GradContext& ctx) { ctx.set(0, ctx.output(0)); },
                "reads output 0, which the op does not save; set bit 0 of saved_outputs"},
           Case{"reads_gradient_for_test", [](GradContext& ctx) { ctx.set(0, ctx.dy(1)); },
                "asks for output 1, and the call has 1 outputs"},
           Case{"sets_gradient_for_test", [](GradContext& ctx) { ctx.set(1, ctx.dy()); },
                "asks for input 1, and the call has 1 inputs"},
           Case{"draws_for_test", [](GradContext& ctx) { ctx.random(); },
                "asks for random numbers, and the op draws none; set is_random"},
       }) {
    OpDef op = named(name);
    op.grad = rule;
    const OpDef& made = registered(op);
    const Tensor x = ones({1}, {.requires_grad = true});
    const std::string error = message_of([&] { dispatch(made, {&x}, Site::here()).backward(); });
    EXPECT_EQ(error.find(std::string("[") + name + "] the op's gradient rule " + mistake), 0U)
        << error;
  }
}

}  // namespace
}  // namespace flow
