// The contract that every row of the op table keeps, with one test for each check and op. The
// samples are in tests/support/op_samples; layouts are in contract_layouts_test.cpp.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/context.h"
#include "core/dispatch.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/vendor/onednn.h"
#include "tests/support/closeness.h"
#include "tests/support/contract_fixture.h"
#include "tests/support/differentiable_call.h"
#include "tests/support/kernel_reach.h"
#include "tests/support/op_samples.h"
#include "tests/support/raw_call.h"
#include "tests/support/traced_call.h"
#include "tests/support/unreached_kernels.h"

namespace flow::contract {

namespace {

struct ContractFacets : ContractTest {};

struct ContractResults : ContractTest {};

struct ContractKernels : ContractTest {};

struct ContractThreads : ContractTest {};

struct ContractGradients : ContractTest {};

struct ContractTraces : ContractTest {};

struct ContractStrides : ContractTest {};

struct ContractSizes : ContractTest {};

struct ContractInPlace : ContractTest {};

INSTANTIATE_TEST_SUITE_P(Op, ContractFacets, ::testing::ValuesIn(op_names()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, ContractResults, ::testing::ValuesIn(op_names()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, ContractKernels, ::testing::ValuesIn(op_names()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, ContractThreads, ::testing::ValuesIn(op_names()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, ContractGradients, ::testing::ValuesIn(op_names()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, ContractTraces, ::testing::ValuesIn(op_names()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, ContractStrides, ::testing::ValuesIn(op_names()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, ContractSizes, ::testing::ValuesIn(op_names()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, ContractInPlace, ::testing::ValuesIn(op_names()), op_name);

// ---------------------------------------------------------------- 1. facets

TEST(ContractSamples, EveryOpHasOne) {
  for (const std::string& name : op_names()) {
    if (name.starts_with("test_")) continue;  // ContractSearch ran before, in the same process
    EXPECT_FALSE(samples_of(name).empty()) << name << " needs a sample in tests/support/op_samples";
  }
}

TEST(ContractSamples, NameOpsOfTheTable) {
  for (const OpSample& sample : all_samples())
    EXPECT_NE(op_table().find(sample.op), nullptr) << describe(sample);
}

bool refuses_gradient(const OpDef& op) {
  return op.grad == not_differentiable || op.grad == not_twice_differentiable;
}

TEST_P(ContractFacets, ArePresentOrRefused) {
  EXPECT_NE(op().infer, nullptr);
  EXPECT_NE(op().sbp, nullptr) << "use only_broadcast to refuse splitting";
  EXPECT_NE(op().grad, nullptr) << "use not_differentiable to refuse a gradient";
  EXPECT_EQ(refuses_gradient(op()) && (op().saved_inputs | op().saved_outputs) != 0, false)
      << "saves tensors for a gradient it refuses";
  EXPECT_TRUE(op().num_inputs == kVariadic || op().saved_inputs >> op().num_inputs == 0);
  EXPECT_TRUE(op().num_outputs == kVariadic || op().saved_outputs >> op().num_outputs == 0);
}

// Views that refuse writes on purpose: an element is shown more than once, or the values are on
// other ranks.
const std::set<std::string_view> kRefusesWrites = {"expand", "redistribute", "local_to_global",
                                                   "candidates_to_global", "to_local"};

TEST_P(ContractFacets, OfViewsHaveAnInverse) {
  EXPECT_EQ(op().view != nullptr, op().write_back != nullptr);
  EXPECT_EQ(op().write_back == cannot_write_back, kRefusesWrites.contains(GetParam()));
  if (op().write_back == nullptr || op().write_back == cannot_write_back) return;
  for (const OpSample* sample : small_samples()) {
    for (const DType dtype : widest_and_float32(*sample)) {
      const RawCall call = capture_first(*sample, dtype, 1);
      const Tensor base = call.inputs[0].clone();
      const auto shown = [&] { return dispatch_unseeded(call, {base})[0].clone(); };

      op().write_back(base, shown(), call.attrs.data(), Site::here());
      EXPECT_EQ(difference(read_values(base), read_values(call.inputs[0]), kExact), "");

      const Tensor other = zeros_like(shown());
      op().write_back(base, other, call.attrs.data(), Site::here());
      EXPECT_EQ(difference(read_values(shown()), read_values(other), kExact), "");
    }
  }
}

TEST_P(ContractFacets, HaveAReferenceKernel) {
  if (op().view != nullptr && kernel_table().kernels(op(), DeviceType::kCpu).empty()) return;
  EXPECT_NO_THROW(reference_kernel(op()));
}

TEST_P(ContractFacets, AttrsSurviveTheirText) {
  if (op().attrs == nullptr) return;
  for (const OpSample* sample : samples_of(GetParam())) {
    const RawCall call = capture_first(*sample, widest_dtype(*sample), 1);
    const std::string text = op().attrs->to_string(call.attrs_data());
    alignas(std::max_align_t) std::array<std::byte, kMaxAttrsBytes> parsed{};
    op().attrs->parse(text, parsed.data());

    EXPECT_TRUE(op().attrs->equal(parsed.data(), call.attrs_data(), true)) << text;
    EXPECT_EQ(op().attrs->hash(parsed.data(), true), op().attrs->hash(call.attrs_data(), true));
  }
}

// ---------------------------------------------------------------- 2. results

TEST_P(ContractResults, HaveTheInferredMeta) {
  for (const OpSample* sample : samples_of(GetParam())) {
    for (const DType dtype : dtypes_of(*sample)) {
      const RawCall call = capture_first(*sample, dtype, 1);
      const auto specs = infer_outputs(call, metas_of(call.inputs));
      const auto outputs = dispatch_again(call, copies_of(call.inputs));

      ASSERT_EQ(outputs.size(), specs.size()) << describe(*sample);
      for (size_t i = 0; i < specs.size(); ++i) {
        EXPECT_EQ(outputs[i].shape(), specs[i].shape) << describe(*sample) << " of " << dtype;
        EXPECT_EQ(outputs[i].dtype(), specs[i].dtype) << describe(*sample) << " of " << dtype;
        EXPECT_TRUE(lies_in_storage(outputs[i])) << describe(*sample) << " of " << dtype;
      }
    }
  }
}

bool is_refused(const OpSample& sample, DType dtype) {
  try {
    sample.call(make_inputs(sample, dtype, 1));
  } catch (const InvalidArgument&) {
    return true;
  } catch (const Unsupported&) {
    return true;
  }
  return false;
}

// A dtype that no sample of the op supports is rejected by all of them.
TEST_P(ContractResults, AreRefusedForOtherDtypes) {
  DTypeSet taken = 0;
  for (const OpSample* sample : samples_of(GetParam()))
    taken |= sample->dtypes;
  for (const OpSample* sample : small_samples()) {
    if (sample->dtypes == kNoDType) continue;
    for (int i = 0; i < kNumDTypes; ++i) {
      const auto dtype = static_cast<DType>(i);
      if ((taken & only(dtype)) != 0) continue;
      EXPECT_TRUE(is_refused(*sample, dtype)) << describe(*sample) << " of " << dtype;
    }
  }
}

// Copies of the inputs, in blocked layouts if the kernel takes no others.
Inputs inputs_for(const KernelDef& kernel, const RawCall& call) {
  if (kernel.accepts_blocked && call.mutates == 0 && !takes(kernel, call)) {
    Inputs blocked = blocked_copies_of(call.inputs);
    if (!blocked.empty()) return blocked;
  }
  return copies_of(call.inputs);
}

// Two runs into memory that held different values give the same bits, and nothing outside the
// outputs changes.
TEST_P(ContractResults, AreWrittenInFull) {
  ReachedKernels reached(op());
  for (const OpSample* sample : samples_of(GetParam())) {
    for (const DType dtype : facet_dtypes(*sample)) {
      const RawCall call = capture_first(*sample, dtype, 1);
      if (decides_layout(call) || !sample->has_values || call.mutates != 0) return;
      for (const KernelDef& kernel : kernel_table().kernels(op(), DeviceType::kCpu)) {
        if (sample->only_kernels && reached.contains(kernel)) continue;
        const Inputs inputs = inputs_for(kernel, call);
        KernelRun run{.kernel = &kernel, .fill = kOutputFill, .uses_views = false};
        const auto first = run_kernel(call, inputs, local_outputs(call), run);
        if (!first) continue;
        reached.add(kernel);
        run.fill = kOtherOutputFill;
        const auto second = run_kernel(call, inputs, local_outputs(call), run);

        for (size_t i = 0; i < first->size(); ++i) {
          EXPECT_EQ(difference(read_values((*second)[i]), read_values((*first)[i]), kExact), "")
              << describe(*sample) << " of " << dtype << ", kernel " << kernel.name;
        }
      }
    }
  }
  reached.expect_all("written in full");
}

// ---------------------------------------------------------------- 3. kernels

std::string list_metas(const Inputs& inputs) {
  std::string text;
  for (const Tensor& input : inputs)
    text += input.defined() ? str(' ', input.meta()) : " undefined";
  return text;
}

// Returns true if the op computes the same elements again instead of moving them.
Tolerance tolerance_for(const RawCall& call, DType dtype) {
  return call.op->view != nullptr ? kExact : kernel_tolerance(dtype);
}

// `inputs`: copies of the inputs of the call, in any layout. `cancelled`: the error of addends that
// may cancel in the result.
void expect_kernel_equals_reference(const OpSample& sample, const RawCall& call,
                                    const Inputs& inputs, const KernelDef& kernel,
                                    std::set<const KernelDef*>& reached, double cancelled = 0) {
  const std::vector<MetaPtr> metas = local_outputs(call);
  const KernelRun reference{.kernel = &reference_kernel(*call.op), .uses_views = false};
  const auto actual = run_kernel(call, inputs, metas, {.kernel = &kernel, .uses_views = false});
  if (!actual) return;
  reached.insert(&kernel);
  const auto expected = run_kernel(call, copies_of(call.inputs), metas, reference);
  ASSERT_TRUE(expected) << "the reference kernel refuses " << describe(sample);
  for (size_t i = 0; i < expected->size(); ++i) {
    Tolerance tolerance = tolerance_for(call, (*expected)[i].dtype());
    tolerance.absolute = cancelled;
    if (!sample.has_values) continue;
    EXPECT_EQ(difference(read_values((*actual)[i]), read_values((*expected)[i]), tolerance), "")
        << describe(sample) << ", output " << i << ", kernel " << kernel.name << ", inputs "
        << list_metas(inputs);
  }
}

TEST(UnreachedKernels, AreNamedWithAReason) {
  const std::set<std::string_view> facets = {
      "written in full", "any number of threads", "traced", "in place", "signatures", "parts"};
  for (const UnreachedKernel& entry : kUnreachedKernels) {
    EXPECT_TRUE(facets.contains(entry.facet)) << entry.facet;
    EXPECT_TRUE(names_kernel(entry)) << entry.op << " has no kernel " << entry.kernel;
    EXPECT_FALSE(entry.reason.empty()) << entry.op;
  }
}

TEST_P(ContractKernels, EqualTheReference) {
  std::set<const KernelDef*> reached;
  // Without oneDNN nothing is blocked, so kernels for blocked layouts alone are never used.
  const bool has_blocked = ops::has_onednn();
  const auto kernels = kernel_table().kernels(op(), DeviceType::kCpu);
  for (const OpSample* sample : samples_of(GetParam())) {
    for (const DType dtype : dtypes_of(*sample)) {
      const RawCall call = capture_first(*sample, dtype, 1);
      if (decides_layout(call) || call.op->has_data_dependent_shape) return;
      for (const KernelDef& kernel : kernels) {
        SCOPED_TRACE(str(dtype));
        expect_kernel_equals_reference(*sample, call, copies_of(call.inputs), kernel, reached);
        if (!kernel.accepts_blocked || call.mutates != 0) continue;
        const Inputs blocked = blocked_copies_of(call.inputs);
        if (blocked.empty()) continue;
        expect_kernel_equals_reference(*sample, call, blocked, kernel, reached);
      }
    }
  }
  if (samples_of(GetParam()).empty()) return;
  for (const KernelDef& kernel : kernels) {
    EXPECT_TRUE(reached.contains(&kernel) || (kernel.accepts_blocked && !has_blocked))
        << "no sample reaches kernel " << kernel.name;
  }
}

// Those that only compare kernels first: they are large enough for several threads.
std::vector<const OpSample*> by_falling_size(std::vector<const OpSample*> samples) {
  std::stable_partition(samples.begin(), samples.end(),
                        [](const OpSample* sample) { return sample->only_kernels; });
  return samples;
}

TEST_P(ContractThreads, ChangeNoBit) {
  RankContext one_thread({}, 1);
  RankContext three_threads({}, 3);
  ReachedKernels reached(op());
  for (const OpSample* sample : by_falling_size(samples_of(GetParam()))) {
    for (const DType dtype : facet_dtypes(*sample)) {
      const RawCall call = capture_first(*sample, dtype, 1);
      if (decides_layout(call)) return;
      for (const KernelDef& kernel : kernel_table().kernels(op(), DeviceType::kCpu)) {
        const bool is_needed = sample->only_kernels && dtype == dtypes_of(*sample).back();
        if (!is_needed && reached.contains(kernel)) continue;
        KernelRun run{.kernel = &kernel, .uses_views = false, .rank = &one_thread};
        const auto expected = run_kernel(call, inputs_for(kernel, call), local_outputs(call), run);
        if (!expected) continue;
        reached.add(kernel);
        run.rank = &three_threads;
        const auto actual = run_kernel(call, inputs_for(kernel, call), local_outputs(call), run);

        for (size_t i = 0; i < expected->size(); ++i) {
          EXPECT_EQ(difference(read_values((*actual)[i]), read_values((*expected)[i]), kExact), "")
              << describe(*sample) << " of " << dtype << ", kernel " << kernel.name;
        }
      }
    }
  }
  reached.expect_all("any number of threads");
}

// ---------------------------------------------------------------- 4. gradients

bool requires_grad(const Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad();
}

// Finite differences in float32 need a step that is large enough for rounding not to hide the
// change.
std::optional<GradcheckOptions> gradcheck_options(const RawCall& call) {
  GradcheckOptions options;
  bool is_any_floating = false;
  for (const MetaPtr meta : local_outputs(call)) {
    if (!is_floating(meta->dtype)) continue;
    is_any_floating = true;
    if (meta->dtype == DType::kFloat32) options = {.eps = 1e-2, .atol = 1e-3, .rtol = 1e-2};
    if (dtype_size(meta->dtype) < 4) return {};
  }
  return is_any_floating ? std::optional(options) : std::nullopt;
}

using Check = void (*)(const GradcheckFunction& fn, const Inputs& inputs,
                       const GradcheckOptions& options);

// True if some sample was checked.
bool check_samples(const OpDef& op, Check check) {
  bool is_checked = false;
  for (const OpSample* sample : samples_of(op.name)) {
    const bool takes_doubles =
        sample->dtypes == kNoDType || (sample->dtypes & only(DType::kFloat64)) != 0;
    if (sample->only_kernels || !takes_doubles) continue;
    const RawCall call = capture_first(*sample, DType::kFloat64, 1);
    const Inputs inputs = differentiable_inputs(call, sample->constant_inputs);
    const auto options = gradcheck_options(call);
    if (std::none_of(inputs.begin(), inputs.end(), requires_grad) || !options) continue;
    is_checked = true;
    EXPECT_NO_THROW(check(function_of(call), inputs, *options)) << describe(*sample);
  }
  return is_checked;
}

TEST_P(ContractGradients, EqualTheNumericOnes) {
  if (refuses_gradient(op())) return;

  const bool is_checked =
      check_samples(op(), [](const GradcheckFunction& fn, const Inputs& inputs,
                             const GradcheckOptions& options) { gradcheck(fn, inputs, options); });

  // The gradient of ctc_loss is correct after a log_softmax only, like PyTorch's, which parity_test
  // compares. That of ldl_factor raises.
  const bool is_exception = GetParam() == "ctc_loss" || GetParam() == "ldl_factor";
  if (samples_of(GetParam()).empty()) return;
  EXPECT_NE(is_checked, is_exception) << "needs a sample in float64, or is no exception";
}

TEST_P(ContractGradients, HaveGradientsThemselves) {
  if (refuses_gradient(op())) return;

  check_samples(
      op(), [](const GradcheckFunction& fn, const Inputs& inputs, const GradcheckOptions& options) {
        gradgradcheck(fn, inputs, {}, options);
      });
}

// The gradients of the inputs that require one, undefined where nothing depends on them. The
// outputs' elements have weights that every float holds.
std::vector<Tensor> gradients_of(const RawCall& call, const Inputs& inputs) {
  Inputs sources;
  std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(sources), requires_grad);
  std::vector<Tensor> ends;
  std::vector<Tensor> upstream;
  for (const Tensor& output : function_of(call)(inputs)) {
    if (!requires_grad(output)) continue;
    Values weights;
    for (int64_t i = 0; i < output.numel(); ++i)
      weights.push_back(static_cast<double>((i * i + 3) % 17 - 8) / 4);
    ends.push_back(output);
    upstream.push_back(
        make_guarded(local_meta(output.shape(), output.dtype(), DeviceType::kCpu), weights));
  }
  if (ends.empty()) return std::vector<Tensor>(sources.size());
  return grad(ends, sources, {.grad_outputs = upstream, .allow_unused = true});
}

// This does not hold if an input is a random gradient of other values.
bool have_close_inputs(const RawCall& a, const RawCall& b) {
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    if (!a.inputs[i].defined()) continue;
    if (!difference(read_values(a.inputs[i]), read_values(b.inputs[i]),
                    {.relative = 0.01, .absolute = 0.02})
             .empty()) {
      return false;
    }
  }
  return true;
}

Tolerance gradient_tolerance(DType dtype) {
  switch (dtype_size(dtype)) {
    case 2:
      return {.relative = 0.1, .to_largest = 0.05};
    default:
      return {.relative = 1e-3, .to_largest = 1e-4};
  }
}

// The gradients of narrower floats have the dtype of the input and are close to those in float64.
TEST_P(ContractGradients, KeepTheDtypeOfTheInput) {
  if (refuses_gradient(op())) return;
  for (const OpSample* sample : small_samples()) {
    if ((sample->dtypes & only(DType::kFloat64)) == 0) continue;
    const RawCall wide = capture_first(*sample, DType::kFloat64, 1);
    const auto expected = gradients_of(wide, differentiable_inputs(wide, sample->constant_inputs));
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      if ((sample->dtypes & only(dtype)) == 0) continue;
      const RawCall call = capture_first(*sample, dtype, 1);
      const Inputs inputs = differentiable_inputs(call, sample->constant_inputs, dtype);
      const auto actual = gradients_of(call, inputs);
      const auto takes_part = [](const Tensor& input) { return requires_grad(input); };
      ASSERT_EQ(actual.size(),
                static_cast<size_t>(std::count_if(inputs.begin(), inputs.end(), takes_part)));
      for (const Tensor& gradient : actual) {
        EXPECT_TRUE(!gradient.defined() || gradient.dtype() == dtype) << describe(*sample);
      }
      // 16-bit ops may have float32 operands.
      if (actual.size() != expected.size() || !have_close_inputs(call, wide)) continue;
      for (size_t i = 0; i < actual.size(); ++i) {
        if (!actual[i].defined() || !expected[i].defined()) continue;
        EXPECT_EQ(
            difference(read_values(actual[i]), read_values(expected[i]), gradient_tolerance(dtype)),
            "")
            << describe(*sample) << " of " << dtype << ", gradient " << i;
      }
    }
  }
}

// ---------------------------------------------------------------- 5. traces

TEST_P(ContractTraces, EqualEagerBitByBit) {
  if (op().has_data_dependent_shape) return;
  for (const OpSample* sample : small_samples()) {
    if (!sample->has_values || sample->inputs.empty()) continue;
    for (const DType dtype : dtypes_of(*sample)) {
      const RawCall call = capture_first(*sample, dtype, 1);
      const auto expected = dispatch_again(call, copies_of(call.inputs));
      const auto actual = run_traced(call);

      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(actual[i].meta().same_logical(expected[i].meta()), true);
        EXPECT_EQ(difference(read_values(actual[i]), read_values(expected[i]), kExact), "")
            << describe(*sample) << " of " << dtype << ", output " << i;
      }
    }
  }
}

// Each kernel gives the same bits in a compiled step as alone.
TEST_P(ContractTraces, RunTheKernelsThatTheyChoose) {
  ReachedKernels reached(op());
  for (const OpSample* sample : small_samples()) {
    if (!sample->has_values || op().has_data_dependent_shape) return;
    for (const DType dtype : facet_dtypes(*sample)) {
      const RawCall call = capture_first(*sample, dtype, 1);
      if (decides_layout(call)) return;
      for (const KernelDef& kernel : kernel_table().kernels(op(), DeviceType::kCpu)) {
        const KernelPreference preference(op(), kernel);
        const auto actual = run_traced(call, table_of_preferences());
        if (!preference.was_chosen()) continue;
        const auto expected = run_kernel(call, copies_of(call.inputs), local_outputs(call),
                                         {.kernel = &kernel, .uses_views = false});
        if (!expected) continue;  // a step copies the result of another dtype first
        reached.add(kernel);
        for (size_t i = 0; i < expected->size(); ++i) {
          EXPECT_EQ(difference(read_values(actual[i]), read_values((*expected)[i]), kExact), "")
              << describe(*sample) << " of " << dtype << ", kernel " << kernel.name;
        }
      }
    }
  }
  reached.expect_all("traced");
}

// ---------------------------------------------------------------- 6. strides

enum class Layout { kTransposed, kEverySecond, kExpanded, kExpandedColumns };

// The same values in memory that is not row-major; expanded: the first slice of dim 0, or of the
// last dim, repeated.
Tensor laid_out(const Tensor& tensor, Layout layout) {
  const int64_t ndim = tensor.dim();
  Strides strides = contiguous_strides(tensor.shape());
  if (layout == Layout::kTransposed) {
    int64_t stride = 1;
    for (int64_t d = 0; d < ndim; ++d) {
      strides[d] = stride;
      stride *= std::max<int64_t>(tensor.shape()[d], 1);
    }
  } else if (layout == Layout::kEverySecond) {
    for (int64_t& stride : strides)
      stride *= 2;
  } else if (ndim > 0) {
    strides[layout == Layout::kExpanded ? 0 : ndim - 1] = 0;
  }
  return make_guarded(strided_meta(tensor.shape(), strides, tensor.dtype(), DeviceType::kCpu),
                      read_values(tensor));
}

bool is_long(const OpSample& sample) {
  return std::any_of(sample.inputs.begin(), sample.inputs.end(),
                     [](const SampleInput& input) { return input.shape.numel() > 5000; });
}

// Matrices of equal columns are singular, and the statistics of equal elements are rounding alone.
const std::set<std::string_view> kNeedDistinctColumns = {"cholesky",
                                                         "eigh",
                                                         "geqrf",
                                                         "group_norm_backward",
                                                         "layer_norm",
                                                         "layer_norm_backward",
                                                         "ldl_solve",
                                                         "lu_factor",
                                                         "pinv",
                                                         "qr",
                                                         "rms_norm_backward",
                                                         "solve",
                                                         "solve_ex",
                                                         "svd",
                                                         "svdvals"};

TEST_P(ContractStrides, DoNotMatter) {
  for (const OpSample* sample : samples_of(GetParam())) {
    if (is_long(*sample) || !sample->has_values) continue;
    for (const DType dtype : {DType::kFloat32, widest_dtype(*sample)}) {
      if (sample->dtypes != kNoDType && (sample->dtypes & only(dtype)) == 0) continue;
      RawCall call = capture_first(*sample, dtype, 1);
      if (decides_layout(call) || call.mutates != 0) continue;
      for (const Layout layout : {Layout::kTransposed, Layout::kEverySecond, Layout::kExpanded,
                                  Layout::kExpandedColumns}) {
        // Repeated values would change the number of results.
        if (op().has_data_dependent_shape && layout >= Layout::kExpanded) continue;
        if (layout == Layout::kExpandedColumns && kNeedDistinctColumns.contains(GetParam()))
          continue;
        RawCall strided = call;
        RawCall plain = call;
        for (size_t i = 0; i < call.inputs.size(); ++i) {
          if (!call.inputs[i].defined()) continue;
          strided.inputs[i] = laid_out(call.inputs[i], layout);
          plain.inputs[i] = make_guarded(call.inputs[i].meta_ptr(), read_values(strided.inputs[i]));
        }
        const auto expected = dispatch_again(plain, plain.inputs);
        const auto actual = dispatch_again(strided, strided.inputs);

        for (size_t i = 0; i < expected.size(); ++i) {
          EXPECT_EQ(difference(read_values(actual[i]), read_values(expected[i]),
                               tolerance_for(call, expected[i].dtype())),
                    "")
              << describe(*sample) << " of " << dtype << ", layout " << static_cast<int>(layout);
        }
        if (op().has_data_dependent_shape) continue;
        for (const KernelDef& kernel : kernel_table().kernels(op(), DeviceType::kCpu)) {
          std::set<const KernelDef*> reached;
          expect_kernel_equals_reference(*sample, strided, copies_of(strided.inputs), kernel,
                                         reached);
        }
      }
    }
  }
}

// ---------------------------------------------------------------- 7. sizes

// Four roundings of addends of up to twice the largest float: rows of one element cancel in
// gradients of norms.
double rounding_of_inputs(const RawCall& call) {
  double error = 0;
  for (const Tensor& input : call.inputs) {
    if (!input.defined() || !is_floating(input.dtype())) continue;
    for (const double value : read_values(input)) {
      if (std::isfinite(value))
        error = std::max(error, 8 * unit_roundoff(input.dtype()) * std::abs(value));
    }
  }
  return error;
}

// Runs the sample with inputs of other shapes: it either works, with the inferred meta, or reports
// what is wrong. Returns true if it worked.
bool works_or_refuses(const OpSample& sample, DType dtype, const std::string& what) {
  SCOPED_TRACE(str(describe(sample), " of ", dtype, ", ", what));
  try {
    for (RawCall& call : capture(sample, make_inputs(sample, dtype, 1))) {
      const auto specs = infer_outputs(call, metas_of(call.inputs));
      const auto outputs = dispatch_again(call, copies_of(call.inputs));
      for (size_t i = 0; i < specs.size(); ++i)
        EXPECT_EQ(outputs[i].shape(), specs[i].shape);
      if (decides_layout(call) || call.mutates != 0 || call.op->has_data_dependent_shape) continue;
      for (const KernelDef& kernel : kernel_table().kernels(*call.op, DeviceType::kCpu)) {
        std::set<const KernelDef*> reached;
        expect_kernel_equals_reference(sample, call, copies_of(call.inputs), kernel, reached,
                                       rounding_of_inputs(call));
      }
    }
  } catch (const InvalidArgument&) {
    return false;
  }
  return true;
}

// Whether the values are floats of another width changes nothing.
bool expect_works_or_refuses(const OpSample& sample, const std::string& what) {
  const bool works = works_or_refuses(sample, widest_dtype(sample), what);
  for (const DType dtype : widest_and_float32(sample)) {
    if (dtype == widest_dtype(sample)) continue;
    EXPECT_EQ(works_or_refuses(sample, dtype, what), works) << describe(sample) << ", " << what;
  }
  return works;
}

OpSample with_size(OpSample sample, int64_t from, int64_t to) {
  for (SampleInput& input : sample.inputs)
    std::replace(input.shape.begin(), input.shape.end(), from, to);
  return sample;
}

// Ops that refuse a dim of size 0 in some sample: a window or a reduction without a neutral value
// has nothing to look at, a position is out of range, or the inputs no longer fit each other.
// clang-format off
const std::set<std::string_view> kRefusesZero = {
    "adaptive_avg_pool", "adaptive_avg_pool_backward", "amax", "amin", "argmax", "argmin",
    "avg_pool", "avg_pool_backward", "batch_norm", "batch_norm_backward",
    "batch_norm_hardtanh_backward", "border",
    "border_backward", "channel_moments", "channel_moments_backward", "conv", "conv_backward_input",
    "conv_backward_weight", "conv_backward_weight_bias", "cross_entropy", "cross_entropy_backward",
    "ctc_loss", "ctc_loss_backward", "diagonal_scatter", "distributed_partial_fc_sample",
    "embedding", "embedding_backward", "fft_c2c", "fft_c2r", "fft_r2c", "gather", "grid_sample", "grid_sample_backward_grid",
    "grid_sample_backward_x", "gru_gates", "gru_gates_backward", "index",
    "index_put", "kthvalue", "layer_norm", "layer_norm_backward", "lstm_gates",
    "lstm_gates_backward", "max", "max_pool", "max_pool_backward", "max_pool_gather",
    "max_pool_with_indices", "median", "min", "mode", "nanmedian", "nll_loss", "nll_loss_backward",
    "norm", "pad", "resample", "resample_backward", "reshape", "scatter", "scatter_add",
    "scatter_reduce", "scatter_value", "select", "slice", "slice_scatter", "sum_to",
    "target_weight", "topk", "ungather", "unindex", "update_running_stats",
};

// clang-format on

// The tests of single ops check the entries whose op there is.
TEST(ContractLists, NameOpsOfTheTable) {
  for (const auto* list : {&kRefusesZero, &kRefusesWrites}) {
    for (const std::string_view op : *list)
      EXPECT_NE(op_table().find(op), nullptr) << op;
  }
}

// The result of a sample without values is what the memory held before.
TEST(ContractLists, SamplesWithoutValuesLeaveTheirMemory) {
  int num_samples = 0;
  for (const OpSample& sample : all_samples()) {
    if (sample.has_values) continue;
    ++num_samples;
    const RawCall call = capture_first(sample, widest_dtype(sample), 1);
    const KernelDef& kernel = reference_kernel(*call.op);
    const auto first = run_kernel(call, call.inputs, local_outputs(call),
                                  {.kernel = &kernel, .fill = kOutputFill});
    const auto second = run_kernel(call, call.inputs, local_outputs(call),
                                   {.kernel = &kernel, .fill = kOtherOutputFill});
    EXPECT_NE(difference(read_values((*second)[0]), read_values((*first)[0]), kExact), "")
        << describe(sample) << " has values";
  }
  EXPECT_GE(num_samples, 1);
}

TEST_P(ContractSizes, OfZeroWorkOrAreRefused) {
  bool is_refused = false;
  for (const OpSample* sample : small_samples()) {
    std::set<int64_t> sizes;
    for (const SampleInput& input : sample->inputs)
      sizes.insert(input.shape.begin(), input.shape.end());
    for (const int64_t size : sizes) {
      const bool works =
          expect_works_or_refuses(with_size(*sample, size, 0), str("size ", size, " becomes 0"));
      is_refused |= !works && size != 1;  // a dim of size 1 may be repeated along another one
    }
  }
  EXPECT_EQ(is_refused, kRefusesZero.contains(GetParam())) << "see kRefusesZero";
}

TEST_P(ContractSizes, OfOneWorkOrAreRefused) {
  for (const OpSample* sample : small_samples()) {
    for (size_t i = 0; i < sample->inputs.size(); ++i) {
      for (int64_t d = 0; d < sample->inputs[i].shape.size(); ++d) {
        OpSample thin = *sample;
        thin.inputs[i].shape[d] = 1;
        expect_works_or_refuses(thin, str("input ", i, " has size 1 in dim ", d));
      }
    }
    expect_works_or_refuses(with_size(*sample, 5, 1), "size 5 becomes 1");
    expect_works_or_refuses(with_size(*sample, 2, 1), "size 2 becomes 1");
  }
}

TEST_P(ContractSizes, OfScalarsWorkOrAreRefused) {
  for (const OpSample* sample : small_samples()) {
    OpSample scalar = *sample;
    for (SampleInput& input : scalar.inputs)
      input.shape = {};
    expect_works_or_refuses(scalar, "scalars");
  }
}

// ---------------------------------------------------------------- 8. in place

// Each kernel may overwrite its first input with the result.
TEST_P(ContractInPlace, EqualsOutOfPlaceWithEveryKernel) {
  if (!op().allows_in_place) return;
  ReachedKernels reached(op());
  for (const OpSample* sample : samples_of(GetParam())) {
    for (const DType dtype : facet_dtypes(*sample)) {
      RawCall call = capture_first(*sample, dtype, 1);
      if (call.mutates != 0 || local_outputs(call)[0] != call.inputs[0].meta_ptr()) continue;
      for (const KernelDef& kernel : kernel_table().kernels(op(), DeviceType::kCpu)) {
        if (sample->only_kernels && reached.contains(kernel)) continue;
        const KernelRun run{.kernel = &kernel, .uses_views = false};
        call.mutates = 0;
        const auto expected = run_kernel(call, copies_of(call.inputs), local_outputs(call), run);
        call.mutates = 1;
        const auto actual = run_kernel(call, copies_of(call.inputs), local_outputs(call), run);
        ASSERT_EQ(expected.has_value(), actual.has_value()) << kernel.name;
        if (!expected) continue;
        reached.add(kernel);
        EXPECT_EQ(difference(read_values((*actual)[0]), read_values((*expected)[0]), kExact), "")
            << describe(*sample) << " of " << dtype << ", kernel " << kernel.name;
      }
    }
  }
  reached.expect_all("in place");
}

TEST_P(ContractInPlace, EqualsOutOfPlace) {
  if (!op().allows_in_place) return;
  for (const OpSample* sample : samples_of(GetParam())) {
    for (const DType dtype : dtypes_of(*sample)) {
      RawCall call = capture_first(*sample, dtype, 1);
      const auto metas = local_outputs(call);
      if (call.mutates != 0 || metas[0] != call.inputs[0].meta_ptr()) continue;
      const auto expected = dispatch_again(call, call.inputs);
      const Inputs inputs = copies_of(call.inputs);
      const uint32_t version = inputs[0].impl().version();
      call.mutates = 1;
      const auto actual = dispatch_again(call, inputs);

      EXPECT_TRUE(actual[0].is_same(inputs[0]));
      EXPECT_EQ(inputs[0].impl().version(), version + 1);
      EXPECT_EQ(difference(read_values(inputs[0]), read_values(expected[0]), kExact), "")
          << describe(*sample) << " of " << dtype;
    }
  }
}

}  // namespace

}  // namespace flow::contract
