// The products of matrices that the emulated cuBLAS and cuBLASLt compute.
#pragma once

#include <cstdint>

#include "cublas_api.h"

namespace cuda_emulator {

// `count` matrices in column-major order, as they are stored.
struct Matrices {
  cudaDataType type = CUDA_R_32F;
  int64_t rows = 0, columns = 0;
  int64_t leading = 0;  // elements from one column to the next
  int64_t step = 0;     // elements from one matrix to the next
  int64_t count = 1;
};

// What is done to the elements before they are stored.
struct Epilogue {
  enum class Function { kNone, kRelu, kGelu, kGeluGradient };

  Function function = Function::kNone;
  const void* bias = nullptr;  // an element for each row of d, of d's type
  int64_t bias_step = 0;
  // The sum of each row of op(a), or of each column of op(b), of d's type.
  enum class Sums { kNone, kOfA, kOfB };
  Sums sums = Sums::kNone;
  void* sums_data = nullptr;
  int64_t sums_step = 0;
  // The argument of gelu, of d's type: stored by kGelu, read by kGeluGradient.
  void* aux = nullptr;
  int64_t aux_leading = 0;
  int64_t aux_step = 0;
};

// d = epilogue(alpha op(a) op(b) + beta c), with sums in float, or in double for elements of
// double.
struct Product {
  Matrices a, b, c, d;
  bool a_transposed = false, b_transposed = false;
  const void* a_data = nullptr;
  const void* b_data = nullptr;
  const void* c_data = nullptr;
  void* d_data = nullptr;
  double alpha = 1, beta = 0;
  Epilogue epilogue;

  int64_t inner() const { return a_transposed ? a.rows : a.columns; }

  // The number of sums of one matrix.
  int64_t num_sums() const { return epilogue.sums == Epilogue::Sums::kOfA ? d.rows : d.columns; }
};

size_t size_of(cudaDataType type);
// Whether a library has products with operands of `type` for these types of sums and of alpha.
bool has_products(cudaDataType type, cublasComputeType_t sums, cudaDataType scale);

// Each reports a mistake, names `call`, and returns false.
bool check_shapes(const char* call, const Product& product);
// Whether the matrices are in device memory, and start at multiples of their elements.
bool check_memory(const char* call, const Product& product);

// Queues the product, which first overwrites the workspace.
cudaError_t enqueue_product(const Product& product, void* workspace, size_t workspace_bytes,
                            cudaStream_t stream);

// Reads alpha or beta in host memory.
double read_scale(const void* number, cudaDataType type);

}  // namespace cuda_emulator
