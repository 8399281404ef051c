// Matrix products on the CPU: one description of what is multiplied, a plain reference and the
// kernels of ops/linear/gemm.h. Outputs are contiguous.

#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/kernel/vector.h"
#include "ops/linear/gemm.h"
#include "ops/linear/matmul_op.h"
#include "ops/linear/matmul_product.h"
#include "ops/linear/product_cells.h"
#include "ops/local_parts.h"

#include "ops/kernel/isa_begin.h"

namespace {

using Operand = MatrixOperand;
using Product = MatrixProduct;

#if FLOW_ISA == 0

// Integers wrap around, which is defined for those without sign.
template <class T>
struct Accumulator {
  using Type = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
};

template <class T>
typename Accumulator<T>::Type widened(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<typename Accumulator<T>::Type>(value);
  } else {
    return static_cast<double>(static_cast<float>(value));
  }
}

template <class T>
T narrowed(typename Accumulator<T>::Type value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return T(static_cast<float>(value));
  }
}

template <class T>
void multiply_plainly(const KernelContext& ctx, const Product& product) {
  const T* bias = ctx.has_input(2) ? ctx.in(2).as<T>() : nullptr;
  T* c = ctx.out(0).as<T>();
  const int64_t batches = product.batch.numel();
  for (int64_t index = 0; index < batches; ++index) {
    const T* a = ctx.in(0).as<T>();
    const T* b = ctx.in(1).as<T>();
    int64_t rest = index;
    for (int64_t d = product.batch.size() - 1; d >= 0; --d) {
      a += rest % product.batch[d] * product.a.batch[d];
      b += rest % product.batch[d] * product.b.batch[d];
      rest /= product.batch[d];
    }
    for (int64_t i = 0; i < product.m; ++i) {
      for (int64_t j = 0; j < product.n; ++j) {
        auto sum = bias != nullptr ? widened(bias[j * product.bias_stride]) : 0;
        for (int64_t p = 0; p < product.k; ++p) {
          sum += widened(a[i * product.a.row + p * product.a.column]) *
                 widened(b[p * product.b.row + j * product.b.column]);
        }
        *c++ = narrowed<T>(sum);
      }
    }
  }
}

void run_reference(const KernelContext& ctx) {
  dispatch_all(ctx.out(0).meta->dtype,
               [&]<class T>() { multiply_plainly<T>(ctx, ctx.state_as<Product>()); });
}

template <Product (*kProduct)(const KernelQuery& query)>
KernelChoice select_reference(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  return {run_reference, std::make_shared<const Product>(kProduct(query))};
}

template <class T>
void contract_plainly(const KernelContext& ctx) {
  const TensorMeta& a = *ctx.in(0).meta;
  const TensorMeta& b = *ctx.in(1).meta;
  const int64_t last = a.local_shape.size() - 1;
  Shape leading = a.local_shape;
  leading.erase(last);
  const int64_t rows = leading.numel();
  T* c = ctx.out(0).as<T>();
  for (int64_t i = 0; i < a.local_shape[last]; ++i) {
    for (int64_t j = 0; j < b.local_shape[last]; ++j) {
      typename Accumulator<T>::Type sum = 0;
      for (int64_t row = 0; row < rows; ++row) {
        int64_t a_at = i * a.strides[last];
        int64_t b_at = j * b.strides[last];
        int64_t rest = row;
        for (int64_t d = last - 1; d >= 0; --d) {
          a_at += rest % leading[d] * a.strides[d];
          b_at += rest % leading[d] * b.strides[d];
          rest /= leading[d];
        }
        sum += widened(ctx.in(0).as<T>()[a_at]) * widened(ctx.in(1).as<T>()[b_at]);
      }
      *c++ = narrowed<T>(sum);
    }
  }
}

void run_contract_reference(const KernelContext& ctx) {
  dispatch_all(ctx.out(0).meta->dtype, [&]<class T>() { contract_plainly<T>(ctx); });
}

KernelChoice select_contract_reference(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  return {run_contract_reference, nullptr};
}

#endif

// ---- through ops/linear/gemm.h

// How an operand is passed to gemm: in its memory, or first copied (16-bit floats: converted) to a
// contiguous block of `copy_shape`.
struct GemmOperand {
  bool transposed = false;
  bool copies = false;
  int64_t leading = 1;       // distance of stored rows
  int64_t batch_stride = 0;  // when all batch dims are evenly spaced
  std::vector<int64_t> offsets;
  Shape copy_shape;
  Strides copy_strides;
};

