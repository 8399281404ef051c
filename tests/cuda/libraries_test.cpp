// Products, convolutions and attention by the emulated cuBLASLt, cuBLAS and cuDNN: which of them
// computes what, and which mistakes of callers they find.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>
#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/device/cuda.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/device/device_memory.h"
#include "nn/flow.h"
#include "tests/support/cuda_emulator/library_hooks.h"
#include "tests/support/largest_difference.h"

namespace flow {

namespace {

using cuda_emulator::last_mistake;
using cuda_emulator::library_calls;
using cuda_emulator::LibraryCalls;

RankContext& rank() {
  return *thread_state().context;
}

cudaStream_t stream() {
  return cuda::rank_device(rank()).compute_stream();
}

// A tensor as seen by a library.
struct OnDevice {
  Tensor tensor;

  explicit OnDevice(const std::vector<float>& values)
      : tensor(flow::tensor(values, {static_cast<int64_t>(values.size())}).to("cuda")) {}

  void* data() const { return tensor.impl().data(); }

  std::vector<float> values() const { return tensor.to_vector<float>(); }
};

std::vector<float> numbers(size_t count, float scale = 0.25F) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = scale * static_cast<float>(static_cast<int>(i * 7 % 11) - 5);
  return values;
}

double largest_difference(const Tensor& device, const Tensor& host) {
  const auto a = cast(device.to("cpu"), float64).contiguous().to_vector<double>();
  const auto b = cast(host, float64).contiguous().to_vector<double>();
  return flow::largest_difference(a, b);
}

double tolerance_of(DType dtype) {
  if (dtype == float64) return 1e-12;
  return dtype == float32 ? 1e-5 : 0.1;
}

// ---- products

class CudaProducts : public testing::Test {
 protected:
  void TearDown() override { cuda_emulator::refuse_algorithms(at_first_); }

 private:
  int at_first_ = cuda_emulator::refused_algorithms();
};

TEST_F(CudaProducts, TryTheAlgorithmsInTurnAndThenCublas) {
  int64_t rows = 3;  // a new product each time: what a rank has learnt about one stays
  for (const DType dtype : {float32, bfloat16, float64}) {
    for (const int refused : {0, 1, 2, 100}) {
      cuda_emulator::refuse_algorithms(refused);
      const Tensor x = cast(randn({++rows, 16}), dtype), w = cast(randn({24, 16}), dtype);
      const Tensor bias = cast(randn({24}), dtype);
      const Tensor on_device[] = {x.to("cuda"), w.to("cuda"), bias.to("cuda")};
      const LibraryCalls before = library_calls();

      const Tensor y = linear(on_device[0], on_device[1], on_device[2]);
      const double difference = largest_difference(y, linear(x, w, bias));
      const LibraryCalls after = library_calls();
      static_cast<void>(linear(on_device[0], on_device[1], on_device[2]));
      const LibraryCalls again = library_calls();

      const auto what = str(dtype, ", ", refused, " algorithms refused");
      EXPECT_LT(difference, tolerance_of(dtype)) << what;
      const bool is_lt = refused < 100;
      EXPECT_EQ(after.lt_products - before.lt_products, is_lt ? 1 : 0) << what;
      EXPECT_EQ(after.products - before.products, is_lt ? 0 : 1) << what;
      EXPECT_EQ(after.lt_refusals - before.lt_refusals, std::min(refused, 4)) << what;
      EXPECT_EQ(again.lt_refusals, after.lt_refusals) << what << ": tried again";
    }
  }
}

TEST_F(CudaProducts, OfOtherLayoutsComeFromCublasToo) {
  cuda_emulator::refuse_algorithms(100);
  const Tensor a = randn({2, 7, 5}), b = randn({2, 6, 5}), c = randn({5, 9});
  const LibraryCalls before = library_calls();

  EXPECT_LT(largest_difference(matmul(a.to("cuda"), b.to("cuda").transpose(1, 2)),
                               matmul(a, b.transpose(1, 2))),
            1e-5);
  EXPECT_LT(largest_difference(matmul(a.to("cuda"), c.to("cuda")), matmul(a, c)), 1e-5);
  EXPECT_LT(largest_difference(matmul(c.t().to("cuda"), c.to("cuda")), matmul(c.t(), c)), 1e-5);

  EXPECT_EQ(library_calls().products - before.products, 3);
}

// What is prepared for an aligned bias is not used for another one.
TEST_F(CudaProducts, BiasesMayStartAtAnyElement) {
  cuda_emulator::refuse_algorithms(0);
  const Tensor x = randn({9, 40}), w = randn({48, 40}), biases = randn({64});
  const Tensor x_there = x.to("cuda"), w_there = w.to("cuda"), biases_there = biases.to("cuda");
  const LibraryCalls before = library_calls();
  for (const int64_t begin : {0, 1, 2, 4}) {
    const Tensor y = linear(x_there, w_there, biases_there.narrow(0, begin, 48));
    EXPECT_LT(largest_difference(y, linear(x, w, biases.narrow(0, begin, 48))), 1e-5) << begin;
  }
  EXPECT_EQ(library_calls().lt_products - before.lt_products, 4);
  EXPECT_EQ(library_calls().mistakes, before.mistakes);
}

TEST_F(CudaProducts, LeaveNoObjectsBehind) {
  const int64_t before = cuda_emulator::live_library_objects();
  run_ranks(2, [] {
    const Tensor a = randn({5, 8}, {.device = "cuda"});
    cuda_emulator::refuse_algorithms(0);
    static_cast<void>(matmul(a, a.t()));
    cuda_emulator::refuse_algorithms(100);
    static_cast<void>(matmul(a.t(), a));
    cuda::synchronize();
  });
  EXPECT_EQ(cuda_emulator::live_library_objects(), before);
}

// Calls of cuBLASLt for c' = b' a' with a (m, k), b (k, n), as flow makes them.
class Cublaslt : public testing::Test {
 protected:
  static constexpr int64_t kM = 4, kN = 8, kK = 12;
  static constexpr size_t kWorkspace = 4096;

