// CUDA kernels of ops/reduce/reduce.h. The order in which elements are combined depends only on the
// shape: the threads of a block combine theirs first, then, if a result has many elements, the
// pieces are combined one after the other.
#include "ops/kernel/element_cuda.cuh"
#include "ops/reduce/reduce_op.h"
#include "ops/reduce/reduce_rows.h"

namespace flow::ops {

namespace {

constexpr int64_t kPiece = 8192;  // elements of a result that one block joins

// Sums and products use float for the 16-bit types too, as everywhere on the device.
template <class T>
using Wide = std::conditional_t<is_floating(dtype_of<T>), DeviceCompute<T>, int64_t>;

template <class Row, class T>
using DeviceGather = Gather<Row, T, Wide<T>>;

// What the element contributes, and the result as an element.
template <class Gather, class T>
__device__ typename Gather::Gathered taken(T x) {
  return Gather::take(static_cast<Wide<T>>(widen(x)));
}

template <class Gather>
__device__ typename Gather::Result result_of(typename Gather::Gathered value, double divisor) {
  using Result = typename Gather::Result;
  return narrow<Result>(static_cast<DeviceCompute<Result>>(Gather::end(value, divisor)));
}

// ---- offsets of elements

struct DeviceDims {
  int count = 0;
  int64_t size[kMaxDims] = {};
  int64_t in_stride[kMaxDims] = {};
  int64_t out_stride[kMaxDims] = {};
};

struct DeviceReduction {
  DeviceDims kept, reduced;
  int64_t kept_numel = 0;
  int64_t reduced_numel = 0;
  int64_t pieces = 1;
  double divisor = 1;
};

DeviceDims device_dims(const std::array<ReduceState::Dim, kMaxDims>& dims, int count) {
  DeviceDims result;
  result.count = count;
  for (int d = 0; d < count; ++d) {
    const ReduceState::Dim& dim = dims[static_cast<size_t>(d)];
    result.size[d] = dim.size;
    result.in_stride[d] = dim.in_stride;
    result.out_stride[d] = dim.out_stride;
  }
  return result;
}

__device__ int64_t in_offset(const DeviceDims& dims, int64_t index) {
  int64_t offset = 0;
  for (int d = dims.count - 1; d > 0; --d) {
    offset += index % dims.size[d] * dims.in_stride[d];
    index /= dims.size[d];
  }
  return dims.count > 0 ? offset + index * dims.in_stride[0] : 0;
}

__device__ int64_t out_offset(const DeviceDims& dims, int64_t index) {
  int64_t offset = 0;
  for (int d = dims.count - 1; d > 0; --d) {
    offset += index % dims.size[d] * dims.out_stride[d];
    index /= dims.size[d];
  }
  return dims.count > 0 ? offset + index * dims.out_stride[0] : 0;
}

// ---- one block for a piece of a result

// Combines the values of all threads of the block as a tree; thread 0 gets the result.
template <class Gather>
__device__ typename Gather::Gathered join_block(typename Gather::Gathered value) {
  __shared__ typename Gather::Gathered shared[cuda::kBlockThreads];
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = cuda::kBlockThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      shared[threadIdx.x] = Gather::join(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    __syncthreads();
  }
  return shared[0];
}

template <class T, class Gather>
__global__ void join_pieces(DeviceReduction state, const T* x, typename Gather::Gathered* partial,
                            typename Gather::Result* y) {
  for (int64_t task = blockIdx.x; task < state.kept_numel * state.pieces; task += gridDim.x) {
    const int64_t kept = task / state.pieces;
    const int64_t piece = task % state.pieces;
    const int64_t begin = piece * kPiece;
    const int64_t end = state.pieces == 1 || begin + kPiece > state.reduced_numel
                            ? state.reduced_numel
                            : begin + kPiece;
    const T* base = x + in_offset(state.kept, kept);
    auto value = Gather::start();
    for (int64_t i = begin + threadIdx.x; i < end; i += cuda::kBlockThreads)
      value = Gather::join(value, taken<Gather>(base[in_offset(state.reduced, i)]));
    value = join_block<Gather>(value);
    if (threadIdx.x == 0) {
      if (state.pieces > 1) {
        partial[task] = value;
      } else {
        y[out_offset(state.kept, kept)] = result_of<Gather>(value, state.divisor);
      }
    }
    __syncthreads();
  }
}

// One thread computes each result. This suits many results of few elements each that are contiguous
// in memory.
template <class T, class Gather>
__global__ void join_columns(DeviceReduction state, const T* x, typename Gather::Gathered* partial,
                             typename Gather::Result* y) {
  for (int64_t task = grid_thread(); task < state.kept_numel * state.pieces;
       task += grid_threads()) {
    const int64_t kept = task % state.kept_numel;
    const int64_t piece = task / state.kept_numel;
    const int64_t each = (state.reduced_numel + state.pieces - 1) / state.pieces;
    const int64_t begin = piece * each;
    const int64_t end = begin + each > state.reduced_numel ? state.reduced_numel : begin + each;
    const T* base = x + in_offset(state.kept, kept);
    auto value = Gather::start();
    for (int64_t i = begin; i < end; ++i)
      value = Gather::join(value, taken<Gather>(base[in_offset(state.reduced, i)]));
    if (state.pieces > 1) {
      partial[kept * state.pieces + piece] = value;
    } else {
      y[out_offset(state.kept, kept)] = result_of<Gather>(value, state.divisor);
    }
  }
}

template <class Gather>
__global__ void join_partials(DeviceReduction state, const typename Gather::Gathered* partial,
                              typename Gather::Result* y) {
  for (int64_t kept = grid_thread(); kept < state.kept_numel; kept += grid_threads()) {
    auto value = Gather::start();
    for (int64_t piece = 0; piece < state.pieces; ++piece)
      value = Gather::join(value, partial[kept * state.pieces + piece]);
    y[out_offset(state.kept, kept)] = result_of<Gather>(value, state.divisor);
  }
}

// Columns are divided into pieces, so that narrow matrices also keep the device busy.
int64_t column_pieces(const ReduceState& state) {
  constexpr int64_t kThreads = 1 << 16;
  constexpr int64_t kLeastRows = 32;
  const int64_t wanted = kThreads / std::max<int64_t>(state.kept_numel, 1);
  return std::clamp<int64_t>(state.reduced_numel / kLeastRows, 1, std::max<int64_t>(wanted, 1));
}

template <class T, class Gather>
void reduce(const KernelContext& ctx) {
  using Gathered = typename Gather::Gathered;
  const auto& state = ctx.state_as<ReduceState>();
  if (state.kept_numel == 0) return;
  DeviceReduction device;
  device.kept = device_dims(state.kept, state.num_kept);
  device.reduced = device_dims(state.reduced, state.num_reduced);
  device.kept_numel = state.kept_numel;
  device.reduced_numel = state.reduced_numel;
  device.divisor = state.divisor;
  device.pieces = state.has_columns
                      ? column_pieces(state)
                      : std::max<int64_t>(1, (state.reduced_numel + kPiece - 1) / kPiece);
  const int64_t tasks = state.kept_numel * device.pieces;
  const cudaStream_t stream = cuda::stream_of(ctx);
  Ref<Storage> partial;
  if (device.pieces > 1) partial = ctx.scratch(static_cast<size_t>(tasks) * sizeof(Gathered));
  auto* partials = partial ? reinterpret_cast<Gathered*>(partial->data()) : nullptr;
  const T* x = ctx.in(0).as<T>();
  auto* y = ctx.out(0).as<typename Gather::Result>();
  if (state.has_columns) {
    cuda::launch(join_columns<T, Gather>, cuda::blocks_for(tasks), cuda::kBlockThreads, 0, stream,
                 device, x, partials, y);
  } else {
    cuda::launch(join_pieces<T, Gather>, cuda::blocks_for(tasks, 1), cuda::kBlockThreads, 0, stream,
                 device, x, partials, y);
  }
  if (device.pieces > 1) {
    cuda::launch(join_partials<Gather>, cuda::blocks_for(state.kept_numel), cuda::kBlockThreads, 0,
                 stream, device, partials, y);
  }
}

template <class Row>
KernelChoice select_reduce(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  const KernelFn fn =
      dispatch_all(x.dtype, []<class T>() -> KernelFn { return reduce<T, DeviceGather<Row, T>>; });
  auto state = std::make_shared<ReduceState>(
      prepare_reduction(x, reduced_dims_of(query.op, x, query.attrs)));
  if (&query.op == &kMean) {
    state->divisor = static_cast<double>(query.attrs_as<MeanAttrs>().count);
  }
  return {fn, std::move(state)};
}

template <class... Row>
void add_rows(KernelTable& table, Rows<Row...> /*rows*/) {
  (table.add(reduction_of<Row>(), DeviceType::kCuda, {"cuda", select_reduce<Row>}), ...);
}

}  // namespace

void register_reduce_cuda(KernelTable& table) {
  add_rows(table, ReduceRows());
  for (const OpDef* op : {&kMean, &kSumTo})
    table.add(*op, DeviceType::kCuda, {"cuda", select_reduce<Sum>});
}

}  // namespace flow::ops
