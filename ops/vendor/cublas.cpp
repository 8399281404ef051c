// Products by cuBLAS, for those that cuBLASLt refuses.
#include "ops/vendor/cublas.h"

#include <mutex>
#include <string>

#include <cublas_v2.h>

#include "core/context.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_launch.h"
#include "core/log.h"
#include "ops/vendor/cublas_call.h"

namespace flow::ops {

namespace {

// The functions used, looked up at the first product that needs them.
struct Library {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  cublasStatus_t (*multiply)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int64_t, int64_t,
                             int64_t, const void*, const void*, cudaDataType, int64_t, long long,
                             const void*, cudaDataType, int64_t, long long, const void*, void*,
                             cudaDataType, int64_t, long long, int64_t, cublasComputeType_t,
                             cublasGemmAlgo_t) = nullptr;
  bool is_loaded = false;

  Library() {
    const std::string versioned = str("libcublas.so.", CUBLAS_VER_MAJOR);
    std::string reason;
    void* const handle = cuda::load_library({versioned}, FLOW_CUBLAS_DIR, reason);
    if (handle == nullptr) {
      log_warning(str("[matmul] ", versioned, " was not found: ", reason));
      return;
    }
    find_cublas(handle, "cublasCreate_v2", create);
    find_cublas(handle, "cublasDestroy_v2", destroy);
    find_cublas(handle, "cublasSetStream_v2", set_stream);
    find_cublas(handle, "cublasSetWorkspace_v2", set_workspace);
    find_cublas(handle, "cublasSetMathMode", set_math_mode);
    find_cublas(handle, "cublasGemmStridedBatchedEx_64", multiply);
    is_loaded = true;
  }
};

const Library& library() {
  static const Library& instance = *new Library;  // immortal: ranks end late
  return instance;
}

// One per rank.
class Handle {
 public:
  Handle() {
    check_cublas(library().create(&handle_), "cublasCreate");
    // 16-bit products are summed in float32 throughout.
    check_cublas(library().set_math_mode(handle_, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
                 "cublasSetMathMode");
  }

  ~Handle() {
    if (handle_ != nullptr) static_cast<void>(library().destroy(handle_));
  }

  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  cublasHandle_t get() const { return handle_; }

  std::mutex mutex;  // held while the handle is used

 private:
  cublasHandle_t handle_ = nullptr;
};

}  // namespace

// cuBLAS uses column-major order: c' = b' a' is computed, with the operands exchanged.
bool run_device_gemm_plain(const KernelContext& ctx, const DeviceGemm& gemm,
                           const DeviceGemmData& data, bool adds) {
  const cudaStream_t stream = cuda::stream_of(ctx);  // makes the rank's device current
  if (!library().is_loaded) return false;
  auto& handle = ctx.rank.slot<Handle>();
  const std::lock_guard lock(handle.mutex);
  check_cublas(library().set_stream(handle.get(), stream), "cublasSetStream");
  const Ref<Storage> workspace = ctx.scratch(kGemmWorkspaceBytes);
  check_cublas(library().set_workspace(handle.get(), workspace->data(), kGemmWorkspaceBytes),
               "cublasSetWorkspace");
  const cudaDataType_t type = cublas_type(gemm.dtype);
  const CublasFactor alpha(gemm.dtype, true), beta(gemm.dtype, adds);
  const cublasStatus_t status =
      library().multiply(handle.get(), gemm.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                         gemm.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, gemm.n, gemm.m, gemm.k,
                         alpha.address(), data.b, type, gemm.b_leading, gemm.b_step, data.a, type,
                         gemm.a_leading, gemm.a_step, beta.address(), data.c, type, gemm.n,
                         gemm.m * gemm.n, gemm.batch, cublas_sums(gemm.dtype), CUBLAS_GEMM_DEFAULT);
  if (!is_cublas_refusal(status)) check_cublas(status, "cublasGemmStridedBatchedEx");
  if (status != CUBLAS_STATUS_SUCCESS) cuda::refuse_in_capture("cuBLAS refuses a product");
  return status == CUBLAS_STATUS_SUCCESS;
}

}  // namespace flow::ops
