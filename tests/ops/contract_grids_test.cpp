// The contract of layouts on grids of ranks: global tensors with random nd-SBPs give what one rank
// gives, forward, backward and traced. Each day has other cases.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/dispatch.h"
#include "core/kernel.h"
#include "core/op.h"
#include "core/placement.h"
#include "eager/runtime.h"
#include "tests/support/contract_fixture.h"
#include "tests/support/global_call.h"
#include "tests/support/random_cases.h"
#include "tests/support/sbp_search.h"
#include "tests/support/sharded_call.h"

namespace flow::contract {

namespace {

struct ContractGrids : ContractTest {
  static void SetUpTestSuite() { print_cases(); }
};

INSTANTIATE_TEST_SUITE_P(Op, ContractGrids, ::testing::ValuesIn(op_names()), op_name);

const std::array kGrids = {Placement("cpu", {{0, 1}, {2, 3}}),
                           Placement("cpu", {{0, 1, 2}, {3, 4, 5}})};

// Calls check(draw, grid) for each sample, grid and case; it returns what is wrong. The dtypes take
// turns.
template <class Check>
void for_each_case(const std::vector<const OpSample*>& samples, const Check& check) {
  const uint64_t first = first_case();
  for (uint64_t number = first; number < first + static_cast<uint64_t>(num_cases(1)); ++number) {
    uint64_t turn = number;
    for (const OpSample* sample : samples) {
      const std::vector<DType> dtypes = widest_and_float32(*sample);
      for (const Placement& grid : kGrids) {
        const DType dtype = dtypes[turn++ % dtypes.size()];
        const Draw draw = make_draw(*sample, dtype, number);
        if (!has_layouts(*sample, draw)) continue;
        const std::string report = check(*sample, draw, grid);
        EXPECT_TRUE(report.empty()) << "case " << number << ": " << describe(*sample) << " of "
                                    << dtype << " on " << grid << ":\n"
                                    << report;
      }
    }
  }
}

std::string run_on_grid(const Draw& draw, const Placement& grid, size_t num_layouts,
                        uint32_t constant_inputs) {
  return run_on_ranks(draw, grid,
                      choose_layouts(draw, grid.num_axes(), num_layouts, constant_inputs),
                      constant_inputs);
}

// Signatures that the choice on a grid rarely takes hold too.
TEST_P(ContractGrids, HaveTrueSignatures) {
  for_each_case(small_samples(),
                [](const OpSample& sample, const Draw& draw, const Placement& grid) {
                  return find_false_nd_signatures(sample, draw.dtype, grid, draw.seed, 30);
                });
}

// All signatures of the ops whose kernels read positions or logical sizes.
TEST(ContractGridSignatures, HoldForOpsThatReadPositions) {
  const std::set<std::string_view> names = {"conv",
                                            "conv_backward_input",
                                            "conv_backward_weight",
                                            "diagonal",
                                            "gather",
                                            "diagonal_scatter",
                                            "nll_loss",
                                            "nll_loss_backward",
                                            "scatter",
                                            "scatter_add",
                                            "slice",
                                            "slice_scatter",
                                            "sum_to",
                                            "undiagonal",
                                            "unslice",
                                            "ungather"};
  size_t num_samples = 0;
  for (const OpSample& sample : all_samples()) {
    if (sample.only_kernels || !names.contains(sample.op)) continue;
    ++num_samples;
    const std::string report =
        find_false_nd_signatures(sample, widest_dtype(sample), kGrids[0], 1, 150);
    EXPECT_TRUE(report.empty()) << describe(sample) << ":\n" << report;
  }
  EXPECT_GE(num_samples, names.size());
}

void copy_doubles(const KernelContext& ctx) {
  std::copy_n(ctx.in(0).as<double>(), ctx.in(0).numel(), ctx.out(0).as<double>());
}

TEST(ContractGridSignatures, AreRefutedIfTheyAreFalse) {
  static const OpDef op{
      .name = "test_grid_turned",
      .infer = [](InferContext& ctx) { ctx.add_output_like(0); },
      .sbp = [](SbpContext& ctx) { ctx.add({sbp::partial_max}, {sbp::partial_min}); },
      .grad = not_differentiable};
  if (op_table().find(op.name) == nullptr) {
    register_op(op);
    register_kernel(op, DeviceType::kCpu, {"reference", always<copy_doubles>});
  }
  const OpSample sample{op.name, {in({5})}, only(DType::kFloat64), [](const Inputs& x) {
                          dispatch(op, {&x[0]}, Site::here());
                        }};

  const std::string report = find_false_nd_signatures(sample, DType::kFloat64, kGrids[1], 1, 100);

  EXPECT_NE(report.find("(P(max), B) -> (P(min), B)"), std::string::npos) << report;
  EXPECT_NE(report.find("(B, P(max)) -> (B, P(min))"), std::string::npos) << report;
  EXPECT_EQ(report.find("(B, B) -> (B, B)"), std::string::npos) << report;
}

TEST_P(ContractGrids, EqualOneRank) {
  for_each_case(small_samples(),
                [](const OpSample& /*sample*/, const Draw& draw, const Placement& grid) {
                  return run_on_grid(draw, grid, 2, kAllConstant);
                });
}

TEST_P(ContractGrids, HaveTheGradientsOfOneRank) {
  if (op().grad == not_differentiable || op().grad == not_twice_differentiable) return;
  for_each_case(small_samples(),
                [](const OpSample& sample, const Draw& draw, const Placement& grid) {
                  return run_on_grid(draw, grid, 2, sample.constant_inputs);
                });
}

TEST_P(ContractGrids, AreTracedAlike) {
  if (op().is_random || op().has_data_dependent_shape) return;
  for_each_case(
      small_samples(), [](const OpSample& /*sample*/, const Draw& draw, const Placement& grid) {
        return trace_on_ranks(draw, grid, choose_layouts(draw, grid.num_axes(), 1, kAllConstant));
      });
}

}  // namespace

}  // namespace flow::contract
