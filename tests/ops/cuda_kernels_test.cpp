// Compares CUDA kernels with the CPU's reference kernels, on the samples of the op table and on the
// same values in other layouts. Runs on a device or, in builds with FLOW_CUDA=EMULATED, on the CPU.
#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/device/cuda.h"
#include "core/device/device_memory.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/fused_op.h"
#include "ops/index/embedding.h"
#include "tests/support/closeness.h"
#include "tests/support/contract_fixture.h"
#include "tools/flow_ops/without_cuda.h"

namespace flow::contract {
namespace {

RankContext& rank() {
  return *thread_state().context;
}

// A tensor's elements in device memory, in the tensor's layout.
struct DeviceCopy {
  Ref<Storage> storage;
  size_t bytes = 0;

  explicit DeviceCopy(const Tensor& tensor)
      : bytes(static_cast<size_t>(extent_of(tensor.meta())) * dtype_size(tensor.dtype())) {
    storage = allocate_storage(rank(), DeviceType::kCuda, bytes);
    if (bytes == 0) return;
    copy_bytes(rank(), storage->data(), DeviceType::kCuda, tensor.impl().data(), DeviceType::kCpu,
               bytes);
  }

  void read_into(const Tensor& tensor) const {
    if (bytes == 0) return;
    copy_bytes(rank(), tensor.impl().data(), DeviceType::kCpu, storage->data(), DeviceType::kCuda,
               bytes);
  }
};

MetaPtr on_device(const Tensor& tensor) {
  return strided_meta(tensor.shape(), tensor.meta().strides, tensor.dtype(), DeviceType::kCuda);
}

// The result of a CUDA kernel for host tensors, in host memory; mutated tensors are copied first.
// No value means that the kernel does not apply.
std::optional<std::vector<Tensor>> run_cuda(const RawCall& call, const Inputs& inputs,
                                            const KernelDef& kernel) {
  std::vector<std::optional<DeviceCopy>> copies;
  std::vector<MetaPtr> input_metas;
  std::vector<TensorView> input_views;
  for (const Tensor& input : inputs) {
    copies.emplace_back();
    input_metas.push_back(nullptr);
    input_views.emplace_back();
    if (!input.defined()) continue;
    copies.back().emplace(input);
    input_metas.back() = on_device(input);
    input_views.back() = {copies.back()->storage->data(), input_metas.back()};
  }
  std::vector<Tensor> outputs;
  std::vector<MetaPtr> output_metas;
  std::vector<TensorView> output_views;
  std::vector<DeviceCopy> output_copies;
  for (uint32_t left = call.mutates; left != 0; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    outputs.push_back(make_guarded(inputs[i].meta_ptr(), read_values(inputs[i])));
    output_metas.push_back(input_metas[i]);
    output_views.push_back(input_views[i]);
    output_copies.push_back(*copies[i]);
  }
  if (call.mutates == 0) {
    for (const MetaPtr meta : local_outputs(call)) {
      outputs.push_back(make_guarded(meta, kOutputFill));
      output_copies.emplace_back(outputs.back());
      output_metas.push_back(on_device(outputs.back()));
      output_views.push_back({output_copies.back().storage->data(), output_metas.back()});
    }
  }
  const KernelQuery query{*call.op, input_metas, output_metas, call.attrs_data()};
  const KernelChoice choice = kernel.select(query);
  if (choice.fn == nullptr) return {};
  choice.fn(
      {input_views, output_views, call.attrs_data(), choice.state.get(), call.random, rank()});
  for (size_t i = 0; i < outputs.size(); ++i)
    output_copies[i].read_into(outputs[i]);
  return outputs;
}

// The same values with the first dim innermost, as after a transposition.
Inputs transposed_copies(const Inputs& inputs) {
  Inputs copies;
  for (const Tensor& input : inputs) {
    if (!input.defined()) {
      copies.emplace_back();
      continue;
    }
    Strides strides = contiguous_strides(input.shape());
    int64_t stride = 2;  // and gaps between elements
    for (int64_t i = 0; i < strides.size(); ++i) {
      strides[i] = stride;
      stride *= std::max<int64_t>(1, input.shape()[i]);
    }
    copies.push_back(make_guarded(with_strides(input.meta_ptr(), strides), read_values(input)));
  }
  return copies;
}

// The emulator runs one thread at a time, so it runs only the samples that are about values, not
// about speed.
bool is_too_large(const RawCall& call) {
  constexpr int64_t kMostEmulated = 1 << 12;
  if (cuda::device_name(0) != "emulated device") return false;
  return std::any_of(call.inputs.begin(), call.inputs.end(), [](const Tensor& input) {
    return input.defined() && input.numel() > kMostEmulated;
  });
}

// A program of fused_elementwise that has an op or a dtype which the kernel does not know. The pass
// that makes programs leaves these out.
bool is_left_out(const RawCall& call) {
  if (call.op != &ops::kFusedElementwise) return false;
  const auto& program = static_cast<const ops::FusedAttrs*>(call.attrs_data())->program;
  std::vector<MetaPtr> metas;
  for (const Tensor& input : call.inputs)
    metas.push_back(input.meta_ptr());
  for (const MetaPtr result : ops::infer_results(program, metas))
    metas.push_back(result);
  for (size_t i = 0; i < program.num_instructions(); ++i)
    if (!ops::fused_code_on_cuda(program.op(i))) return true;
  return std::any_of(metas.begin(), metas.end(),
                     [](MetaPtr meta) { return !ops::is_fused_on_cuda(meta->dtype); });
}

struct CudaKernels : ContractTest {
  void SetUp() override {
    if (!cuda::is_available()) GTEST_SKIP() << "no CUDA device";
    if (kernel_table().kernels(op(), DeviceType::kCuda).empty()) GTEST_SKIP() << "no CUDA kernel";
  }
};

TEST_P(CudaKernels, GiveWhatTheReferenceGives) {
  for (const OpSample* sample : samples_of(GetParam())) {
    for (const DType dtype : dtypes_of(*sample)) {
      const RawCall call = capture_first(*sample, dtype, 1);
      if (decides_layout(call) || !sample->has_values || is_too_large(call)) continue;
      const auto expected =
          run_kernel(call, copies_of(call.inputs), local_outputs(call),
                     {.kernel = &reference_kernel(*call.op), .uses_views = false});
      ASSERT_TRUE(expected) << describe(*sample);
      const Inputs layouts[] = {copies_of(call.inputs), transposed_copies(call.inputs)};
      bool is_any_reached = false;
      for (const KernelDef& kernel : kernel_table().kernels(*call.op, DeviceType::kCuda)) {
        for (const Inputs& inputs : layouts) {
          const auto actual = run_cuda(call, inputs, kernel);
          if (!actual) continue;
          is_any_reached = true;
          for (size_t i = 0; i < expected->size(); ++i) {
            EXPECT_EQ(difference(read_values((*actual)[i]), read_values((*expected)[i]),
                                 kernel_tolerance((*expected)[i].dtype())),
                      "")
                << describe(*sample) << ", " << dtype << ", kernel " << kernel.name << ", output "
                << i << (&inputs == &layouts[1] ? ", transposed" : "");
          }
        }
      }
      EXPECT_NE(is_any_reached, is_left_out(call))
          << "no CUDA kernel takes " << describe(*sample) << ", " << dtype;
    }
  }
}

// Raised once, as an error of the call that waits for the device.
TEST(CudaFaults, AnIndexOutOfRangeIsReportedWhereTheResultIsRead) {
  if (!cuda::is_available()) GTEST_SKIP() << "no CUDA device";
  const Tensor table = ones({4, 2}).to("cuda");
  const Tensor rows = tensor(std::vector<int64_t>{1, 7}, {2}).to("cuda");
  const Tensor y = embedding(rows, table);

  try {
    y.to_vector<float>();
    FAIL() << "no error";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("[embedding] index 7 is out of range"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 1, 0, 0}));
}

// The documentation states for each op whether it has a kernel.
TEST(OpsWithoutCuda, AreThoseOfTheDocumentation) {
  if (!cuda::is_available()) GTEST_SKIP() << "no CUDA device";
  std::set<std::string> without, listed;
  for (const OpDef* op : op_table().all())
    if (kernel_table().kernels(*op, DeviceType::kCuda).empty()) without.insert(op->name);
  for (const auto& [name, on_cuda] : tools::kOpsWithoutCuda)
    listed.insert(name);
  EXPECT_EQ(without, listed);
}

INSTANTIATE_TEST_SUITE_P(Ops, CudaKernels, ::testing::ValuesIn(op_names()), op_name);

}  // namespace
}  // namespace flow::contract