  void SetUp() override {
    cuda_emulator::refuse_algorithms(0);
    ASSERT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatmulDescCreate(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
              CUBLAS_STATUS_SUCCESS);
    cublasLtMatrixLayoutCreate(&first_, CUDA_R_32F, kN, kK, kN);
    cublasLtMatrixLayoutCreate(&second_, CUDA_R_32F, kK, kM, kK);
    cublasLtMatrixLayoutCreate(&result_, CUDA_R_32F, kN, kM, kN);
  }

  void TearDown() override {
    cuda_emulator::refuse_algorithms(at_first_);
    cublasLtMatmulDescDestroy(desc_);
    for (cublasLtMatrixLayout_t layout : {first_, second_, result_})
      cublasLtMatrixLayoutDestroy(layout);
    cublasLtDestroy(handle_);
  }

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc_, attribute, &value, sizeof(value)),
              CUBLAS_STATUS_SUCCESS);
  }

  // The algorithms for pointers of this alignment, which add parts of k in these ways.
  std::vector<cublasLtMatmulHeuristicResult_t> search(
      uint32_t alignment = 16, uint64_t workspace = kWorkspace,
      uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) {
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &workspace, sizeof(workspace));
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                         &schemes, sizeof(schemes));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      cublasLtMatmulPreferenceSetAttribute(preference, attribute, &alignment, sizeof(alignment));
    std::vector<cublasLtMatmulHeuristicResult_t> found(8);
    int count = 0;
    status_ = cublasLtMatmulAlgoGetHeuristic(handle_, desc_, first_, second_, result_, result_,
                                             preference, static_cast<int>(found.size()),
                                             found.data(), &count);
    cublasLtMatmulPreferenceDestroy(preference);
    found.resize(static_cast<size_t>(count));
    return found;
  }

  struct Memory {
    const void* a;
    const void* b;
    void* c;
    void* workspace;
    size_t workspace_bytes = kWorkspace;
  };

  Memory memory() const { return {a_.data(), b_.data(), c_.data(), workspace_.data()}; }

  cublasStatus_t multiply(const cublasLtMatmulAlgo_t& algorithm, const Memory& at) {
    const float one = 1, zero = 0;
    return cublasLtMatmul(handle_, desc_, &one, at.b, first_, at.a, second_, &zero, at.c, result_,
                          at.c, result_, &algorithm, at.workspace, at.workspace_bytes, stream());
  }

  cublasStatus_t multiply() {
    const auto found = search();
    return found.empty() ? status_ : multiply(found[0].algo, memory());
  }

  // The product before an epilogue, in row-major order.
  float product(int64_t i, int64_t j) const {
    const auto a = numbers(kM * kK), b = numbers(kK * kN);
    float sum = 0;
    for (int64_t k = 0; k < kK; ++k)
      sum += a[static_cast<size_t>(i * kK + k)] * b[static_cast<size_t>(k * kN + j)];
    return sum;
  }

  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, result_ = nullptr;
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
  OnDevice a_{numbers(kM * kK)}, b_{numbers(kK * kN)}, c_{numbers(kM * kN)},
      workspace_{numbers(kWorkspace / 4)};

 private:
  int at_first_ = cuda_emulator::refused_algorithms();
};