struct GemmState {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t batch = 1;
  GemmOperand a, b;
  int64_t bias_stride = 0;
};

// Sets how a (rows, columns) matrix is stored. Returns false if neither of its dims is dense.
bool set_storage(GemmOperand& target, int64_t rows, int64_t columns, int64_t row_stride,
                 int64_t column_stride) {
  const bool dense_rows = column_stride == 1 || columns <= 1;
  if (dense_rows && (rows <= 1 || row_stride >= columns)) {
    target.transposed = false;
    target.leading = std::max<int64_t>(rows <= 1 ? columns : row_stride, 1);
    return true;
  }
  const bool dense_columns = row_stride == 1 || rows <= 1;
  if (dense_columns && (columns <= 1 || column_stride >= rows)) {
    target.transposed = true;
    target.leading = std::max<int64_t>(columns <= 1 ? rows : column_stride, 1);
    return true;
  }
  return false;
}

// Prepares a copy of the operand, in which broadcast batch dims occur once, and gives the strides
// of the copy.
void prepare_copy(GemmOperand& target, const Shape& batch, int64_t rows, int64_t columns,
                  Operand& operand) {
  target.copies = true;
  for (int64_t i = 0; i < batch.size(); ++i) {
    target.copy_shape.push_back(operand.batch[i] == 0 ? 1 : batch[i]);
    target.copy_strides.push_back(operand.batch[i]);
  }
  target.copy_shape.push_back(rows);
  target.copy_shape.push_back(columns);
  target.copy_strides.push_back(operand.row);
  target.copy_strides.push_back(operand.column);
  const Strides dense = contiguous_strides(target.copy_shape);
  for (int64_t i = 0; i < batch.size(); ++i)
    operand.batch[i] = target.copy_shape[i] == 1 ? 0 : dense[i];
  operand.row = columns;
  operand.column = 1;
}

std::vector<int64_t> batch_offsets(const Shape& batch, const Strides& strides) {
  std::vector<int64_t> offsets(static_cast<size_t>(batch.numel()));
  for (size_t index = 0; index < offsets.size(); ++index) {
    int64_t rest = static_cast<int64_t>(index);
    for (int64_t d = batch.size() - 1; d >= 0; --d) {
      offsets[index] += rest % batch[d] * strides[d];
      rest /= batch[d];
    }
  }
  return offsets;
}

// Treats the leading dims and m as one dim if all batches share b, so that one large product
// replaces many small ones.
void fold_batch_into_rows(Product& product, GemmOperand& a) {
  const bool shares_b = std::all_of(product.b.batch.begin(), product.b.batch.end(),
                                    [](int64_t stride) { return stride == 0; });
  if (!shares_b || product.batch.empty()) return;
  Shape rows = product.batch;
  Strides strides = product.a.batch;
  if (rows.size() == kMaxDims) return;
  rows.push_back(product.m);
  strides.push_back(product.a.row);
  int64_t count = 0;
  int64_t stride = 0;
  bool even = collapse(rows, strides, rows.size(), count, stride);
  even = even && (count <= 1 || stride > 0);
  if (!even && !a.copies) {
    prepare_copy(a, product.batch, product.m, product.k, product.a);
    if (a.copy_shape.numel() != product.batch.numel() * product.m * product.k) return;
    stride = product.k;
  } else if (!even) {
    return;
  }
  product.m = count = rows.numel();
  product.a.row = stride;
  product.batch = Shape();
  product.a.batch = product.b.batch = Strides();
}

