#include "cublas_product.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/float16.h"
#include "emulated_library.h"

namespace cuda_emulator {

namespace {

using flow::str;

// The approximation by tanh, which is the library's gelu (Hendrycks and Gimpel 2016).
double gelu_slope(double x, double& value) {
  const double factor = std::sqrt(2 / M_PI);
  const double inner = factor * (x + 0.044715 * x * x * x);
  const double t = std::tanh(inner);
  value = 0.5 * x * (1 + t);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * factor * (1 + 3 * 0.044715 * x * x);
}

// Element (i, k) of op(a), and (k, j) of op(b).
template <class T>
T a_element(const Product& product, const T* a, int64_t i, int64_t k) {
  return a[product.a_transposed ? i * product.a.leading + k : k * product.a.leading + i];
}

template <class T>
T b_element(const Product& product, const T* b, int64_t k, int64_t j) {
  return b[product.b_transposed ? k * product.b.leading + j : j * product.b.leading + k];
}

// From the last element to the first, as no order is promised.
template <class T, class Sum>
void sum_operand(const Product& product, const T* a, const T* b, T* sums) {
  const bool is_of_a = product.epilogue.sums == Epilogue::Sums::kOfA;
  for (int64_t at = 0; at < product.num_sums(); ++at) {
    Sum sum = 0;
    for (int64_t k = product.inner() - 1; k >= 0; --k)
      sum +=
          static_cast<Sum>(is_of_a ? a_element(product, a, at, k) : b_element(product, b, k, at));
    sums[at] = static_cast<T>(sum);
  }
}

template <class T>
void multiply(const Product& product) {
  using Sum = std::conditional_t<sizeof(T) == 8, double, float>;
  const Epilogue& epilogue = product.epilogue;
  const int64_t inner = product.inner();
  for (int64_t matrix = 0; matrix < product.d.count; ++matrix) {
    const T* const a = static_cast<const T*>(product.a_data) + matrix * product.a.step;
    const T* const b = static_cast<const T*>(product.b_data) + matrix * product.b.step;
    const T* const c = static_cast<const T*>(product.c_data) + matrix * product.c.step;
    T* const d = static_cast<T*>(product.d_data) + matrix * product.d.step;
    const T* const bias = static_cast<const T*>(epilogue.bias);
    T* const aux = static_cast<T*>(epilogue.aux);
    if (epilogue.sums != Epilogue::Sums::kNone) {
      sum_operand<T, Sum>(product, a, b,
                          static_cast<T*>(epilogue.sums_data) + matrix * epilogue.sums_step);
    }
    for (int64_t j = 0; j < product.d.columns; ++j) {
      for (int64_t i = 0; i < product.d.rows; ++i) {
        Sum sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          sum += static_cast<Sum>(a_element(product, a, i, k)) *
                 static_cast<Sum>(b_element(product, b, k, j));
        }
        sum *= static_cast<Sum>(product.alpha);
        if (product.beta != 0)
          sum += static_cast<Sum>(product.beta) * static_cast<Sum>(c[j * product.c.leading + i]);
        if (bias != nullptr) sum += static_cast<Sum>(bias[matrix * epilogue.bias_step + i]);
        const int64_t kept = matrix * epilogue.aux_step + j * epilogue.aux_leading + i;
        double value = 0;
        if (epilogue.function == Epilogue::Function::kRelu) sum = std::max(sum, Sum{0});
        if (epilogue.function == Epilogue::Function::kGelu) {
          if (aux != nullptr) aux[kept] = static_cast<T>(sum);
          static_cast<void>(gelu_slope(static_cast<double>(sum), value));
          sum = static_cast<Sum>(value);
        }
        if (epilogue.function == Epilogue::Function::kGeluGradient) {
          const auto x = static_cast<double>(static_cast<Sum>(aux[kept]));
          sum *= static_cast<Sum>(gelu_slope(x, value));
        }
        d[j * product.d.leading + i] = static_cast<T>(sum);
      }
    }
  }
}

bool mistake(const char* call, const std::string& text) {
  report_mistake(str(call, ": ", text));
  return false;
}

bool check_matrices(const char* call, const char* name, const Matrices& matrices) {
  if (matrices.rows < 1 || matrices.columns < 1 || matrices.count < 1) {
    return mistake(call, str(name, " has ", matrices.rows, " rows, ", matrices.columns,
                             " columns and ", matrices.count, " matrices"));
  }
  if (matrices.leading < matrices.rows) {
    return mistake(call, str(name, " has a leading dim of ", matrices.leading, " for ",
                             matrices.rows, " rows"));
  }
  if (matrices.step < 0) {
    return mistake(call, str("the matrices of ", name, " are ", matrices.step, " apart"));
  }
  return true;
}

bool check_block(const char* call, const char* name, const void* data, int64_t elements,
                 cudaDataType type) {
  const size_t size = size_of(type);
  if (reinterpret_cast<uintptr_t>(data) % size != 0) {
    return mistake(call, str(name, " does not start at a multiple of its elements"));
  }
  if (is_allocated(data, static_cast<size_t>(elements) * size)) return true;
  return mistake(call, str("the ", elements, " elements of ", name, " are not in device memory"));
}

int64_t extent(const Matrices& matrices) {
  return (matrices.count - 1) * matrices.step + (matrices.columns - 1) * matrices.leading +
         matrices.rows;
}

}  // namespace