// The mistake is told by the status, in words, and by the next call of CUDA.
#define EXPECT_MISTAKE(status, wanted, text)                                 \
  EXPECT_EQ(status, wanted);                                                 \
  EXPECT_NE(last_mistake().find(text), std::string::npos) << last_mistake(); \
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue)

TEST_F(Cublaslt, MultipliesInTheCallersLayout) {
  ASSERT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);
  const auto c = c_.values();
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j)
      EXPECT_NEAR(c[static_cast<size_t>(i * kN + j)], product(i, j), 1e-5);
}

TEST_F(Cublaslt, AppliesABiasAndGeluAndKeepsItsArgument) {
  const OnDevice bias(numbers(kN, 0.5F)), aux(numbers(kM * kN));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.data());
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux.data());
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, kN);
  ASSERT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);

  const auto c = c_.values(), kept = aux.values(), added = numbers(kN, 0.5F);
  const auto gelu_of = [](const std::vector<float>& x) {
    return gelu(flow::tensor(x, {static_cast<int64_t>(x.size())}), {.approximate = "tanh"})
        .to_vector<float>();
  };
  const auto expected = gelu_of(kept);
  for (int64_t i = 0; i < kM; ++i) {
    for (int64_t j = 0; j < kN; ++j) {
      const auto at = static_cast<size_t>(i * kN + j);
      EXPECT_NEAR(kept[at], product(i, j) + added[static_cast<size_t>(j)], 1e-5);
      EXPECT_NEAR(c[at], expected[at], 1e-5);
    }
  }

  // The gradient reads what was kept: d = (a b) gelu'(aux).
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DGELU);
  ASSERT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);
  const auto slopes = c_.values();
  auto above = kept, below = kept;
  constexpr float kStep = 1e-2F;
  for (size_t i = 0; i < kept.size(); ++i) {
    above[i] += kStep;
    below[i] -= kStep;
  }
  const auto high = gelu_of(above), low = gelu_of(below);
  for (int64_t i = 0; i < kM; ++i) {
    for (int64_t j = 0; j < kN; ++j) {
      const auto at = static_cast<size_t>(i * kN + j);
      EXPECT_NEAR(slopes[at], product(i, j) * (high[at] - low[at]) / (2 * kStep), 2e-3);
    }
  }
}

// BGRADA sums the first operand of the library, which is b here, and BGRADB the second one.
TEST_F(Cublaslt, SumsAnOperandAlongK) {
  const auto a = numbers(kM * kK), b = numbers(kK * kN);
  const OnDevice of_b(numbers(kN)), of_a(numbers(kM));
  set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t{CUDA_R_32F});
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADA);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, of_b.data());
  const int64_t sums = library_calls().lt_sums;
  ASSERT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADB);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, of_a.data());
  ASSERT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);

  EXPECT_EQ(library_calls().lt_sums - sums, 2);
  const auto columns = of_b.values(), rows = of_a.values(), c = c_.values();
  for (int64_t j = 0; j < kN; ++j) {
    float sum = 0;
    for (int64_t k = 0; k < kK; ++k)
      sum += b[static_cast<size_t>(k * kN + j)];
    EXPECT_NEAR(columns[static_cast<size_t>(j)], sum, 1e-5);
  }
  for (int64_t i = 0; i < kM; ++i) {
    float sum = 0;
    for (int64_t k = 0; k < kK; ++k)
      sum += a[static_cast<size_t>(i * kK + k)];
    EXPECT_NEAR(rows[static_cast<size_t>(i)], sum, 1e-5);
    for (int64_t j = 0; j < kN; ++j)
      EXPECT_NEAR(c[static_cast<size_t>(i * kN + j)], product(i, j), 1e-5);
  }
}