GemmState prepare_gemm(Product product, bool converts) {
  GemmState state;
  if (converts) {
    prepare_copy(state.a, product.batch, product.m, product.k, product.a);
    prepare_copy(state.b, product.batch, product.k, product.n, product.b);
  }
  fold_batch_into_rows(product, state.a);
  state.m = product.m;
  state.n = product.n;
  state.k = product.k;
  state.batch = product.batch.numel();
  state.bias_stride = product.bias_stride;
  if (!set_storage(state.a, product.m, product.k, product.a.row, product.a.column)) {
    prepare_copy(state.a, product.batch, product.m, product.k, product.a);
    set_storage(state.a, product.m, product.k, product.a.row, product.a.column);
  }
  if (!set_storage(state.b, product.k, product.n, product.b.row, product.b.column)) {
    prepare_copy(state.b, product.batch, product.k, product.n, product.b);
    set_storage(state.b, product.k, product.n, product.b.row, product.b.column);
  }
  const int64_t dims = product.batch.size();
  int64_t count = 0;
  if (!collapse(product.batch, product.a.batch, dims, count, state.a.batch_stride) ||
      !collapse(product.batch, product.b.batch, dims, count, state.b.batch_stride)) {
    state.a.offsets = batch_offsets(product.batch, product.a.batch);
    state.b.offsets = batch_offsets(product.batch, product.b.batch);
  }
  return state;
}

// The row-major copy of a strided block, converted to To.
template <class From, class To>
void copy_block(To* target, const From* source, const Shape& shape, const Strides& strides,
                int64_t dim) {
  const int64_t stride = strides[dim];
  if (dim == shape.size() - 1) {
    if (stride == 1) {
      map(
          target, shape[dim], [](auto x) { return x; }, source);
      return;
    }
    for (int64_t i = 0; i < shape[dim]; ++i)
      target[i] = static_cast<To>(source[i * stride]);
    return;
  }
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < shape.size(); ++d)
    inner *= shape[d];
  for (int64_t i = 0; i < shape[dim]; ++i)
    copy_block(target + i * inner, source + i * stride, shape, strides, dim + 1);
}

// T: the stored type, C: the type multiplied in.
template <class T, class C>
const C* prepared(const KernelContext& ctx, const GemmOperand& operand, int input,
                  Ref<Storage>& scratch) {
  const T* source = ctx.in(input).as<T>();
  if constexpr (std::is_same_v<T, C>) {
    if (!operand.copies) return source;
  }
  scratch = ctx.scratch(static_cast<size_t>(operand.copy_shape.numel()) * sizeof(C));
  C* target = reinterpret_cast<C*>(scratch->data());
  copy_block(target, source, operand.copy_shape, operand.copy_strides, 0);
  return target;
}

template <class T, class C>
void run_gemm(const KernelContext& ctx) {
  const auto& state = ctx.state_as<GemmState>();
  const int64_t size = state.batch * state.m * state.n;
  if (size == 0) return;
  Ref<Storage> a_scratch;
  Ref<Storage> b_scratch;
  Ref<Storage> c_scratch;
  GemmTask<C> task{
      .transpose_a = state.a.transposed ? Transpose::kYes : Transpose::kNo,
      .transpose_b = state.b.transposed ? Transpose::kYes : Transpose::kNo,
      .m = state.m,
      .n = state.n,
      .k = state.k,
      .a = prepared<T, C>(ctx, state.a, 0, a_scratch),
      .lda = state.a.leading,
      .b = prepared<T, C>(ctx, state.b, 1, b_scratch),
      .ldb = state.b.leading,
      .ldc = state.n,
      .batch = state.batch,
      .a_stride = state.a.batch_stride,
      .b_stride = state.b.batch_stride,
      .c_stride = state.m * state.n,
  };
  T* out = ctx.out(0).as<T>();
  if constexpr (std::is_same_v<T, C>) {
    task.c = out;
  } else {
    c_scratch = ctx.scratch(static_cast<size_t>(size) * sizeof(C));
    task.c = reinterpret_cast<C*>(c_scratch->data());
  }
  std::vector<C> bias_row;
  if (ctx.has_input(2)) {
    const T* bias = ctx.in(2).as<T>();
    bias_row.resize(static_cast<size_t>(state.n));
    for (int64_t j = 0; j < state.n; ++j)
      bias_row[static_cast<size_t>(j)] = static_cast<C>(bias[j * state.bias_stride]);
    task.bias = bias_row.data();
  }
  if (state.a.offsets.empty()) {
    multiply_on_threads(ctx.pool(), task);
  } else {
    constexpr int64_t kGrainVolume = int64_t{1} << 22;
    const int64_t grain = std::max<int64_t>(kGrainVolume / (state.m * state.n * state.k + 1), 1);
    ctx.pool().parallel_for(0, state.batch, grain, [&](int64_t begin, int64_t end) {
      GemmTask<C> one = task;
      one.batch = 1;
      for (int64_t i = begin; i < end; ++i) {
        one.a = task.a + state.a.offsets[static_cast<size_t>(i)];
        one.b = task.b + state.b.offsets[static_cast<size_t>(i)];
        one.c = task.c + i * task.c_stride;
        gemm_batched(one);
      }
    });
  }
  if constexpr (!std::is_same_v<T, C>)
    map(
        out, size, [](auto x) { return x; }, task.c);
}

