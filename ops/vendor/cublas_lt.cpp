#include "ops/vendor/cublas_lt.h"

#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <cublasLt.h>

#include "core/context.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_launch.h"
#include "core/log.h"
#include "ops/vendor/cublas_call.h"

namespace flow::ops {

namespace {

// The functions used, looked up once. The library is large: linked, it would delay the start of
// programs that never multiply on a device.
struct Library {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;

  Library() {
    const std::string versioned = str("libcublasLt.so.", CUBLAS_VER_MAJOR);
    std::string reason;
    void* const handle = cuda::load_library({versioned}, FLOW_CUBLAS_DIR, reason);
    if (handle == nullptr) {
      throw Unsupported(str("[matmul] ", versioned, " was not found: ", reason,
                            "; install cuBLAS, or name its folder in FLOW_CUDA_LIBS"));
    }
    find_cublas(handle, "cublasLtCreate", create);
    find_cublas(handle, "cublasLtDestroy", destroy);
    find_cublas(handle, "cublasLtMatmul", matmul);
    find_cublas(handle, "cublasLtMatmulDescCreate", desc_create);
    find_cublas(handle, "cublasLtMatmulDescDestroy", desc_destroy);
    find_cublas(handle, "cublasLtMatmulDescSetAttribute", desc_set);
    find_cublas(handle, "cublasLtMatrixLayoutCreate", layout_create);
    find_cublas(handle, "cublasLtMatrixLayoutDestroy", layout_destroy);
    find_cublas(handle, "cublasLtMatrixLayoutSetAttribute", layout_set);
    find_cublas(handle, "cublasLtMatmulPreferenceCreate", preference_create);
    find_cublas(handle, "cublasLtMatmulPreferenceSetAttribute", preference_set);
    find_cublas(handle, "cublasLtMatmulPreferenceDestroy", preference_destroy);
    find_cublas(handle, "cublasLtMatmulAlgoGetHeuristic", heuristic);
  }
};

const Library& library() {
  static const Library& instance = *new Library;  // immortal: ranks end late
  return instance;
}

// The prepared state for one form of product. cuBLASLt uses column-major order: c' = b' a' is
// computed, with the operands exchanged.
struct Prepared {
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t first = nullptr;   // b
  cublasLtMatrixLayout_t second = nullptr;  // a
  cublasLtMatrixLayout_t result = nullptr;
  std::vector<cublasLtMatmulAlgo_t> algorithms;  // the best first; those that failed are removed

  Prepared() = default;
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  ~Prepared() {
    if (desc != nullptr) static_cast<void>(library().desc_destroy(desc));
    for (cublasLtMatrixLayout_t layout : {first, second, result})
      if (layout != nullptr) static_cast<void>(library().layout_destroy(layout));
  }
};

void set_desc(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
              const auto& value) {
  check_cublas(library().desc_set(desc, attribute, &value, sizeof(value)),
               "cublasLtMatmulDescSetAttribute");
}

cublasLtMatrixLayout_t make_layout(cudaDataType_t type, int64_t rows, int64_t columns,
                                   int64_t leading, int64_t batch, int64_t step) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_cublas(library().layout_create(&layout, type, static_cast<uint64_t>(rows),
                                       static_cast<uint64_t>(columns), leading),
               "cublasLtMatrixLayoutCreate");
  const auto count = static_cast<int32_t>(batch);
  check_cublas(
      library().layout_set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
      "cublasLtMatrixLayoutSetAttribute");
  check_cublas(library().layout_set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                    sizeof(step)),
               "cublasLtMatrixLayoutSetAttribute");
  return layout;
}

// The names of operands are exchanged here too. D' has n rows and m columns: BGRADA sums the first
// operand, which is b, into an element for each row, and BGRADB sums a into one for each column.
cublasLtEpilogue_t epilogue_of(const DeviceGemm& gemm) {
  switch (gemm.epilogue) {
    case GemmEpilogue::kNone:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case GemmEpilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case GemmEpilogue::kSumsOfA:
      return CUBLASLT_EPILOGUE_BGRADB;
    case GemmEpilogue::kSumsOfB:
      return CUBLASLT_EPILOGUE_BGRADA;
    case GemmEpilogue::kGelu:
      return CUBLASLT_EPILOGUE_GELU_AUX;
    case GemmEpilogue::kBiasGelu:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case GemmEpilogue::kGeluGrad:
      return CUBLASLT_EPILOGUE_DGELU;
  }
  throw InternalError("[matmul] no such epilogue");
}

