// cuBLASLt: checks descriptors and calls, proposes algorithms that differ in what they need, and
// multiplies in loops.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "core/error.h"
#include "cublasLt.h"
#include "cublas_product.h"
#include "emulated_library.h"

using cuda_emulator::Epilogue;
using cuda_emulator::LibraryObject;
using cuda_emulator::Matrices;
using cuda_emulator::Product;
using cuda_emulator::report_mistake;
using flow::str;

struct EmulatedCublasLt : cuda_emulator::LibraryHandle {};

struct EmulatedMatmulDesc : LibraryObject {
  int32_t compute_type = CUBLAS_COMPUTE_32F;
  int32_t scale_type = CUDA_R_32F;
  int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  int32_t a_operation = CUBLAS_OP_N;
  int32_t b_operation = CUBLAS_OP_N;
  int32_t c_operation = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  int64_t bias_step = 0;
  int32_t bias_type = -1;  // that of d
  void* aux = nullptr;
  int64_t aux_leading = 0;
  int64_t aux_step = 0;
  int32_t aux_type = -1;  // that of d
};

struct EmulatedMatrixLayout : LibraryObject {
  uint32_t type = CUDA_R_32F;
  int32_t order = CUBLASLT_ORDER_COL;
  uint64_t rows = 0;
  uint64_t columns = 0;
  int64_t leading = 0;
  int32_t count = 1;
  int64_t step = 0;
};

struct EmulatedPreference : LibraryObject {
  uint32_t search_mode = 0;
  uint64_t workspace_bytes = 0;
  uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::array<uint32_t, 4> alignment{256, 256, 256, 256};  // of a, b, c, d
};