TEST_F(Cublaslt, FindsWrongMemoryOfSums) {
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADA);
  EXPECT_MISTAKE(multiply(), CUBLAS_STATUS_INVALID_VALUE, "memory of the sums is missing");

  // One for each of the kN rows of d, not one for each of its kM columns.
  void* block = nullptr;
  ASSERT_EQ(cudaMalloc(&block, kM * 4), cudaSuccess);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, block);
  EXPECT_MISTAKE(multiply(), CUBLAS_STATUS_INVALID_VALUE,
                 "8 elements of the sums are not in device memory");
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADB);
  EXPECT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);

  // Searches judge the alignment by the address.
  const auto found = search();
  ASSERT_EQ(found.size(), 4U);
  const OnDevice sums(numbers(kM + 1));
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(static_cast<float*>(sums.data()) + 1));
  EXPECT_MISTAKE(multiply(found[0].algo, memory()), CUBLAS_STATUS_INVALID_VALUE,
                 "proposed for an epilogue aligned to 16");
  EXPECT_EQ(search().size(), 2U);
  cuda::synchronize();
  EXPECT_EQ(cudaFree(block), cudaSuccess);
}

TEST_F(Cublaslt, HasNoSumsOfOtherTypes) {
  const OnDevice sums(numbers(kN));
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, sums.data());
  set(CUBLASLT_MATMUL_DESC_EPILOGUE,
      uint32_t{CUBLASLT_EPILOGUE_BGRADA} | uint32_t{CUBLASLT_EPILOGUE_BIAS});
  EXPECT_TRUE(search().empty());
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADA);
  set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t{CUDA_R_16BF});
  EXPECT_TRUE(search().empty());
  set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t{CUDA_R_32F});
  EXPECT_EQ(search().size(), 4U);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(Cublaslt, ProposesWhatFitsTheAlignmentAndTheWorkspace) {
  EXPECT_EQ(search(16).size(), 4U);
  EXPECT_EQ(search(4).size(), 2U);
  EXPECT_EQ(search(16, 0).size(), 2U);
  for (const auto& result : search(16, 0))
    EXPECT_EQ(result.workspaceSize, 0U);
  // flow asks for none that may round sums to 16 bits.
  EXPECT_EQ(search(16, kWorkspace, CUBLASLT_REDUCTION_SCHEME_MASK).size(), 6U);
  EXPECT_EQ(search(16, kWorkspace, CUBLASLT_REDUCTION_SCHEME_NONE).size(), 2U);
}

TEST_F(Cublaslt, HasNoAlgorithmForOtherTypesOfSums) {
  set(CUBLASLT_MATMUL_DESC_SCALE_TYPE, int32_t{CUDA_R_64F});
  EXPECT_TRUE(search().empty());
  EXPECT_EQ(status_, CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(Cublaslt, FindsWrongDescriptors) {
  const int64_t wide = 0;
  EXPECT_MISTAKE(
      cublasLtMatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_TRANSA, &wide, sizeof(wide)),
      CUBLAS_STATUS_INVALID_VALUE, "4 bytes was given 8");

  const int64_t leading = kN - 1;
  cublasLtMatrixLayoutSetAttribute(first_, CUBLASLT_MATRIX_LAYOUT_LD, &leading, sizeof(leading));
  static_cast<void>(search());
  EXPECT_MISTAKE(status_, CUBLAS_STATUS_INVALID_VALUE, "a has a leading dim of 7 for 8 rows");
  cublasLtMatrixLayoutSetAttribute(first_, CUBLASLT_MATRIX_LAYOUT_LD, &kN, sizeof(kN));

  set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t{CUBLAS_OP_T});
  static_cast<void>(search());
  EXPECT_MISTAKE(status_, CUBLAS_STATUS_INVALID_VALUE, "does not give (8, 4)");
  set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t{CUBLAS_OP_N});

  const int32_t two = 2;
  cublasLtMatrixLayoutSetAttribute(first_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &two, sizeof(two));
  static_cast<void>(search());
  EXPECT_MISTAKE(status_, CUBLAS_STATUS_INVALID_VALUE, "counts of matrices differ");
}

