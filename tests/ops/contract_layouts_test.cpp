// The contract of layouts: every SBP signature of every op is true, none is missing, and global
// tensors give what one rank gives.
#include <algorithm>
#include <array>
#include <string_view>

#include "core/op.h"
#include "tests/support/contract_fixture.h"
#include "tests/support/global_call.h"
#include "tests/support/sbp_search.h"

namespace flow::contract {

namespace {

struct ContractSbpTrue : ContractTest {};

struct ContractSbpComplete : ContractTest {};

struct ContractGlobal : ContractTest {};

INSTANTIATE_TEST_SUITE_P(Op, ContractSbpTrue, ::testing::ValuesIn(op_names()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, ContractSbpComplete, ::testing::ValuesIn(op_names()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, ContractGlobal, ::testing::ValuesIn(op_names()), op_name);

// ---------------------------------------------------------------- signatures

// What is true of floats may not be of integers, as they wrap around.
std::vector<DType> sbp_dtypes(const OpSample& sample) {
  std::vector<DType> dtypes = {widest_dtype(sample)};
  for (const DType dtype : {DType::kInt32, DType::kUInt8}) {
    if (dtype != dtypes[0] && (sample.dtypes & only(dtype)) != 0) dtypes.push_back(dtype);
  }
  return dtypes;
}

TEST_P(ContractSbpTrue, EverySignatureHolds) {
  if (op().has_data_dependent_shape) return;
  for (const OpSample* sample : small_samples()) {
    for (const DType dtype : sbp_dtypes(*sample)) {
      const std::string report = find_false_signatures(*sample, dtype);
      EXPECT_TRUE(report.empty()) << describe(*sample) << " of " << dtype << ":\n" << report;
    }
  }
}

// Signatures that hold but that the table leaves out on purpose.
struct LeftOut {
  std::string_view op;
  std::string_view signature;
  std::string_view reason;
};

constexpr std::array<LeftOut, 0> kLeftOut = {};

TEST(ContractSbpExceptions, AreFew) {
  EXPECT_LE(kLeftOut.size(), 15U);
}

bool is_left_out(const OpSample& sample, const std::string& signature) {
  return std::any_of(kLeftOut.begin(), kLeftOut.end(), [&](const LeftOut& entry) {
    return entry.op == sample.op && entry.signature == signature;
  });
}

// Asked of floats where the op takes them.
TEST_P(ContractSbpComplete, NoSignatureIsMissing) {
  if (op().has_data_dependent_shape) return;
  const auto samples = small_samples();
  const bool has_odd = std::any_of(samples.begin(), samples.end(), [](const OpSample* sample) {
    return has_odd_signature(*sample, widest_dtype(*sample));
  });
  for (const OpSample* sample : samples) {
    if (!sample->is_general) continue;
    const SearchResult result = search_signatures(*sample, widest_dtype(*sample), has_odd);
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

// ---------------------------------------------------------------- global tensors

void expect_equal_on_ranks(const OpSample& sample, size_t num_layouts, uint32_t constant_inputs) {
  const Draw draw = make_draw(sample, widest_dtype(sample), 1);
  if (is_any_global(draw.call) || draw.call.inputs.empty() || !sample.has_values) return;
  const auto layouts = choose_layouts(draw, num_layouts, constant_inputs);
  for (const int64_t num_ranks : {2, 3}) {
    const std::string report = run_on_ranks(draw, num_ranks, layouts, constant_inputs);
    EXPECT_TRUE(report.empty()) << describe(sample) << " on " << num_ranks << " ranks:\n" << report;
  }
}

// Global tensors of any layouts give the logical result, by whatever signature is chosen.
TEST_P(ContractGlobal, EqualsOneRank) {
  for (const OpSample* sample : small_samples())
    expect_equal_on_ranks(*sample, 20, kAllConstant);
}

TEST_P(ContractGlobal, HasTheGradientsOfOneRank) {
  if (op().grad == not_differentiable) return;
  for (const OpSample* sample : small_samples())
    expect_equal_on_ranks(*sample, 8, sample->constant_inputs);
}

TEST_P(ContractGlobal, IsTracedAlike) {
  if (op().is_random || op().has_data_dependent_shape) return;
  for (const OpSample* sample : small_samples()) {
    const Draw draw = make_draw(*sample, widest_dtype(*sample), 1);
    if (is_any_global(draw.call) || draw.call.inputs.empty() || !sample->has_values) continue;
    for (const int64_t num_ranks : {2, 3}) {
      const std::string report =
          trace_on_ranks(draw, num_ranks, choose_layouts(draw, 4, kAllConstant));
      EXPECT_TRUE(report.empty()) << describe(*sample) << " on " << num_ranks << " ranks:\n"
                                  << report;
    }
  }
}

}  // namespace

}  // namespace flow::contract
