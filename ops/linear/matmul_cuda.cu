// Matrix products on a CUDA device. Floating products use the library of ops/vendor/cublas.h if the
// operands are stored as matrices; the others, and those that the library refuses, use a plain
// kernel. Outputs are contiguous.
#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/log.h"
#include "ops/kernel/element_cuda.cuh"
#include "ops/linear/contract_and_sum_op.h"
#include "ops/linear/linear_gelu_op.h"
#include "ops/linear/matmul_op.h"
#include "ops/linear/matmul_product.h"
#include "ops/local_parts.h"
#include "ops/vendor/cublas.h"

namespace flow::ops {

namespace {

// c[batch] = sum over k of a[batch, i, k] b[batch, k, j]; batch and k are lists of dims.
struct PlainProduct {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  int num_batch = 0, num_k = 0;
  int64_t batch_size[kMaxDims] = {}, a_batch[kMaxDims] = {}, b_batch[kMaxDims] = {};
  int64_t k_size[kMaxDims] = {}, a_k[kMaxDims] = {}, b_k[kMaxDims] = {};
  int64_t a_row = 0, b_column = 0, bias_stride = 0;
};

template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, int64_t, DeviceCompute<T>>;

template <class T>
__global__ void multiply(PlainProduct p, const T* a, const T* b, const T* bias, T* c) {
  for (int64_t item = grid_thread(); item < p.batch * p.m * p.n; item += grid_threads()) {
    const int64_t j = item % p.n;
    const int64_t i = item / p.n % p.m;
    int64_t rest = item / p.n / p.m;
    const T* row = a + i * p.a_row;
    const T* column = b + j * p.b_column;
    for (int d = p.num_batch - 1; d >= 0; --d) {
      row += rest % p.batch_size[d] * p.a_batch[d];
      column += rest % p.batch_size[d] * p.b_batch[d];
      rest /= p.batch_size[d];
    }
    Sum<T> sum = bias != nullptr ? static_cast<Sum<T>>(widen(bias[j * p.bias_stride])) : Sum<T>{0};
    for (int64_t inner = 0; inner < p.k; ++inner) {
      int64_t left = inner;
      int64_t a_at = 0;
      int64_t b_at = 0;
      for (int d = p.num_k - 1; d >= 0; --d) {
        const int64_t index = d == 0 ? left : left % p.k_size[d];
        if (d > 0) left /= p.k_size[d];
        a_at += index * p.a_k[d];
        b_at += index * p.b_k[d];
      }
      sum += static_cast<Sum<T>>(widen(row[a_at])) * static_cast<Sum<T>>(widen(column[b_at]));
    }
    c[item] = narrow<T>(static_cast<DeviceCompute<T>>(sum));
  }
}

template <class T>
void launch_plain(const KernelContext& ctx, const PlainProduct& product) {
  cuda::launch(multiply<T>, cuda::blocks_for(ctx.out(0).numel()), cuda::kBlockThreads, 0,
               cuda::stream_of(ctx), product, ctx.in(0).as<T>(), ctx.in(1).as<T>(),
               ctx.has_input(2) ? ctx.in(2).as<T>() : nullptr, ctx.out(0).as<T>());
}

template <class T>
void run_plain(const KernelContext& ctx) {
  launch_plain<T>(ctx, ctx.state_as<PlainProduct>());
}

KernelChoice choose_plain(const KernelQuery& query, const PlainProduct& product) {
  KernelFn fn = nullptr;
  dispatch_all(query.output(0).dtype, [&]<class T>() { fn = run_plain<T>; });
  return {fn, std::make_shared<const PlainProduct>(product)};
}

PlainProduct plain_product(const MatrixProduct& product) {
  PlainProduct plain;
  plain.m = product.m;
  plain.n = product.n;
  plain.k = product.k;
  plain.batch = product.batch.numel();
  plain.num_batch = static_cast<int>(product.batch.size());
  for (int d = 0; d < plain.num_batch; ++d) {
    plain.batch_size[d] = product.batch[d];
    plain.a_batch[d] = product.a.batch[d];
    plain.b_batch[d] = product.b.batch[d];
  }
  plain.num_k = 1;
  plain.k_size[0] = product.k;
  plain.a_k[0] = product.a.column;
  plain.b_k[0] = product.b.row;
  plain.a_row = product.a.row;
  plain.b_column = product.b.column;
  plain.bias_stride = product.bias_stride;
  return plain;
}

template <MatrixProduct (*kProduct)(const KernelQuery& query)>
KernelChoice select_plain(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  return choose_plain(query, plain_product(kProduct(query)));
}

PlainProduct plain_contraction(const KernelQuery& query) {
  const TensorMeta& a = query.input(0);
  const TensorMeta& b = query.input(1);
  const int64_t last = a.local_shape.size() - 1;
  PlainProduct plain;
  plain.m = a.local_shape[last];
  plain.n = b.local_shape[last];
  plain.a_row = a.strides[last];
  plain.b_column = b.strides[last];
  plain.k = 1;
  plain.num_k = static_cast<int>(last);
  for (int d = 0; d < plain.num_k; ++d) {
    plain.k *= a.local_shape[d];
    plain.k_size[d] = a.local_shape[d];
    plain.a_k[d] = a.strides[d];
    plain.b_k[d] = b.strides[d];
  }
  return plain;
}

KernelChoice select_plain_contraction(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  return choose_plain(query, plain_contraction(query));
}

// ---- through the library

// Sets how a (rows, columns) matrix is stored. Returns false if neither of its dims is dense.
bool set_storage(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
                 bool& transposed, int64_t& leading) {
  if ((column_stride == 1 || columns == 1) && (rows == 1 || row_stride >= columns)) {
    transposed = false;
    leading = rows == 1 ? columns : row_stride;
    return true;
  }
  if ((row_stride == 1 || rows == 1) && (columns == 1 || column_stride >= rows)) {
    transposed = true;
    leading = columns == 1 ? rows : column_stride;
    return true;
  }
  return false;
}

// Merges the leading dims and m if all matrices share b: one large product replaces many small
// ones.
void fold_batch_into_rows(MatrixProduct& product) {
  Shape rows = product.batch;
  Strides strides = product.a.batch;
  if (rows.empty() || rows.size() == kMaxDims) return;
  for (const int64_t stride : product.b.batch) {
    if (stride != 0) return;
  }
  rows.push_back(product.m);
  strides.push_back(product.a.row);
  int64_t count = 0;
  int64_t stride = 0;
  if (!collapse(rows, strides, rows.size(), count, stride)) return;
  product.m = count;
  product.a.row = stride;
  product.batch = Shape();
  product.a.batch = product.b.batch = Strides();
}

template <class T>
__global__ void add_bias(int64_t numel, int64_t columns, const T* bias, T* c) {
  for (int64_t i = grid_thread(); i < numel; i += grid_threads())
    c[i] += bias[i % columns];
}

// Each row of c is the bias, to which a product can be added.
template <class T>
__global__ void spread_bias(int64_t numel, int64_t columns, const T* bias, T* c) {
  for (int64_t i = grid_thread(); i < numel; i += grid_threads())
    c[i] = bias[i % columns];
}

// A product for the libraries, and the same one for libraries that do not take it.
struct LibraryProduct {
  LibraryProduct(const DeviceGemm& library_gemm, const PlainProduct& plain_product)
      : gemm(library_gemm), plain(plain_product) {}