TEST_F(Cublaslt, FindsWrongMemory) {
  const auto found = search();
  ASSERT_EQ(found.size(), 4U);
  const auto& needy = found[0].algo;

  Memory at = memory();
  at.workspace_bytes = 16;
  EXPECT_MISTAKE(multiply(needy, at), CUBLAS_STATUS_INVALID_VALUE, "bytes of workspace");

  std::vector<float> host(kWorkspace / 4);
  at = memory();
  at.workspace = host.data();
  EXPECT_MISTAKE(multiply(needy, at), CUBLAS_STATUS_INVALID_VALUE, "not device memory");

  at = memory();
  at.a = static_cast<const float*>(at.a) + 1;
  EXPECT_MISTAKE(multiply(needy, at), CUBLAS_STATUS_INVALID_VALUE, "aligned to 16 bytes");

  alignas(16) float values[kM * kK] = {};
  at = memory();
  at.a = values;
  EXPECT_MISTAKE(multiply(needy, at), CUBLAS_STATUS_INVALID_VALUE, "not in device memory");

  void* block = nullptr;
  ASSERT_EQ(cudaMalloc(&block, kM * kK * 4 - 4), cudaSuccess);
  at = memory();
  at.a = block;
  EXPECT_MISTAKE(multiply(needy, at), CUBLAS_STATUS_INVALID_VALUE,
                 "48 elements of b are not in device memory");
  EXPECT_EQ(cudaFree(block), cudaSuccess);

  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  EXPECT_MISTAKE(multiply(needy, memory()), CUBLAS_STATUS_INVALID_VALUE,
                 "proposed for another product");
  EXPECT_MISTAKE(multiply(), CUBLAS_STATUS_INVALID_VALUE, "the bias is missing");
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(host.data()));
  EXPECT_MISTAKE(multiply(), CUBLAS_STATUS_INVALID_VALUE, "bias are not in device memory");
}

// ---- convolutions

// Tests that need cuDNN do not run where it is said to be missing.
bool has_cudnn() {
  const char* const missing = std::getenv("CUDA_EMULATOR_MISSING");
  return missing == nullptr || std::string(missing).find("libcudnn") == std::string::npos;
}

class CudaConvolutions : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_cudnn()) GTEST_SKIP() << "cuDNN is missing";
    cuda_emulator::refuse_algorithms(0);
  }

  void TearDown() override { cuda_emulator::refuse_algorithms(at_first_); }

 private:
  int at_first_ = cuda_emulator::refused_algorithms();
};

TEST_F(CudaConvolutions, AndTheirGradientsComeFromCudnn) {
  for (const DType dtype : {float32, float16, bfloat16, float64}) {
    const auto parts = [&](const Tensor& x, const Tensor& w, const Tensor& bias) {
      const Tensor in[] = {x.detach().requires_grad_(), w.detach().requires_grad_(),
                           bias.detach().requires_grad_()};
      const Tensor y =
          conv2d(in[0], in[1], in[2], {.stride = 2, .padding = 1, .dilation = 1, .groups = 2});
      std::vector<Tensor> all = grad({y}, {in[0], in[1], in[2]}, {.grad_outputs = {y.detach()}});
      all.push_back(y.detach());
      return all;
    };
    const Tensor x = cast(randn({2, 4, 7, 6}) * 0.5, dtype);
    const Tensor w = cast(randn({6, 2, 3, 3}) * 0.5, dtype);
    const Tensor bias = cast(randn({6}), dtype);
    const LibraryCalls before = library_calls();

    const auto actual = parts(x.to("cuda"), w.to("cuda"), bias.to("cuda"));

    EXPECT_EQ(library_calls().convolutions - before.convolutions, 3) << dtype;
    const auto wide = [&](const Tensor& t) {
      return cast(t, dtype == float64 ? float64 : float32);
    };
    const auto expected = parts(wide(x), wide(w), wide(bias));
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LT(largest_difference(actual[i], expected[i]),
                tolerance_of(dtype) * 3 * std::max(1.0, abs(expected[i]).max().item()))
          << dtype << ", result " << i;
    }
  }
}

