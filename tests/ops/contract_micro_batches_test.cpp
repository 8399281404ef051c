// The contract of micro-batches: signatures say whether their kernels read positions, every op
// gives the numbers of the whole batch or refuses, and ops that take statistics of their batch say
// so.
#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "core/dispatch.h"
#include "core/kernel.h"
#include "core/op.h"
#include "eager/runtime.h"
#include "tests/support/closeness.h"
#include "tests/support/contract_fixture.h"
#include "tests/support/micro_batched_call.h"
#include "tests/support/part_positions.h"
#include "tests/support/sbp_search.h"
#include "tests/support/sharded_call.h"

namespace flow::contract {

namespace {

struct ContractParts : ContractTest {};

struct ContractMicroBatches : ContractTest {};

struct ContractFacetsOfBatches : ContractTest {};

INSTANTIATE_TEST_SUITE_P(Op, ContractParts, ::testing::ValuesIn(op_names()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, ContractMicroBatches, ::testing::ValuesIn(op_names()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, ContractFacetsOfBatches, ::testing::ValuesIn(op_names()), op_name);

// ---------------------------------------------------------------- signatures

TEST_P(ContractParts, GiveTheWholeWithoutTheirPositions) {
  for (const OpSample* sample : small_samples()) {
    for (const DType dtype : widest_and_float32(*sample)) {
      const uint64_t num_draws = dtype == widest_dtype(*sample) ? 5 : 2;
      const std::string report = find_false_parts(*sample, dtype, num_draws);
      EXPECT_TRUE(report.empty()) << describe(*sample) << " of " << dtype << ":\n" << report;
    }
  }
}

TEST_P(ContractParts, HavePositionsWhereTheTableSaysSo) {
  const std::string report = find_false_positions(small_samples());
  EXPECT_TRUE(report.empty()) << report;
}

// y = x + the row's position.
void add_position(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  for (int64_t i = 0; i < x.numel(); ++i)
    ctx.out(0).as<double>()[i] =
        x.as<double>()[i] + static_cast<double>(x.meta->local_begin[0] + i);
}

void negate(const KernelContext& ctx) {
  for (int64_t i = 0; i < ctx.in(0).numel(); ++i)
    ctx.out(0).as<double>()[i] = -ctx.in(0).as<double>()[i];
}

void splits_without_position(SbpContext& ctx) {
  ctx.add({sbp::split(0)}, {sbp::split(0)});
}

void splits_with_position(SbpContext& ctx) {
  ctx.add_positional({sbp::split(0)}, {sbp::split(0)});
}

template <KernelFn kFn>
OpSample sample_of(const OpDef& op) {
  if (op_table().find(op.name) == nullptr) {
    register_op(op);
    register_kernel(op, DeviceType::kCpu, {"reference", always<kFn>});
  }
  return {op.name, {in({5})}, only(DType::kFloat64), [&op](const Inputs& x) {
            dispatch(op, {&x[0]}, Site::here());
          }};
}

OpDef op_of(const char* name, SbpFn sbp) {
  return {.name = name,
          .infer = [](InferContext& ctx) { ctx.add_output_like(0); },
          .sbp = sbp,
          .grad = not_differentiable};
}

TEST(ContractPartSearch, FindsAKernelThatReadsPositions) {
  static const OpDef op = op_of("test_position_unsaid", splits_without_position);
  const OpSample sample = sample_of<add_position>(op);

  EXPECT_NE(find_false_parts(sample, DType::kFloat64).find("S(0) -> S(0), 5 samples in 2 parts"),
            std::string::npos);
  EXPECT_NE(find_false_positions({&sample}).find("is not positional, but"), std::string::npos);
}

TEST(ContractPartSearch, FindsAKernelThatReadsNoPosition) {
  static const OpDef op = op_of("test_position_unread", splits_with_position);
  const OpSample sample = sample_of<negate>(op);

  EXPECT_NE(find_false_positions({&sample}).find("is positional, but no kernel"),
            std::string::npos);
}

TEST(ContractPartSearch, AcceptsTrueTables) {
  static const OpDef with = op_of("test_position_read", splits_with_position);
  static const OpDef without = op_of("test_position_unneeded", splits_without_position);
  for (const OpSample& sample : {sample_of<add_position>(with), sample_of<negate>(without)}) {
    EXPECT_EQ(find_false_parts(sample, DType::kFloat64), "");
    EXPECT_EQ(find_false_positions({&sample}), "");
  }
}

// ---------------------------------------------------------------- steps

// Ops that micro-batches refuse in all samples.
struct Refused {
  std::string_view op;
  std::string_view reason;
};

constexpr std::array kRefused = {
    Refused{"flip", "its sample reverses the rows"},
    Refused{"median", "an order statistic of the rows is no sum over micro-batches"},
    Refused{"nanmedian", "an order statistic of the rows is no sum over micro-batches"},
    Refused{"mode", "the most frequent of the rows is no sum over micro-batches"},
    Refused{"median_of_all", "an order statistic of the rows is no sum over micro-batches"},
    Refused{"nanmedian_of_all", "an order statistic of the rows is no sum over micro-batches"},
    Refused{"distributed_partial_fc_sample", "draws classes of the whole weight"},
    Refused{"cumsum", "a row needs all earlier rows"},
    Refused{"cummin", "a row needs all earlier rows"},
    Refused{"logcumsumexp", "a row needs all earlier rows"},
    Refused{"logsumexp", "the logarithm of a sum over micro-batches is no sum"},
};

bool takes_statistics(const OpDef& op) {
  const MicroBatchRules& rules = op.micro_batch;
  return rules.makes_sums || rules.takes_sums || rules.writes_in_turn ||
         rules.own_batch_sbp != nullptr;
}

// The choices of inputs that are batches: each one alone, and all that have as many rows as the
// first.
std::vector<uint32_t> batches_of(const RawCall& call) {
  std::vector<uint32_t> batches;
  uint32_t all = 0;
  int64_t rows = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& input = call.inputs[i];
    if (!input.defined() || input.dim() == 0 || input.size(0) < 2) continue;
    if (rows == 0) rows = input.size(0);
    batches.push_back(1U << i);
    if (input.size(0) == rows) all |= 1U << i;
  }
  if ((all & (all - 1)) != 0) batches.push_back(all);
  return batches;
}

int64_t num_rows(const RawCall& call, uint32_t batches) {
  size_t first = 0;
  while ((batches >> first & 1U) == 0)
    ++first;
  return call.inputs[first].size(0);
}

struct Tally {
  int64_t equal = 0;
  int64_t refused = 0;
};

void expect_whole_or_refusal(const OpSample& sample, const RawCall& call, uint32_t batches,
                             int64_t parts, Tally& tally) {
  std::vector<Tensor> actual;
  try {
    actual = run_in_micro_batches(call, batches, parts);
  } catch (const Unsupported& error) {
    const std::string message = error.message();
    EXPECT_TRUE(message.starts_with("[micro-batch] ")) << describe(sample) << ": " << message;
    ++tally.refused;
    return;
  }
  const std::vector<Tensor> expected = run_in_micro_batches(call, batches, 1);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(difference(read_values(actual[i]), read_values(expected[i]), tolerance_of(call)), "")
        << describe(sample) << ", output " << i << " in " << parts << " micro-batches, batches "
        << batches;
  }
  ++tally.equal;
}

// Statistics of a batch are those of each micro-batch, which graph_batch_norm_test.cpp compares.
TEST_P(ContractMicroBatches, GiveTheWholeBatchOrAreRefused) {
  if (op().has_data_dependent_shape || takes_statistics(op())) return;
  Tally tally;
  for (const OpSample* sample : small_samples()) {
    for (const DType dtype : widest_and_float32(*sample)) {
      const RawCall call = make_draw(*sample, dtype, 1).call;
      if (decides_layout(call) || call.mutates != 0 || !sample->has_values) continue;
      for (const uint32_t batches : batches_of(call)) {
        for (const int64_t parts : {2, 3}) {
          if (num_rows(call, batches) < parts) continue;
          expect_whole_or_refusal(*sample, call, batches, parts, tally);
        }
      }
    }
  }
  const bool is_listed = std::any_of(kRefused.begin(), kRefused.end(),
                                     [&](const Refused& entry) { return entry.op == GetParam(); });
  if (tally.equal == 0 && tally.refused > 0) {
    EXPECT_TRUE(is_listed) << "all samples are refused; list the op in kRefused, with the reason";
  } else {
    EXPECT_FALSE(is_listed) << "is not refused in all samples";
  }
}

// ---------------------------------------------------------------- statistics of a batch

// Ops that no sample can take in parts of the rows of input 0, and that have no rules for it.
constexpr std::array kMixSamples = {
    Refused{"flip", "its sample reverses the rows"},
    Refused{"mode", "its sample compares all rows"},
    Refused{"median_of_all", "compares all elements"},
    Refused{"nanmedian_of_all", "compares all elements"},
    Refused{"distributed_partial_fc_sample", "draws classes of the whole weight"},
    Refused{"cummin", "its samples go through the rows"},
    Refused{"logcumsumexp", "its samples go through the rows"},
    Refused{"ctc_loss", "the rows of input 0 are time steps; samples are its columns"},
};

// The tests of single ops check the entries whose op they run.
template <size_t kSize>
void expect_ops_with_reasons(const std::array<Refused, kSize>& list) {
  std::set<std::string_view> names;
  for (const Refused& entry : list) {
    const OpDef* op = op_table().find(entry.op);
    ASSERT_NE(op, nullptr) << entry.op;
    EXPECT_FALSE(op->has_data_dependent_shape) << entry.op;
    EXPECT_FALSE(takes_statistics(*op)) << entry.op;
    EXPECT_FALSE(entry.reason.empty()) << entry.op;
    EXPECT_TRUE(names.insert(entry.op).second) << entry.op << " is listed twice";
  }
}

TEST(ContractBatchLists, NameOpsWithReasons) {
  expect_ops_with_reasons(kRefused);
  expect_ops_with_reasons(kMixSamples);
}

// True if input 0 may be split by rows in some sample.
bool takes_rows(const OpDef& op) {
  bool has_rows = false;
  for (const OpSample* sample : samples_of(op.name)) {
    const RawCall call = capture_first(*sample, widest_dtype(*sample), 1);
    if (decides_layout(call) || call.inputs.empty() || !call.inputs[0].defined()) return true;
    const Tensor& x = call.inputs[0];
    if (x.dim() == 0 || x.size(0) < 2) continue;
    has_rows = true;
    const auto signatures = signatures_of(call, x.size(0));
    if (std::any_of(signatures.begin(), signatures.end(), [](const SbpSignature& signature) {
          return signature.inputs[0] == sbp::split(0);
        })) {
      return true;
    }
  }
  return !has_rows;
}

TEST_P(ContractFacetsOfBatches, AreSetWhereAnOpMixesSamples) {
  if (op().has_data_dependent_shape || GetParam().starts_with("test_")) return;
  const bool is_listed = std::any_of(kMixSamples.begin(), kMixSamples.end(),
                                     [&](const Refused& entry) { return entry.op == GetParam(); });
  if (takes_rows(op())) {
    EXPECT_FALSE(is_listed) << "takes rows in parts";
  } else {
    EXPECT_NE(takes_statistics(op()), is_listed)
        << "mixes samples: give it OpDef::micro_batch, or list it in kMixSamples with the reason";
  }
}

TEST_P(ContractFacetsOfBatches, FitTheOp) {
  const MicroBatchRules& rules = op().micro_batch;
  EXPECT_EQ(rules.statistics.function == nullptr, rules.statistics.elements == nullptr);
  EXPECT_LE((rules.makes_sums ? 1 : 0) + (rules.takes_sums ? 1 : 0) +
                (rules.writes_in_turn ? 1 : 0) + (rules.own_batch_sbp != nullptr ? 1 : 0),
            1);
  EXPECT_TRUE(rules.statistics.function == nullptr || rules.takes_sums ||
              rules.own_batch_sbp != nullptr)
      << "takes no statistics";
  EXPECT_TRUE(!rules.writes_in_turn || op().mutates != 0) << "writes nothing";
  EXPECT_TRUE(!rules.takes_sums || op().num_outputs == 1);
  for (const OpSample* sample : samples_of(GetParam())) {
    if (!takes_statistics(op())) continue;
    RawCall call = capture_first(*sample, widest_dtype(*sample), 1);
    const std::vector<MetaPtr> metas = metas_of(call.inputs);
    const OpContext ctx(op(), metas, call.attrs_data());
    if (rules.statistics.elements != nullptr) {
      EXPECT_GT(rules.statistics.elements(ctx), 0) << describe(*sample);
    }
    if (rules.own_batch_sbp != nullptr) {
      const auto outputs = infer_outputs(call, metas);
      SbpContext own(op(), metas, call.attrs_data(), outputs, 2);
      rules.own_batch_sbp(own);
      ASSERT_FALSE(own.signatures().empty()) << describe(*sample);
      for (const SbpSignature& signature : own.signatures()) {
        EXPECT_EQ(signature.inputs.size(), metas.size()) << describe(*sample);
        EXPECT_EQ(signature.outputs.size(), outputs.size()) << describe(*sample);
      }
    }
    // The number of elements of a batch must follow the micro-batch.
    const bool has_count =
        op().attrs != nullptr &&
        op().attrs->to_string(call.attrs_data()).find("count") != std::string::npos;
    EXPECT_EQ(rules.scale_count != nullptr, has_count) << describe(*sample);
    if (rules.scale_count == nullptr) continue;
    const std::string before = op().attrs->to_string(call.attrs_data());
    rules.scale_count(call.attrs.data(), 3, 1);
    EXPECT_NE(op().attrs->to_string(call.attrs_data()), before) << describe(*sample);
    rules.scale_count(call.attrs.data(), 1, 3);
    EXPECT_EQ(op().attrs->to_string(call.attrs_data()), before) << describe(*sample);
  }
}

}  // namespace

}  // namespace flow::contract