  DeviceGemm gemm;
  PlainProduct plain;
  mutable std::atomic<bool> is_refused = false;  // by all libraries
};

// cuBLASLt adds a bias in the same pass, but not for float64.
bool run_cublaslt(const KernelContext& ctx, const DeviceGemm& gemm, const DeviceGemmData& data) {
  if (!run_device_gemm(ctx, gemm, data)) return false;
  if (!ctx.has_input(2) || gemm.epilogue == GemmEpilogue::kBias) return true;
  const TensorView& y = ctx.out(0);
  cuda::launch(add_bias<double>, cuda::blocks_for(y.numel()), cuda::kBlockThreads, 0,
               cuda::stream_of(ctx), y.numel(), gemm.n, ctx.in(2).as<double>(), y.as<double>());
  return true;
}

// cuBLAS adds the product to rows of the bias.
template <class T>
bool run_cublas(const KernelContext& ctx, const DeviceGemm& gemm, const DeviceGemmData& data) {
  const bool has_bias = ctx.has_input(2);
  const TensorView& y = ctx.out(0);
  if (has_bias) {
    cuda::launch(spread_bias<T>, cuda::blocks_for(y.numel()), cuda::kBlockThreads, 0,
                 cuda::stream_of(ctx), y.numel(), gemm.n, ctx.in(2).as<T>(), y.as<T>());
  }
  return run_device_gemm_plain(ctx, gemm, data, has_bias);
}

// cuBLASLt, or else cuBLAS, or else flow's plain kernel.
void run_library(const KernelContext& ctx) {
  const auto& state = ctx.state_as<LibraryProduct>();
  const DeviceGemm& gemm = state.gemm;
  DeviceGemmData data{.a = ctx.in(0).data, .b = ctx.in(1).data, .c = ctx.out(0).data};
  if (gemm.epilogue == GemmEpilogue::kBias) data.bias = ctx.in(2).data;
  if (!state.is_refused && run_cublaslt(ctx, gemm, data)) return;
  dispatch_floating(gemm.dtype, [&]<class T>() {
    if (!state.is_refused && run_cublas<T>(ctx, gemm, data)) return;
    if (!state.is_refused.exchange(true)) {
      log_warning(str("[matmul] neither cuBLASLt nor cuBLAS multiplies (", gemm.m, ", ", gemm.k,
                      ") by (", gemm.k, ", ", gemm.n, ") ", gemm.dtype,
                      "; flow's plain kernel does, which is slow"));
    }
    launch_plain<T>(ctx, state.plain);
  });
}

// The product as the libraries take it, without an epilogue; no value if they do not.
std::optional<DeviceGemm> library_gemm(const KernelQuery& query, MatrixProduct product) {
  const DType dtype = query.output(0).dtype;
  if (!is_floating(dtype) || query.output(0).local_numel == 0 || product.k == 0) return {};
  DeviceGemm gemm;
  fold_batch_into_rows(product);
  gemm.dtype = dtype;
  gemm.m = product.m;
  gemm.n = product.n;
  gemm.k = product.k;
  const Shape& batch = product.batch;
  int64_t count = 1;
  if (!collapse(batch, product.a.batch, batch.size(), gemm.batch, gemm.a_step) ||
      !collapse(batch, product.b.batch, batch.size(), count, gemm.b_step) ||
      !set_storage(gemm.m, gemm.k, product.a.row, product.a.column, gemm.a_transposed,
                   gemm.a_leading) ||
      !set_storage(gemm.k, gemm.n, product.b.row, product.b.column, gemm.b_transposed,
                   gemm.b_leading)) {
    return {};
  }
  return gemm;
}

KernelChoice choose_library(const KernelQuery& query, const MatrixProduct& product,
                            const PlainProduct& plain) {
  if (query.has_input(2) && product.n > 1 && product.bias_stride != 1) return {};
  std::optional<DeviceGemm> gemm = library_gemm(query, product);
  if (!gemm) return {};
  if (query.has_input(2) && gemm->dtype != DType::kFloat64) gemm->epilogue = GemmEpilogue::kBias;
  return {run_library, std::make_shared<const LibraryProduct>(*gemm, plain)};
}

template <MatrixProduct (*kProduct)(const KernelQuery& query)>
KernelChoice select_library(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  const MatrixProduct product = kProduct(query);
  return choose_library(query, product, plain_product(product));
}

// The product of a contraction; no value if an operand's leading dims are not evenly spaced.
std::optional<MatrixProduct> contraction_product(const KernelQuery& query) {
  const TensorMeta& a = query.input(0);
  const TensorMeta& b = query.input(1);
  const int64_t last = a.local_shape.size() - 1;
  MatrixProduct product;
  int64_t count = 1;
  product.m = a.local_shape[last];
  product.n = b.local_shape[last];
  product.a.row = a.strides[last];
  product.b.column = b.strides[last];
  if (!collapse(a.local_shape, a.strides, last, product.k, product.a.column) ||
      !collapse(b.local_shape, b.strides, last, count, product.b.row)) {
    return {};
  }
  return product;
}

KernelChoice select_library_contraction(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  const std::optional<MatrixProduct> product = contraction_product(query);
  if (!product) return {};
  return choose_library(query, *product, plain_contraction(query));
}

// ---- products with an epilogue

template <KernelChoice (*kSelect)(const KernelQuery&, DeviceType, std::string_view)>
KernelChoice select_pair_cuda(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  return kSelect(query, DeviceType::kCuda, {});
}

// A product with an epilogue, and two kernels one after the other where cuBLASLt refuses it.
struct EpilogueProduct {
  DeviceGemm gemm;
  KernelChoice pair;
};

void run_product(const KernelContext& ctx, const DeviceGemmData& data) {
  const auto& state = ctx.state_as<EpilogueProduct>();
  if (run_device_gemm(ctx, state.gemm, data)) return;
  KernelContext pair_ctx = ctx;
  pair_ctx.state = state.pair.state.get();
  state.pair.fn(pair_ctx);
}

KernelChoice choose_product(KernelFn run, const DeviceGemm& gemm, KernelChoice pair) {
  return {run, std::make_shared<const EpilogueProduct>(EpilogueProduct{gemm, std::move(pair)})};
}

void run_contract_and_sum(const KernelContext& ctx) {
  run_product(
      ctx,
      {.a = ctx.in(0).data, .b = ctx.in(1).data, .sums = ctx.out(1).data, .c = ctx.out(0).data});
}

KernelChoice select_contract_and_sum(const KernelQuery& query) {
  if (!parts_fit(query) || query.output(0).dtype == DType::kFloat64) return {};
  const std::optional<MatrixProduct> product = contraction_product(query);
  if (!product) return {};
  std::optional<DeviceGemm> gemm = library_gemm(query, *product);
  if (!gemm) return {};
  const bool is_first = query.attrs_as<ContractAndSumAttrs>().operand == 0;
  gemm->epilogue = is_first ? GemmEpilogue::kSumsOfA : GemmEpilogue::kSumsOfB;
  return choose_product(run_contract_and_sum, *gemm,
                        select_contract_then_sum(query, DeviceType::kCuda));
}

// The product of a call whose epilogue has an aux; no value if cuBLASLt cannot take it.
std::optional<DeviceGemm> gemm_with_aux(const KernelQuery& query, const MatrixProduct& product) {
  constexpr int64_t kAuxUnit = 8;  // elements, a number of which each row of the aux consists of
  if (query.output(0).dtype == DType::kFloat64) return {};
  const std::optional<DeviceGemm> gemm = library_gemm(query, product);
  if (!gemm || gemm->batch != 1 || gemm->n % kAuxUnit != 0) return {};
  return gemm;
}

void run_linear_gelu(const KernelContext& ctx) {
  run_product(ctx, {.a = ctx.in(0).data,
                    .b = ctx.in(1).data,
                    .bias = ctx.has_input(2) ? ctx.in(2).data : nullptr,
                    .aux = ctx.out(1).data,
                    .c = ctx.out(0).data});
}

KernelChoice select_linear_gelu(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  const MatrixProduct product = linear_product(query);
  std::optional<DeviceGemm> gemm = gemm_with_aux(query, product);
  const bool has_bias = query.has_input(2);
  if (!gemm || (has_bias && product.bias_stride != 1)) return {};
  gemm->epilogue = has_bias ? GemmEpilogue::kBiasGelu : GemmEpilogue::kGelu;
  return choose_product(run_linear_gelu, *gemm, select_linear_then_gelu(query, DeviceType::kCuda));
}

void run_matmul_gelu_grad(const KernelContext& ctx) {
  run_product(
      ctx, {.a = ctx.in(0).data, .b = ctx.in(1).data, .aux = ctx.in(2).data, .c = ctx.out(0).data});
}

KernelChoice select_matmul_gelu_grad(const KernelQuery& query) {
  if (!parts_fit(query) || !query.input(2).is_contiguous) return {};
  std::optional<DeviceGemm> gemm = gemm_with_aux(query, matmul_product(query));
  if (!gemm) return {};
  gemm->epilogue = GemmEpilogue::kGeluGrad;
  return choose_product(run_matmul_gelu_grad, *gemm,
                        select_matmul_then_gelu_grad(query, DeviceType::kCuda));
}

// `pair` takes everything that the op takes.
void add_products(KernelTable& table, const OpDef& op, KernelChoice (*pair)(const KernelQuery&),
                  KernelChoice (*product)(const KernelQuery&)) {
  table.add(op, DeviceType::kCuda, {"pair", pair});
  table.add(op, DeviceType::kCuda, {"cublaslt", product});
}

}  // namespace

void register_matmul_cuda(KernelTable& table) {
  table.add(kMatmul, DeviceType::kCuda, {"plain", select_plain<matmul_product>});
  table.add(kLinear, DeviceType::kCuda, {"plain", select_plain<linear_product>});
  table.add(kContractLeading, DeviceType::kCuda, {"plain", select_plain_contraction});
  table.add(kMatmul, DeviceType::kCuda, {"cublaslt", select_library<matmul_product>});
  table.add(kLinear, DeviceType::kCuda, {"cublaslt", select_library<linear_product>});
  table.add(kContractLeading, DeviceType::kCuda, {"cublaslt", select_library_contraction});
  add_products(table, kContractLeadingAndSum, select_pair_cuda<select_contract_then_sum>,
               select_contract_and_sum);
  add_products(table, kLinearGeluTanh, select_pair_cuda<select_linear_then_gelu>,
               select_linear_gelu);
  add_products(table, kMatmulGeluTanhGrad, select_pair_cuda<select_matmul_then_gelu_grad>,
               select_matmul_gelu_grad);
}

}  // namespace flow::ops