// cuDNN takes no memory that begins at an odd 16-bit element.
TEST_F(CudaConvolutions, TakeViewsThatBeginAtAnyElement) {
  const auto shifted = [](const Tensor& x) {
    return cat({zeros({1}, {.dtype = bfloat16}), x.flatten()}, 0)
        .to("cuda")
        .narrow(0, 1, x.numel());
  };
  const Tensor x = cast(randn({2, 3, 5, 5}), bfloat16), w = cast(randn({4, 3, 3, 3}), bfloat16);
  const Tensor bias = cast(randn({4}), bfloat16), dy = cast(randn({2, 4, 3, 3}), bfloat16);
  const auto parts = [](const std::array<Tensor, 4>& in) {
    const Tensor leaves[] = {in[0].detach().requires_grad_(), in[1].detach().requires_grad_(),
                             in[2].detach().requires_grad_()};
    const Tensor y = conv2d(leaves[0], leaves[1], leaves[2]);
    std::vector<Tensor> all =
        grad({y}, {leaves[0], leaves[1], leaves[2]}, {.grad_outputs = {in[3]}});
    all.push_back(y.detach());
    return all;
  };
  const LibraryCalls before = library_calls();

  const auto actual = parts({shifted(x).view({2, 3, 5, 5}), shifted(w).view({4, 3, 3, 3}),
                             shifted(bias), shifted(dy).view({2, 4, 3, 3})});

  EXPECT_EQ(library_calls().convolutions - before.convolutions, 3);
  EXPECT_EQ(library_calls().mistakes, before.mistakes);
  const auto expected = parts({x.to("cuda"), w.to("cuda"), bias.to("cuda"), dy.to("cuda")});
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(actual[i].to("cpu").equal(expected[i].to("cpu"))) << "result " << i;
}

// The first two proposals are never used by gradients, the first never by the forward pass.
TEST_F(CudaConvolutions, TryTheAlgorithmsInTurnAndThenTheirOwnKernel) {
  struct Case {
    int refused;
    int64_t convolutions, refusals;  // of the forward pass and both gradients
  };

  int64_t rows = 5;  // a new convolution each time: what a rank has learnt about one stays
  for (const DType dtype : {float32, bfloat16, float64}) {
    for (const auto [refused, convolutions, refusals] :
         {Case{0, 3, 0}, Case{2, 3, 1}, Case{3, 0, 4}}) {
      cuda_emulator::refuse_algorithms(refused);
      const Tensor x = cast(randn({1, 2, ++rows, 5}) * 0.5, dtype);
      const Tensor w = cast(randn({3, 2, 3, 3}) * 0.5, dtype);
      const auto parts = [](const Tensor& x_in, const Tensor& w_in) {
        const Tensor in[] = {x_in.detach().requires_grad_(), w_in.detach().requires_grad_()};
        const Tensor y = conv2d(in[0], in[1]);
        std::vector<Tensor> all = grad({y}, {in[0], in[1]}, {.grad_outputs = {y.detach()}});
        all.push_back(y.detach());
        return all;
      };
      const LibraryCalls before = library_calls();

      const std::vector<Tensor> actual = parts(x.to("cuda"), w.to("cuda"));
      const LibraryCalls after = library_calls();
      static_cast<void>(parts(x.to("cuda"), w.to("cuda")));
      const LibraryCalls again = library_calls();

      const auto what = str(dtype, ", ", refused, " algorithms refused");
      const std::vector<Tensor> expected = parts(x, w);
      for (size_t i = 0; i < actual.size(); ++i) {
        EXPECT_LT(largest_difference(actual[i], expected[i]),
                  tolerance_of(dtype) * std::max(1.0, abs(expected[i]).max().item()))
            << what << ", result " << i;
      }
      EXPECT_EQ(after.convolutions - before.convolutions, convolutions) << what;
      EXPECT_EQ(after.conv_refusals - before.conv_refusals, refusals) << what;
      EXPECT_EQ(again.conv_refusals, after.conv_refusals) << what << ": tried again";
      EXPECT_EQ(again.mistakes, before.mistakes) << last_mistake();
    }
  }
}