// The memory of the sums is the bias of cuBLASLt too. Searches take alignments from the addresses.
void set_addresses(cublasLtMatmulDesc_t desc, const DeviceGemm& gemm, const DeviceGemmData& data) {
  switch (gemm.epilogue) {
    case GemmEpilogue::kNone:
      return;
    case GemmEpilogue::kSumsOfA:
    case GemmEpilogue::kSumsOfB:
      return set_desc(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, data.sums);
    case GemmEpilogue::kBias:
      return set_desc(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, data.bias);
    case GemmEpilogue::kBiasGelu:
      set_desc(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, data.bias);
      [[fallthrough]];
    case GemmEpilogue::kGelu:
    case GemmEpilogue::kGeluGrad:
      return set_desc(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, data.aux);
  }
}

void set_epilogue(cublasLtMatmulDesc_t desc, const DeviceGemm& gemm, const DeviceGemmData& data) {
  if (gemm.epilogue == GemmEpilogue::kNone) return;
  const cudaDataType_t type = cublas_type(gemm.dtype);
  set_desc(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(gemm));
  set_addresses(desc, gemm, data);
  const bool has_aux = gemm.epilogue == GemmEpilogue::kGelu ||
                       gemm.epilogue == GemmEpilogue::kBiasGelu ||
                       gemm.epilogue == GemmEpilogue::kGeluGrad;
  if (has_aux) {
    set_desc(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, gemm.n);
    set_desc(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, type);
  }
  const bool has_bias = !has_aux || gemm.epilogue == GemmEpilogue::kBiasGelu;
  if (has_bias) set_desc(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type);
}

// Algorithms differ in the alignment they need; views may start at any element.
struct Alignments {
  uint32_t matrices = 0;
  uint32_t epilogue = 0;  // of its vectors and aux, exactly, as searches take it from the addresses

  Alignments(const DeviceGemm& gemm, const DeviceGemmData& data)
      : matrices(common_alignment({data.a, data.b, data.c})),
        epilogue(common_alignment({data.bias, data.sums, data.aux})) {
    if (matrices < kBest) matrices = static_cast<uint32_t>(dtype_size(gemm.dtype));
  }

  friend auto operator<=>(const Alignments& a, const Alignments& b) = default;

 private:
  static constexpr uint32_t kBest = 16;

  // The largest power of two up to kBest that divides all addresses.
  static uint32_t common_alignment(std::initializer_list<const void*> addresses) {
    uintptr_t bits = kBest;
    for (const void* address : addresses)
      bits |= reinterpret_cast<uintptr_t>(address);
    return static_cast<uint32_t>(bits & (~bits + 1));
  }
};

// The addresses of `data` are as aligned as those of later calls.
void prepare(cublasLtHandle_t handle, const DeviceGemm& gemm, const DeviceGemmData& data,
             const Alignments& alignments, Prepared& prepared) {
  const cudaDataType_t type = cublas_type(gemm.dtype);
  const cudaDataType_t scale = gemm.dtype == DType::kFloat64 ? CUDA_R_64F : CUDA_R_32F;
  check_cublas(library().desc_create(&prepared.desc, cublas_sums(gemm.dtype), scale),
               "cublasLtMatmulDescCreate");
  const cublasOperation_t first = gemm.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = gemm.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  set_desc(prepared.desc, CUBLASLT_MATMUL_DESC_TRANSA, first);
  set_desc(prepared.desc, CUBLASLT_MATMUL_DESC_TRANSB, second);
  set_epilogue(prepared.desc, gemm, data);
  prepared.first = gemm.b_transposed
                       ? make_layout(type, gemm.k, gemm.n, gemm.b_leading, gemm.batch, gemm.b_step)
                       : make_layout(type, gemm.n, gemm.k, gemm.b_leading, gemm.batch, gemm.b_step);
  prepared.second =
      gemm.a_transposed
          ? make_layout(type, gemm.m, gemm.k, gemm.a_leading, gemm.batch, gemm.a_step)
          : make_layout(type, gemm.k, gemm.m, gemm.a_leading, gemm.batch, gemm.a_step);
  prepared.result = make_layout(type, gemm.n, gemm.m, gemm.n, gemm.batch, gemm.m * gemm.n);

  cublasLtMatmulPreference_t preference = nullptr;
  check_cublas(library().preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  check_cublas(library().preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                        &kGemmWorkspaceBytes, sizeof(kGemmWorkspaceBytes)),
               "cublasLtMatmulPreferenceSetAttribute");
  // Parts of k are not summed in the 16 bits of the result.
  const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  check_cublas(library().preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                        &schemes, sizeof(schemes)),
               "cublasLtMatmulPreferenceSetAttribute");
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    check_cublas(library().preference_set(preference, attribute, &alignments.matrices,
                                          sizeof(alignments.matrices)),
                 "cublasLtMatmulPreferenceSetAttribute");
  }
  constexpr int kMostAlgorithms = 8;
  std::array<cublasLtMatmulHeuristicResult_t, kMostAlgorithms> found = {};
  int count = 0;
  const cublasStatus_t status =
      library().heuristic(handle, prepared.desc, prepared.first, prepared.second, prepared.result,
                          prepared.result, preference, kMostAlgorithms, found.data(), &count);
  if (!is_cublas_refusal(status)) check_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
  check_cublas(library().preference_destroy(preference), "cublasLtMatmulPreferenceDestroy");
  for (int i = 0; i < count; ++i) {
    const auto& result = found[static_cast<size_t>(i)];
    if (result.state == CUBLAS_STATUS_SUCCESS) prepared.algorithms.push_back(result.algo);
  }
}