// gemm chooses its instruction set itself; conversions of 16-bit floats use the file's.
// The copies of operands, and the results before they are rounded to 16 bits.
KernelScratch scratch_of(const GemmState& state, DType dtype, bool converts) {
  const int64_t size = state.batch * state.m * state.n;
  if (size == 0) return {};
  const auto element =
      static_cast<int64_t>(dtype == DType::kFloat64 ? sizeof(double) : sizeof(float));
  KernelScratch blocks;
  for (const GemmOperand* operand : {&state.a, &state.b}) {
    if (operand->copies || converts) blocks.push_back({operand->copy_shape.numel() * element});
  }
  if (converts) blocks.push_back({size * element});
  return blocks;
}

template <GemmState (*kState)(const KernelQuery& query, bool converts)>
KernelChoice select_gemm(const KernelQuery& query) {
  const auto choice = [&](KernelFn fn, bool converts) -> KernelChoice {
    const auto state = std::make_shared<const GemmState>(kState(query, converts));
    return with_scratch({fn, state}, scratch_of(*state, query.output(0).dtype, converts));
  };
  switch (query.output(0).dtype) {
    case DType::kFloat32:
      return choice(run_gemm<float, float>, false);
    case DType::kFloat64:
      return choice(run_gemm<double, double>, false);
    case DType::kFloat16:
      return choice(run_gemm<Float16, float>, true);
    case DType::kBFloat16:
      return choice(run_gemm<BFloat16, float>, true);
    case DType::kBool:
    case DType::kUInt8:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      break;
  }
  return {};
}

// a^T b with all leading dims as k; an operand that is not evenly spaced along them is copied.
GemmState prepare_contract(const KernelQuery& query, bool converts) {
  GemmState state;
  state.m = query.input(0).local_shape.back();
  state.n = query.input(1).local_shape.back();
  const auto place = [&](GemmOperand& target, const TensorMeta& meta, bool is_left) {
    const int64_t last = meta.local_shape.size() - 1;
    const int64_t width = meta.local_shape[last];
    int64_t stride = 0;
    const auto store = [&](int64_t k_stride, int64_t dense) {
      return is_left ? set_storage(target, width, state.k, dense, k_stride)
                     : set_storage(target, state.k, width, k_stride, dense);
    };
    if (collapse(meta.local_shape, meta.strides, last, state.k, stride) && !converts &&
        store(stride, meta.strides[last])) {
      return;
    }
    state.k = meta.local_shape.numel() / std::max<int64_t>(width, 1);
    target.copies = true;
    target.copy_shape = meta.local_shape;
    target.copy_strides = meta.strides;
    store(width, 1);
  };
  place(state.a, query.input(0), true);
  place(state.b, query.input(1), false);
  return state;
}

GemmState prepare_matmul(const KernelQuery& query, bool converts) {
  return prepare_gemm(matmul_product(query), converts);
}

GemmState prepare_linear(const KernelQuery& query, bool converts) {
  return prepare_gemm(linear_product(query), converts);
}

}  // namespace

void register_matmul_cpu(KernelTable& table);

void register_matmul_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kMatmul, DeviceType::kCpu, {"reference", select_reference<matmul_product>});
  table.add(kLinear, DeviceType::kCpu, {"reference", select_reference<linear_product>});
  table.add(kContractLeading, DeviceType::kCpu, {"reference", select_contract_reference});
#endif
  table.add(kMatmul, DeviceType::kCpu, {FLOW_ISA_NAME, select_gemm<prepare_matmul>});
  table.add(kLinear, DeviceType::kCpu, {FLOW_ISA_NAME, select_gemm<prepare_linear>});
  table.add(kContractLeading, DeviceType::kCpu, {FLOW_ISA_NAME, select_gemm<prepare_contract>});
}

#include "ops/kernel/isa_end.h"