namespace {

constexpr uint32_t kKeepsAux = 128;  // the bit of epilogues with an aux
constexpr uint32_t kSumsOperand = CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB;
constexpr uint64_t kAlgorithmMark = 0x656d756c61746564;

// What an algorithm needs of every matrix, whether it keeps sums in the workspace, and how it adds
// up parts of k. flow must not take the first two, which may round sums to 16 bits.
struct Algorithm {
  uint32_t alignment;
  bool uses_workspace;
  cublasLtReductionScheme_t scheme;
};

constexpr std::array<Algorithm, 6> kAlgorithms{{{16, true, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE},
                                                {1, false, CUBLASLT_REDUCTION_SCHEME_INPLACE},
                                                {16, true, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE},
                                                {16, false, CUBLASLT_REDUCTION_SCHEME_NONE},
                                                {4, true, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE},
                                                {1, false, CUBLASLT_REDUCTION_SCHEME_NONE}}};

bool rounds_sums(uint64_t scheme) {
  return scheme == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE ||
         scheme == CUBLASLT_REDUCTION_SCHEME_INPLACE;
}

cublasStatus_t wrong(const char* call, const std::string& text) {
  report_mistake(str(call, ": ", text));
  return CUBLAS_STATUS_INVALID_VALUE;
}

template <class T>
cublasStatus_t set(const char* call, T& field, const void* value, size_t bytes) {
  if (value == nullptr || bytes != sizeof(T)) {
    return wrong(call, str("an attribute of ", sizeof(T), " bytes was given ", bytes));
  }
  std::memcpy(&field, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t destroy(T* object) {
  delete object;
  return CUBLAS_STATUS_SUCCESS;
}

bool is_plain(uint32_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_DEFAULT || epilogue == CUBLASLT_EPILOGUE_BIAS;
}

std::array<const void*, 3> operands_of_epilogue(const Epilogue& epilogue) {
  return {epilogue.bias, epilogue.aux, epilogue.sums_data};
}

Matrices matrices_of(const EmulatedMatrixLayout& layout) {
  return {static_cast<cudaDataType>(layout.type),
          static_cast<int64_t>(layout.rows),
          static_cast<int64_t>(layout.columns),
          layout.leading,
          layout.step,
          layout.count};
}

// A product without its data; no value, and a status, if it is wrong or not supported.
std::optional<Product> describe(const char* call, const EmulatedMatmulDesc* desc,
                                const EmulatedMatrixLayout* a, const EmulatedMatrixLayout* b,
                                const EmulatedMatrixLayout* c, const EmulatedMatrixLayout* d,
                                cublasStatus_t& status) {
  status = CUBLAS_STATUS_INVALID_VALUE;
  if (desc == nullptr || a == nullptr || b == nullptr || c == nullptr || d == nullptr) {
    report_mistake(str(call, ": a descriptor is missing"));
    return {};
  }
  Product product;
  product.a = matrices_of(*a);
  product.b = matrices_of(*b);
  product.c = matrices_of(*c);
  product.d = matrices_of(*d);
  product.a_transposed = desc->a_operation != CUBLAS_OP_N;
  product.b_transposed = desc->b_operation != CUBLAS_OP_N;
  if (!check_shapes(call, product)) return {};
  const bool has_bias = (desc->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  const auto type = static_cast<int32_t>(product.d.type);
  const auto is_of_d = [&](int32_t given) { return given == -1 || given == type; };
  status = CUBLAS_STATUS_NOT_SUPPORTED;
  for (const EmulatedMatrixLayout* layout : {a, b, c, d})
    if (layout->order != CUBLASLT_ORDER_COL) return {};
  if (!cuda_emulator::has_products(product.d.type,
                                   static_cast<cublasComputeType_t>(desc->compute_type),
                                   static_cast<cudaDataType>(desc->scale_type)) ||
      desc->pointer_mode != CUBLASLT_POINTER_MODE_HOST || desc->c_operation != CUBLAS_OP_N ||
      (has_bias && !is_of_d(desc->bias_type))) {
    return {};
  }
  const uint32_t function = desc->epilogue & ~static_cast<uint32_t>(CUBLASLT_EPILOGUE_BIAS);
  const bool has_aux = (desc->epilogue & kKeepsAux) != 0;
  if (cuda_emulator::refuses_epilogues() && !is_plain(desc->epilogue)) return {};
  switch (function) {
    case 0:  // the bias alone
    case CUBLASLT_EPILOGUE_DEFAULT:
      break;
    case CUBLASLT_EPILOGUE_RELU:
      product.epilogue.function = Epilogue::Function::kRelu;
      break;
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_AUX:
      product.epilogue.function = Epilogue::Function::kGelu;
      break;
    case CUBLASLT_EPILOGUE_DGELU:
      product.epilogue.function = Epilogue::Function::kGeluGradient;
      break;
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
      if (has_bias || !is_of_d(desc->bias_type)) return {};
      product.epilogue.sums =
          function == CUBLASLT_EPILOGUE_BGRADA ? Epilogue::Sums::kOfA : Epilogue::Sums::kOfB;
      product.epilogue.sums_data = desc->bias;
      product.epilogue.sums_step = desc->bias_step;
      break;
    default:
      return {};
  }
  if (type == CUDA_R_64F && desc->epilogue != CUBLASLT_EPILOGUE_DEFAULT) return {};
  if (has_aux) {
    constexpr int64_t kAuxUnit = 8;
    if (!is_of_d(desc->aux_type)) return {};
    if (desc->aux_leading < product.d.rows || desc->aux_leading % kAuxUnit != 0) {
      status = wrong(call, str("a leading dim of ", desc->aux_leading, " for the aux of ",
                               product.d.rows, " rows"));
      return {};
    }
    if (product.d.count > 1 && desc->aux_step % kAuxUnit != 0) {
      status = wrong(call, str("matrices of the aux are ", desc->aux_step, " elements apart"));
      return {};
    }
  }
  product.epilogue.bias = has_bias ? desc->bias : nullptr;
  product.epilogue.bias_step = desc->bias_step;
  product.epilogue.aux = has_aux ? desc->aux : nullptr;
  product.epilogue.aux_leading = desc->aux_leading;
  product.epilogue.aux_step = desc->aux_step;
  status = CUBLAS_STATUS_SUCCESS;
  return product;
}

// Identifies the product that an algorithm was proposed for.
uint64_t signature(const EmulatedMatmulDesc& desc, const Product& product) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](auto value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x100000001b3;
  };
  for (const Matrices* m : {&product.a, &product.b, &product.c, &product.d}) {
    for (const int64_t number : {m->rows, m->columns, m->leading, m->step, m->count})
      add(number);
    add(m->type);
  }
  add(desc.a_operation);
  add(desc.b_operation);
  add(desc.compute_type);
  add(desc.epilogue);
  return hash;
}

// The largest power of two that divides where columns and matrices start, if the first one starts
// at a multiple of `alignment`.
uint64_t alignment_of(const Matrices& matrices, uint64_t alignment) {
  const uint64_t size = cuda_emulator::size_of(matrices.type);
  uint64_t bits = alignment;
  if (matrices.columns > 1) bits |= static_cast<uint64_t>(matrices.leading) * size;
  if (matrices.count > 1) bits |= static_cast<uint64_t>(matrices.step) * size;
  return bits & (~bits + 1);
}

// The same for a vector or matrix of an epilogue, which searches judge by its address.
uint64_t alignment_of(const void* data) {
  const auto bits = reinterpret_cast<uintptr_t>(data);
  return data == nullptr ? ~uint64_t{0} : bits & (~bits + 1);
}

size_t workspace_of(const Algorithm& algorithm, const Product& product) {
  return algorithm.uses_workspace
             ? static_cast<size_t>(product.d.rows * product.d.columns * product.d.count) * 4
             : 0;
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new EmulatedCublasLt;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  handle->check_device("cublasLtDestroy");
  return destroy(handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc,
                                        cublasComputeType_t compute_type,
                                        cudaDataType_t scale_type) {
  *desc = new EmulatedMatmulDesc;
  (*desc)->compute_type = compute_type;
  (*desc)->scale_type = scale_type;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  return destroy(desc);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  constexpr auto* kCall = "cublasLtMatmulDescSetAttribute";
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
      return set(kCall, desc->compute_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
      return set(kCall, desc->scale_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return set(kCall, desc->pointer_mode, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(kCall, desc->a_operation, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(kCall, desc->b_operation, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSC:
      return set(kCall, desc->c_operation, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(kCall, desc->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(kCall, desc->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
      return set(kCall, desc->bias_step, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return set(kCall, desc->bias_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return set(kCall, desc->aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return set(kCall, desc->aux_leading, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
      return set(kCall, desc->aux_step, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
      return set(kCall, desc->aux_type, value, bytes);
  }
  return wrong(kCall, str("no attribute ", static_cast<int>(attribute)));
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading) {
  *layout = new EmulatedMatrixLayout;
  (*layout)->type = type;
  (*layout)->rows = rows;
  (*layout)->columns = columns;
  (*layout)->leading = leading;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy(layout);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  constexpr auto* kCall = "cublasLtMatrixLayoutSetAttribute";
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      return set(kCall, layout->type, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return set(kCall, layout->order, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return set(kCall, layout->rows, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return set(kCall, layout->columns, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return set(kCall, layout->leading, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return set(kCall, layout->count, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return set(kCall, layout->step, value, bytes);
  }
  return wrong(kCall, str("no attribute ", static_cast<int>(attribute)));
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new EmulatedPreference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  constexpr auto* kCall = "cublasLtMatmulPreferenceSetAttribute";
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_SEARCH_MODE:
      return set(kCall, preference->search_mode, value, bytes);
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(kCall, preference->workspace_bytes, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set(kCall, preference->schemes, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return set(kCall, preference->alignment[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return set(kCall, preference->alignment[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return set(kCall, preference->alignment[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(kCall, preference->alignment[3], value, bytes);
  }
  return wrong(kCall, str("no attribute ", static_cast<int>(attribute)));
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a_layout,
    cublasLtMatrixLayout_t b_layout, cublasLtMatrixLayout_t c_layout,
    cublasLtMatrixLayout_t d_layout, cublasLtMatmulPreference_t preference, int requested,
    cublasLtMatmulHeuristicResult_t results[], int* found) {
  constexpr auto* kCall = "cublasLtMatmulAlgoGetHeuristic";
  *found = 0;
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->check_device(kCall);
  if (requested < 1 || preference == nullptr) return wrong(kCall, "nothing is asked for");
  cublasStatus_t status{};
  const auto product = describe(kCall, desc, a_layout, b_layout, c_layout, d_layout, status);
  if (!product) return status;
  uint64_t alignment = ~uint64_t{0};
  const Matrices* const matrices[] = {&product->a, &product->b, &product->c, &product->d};
  for (size_t i = 0; i < std::size(matrices); ++i)
    alignment = std::min(alignment, alignment_of(*matrices[i], preference->alignment[i]));
  for (const void* data : operands_of_epilogue(product->epilogue))
    alignment = std::min(alignment, alignment_of(data));
  for (const Algorithm& algorithm : kAlgorithms) {
    const size_t bytes = workspace_of(algorithm, *product);
    if (algorithm.alignment > alignment || bytes > preference->workspace_bytes) continue;
    if ((algorithm.scheme & ~preference->schemes) != 0) continue;
    if (*found == requested) break;
    cublasLtMatmulHeuristicResult_t& result = results[*found];
    result = {};
    result.algo = {{kAlgorithmMark, signature(*desc, *product), static_cast<uint64_t>(*found),
                    algorithm.alignment, bytes, static_cast<uint64_t>(algorithm.scheme)}};
    result.workspaceSize = bytes;
    result.state = CUBLAS_STATUS_SUCCESS;
    result.wavesCount = 1;
    ++*found;
  }
  return *found > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  constexpr auto* kCall = "cublasLtMatmul";
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->check_device(kCall);
  if (alpha == nullptr || beta == nullptr) return wrong(kCall, "alpha or beta is missing");
  cublasStatus_t status{};
  auto product = describe(kCall, desc, a_layout, b_layout, c_layout, d_layout, status);
  if (!product) return status;
  if (algorithm == nullptr || algorithm->data[0] != kAlgorithmMark) {
    return wrong(kCall, "the algorithm is none that a search has proposed");
  }
  const auto [mark, proposed_for, position, alignment, needed, scheme, r0, r1] = algorithm->data;
  if (proposed_for != signature(*desc, *product)) {
    return wrong(kCall, "the algorithm was proposed for another product");
  }
  if (rounds_sums(scheme)) return wrong(kCall, "the algorithm may round sums to 16 bits");
  product->a_data = a;
  product->b_data = b;
  product->c_data = c;
  product->d_data = d;
  const auto scale = static_cast<cudaDataType>(desc->scale_type);
  product->alpha = cuda_emulator::read_scale(alpha, scale);
  product->beta = cuda_emulator::read_scale(beta, scale);
  for (const void* data : {a, b, c, static_cast<const void*>(d)}) {
    if (reinterpret_cast<uintptr_t>(data) % alignment != 0) {
      return wrong(kCall, str("the algorithm needs matrices aligned to ", alignment, " bytes"));
    }
  }
  const Epilogue& epilogue = product->epilogue;
  for (const void* data : operands_of_epilogue(epilogue)) {
    if (reinterpret_cast<uintptr_t>(data) % alignment != 0) {
      return wrong(kCall, str("the algorithm was proposed for an epilogue aligned to ", alignment));
    }
  }
  if ((desc->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 && epilogue.bias == nullptr) {
    return wrong(kCall, "the bias is missing");
  }
  if ((desc->epilogue & kKeepsAux) != 0 && epilogue.aux == nullptr) {
    return wrong(kCall, "the aux is missing");
  }
  if (epilogue.sums != Epilogue::Sums::kNone && epilogue.sums_data == nullptr) {
    return wrong(kCall, "the memory of the sums is missing");
  }
  if (workspace_bytes < needed) {
    return wrong(kCall,
                 str("the algorithm needs ", needed, " bytes of workspace, not ", workspace_bytes));
  }
  constexpr uintptr_t kWorkspaceAlignment = 16;
  if (workspace_bytes > 0 && (reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment != 0 ||
                              !cuda_emulator::is_allocated(workspace, workspace_bytes))) {
    return wrong(kCall, "the workspace is not device memory aligned to 16 bytes");
  }
  if (!check_memory(kCall, *product)) return CUBLAS_STATUS_INVALID_VALUE;
  if (cuda_emulator::refuses_products() ||
      position < static_cast<uint64_t>(std::max(cuda_emulator::refused_algorithms(), 0))) {
    cuda_emulator::count_call(&cuda_emulator::LibraryCalls::lt_refusals);
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  cuda_emulator::count_call(&cuda_emulator::LibraryCalls::lt_products);
  if ((desc->epilogue & kSumsOperand) != 0)
    cuda_emulator::count_call(&cuda_emulator::LibraryCalls::lt_sums);
  if ((desc->epilogue & kKeepsAux) != 0)
    cuda_emulator::count_call(&cuda_emulator::LibraryCalls::lt_gelus);
  return enqueue_product(*product, workspace, needed, stream) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}

std::span<const cuda_emulator::LibraryFunction> cuda_emulator::cublas_lt_functions() {
  static const LibraryFunction functions[] = {
      library_function("cublasLtCreate", cublasLtCreate),
      library_function("cublasLtDestroy", cublasLtDestroy),
      library_function("cublasLtMatmulDescCreate", cublasLtMatmulDescCreate),
      library_function("cublasLtMatmulDescDestroy", cublasLtMatmulDescDestroy),
      library_function("cublasLtMatmulDescSetAttribute", cublasLtMatmulDescSetAttribute),
      library_function("cublasLtMatrixLayoutCreate", cublasLtMatrixLayoutCreate),
      library_function("cublasLtMatrixLayoutDestroy", cublasLtMatrixLayoutDestroy),
      library_function("cublasLtMatrixLayoutSetAttribute", cublasLtMatrixLayoutSetAttribute),
      library_function("cublasLtMatmulPreferenceCreate", cublasLtMatmulPreferenceCreate),
      library_function("cublasLtMatmulPreferenceDestroy", cublasLtMatmulPreferenceDestroy),
      library_function("cublasLtMatmulPreferenceSetAttribute",
                       cublasLtMatmulPreferenceSetAttribute),
      library_function("cublasLtMatmulAlgoGetHeuristic", cublasLtMatmulAlgoGetHeuristic),
      library_function("cublasLtMatmul", cublasLtMatmul),
  };
  return functions;
}