// The threads of a rank share a handle, which only one of them may use at a time.
TEST_F(CudaConvolutions, OfTwoThreadsTakeTurns) {
  const Tensor x = randn({1, 2, 5, 5}, {.device = "cuda"});
  const Tensor w = randn({3, 2, 3, 3}, {.device = "cuda"});
  static_cast<void>(conv2d(x, w));  // searches for an algorithm
  const int64_t before = library_calls().mistakes;
  std::atomic<int> num_running = 0;
  const auto run = [&] {
    const NoGradGuard no_grad;
    ++num_running;
    while (num_running < 2)
      std::this_thread::yield();
    try {
      for (int i = 0; i < 1000; ++i)
        static_cast<void>(conv2d(x, w));
    } catch (const Error&) {
      // The mistake was counted.
    }
  };
  std::thread other(run);
  run();
  other.join();

  EXPECT_EQ(library_calls().mistakes, before) << last_mistake();
  EXPECT_TRUE(allclose(conv2d(x, w).to("cpu"), conv2d(x.to("cpu"), w.to("cpu")),
                       {.rtol = 1e-5, .atol = 1e-5}));
}

// Calls of cuDNN for a convolution of (1, 2, 5, 5) with a filter of (3, 2, 3, 3).
class Cudnn : public CudaConvolutions {
 protected:
  void SetUp() override {
    CudaConvolutions::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
    cudnnSetStream(handle_, stream());
    cudnnCreateTensorDescriptor(&x_);
    cudnnCreateTensorDescriptor(&y_);
    cudnnCreateFilterDescriptor(&w_);
    cudnnCreateConvolutionDescriptor(&conv_);
    set_tensor(x_, {1, 2, 5, 5});
    set_tensor(y_, {1, 3, 3, 3});
    const int filter[] = {3, 2, 3, 3};
    cudnnSetFilterNdDescriptor(w_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, filter);
    const int none[] = {0, 0}, one[] = {1, 1};
    cudnnSetConvolutionNdDescriptor(conv_, 2, none, one, one, CUDNN_CROSS_CORRELATION,
                                    CUDNN_DATA_FLOAT);
  }

  void TearDown() override {
    CudaConvolutions::TearDown();
    if (handle_ == nullptr) return;
    cudnnDestroyTensorDescriptor(x_);
    cudnnDestroyTensorDescriptor(y_);
    cudnnDestroyFilterDescriptor(w_);
    cudnnDestroyConvolutionDescriptor(conv_);
    cudnnDestroy(handle_);
  }

  static void set_tensor(cudnnTensorDescriptor_t desc, const std::array<int, 4>& size) {
    const int stride[] = {size[1] * size[2] * size[3], size[2] * size[3], size[3], 1};
    EXPECT_EQ(cudnnSetTensorNdDescriptor(desc, CUDNN_DATA_FLOAT, 4, size.data(), stride),
              CUDNN_STATUS_SUCCESS);
  }

  std::vector<cudnnConvolutionFwdAlgoPerf_t> search() {
    std::vector<cudnnConvolutionFwdAlgoPerf_t> results(8);
    int count = 0;
    status_ = cudnnGetConvolutionForwardAlgorithm_v7(handle_, x_, w_, conv_, y_, 8, &count,
                                                     results.data());
    results.resize(static_cast<size_t>(count));
    return results;
  }

  cudnnStatus_t convolve(cudnnConvolutionFwdAlgo_t algorithm, void* y, size_t workspace_bytes) {
    const float one = 1, zero = 0;
    return cudnnConvolutionForward(handle_, &one, x_, x_data_.data(), w_, w_data_.data(), conv_,
                                   algorithm, workspace_.data(), workspace_bytes, &zero, y_, y);
  }

  cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t conv_ = nullptr;
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
  OnDevice x_data_{numbers(50)}, w_data_{numbers(54)}, y_data_{numbers(27)},
      workspace_{numbers(1024)};
};