// The states that a rank has prepared; they live as long as the rank.
class GemmCache {
 public:
  GemmCache() { check_cublas(library().create(&handle_), "cublasLtCreate"); }

  ~GemmCache() { static_cast<void>(library().destroy(handle_)); }

  GemmCache(const GemmCache&) = delete;
  GemmCache& operator=(const GemmCache&) = delete;

  cublasLtHandle_t handle() const { return handle_; }

  Prepared& find(const DeviceGemm& gemm, const DeviceGemmData& data) {
    const Alignments alignments(gemm, data);
    const Key key(gemm.dtype, gemm.m, gemm.n, gemm.k, gemm.batch, gemm.a_transposed,
                  gemm.b_transposed, gemm.a_leading, gemm.b_leading, gemm.a_step, gemm.b_step,
                  gemm.epilogue, alignments);
    const auto known = prepared_.find(key);
    if (known != prepared_.end()) return *known->second;
    auto made = std::make_unique<Prepared>();
    prepare(handle_, gemm, data, alignments, *made);
    return *prepared_.emplace(key, std::move(made)).first->second;
  }

  std::mutex mutex;  // held while what find() gave is used

 private:
  using Key = std::tuple<DType, int64_t, int64_t, int64_t, int64_t, bool, bool, int64_t, int64_t,
                         int64_t, int64_t, GemmEpilogue, Alignments>;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, std::unique_ptr<Prepared>> prepared_;
};

}  // namespace

bool run_device_gemm(const KernelContext& ctx, const DeviceGemm& gemm, const DeviceGemmData& data) {
  if (gemm.batch > std::numeric_limits<int32_t>::max()) return false;  // counted in 32 bits
  const cudaStream_t stream = cuda::stream_of(ctx);  // makes the rank's device current
  auto& cache = ctx.rank.slot<GemmCache>();
  const std::lock_guard lock(cache.mutex);
  Prepared& prepared = cache.find(gemm, data);
  if (prepared.algorithms.empty()) return false;
  set_addresses(prepared.desc, gemm, data);
  const Ref<Storage> workspace = ctx.scratch(kGemmWorkspaceBytes);
  const CublasFactor alpha(gemm.dtype, true), beta(gemm.dtype, false);
  while (!prepared.algorithms.empty()) {
    const cublasStatus_t status = library().matmul(
        cache.handle(), prepared.desc, alpha.address(), data.b, prepared.first, data.a,
        prepared.second, beta.address(), data.c, prepared.result, data.c, prepared.result,
        &prepared.algorithms.front(), workspace->data(), kGemmWorkspaceBytes, stream);
    if (status == CUBLAS_STATUS_SUCCESS) return true;
    if (!is_cublas_refusal(status)) check_cublas(status, "cublasLtMatmul");
    // Another algorithm could give other bits than the runs before.
    cuda::refuse_in_capture("cuBLASLt refuses a product");
    prepared.algorithms.erase(prepared.algorithms.begin());
  }
  return false;
}

}  // namespace flow::ops
