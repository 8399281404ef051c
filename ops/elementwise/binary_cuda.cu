// CUDA kernels of ops/elementwise/binary.h.
#include "ops/elementwise/rows_cuda.cuh"
#include "ops/kernel/many_tensors_cuda.cuh"

namespace flow::ops {

namespace {

// y = x factor, for a factor without dims in device memory: what clipping does to each gradient.
template <class T>
struct ScaleWork {
  T* y;
  const T* x;
  const T* factor;
  int64_t numel;
  bool has_packs;

  static void launch(RankContext& rank, WorkTable<ScaleWork>& table) { run_on_many(rank, table); }

  __device__ void operator()(int64_t begin, int64_t end) const {
    constexpr int kCount = kPackCount<T>;
    const DeviceCompute<T> scale = widen(*factor);
    const auto times = [scale](DeviceCompute<T> v) { return Mul::apply(v, scale); };
    const int64_t packs = has_packs ? end / kCount : begin / kCount;
    for (int64_t i = begin / kCount + threadIdx.x; i < packs; i += blockDim.x)
      store_pack(y, i, internal::apply_to_packs<T, kCount>(times, load_pack<kCount>(x, i)));
    for (int64_t i = packs * kCount + threadIdx.x; i < end; i += blockDim.x)
      y[i] = narrow<T>(times(widen(x[i])));
  }
};

template <class T>
void scale(const KernelContext& ctx) {
  T* const y = ctx.out(0).as<T>();
  const T* const x = ctx.in(0).as<T>();
  join_or_launch(ctx, ScaleWork<T>{y, x, ctx.in(1).as<T>(), ctx.out(0).numel(),
                                   are_aligned(kPackCount<T>, y, x)});
}

KernelChoice select_scale(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  const TensorMeta& factor = query.input(1);
  const TensorMeta& y = query.output(0);
  const bool is_flat = x.is_contiguous && y.is_contiguous && x.local_shape == y.local_shape;
  const bool is_number = factor.shape.empty() && factor.local_numel == 1;
  if (!is_flat || !is_number || !is_floating(y.dtype)) return {};
  if (x.dtype != y.dtype || factor.dtype != y.dtype) return {};
  KernelChoice choice;
  dispatch_floating(y.dtype, [&]<class T>() { choice.fn = scale<T>; });
  return choice;
}

}  // namespace

void register_binary_cuda(KernelTable& table) {
  add_rows(table, ArithmeticRows());
  table.add(op_of<Mul>(), DeviceType::kCuda, {"cuda_scale", select_scale});
}

}  // namespace flow::ops
