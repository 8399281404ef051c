// The contract of layouts: every SBP signature of every op is true, none is missing, and global
// tensors give what one rank gives.
#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "core/dispatch.h"
#include "core/kernel.h"
#include "core/op.h"
#include "eager/runtime.h"
#include "tests/support/contract_fixture.h"
#include "tests/support/global_call.h"
#include "tests/support/kernel_reach.h"
#include "tests/support/sbp_search.h"
#include "tests/support/sharded_call.h"
#include "tests/support/simulated_ranks.h"

namespace flow::contract {

namespace {

struct ContractSbpTrue : ContractTest {};

struct ContractSbpComplete : ContractTest {};

struct ContractGlobal : ContractTest {};

INSTANTIATE_TEST_SUITE_P(Op, ContractSbpTrue, ::testing::ValuesIn(op_names()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, ContractSbpComplete, ::testing::ValuesIn(op_names()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, ContractGlobal, ::testing::ValuesIn(op_names()), op_name);

// ---------------------------------------------------------------- signatures

// A signature that holds for floats may not hold for integers, which wrap around.
std::vector<DType> sbp_dtypes(const OpSample& sample) {
  std::vector<DType> dtypes = {widest_dtype(sample)};
  for (const DType dtype : {DType::kInt32, DType::kUInt8}) {
    if (dtype != dtypes[0] && (sample.dtypes & only(dtype)) != 0) dtypes.push_back(dtype);
  }
  return dtypes;
}

TEST_P(ContractSbpTrue, EverySignatureHolds) {
  if (op().has_data_dependent_shape) return;
  ReachedKernels reached(op());
  bool has_table = false;
  for (const OpSample* sample : small_samples()) {
    const std::vector<DType> searched = sbp_dtypes(*sample);
    has_table |= !decides_layout(capture_first(*sample, widest_dtype(*sample), 1));
    for (const DType dtype : searched) {
      const std::string report =
          find_false_signatures(*sample, dtype, {.reached = &reached.kernels()});
      EXPECT_TRUE(report.empty()) << describe(*sample) << " of " << dtype << ":\n" << report;
    }
    // The same rule, other kernels: a few draws show whether these keep it.
    for (const DType dtype : facet_dtypes(*sample)) {
      if (std::find(searched.begin(), searched.end(), dtype) != searched.end()) continue;
      const std::string report = find_false_signatures(
          *sample, dtype, {.most_ranks = 2, .num_draws = 5, .reached = &reached.kernels()});
      EXPECT_TRUE(report.empty()) << describe(*sample) << " of " << dtype << ":\n" << report;
    }
  }
  if (has_table) reached.expect_all("signatures");
}

// True if the call has operands or results of several floating dtypes, so that it rounds sums.
bool converts_floats(const RawCall& call) {
  std::set<DType> dtypes;
  for (const Tensor& input : call.inputs) {
    if (input.defined() && is_floating(input.dtype())) dtypes.insert(input.dtype());
  }
  for (const MetaPtr output : local_outputs(call)) {
    if (is_floating(output->dtype)) dtypes.insert(output->dtype);
  }
  return dtypes.size() > 1;
}

// What the search finds in the widest dtype is then true of all floats.
TEST_P(ContractSbpTrue, NoSignatureDependsOnTheFloat) {
  for (const OpSample* sample : small_samples()) {
    const RawCall wide = capture_first(*sample, widest_dtype(*sample), 1);
    if (!is_floating(widest_dtype(*sample)) || decides_layout(wide)) continue;
    for (const DType dtype : dtypes_of(*sample)) {
      if (!is_floating(dtype)) continue;
      const RawCall call = capture_first(*sample, dtype, 1);
      if (converts_floats(call) || converts_floats(wide)) continue;
      for (const int64_t num_ranks : {2, 3}) {
        EXPECT_EQ(signatures_of(call, num_ranks), signatures_of(wide, num_ranks))
            << describe(*sample) << " of " << dtype << " on " << num_ranks << " ranks";
      }
    }
  }
}

bool has_odd(const std::vector<const OpSample*>& samples) {
  return std::any_of(samples.begin(), samples.end(), [](const OpSample* sample) {
    return !sample->only_kernels && has_odd_signature(*sample, widest_dtype(*sample));
  });
}

// Signatures that are true but deliberately absent from the table.
struct LeftOut {
  std::string_view op;
  std::string_view signature;
  std::string_view reason;
};

constexpr std::array kLeftOut = {
    LeftOut{"checked_weights", "S(1) -> S(1)", "a part of a valid row may consist of zeros"},
};

TEST(ContractSbpExceptions, AreTrueAndHaveReasons) {
  for (const LeftOut& entry : kLeftOut) {
    EXPECT_FALSE(entry.reason.empty()) << entry.op;
    bool is_missing = false;
    for (const OpSample* sample : samples_of(std::string(entry.op))) {
      if (sample->only_kernels || !sample->is_general) continue;
      const SearchResult result = search_signatures(*sample, widest_dtype(*sample), false);
      is_missing |= std::any_of(
          result.missing.begin(), result.missing.end(),
          [&](const NamedSignature& missing) { return missing.signature == entry.signature; });
    }
    EXPECT_TRUE(is_missing) << entry.op << " has " << entry.signature << ", or it does not hold";
  }
  EXPECT_GE(kLeftOut.size(), 1U);
  EXPECT_LE(kLeftOut.size(), 15U);
}

// Samples whose values fulfil more signatures than those of other values. The search must find one
// that is missing; else the sample is general.
TEST(ContractSbpExceptions, SamplesThatAreNotGeneralFulfilMore) {
  int num_samples = 0;
  for (const OpSample& sample : all_samples()) {
    if (sample.is_general || sample.only_kernels) continue;
    ++num_samples;
    const SearchResult result =
        search_signatures(sample, widest_dtype(sample), has_odd(samples_of(sample.op)));
    EXPECT_FALSE(result.missing.empty()) << describe(sample) << " is general";
  }
  EXPECT_GE(num_samples, 1);
}

bool is_left_out(const OpSample& sample, const std::string& signature) {
  return std::any_of(kLeftOut.begin(), kLeftOut.end(), [&](const LeftOut& entry) {
    return entry.op == sample.op && entry.signature == signature;
  });
}

// Searches with floats if the op accepts them.
TEST_P(ContractSbpComplete, NoSignatureIsMissing) {
  if (op().has_data_dependent_shape) return;
  const auto samples = small_samples();
  const bool tries_odd = has_odd(samples);
  for (const OpSample* sample : samples) {
    if (!sample->is_general) continue;
    const SearchResult result = search_signatures(*sample, widest_dtype(*sample), tries_odd);
    for (const auto& [signature, num_ranks] : result.missing) {
      if (is_left_out(*sample, signature)) continue;
      ADD_FAILURE() << describe(*sample) << " lacks on " << num_ranks << " ranks: " << signature;
    }
    for (const auto& [signature, num_ranks] : result.overlooked) {
      ADD_FAILURE() << describe(*sample) << " on " << num_ranks
                    << " ranks: not found again: " << signature;
    }
  }
}

// ---------------------------------------------------------------- the search itself

void halve(const KernelContext& ctx) {
  const double* x = ctx.in(0).as<double>();
  double* y = ctx.out(0).as<double>();
  for (int64_t i = 0; i < ctx.in(0).numel(); ++i)
    y[i] = x[i] / 2;
}

void turns_order(SbpContext& ctx) {
  ctx.add({sbp::partial_max}, {sbp::partial_min});
}

OpDef halving_op(const char* name, SbpFn sbp) {
  return {.name = name,
          .infer = [](InferContext& ctx) { ctx.add_output_like(0); },
          .sbp = sbp,
          .grad = not_differentiable};
}

OpSample sample_of(const OpDef& op) {
  if (op_table().find(op.name) == nullptr) {
    register_op(op);
    register_kernel(op, DeviceType::kCpu, {"reference", always<halve>});
  }
  return {op.name, {in({5, 2})}, only(DType::kFloat64), [&op](const Inputs& x) {
            dispatch(op, {&x[0]}, Site::here());
          }};
}

TEST(ContractSearch, NamesWhatATableLacks) {
  static const OpDef op = halving_op("test_halve_unsplit", only_broadcast);

  const SearchResult result = search_signatures(sample_of(op), DType::kFloat64, false);

  std::vector<std::string> on_two;
  for (const auto& [signature, num_ranks] : result.missing) {
    if (num_ranks == 2) on_two.push_back(signature);
  }
  EXPECT_EQ(on_two, (std::vector<std::string>{"P -> P", "P(max) -> P(max)", "P(min) -> P(min)",
                                              "S(0) -> S(0)", "S(1) -> S(1)"}));
  EXPECT_EQ(result.missing.size(), 2 * on_two.size());
}

TEST(ContractSearch, RefutesAFalseSignature) {
  static const OpDef op = halving_op("test_halve_turned", turns_order);

  const std::string report = find_false_signatures(sample_of(op), DType::kFloat64);

  EXPECT_NE(report.find("P(max) -> P(min) on 2 ranks"), std::string::npos) << report;
  EXPECT_NE(report.find("P(max) -> P(min) on 3 ranks"), std::string::npos) << report;
}

// ---------------------------------------------------------------- global tensors

// The layouts of one placement axis.
std::string run_on_line(const Draw& draw, int64_t num_ranks, size_t num_layouts,
                        uint32_t constant_inputs) {
  return run_on_ranks(draw, ranks(num_ranks), choose_layouts(draw, 1, num_layouts, constant_inputs),
                      constant_inputs);
}

void expect_equal_on_ranks(const OpSample& sample, size_t num_layouts, uint32_t constant_inputs) {
  for (const DType dtype : widest_and_float32(sample)) {
    const Draw draw = make_draw(sample, dtype, 1);
    if (!has_layouts(sample, draw)) return;
    for (const int64_t num_ranks : {2, 3}) {
      const std::string report = run_on_line(draw, num_ranks, num_layouts, constant_inputs);
      EXPECT_TRUE(report.empty()) << describe(sample) << " of " << dtype << " on " << num_ranks
                                  << " ranks:\n"
                                  << report;
    }
  }
}

// Global tensors of any layout give the logical result, whichever signature is chosen.
TEST_P(ContractGlobal, EqualsOneRank) {
  for (const OpSample* sample : small_samples())
    expect_equal_on_ranks(*sample, 10, kAllConstant);
}

TEST_P(ContractGlobal, HasTheGradientsOfOneRank) {
  if (op().grad == not_differentiable || op().grad == not_twice_differentiable) return;
  for (const OpSample* sample : small_samples())
    expect_equal_on_ranks(*sample, 5, sample->constant_inputs);
}

TEST_P(ContractGlobal, IsTracedAlike) {
  if (op().is_random || op().has_data_dependent_shape) return;
  for (const OpSample* sample : small_samples()) {
    for (const DType dtype : widest_and_float32(*sample)) {
      const Draw draw = make_draw(*sample, dtype, 1);
      if (!has_layouts(*sample, draw)) continue;
      for (const int64_t num_ranks : {2, 3}) {
        const std::string report =
            trace_on_ranks(draw, ranks(num_ranks), choose_layouts(draw, 1, 3, kAllConstant));
        EXPECT_TRUE(report.empty())
            << describe(*sample) << " of " << dtype << " on " << num_ranks << " ranks:\n"
            << report;
      }
    }
  }
}

}  // namespace

}  // namespace flow::contract