TEST_F(Cudnn, WantsTheMathTypeOfTheResult) {
  cudnnSetConvolutionMathType(conv_, CUDNN_TENSOR_OP_MATH);
  const auto found = search();
  ASSERT_GE(found.size(), 3U);
  const auto& result = found[1];  // the first one needs too much memory
  ASSERT_EQ(result.algo, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
  ASSERT_NE(result.mathType, CUDNN_TENSOR_OP_MATH);
  EXPECT_NE(found.back().status, CUDNN_STATUS_SUCCESS);

  EXPECT_MISTAKE(convolve(result.algo, y_data_.data(), result.memory), CUDNN_STATUS_NOT_SUPPORTED,
                 "was proposed with math type 0, but the convolution has 1");
  cudnnSetConvolutionMathType(conv_, result.mathType);
  EXPECT_EQ(convolve(result.algo, y_data_.data(), result.memory), CUDNN_STATUS_SUCCESS);
  const Tensor expected =
      conv2d(flow::tensor(numbers(50), {1, 2, 5, 5}), flow::tensor(numbers(54), {3, 2, 3, 3}));
  EXPECT_LT(largest_difference(y_data_.tensor, expected), 1e-5);
}

TEST_F(Cudnn, FindsWrongDescriptorsAndMemory) {
  cudnnSetConvolutionMathType(conv_, CUDNN_FMA_MATH);
  const auto found = search();
  ASSERT_GE(found.size(), 3U);
  EXPECT_MISTAKE(convolve(found[1].algo, y_data_.data(), 0), CUDNN_STATUS_BAD_PARAM,
                 "bytes of workspace");
  EXPECT_MISTAKE(convolve(found[2].algo, static_cast<float*>(nullptr), 0), CUDNN_STATUS_BAD_PARAM,
                 "not in device memory");

  set_tensor(y_, {1, 3, 4, 3});
  static_cast<void>(search());
  EXPECT_MISTAKE(status_, CUDNN_STATUS_BAD_PARAM, "spatial dim 0 of y has 4 elements, not 3");
  set_tensor(y_, {1, 4, 3, 3});
  static_cast<void>(search());
  EXPECT_MISTAKE(status_, CUDNN_STATUS_BAD_PARAM, "4 of y, a filter of 3 by 2");
}

// ---- graphs of operations

TEST_F(CudaConvolutions, AttentionComesFromCudnnAsAGraph) {
  const auto parts = [](const Tensor& q) {
    const Tensor x = q.detach().requires_grad_();
    const Tensor y = scaled_dot_product_attention(x, x, x, {.is_causal = true});
    return std::vector<Tensor>{y.detach(), grad({y}, {x}, {.grad_outputs = {y.detach()}})[0]};
  };
  manual_seed(1);
  const Tensor q = cast(randn({1, 2, 72, 16}), bfloat16);
  const LibraryCalls before = library_calls();

  const auto actual = parts(q.to("cuda"));

  EXPECT_EQ(library_calls().graphs - before.graphs, 2);
  const auto expected = parts(cast(q, float32));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LT(largest_difference(actual[i], expected[i]), 3e-2 * abs(expected[i]).max().item())
        << i;
  }
}

// A thread that has neither device ends the ranks.
TEST_F(CudaConvolutions, HandlesEndWhileTheirDeviceIsCurrent) {
  const LibraryCalls before = library_calls();

  run_ranks(2, [] {
    const Tensor x = randn({1, 2, 72, 16}, {.device = "cuda"});
    matmul(x, x.transpose(2, 3));
    conv2d(x, randn({3, 2, 3, 3}, {.device = "cuda"}));
    const Tensor q = cast(x, bfloat16);
    scaled_dot_product_attention(q, q, q);
    cuda_emulator::refuse_algorithms(100);
    matmul(q, q.transpose(2, 3));
    comm::barrier();
  });

  EXPECT_EQ(library_calls().mistakes - before.mistakes, 0) << last_mistake();
}

TEST_F(CudaConvolutions, GraphsOfWrongDescriptorsAreFound) {
  cudnnBackendDescriptor_t tensor = nullptr, operation = nullptr;
  cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &tensor);
  cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, &operation);
  const int64_t number = 1;
  EXPECT_MISTAKE(
      cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 1, &number),
      CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "was given 1 values");
  EXPECT_MISTAKE(
      cudnnBackendSetAttribute(tensor, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_INT64, 1, &number),
      CUDNN_STATUS_BAD_PARAM, "has no attribute");
  EXPECT_MISTAKE(cudnnBackendFinalize(tensor), CUDNN_STATUS_BAD_PARAM, "lacks attribute");
  EXPECT_MISTAKE(cudnnBackendSetAttribute(operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensor),
                 CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "not finalized");
  cudnnBackendDestroyDescriptor(operation);
  cudnnBackendDestroyDescriptor(tensor);
}

}  // namespace

}  // namespace flow
