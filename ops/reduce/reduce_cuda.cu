// CUDA kernels of ops/reduce/reduce.h. The order in which elements are combined depends only on the
// shape: the threads of a block combine theirs first, then, if a result has many elements, the
// pieces are combined one after the other.
#include "ops/kernel/pack_cuda.cuh"
#include "ops/reduce/reduce_op.h"
#include "ops/reduce/reduce_rows.h"

namespace flow::ops {

namespace {

// The elements of a result that one block joins: at least kLeastPiece, more if there would be more
// than kMostPieces.
#if defined(__CUDACC__)
constexpr int64_t kLeastPiece = 8192;
#else
constexpr int64_t kLeastPiece = 64;  // emulated: small inputs have pieces too
#endif
constexpr int64_t kMostPieces = 2048;

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
  int64_t piece = 0;      // elements of each piece but the last
  bool is_dense = false;  // the elements of a result are neighbours
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

// Joins elements begin to end of a result, those of this thread. A thread takes as many neighbours
// at a time as a pack has, whether they are loaded as a pack or not, so that the order is the same.
template <class T, class Gather>
__device__ typename Gather::Gathered join_own(const DeviceReduction& state, const T* base,
                                              int64_t begin, int64_t end) {
  auto value = Gather::start();
  if (!state.is_dense) {
    FLOW_UNROLL_4
    for (int64_t i = begin + threadIdx.x; i < end; i += cuda::kBlockThreads)
      value = Gather::join(value, taken<Gather>(base[in_offset(state.reduced, i)]));
    return value;
  }
  constexpr int kCount = kPackCount<T>;
  constexpr int64_t kStep = int64_t{cuda::kBlockThreads} * kCount;
  int64_t i = begin + int64_t{threadIdx.x} * kCount;
  if (reinterpret_cast<uintptr_t>(base + begin) % sizeof(Pack<T, kCount>) == 0) {
    FLOW_UNROLL_4
    for (; i + kCount <= end; i += kStep) {
      const auto pack = load_pack<kCount>(base + i, 0);
      FLOW_UNROLL
      for (int j = 0; j < kCount; ++j)
        value = Gather::join(value, taken<Gather>(pack.element[j]));
    }
  }
  for (; i < end; i += kStep) {
    for (int64_t j = i; j < end && j < i + kCount; ++j)
      value = Gather::join(value, taken<Gather>(base[j]));
  }
  return value;
}

template <class T, class Gather>
__global__ void join_pieces(DeviceReduction state, const T* x, typename Gather::Gathered* partial,
                            typename Gather::Result* y) {
  for (int64_t task = blockIdx.x; task < state.kept_numel * state.pieces; task += gridDim.x) {
    const int64_t kept = task / state.pieces;
    const int64_t piece = task % state.pieces;
    const int64_t begin = piece * state.piece;
    const int64_t end =
        begin + state.piece > state.reduced_numel ? state.reduced_numel : begin + state.piece;
    const T* base = x + in_offset(state.kept, kept);
    const auto value = join_block<Gather>(join_own<T, Gather>(state, base, begin, end));
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
    FLOW_UNROLL_16
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
    FLOW_UNROLL_16
    for (int64_t piece = 0; piece < state.pieces; ++piece)
      value = Gather::join(value, partial[kept * state.pieces + piece]);
    y[out_offset(state.kept, kept)] = result_of<Gather>(value, state.divisor);
  }
}

// The same for few results of many pieces, with a block for each result.
template <class Gather>
__global__ void join_many_partials(DeviceReduction state, const typename Gather::Gathered* partial,
                                   typename Gather::Result* y) {
  for (int64_t kept = blockIdx.x; kept < state.kept_numel; kept += gridDim.x) {
    auto value = Gather::start();
    FLOW_UNROLL_4
    for (int64_t piece = threadIdx.x; piece < state.pieces; piece += cuda::kBlockThreads)
      value = Gather::join(value, partial[kept * state.pieces + piece]);
    value = join_block<Gather>(value);
    if (threadIdx.x == 0) y[out_offset(state.kept, kept)] = result_of<Gather>(value, state.divisor);
    __syncthreads();
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
  device.is_dense =
      state.num_reduced == 0 || (state.num_reduced == 1 && state.reduced[0].in_stride == 1);
  if (state.has_columns) {
    device.pieces = column_pieces(state);
  } else {
    // A piece is a multiple of the largest pack, so that all pieces begin where a pack can.
    constexpr int64_t kUnit = 16;
    const int64_t least = (state.reduced_numel + kMostPieces - 1) / kMostPieces;
    device.piece = std::max(kLeastPiece, (least + kUnit - 1) / kUnit * kUnit);
    device.pieces = std::max<int64_t>(1, (state.reduced_numel + device.piece - 1) / device.piece);
  }
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
  constexpr int64_t kMostForThread = 64;
  if (device.pieces > kMostForThread) {
    cuda::launch(join_many_partials<Gather>, cuda::blocks_for(state.kept_numel, 1),
                 cuda::kBlockThreads, 0, stream, device, partials, y);
  } else if (device.pieces > 1) {
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