size_t size_of(cudaDataType type) {
  if (type == CUDA_R_64F) return 8;
  return type == CUDA_R_32F ? 4 : 2;
}

bool has_products(cudaDataType type, cublasComputeType_t sums, cudaDataType scale) {
  if (type == CUDA_R_64F) return sums == CUBLAS_COMPUTE_64F && scale == CUDA_R_64F;
  const bool is_float = type == CUDA_R_32F;
  return (is_float || type == CUDA_R_16F || type == CUDA_R_16BF) && scale == CUDA_R_32F &&
         (sums == CUBLAS_COMPUTE_32F || (is_float && sums == CUBLAS_COMPUTE_32F_FAST_TF32));
}

bool check_shapes(const char* call, const Product& product) {
  const Matrices& d = product.d;
  if (!check_matrices(call, "a", product.a) || !check_matrices(call, "b", product.b) ||
      !check_matrices(call, "c", product.c) || !check_matrices(call, "d", d)) {
    return false;
  }
  const int64_t rows = product.a_transposed ? product.a.columns : product.a.rows;
  const int64_t columns = product.b_transposed ? product.b.rows : product.b.columns;
  const int64_t b_inner = product.b_transposed ? product.b.columns : product.b.rows;
  if (rows != d.rows || columns != d.columns || b_inner != product.inner()) {
    return mistake(call, str("(", rows, ", ", product.inner(), ") by (", b_inner, ", ", columns,
                             ") does not give (", d.rows, ", ", d.columns, ")"));
  }
  if (product.c.rows != d.rows || product.c.columns != d.columns) {
    return mistake(call, "c and d differ in shape");
  }
  for (const Matrices* matrices : {&product.a, &product.b, &product.c}) {
    if (matrices->count != d.count) return mistake(call, "the counts of matrices differ");
    if (matrices->type != d.type) return mistake(call, "the types of the matrices differ");
  }
  if (d.count > 1 && d.step < (d.columns - 1) * d.leading + d.rows) {
    return mistake(call, "the matrices of d overlap");
  }
  return true;
}

bool check_memory(const char* call, const Product& product) {
  if (!check_block(call, "a", product.a_data, extent(product.a), product.a.type) ||
      !check_block(call, "b", product.b_data, extent(product.b), product.b.type) ||
      !check_block(call, "d", product.d_data, extent(product.d), product.d.type)) {
    return false;
  }
  if (product.beta != 0 &&
      !check_block(call, "c", product.c_data, extent(product.c), product.c.type)) {
    return false;
  }
  if (product.c_data == product.d_data && product.c.leading != product.d.leading) {
    return mistake(call, "c and d share memory in different layouts");
  }
  const Epilogue& epilogue = product.epilogue;
  if (epilogue.bias != nullptr &&
      !check_block(call, "the bias", epilogue.bias,
                   (product.d.count - 1) * epilogue.bias_step + product.d.rows, product.d.type)) {
    return false;
  }
  if (epilogue.sums != Epilogue::Sums::kNone) {
    const int64_t length = product.num_sums();
    if (product.d.count > 1 && epilogue.sums_step < length)
      return mistake(call, "the sums of the matrices overlap");
    if (!check_block(call, "the sums", epilogue.sums_data,
                     (product.d.count - 1) * epilogue.sums_step + length, product.d.type)) {
      return false;
    }
  }
  if (epilogue.aux == nullptr) return true;
  const Matrices aux{product.d.type,       product.d.rows,    product.d.columns,
                     epilogue.aux_leading, epilogue.aux_step, product.d.count};
  return check_matrices(call, "aux", aux) &&
         check_block(call, "aux", epilogue.aux, extent(aux), aux.type);
}

cudaError_t enqueue_product(const Product& product, void* workspace, size_t workspace_bytes,
                            cudaStream_t stream) {
  return enqueue(stream, [product, workspace, workspace_bytes] {
    if (workspace_bytes > 0) std::memset(workspace, 0xff, workspace_bytes);
    switch (product.d.type) {
      case CUDA_R_32F:
        return multiply<float>(product);
      case CUDA_R_64F:
        return multiply<double>(product);
      case CUDA_R_16F:
        return multiply<flow::Float16>(product);
      case CUDA_R_16BF:
        return multiply<flow::BFloat16>(product);
    }
  });
}

double read_scale(const void* number, cudaDataType type) {
  return type == CUDA_R_64F ? *static_cast<const double*>(number)
                            : static_cast<double>(*static_cast<const float*>(number));
}

}  // namespace cuda_emulator
