// CUDA kernels of ops/reduce/reduce.h. The order in which elements are combined depends only on the
// layout: each thread combines its elements, then the threads of a team or the lines of a block are
// combined, and then, if there are few results of many elements, the pieces of a result.
#include "ops/kernel/pack_cuda.cuh"
#include "ops/kernel/rows_cuda.cuh"
#include "ops/reduce/reduce_op.h"
#include "ops/reduce/reduce_rows.h"

namespace flow::ops {

namespace {

// Sums and products use float for the 16-bit types too, as everywhere on the device.
template <class T>
using Joined = std::conditional_t<is_floating(dtype_of<T>), DeviceCompute<T>, int64_t>;

template <class Row, class T>
using DeviceGather = Gather<Row, T, Joined<T>>;

// What the element contributes, and the result as an element.
template <class Gather, class T>
__device__ typename Gather::Gathered taken(T x) {
  return Gather::take(static_cast<Joined<T>>(widen(x)));
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

// ---- one team for a piece of a result

// Joins elements begin to end of a result, those of this thread. If they are neighbours, a thread
// takes as many at a time as a pack has, whether they are loaded as a pack or not, so that the
// order is the same.
template <class T, class Gather>
__device__ typename Gather::Gathered join_own(const DeviceReduction& state, const T* base,
                                              int64_t begin, int64_t end, Team team) {
  auto value = Gather::start();
  if (!state.is_dense) {
    for (int64_t i = begin + team.first(); i < end; i += team.step())
      value = Gather::join(value, taken<Gather>(base[in_offset(state.reduced, i)]));
    return value;
  }
  constexpr int kCount = kPackCount<T>;
  constexpr int kLoads = 4;  // under way together
  const int64_t step = team.step() * kCount;
  int64_t i = begin + team.first() * kCount;
  const auto join_pack = [&](const Pack<T, kCount>& pack) {
    FLOW_UNROLL
    for (int j = 0; j < kCount; ++j)
      value = Gather::join(value, taken<Gather>(pack.element[j]));
  };
  if (reinterpret_cast<uintptr_t>(base + begin) % sizeof(Pack<T, kCount>) == 0) {
    for (; i + (kLoads - 1) * step + kCount <= end; i += kLoads * step) {
      Pack<T, kCount> packs[kLoads];
      FLOW_UNROLL
      for (int k = 0; k < kLoads; ++k)
        packs[k] = load_pack<kCount>(base + i + k * step, 0);
      FLOW_UNROLL
      for (int k = 0; k < kLoads; ++k)
        join_pack(packs[k]);
    }
    for (; i + kCount <= end; i += step)
      join_pack(load_pack<kCount>(base + i, 0));
  }
  for (; i < end; i += step) {
    for (int64_t j = i; j < end && j < i + kCount; ++j)
      value = Gather::join(value, taken<Gather>(base[j]));
  }
  return value;
}

template <class T, class Gather>
struct JoinPiece {
  DeviceReduction state;
  const T* x;
  typename Gather::Gathered* partial;
  typename Gather::Result* y;

  __device__ void operator()(int64_t task, Team team) const {
    using Gathered = typename Gather::Gathered;
    const auto [kept, piece] = divide(task, state.pieces);
    const int64_t begin = piece * state.piece;
    const int64_t end = std::min(begin + state.piece, state.reduced_numel);
    const Gathered value =
        team.reduce(join_own<T, Gather>(state, x + in_offset(state.kept, kept), begin, end, team),
                    [](Gathered a, Gathered b) { return Gather::join(a, b); });
    if (!team.leads()) return;
    if (state.pieces > 1) {
      partial[task] = value;
    } else {
      y[out_offset(state.kept, kept)] = result_of<Gather>(value, state.divisor);
    }
  }
};

template <class Gather>
struct JoinPartials {
  DeviceReduction state;
  const typename Gather::Gathered* partial;
  typename Gather::Result* y;

  __device__ void operator()(int64_t kept, Team team) const {
    using Gathered = typename Gather::Gathered;
    auto value = Gather::start();
    for (int64_t piece = team.first(); piece < state.pieces; piece += team.step())
      value = Gather::join(value, partial[kept * state.pieces + piece]);
    value = team.reduce(value, [](Gathered a, Gathered b) { return Gather::join(a, b); });
    if (team.leads()) y[out_offset(state.kept, kept)] = result_of<Gather>(value, state.divisor);
  }
};

template <class T, class Gather>
void join_rows(const KernelContext& ctx, DeviceReduction& state, const T* x,
               typename Gather::Result* y) {
  // A result is divided into pieces if there are too few results to keep the device busy. A piece
  // is a multiple of the largest pack, so that all pieces begin where a pack can.
  constexpr int64_t kLeastPiece = 8192;
  constexpr int64_t kTasks = 2048;
  constexpr int64_t kUnit = 16;
  constexpr int64_t kPacksEach = 4;  // of a thread
  const int64_t wanted = std::max<int64_t>(1, kTasks / state.kept_numel);
  const int64_t least = (state.reduced_numel + wanted - 1) / wanted;
  state.piece = std::max(kLeastPiece, (least + kUnit - 1) / kUnit * kUnit);
  if (wanted == 1) state.piece = std::max<int64_t>(state.reduced_numel, 1);
  state.pieces = std::max<int64_t>(1, (state.reduced_numel + state.piece - 1) / state.piece);
  const ScratchArray<typename Gather::Gathered> partial(
      ctx, state.pieces > 1 ? state.kept_numel * state.pieces : 0);
  const int64_t length = std::min(state.piece, state.reduced_numel);
  for_each_row(ctx, state.kept_numel * state.pieces,
               state.is_dense ? length / (kPackCount<T> * kPacksEach) : length / kPacksEach,
               JoinPiece<T, Gather>{state, x, partial.data(), y});
  if (state.pieces > 1) {
    for_each_row(ctx, state.kept_numel, state.pieces,
                 JoinPartials<Gather>{state, partial.data(), y});
  }
}

// ---- one thread for a piece of some results, which suits many results that are neighbours

// Calls f(offset) for the offsets of elements begin to end of a result.
template <class F>
__device__ void for_each_reduced(const DeviceDims& dims, int64_t begin, int64_t end, const F& f) {
  if (dims.count > 1) {
    for (int64_t i = begin; i < end; ++i)
      f(in_offset(dims, i));
    return;
  }
  const int64_t stride = dims.count == 1 ? dims.in_stride[0] : 0;
  FLOW_UNROLL_4
  for (int64_t i = begin; i < end; ++i)
    f(i * stride);
}

// A thread joins kCount neighbouring results.
template <class T, class Gather, int kCount>
struct JoinColumns {
  DeviceReduction state;
  const T* x;
  typename Gather::Gathered* partial;
  typename Gather::Result* y;

  __device__ void operator()(int64_t task) const {
    const auto [piece, pack] = divide(task, state.kept_numel / kCount);
    const int64_t kept = pack * kCount;
    const int64_t begin = piece * state.piece;
    const int64_t end = std::min(begin + state.piece, state.reduced_numel);
    const T* base = x + in_offset(state.kept, kept);
    typename Gather::Gathered value[kCount];
    FLOW_UNROLL
    for (int j = 0; j < kCount; ++j)
      value[j] = Gather::start();
    for_each_reduced(state.reduced, begin, end, [&](int64_t offset) {
      const auto elements = load_pack<kCount>(base + offset, 0);
      FLOW_UNROLL
      for (int j = 0; j < kCount; ++j)
        value[j] = Gather::join(value[j], taken<Gather>(elements.element[j]));
    });
    FLOW_UNROLL
    for (int j = 0; j < kCount; ++j) {
      if (state.pieces > 1) {
        partial[piece * state.kept_numel + kept + j] = value[j];
      } else {
        y[out_offset(state.kept, kept + j)] = result_of<Gather>(value[j], state.divisor);
      }
    }
  }
};

constexpr int kLines = 32;

// Joins the pieces of results. A block has kLines lines of threads, one thread for each of 32
// neighbouring results.
template <class Gather>
__global__ void __launch_bounds__(kLines * 32)
    join_lines(DeviceReduction state, const typename Gather::Gathered* partial,
               typename Gather::Result* y) {
  __shared__ typename Gather::Gathered parts[kLines][32];
  for (int64_t first = int64_t{blockIdx.x} * 32; first < state.kept_numel;
       first += int64_t{gridDim.x} * 32) {
    const int64_t kept = first + threadIdx.x;
    auto value = Gather::start();
    if (kept < state.kept_numel) {
      FLOW_UNROLL_4
      for (int64_t piece = threadIdx.y; piece < state.pieces; piece += kLines)
        value = Gather::join(value, partial[piece * state.kept_numel + kept]);
    }
    parts[threadIdx.y][threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.y == 0 && kept < state.kept_numel) {
      for (int line = 1; line < kLines; ++line)
        value = Gather::join(value, parts[line][threadIdx.x]);
      y[out_offset(state.kept, kept)] = result_of<Gather>(value, state.divisor);
    }
    __syncthreads();  // the parts are read
  }
}

// Only sums of floats are worth the code for packs.
template <class Gather, class T>
inline constexpr int kColumnsEach =
    std::is_same_v<Gather, DeviceGather<Sum, T>>&& is_floating(dtype_of<T>) ? kPackCount<T> : 1;

// True if packs of `count` neighbouring results begin where a pack can.
template <class T>
bool has_packed_columns(const ReduceState& state, const T* x, int count) {
  const auto is_multiple = [&](const auto& dims, int number, int innermost) {
    for (int d = 0; d < number; ++d)
      if (d != innermost && dims[static_cast<size_t>(d)].in_stride % count != 0) return false;
    return true;
  };
  const int innermost = state.num_kept - 1;
  return are_aligned(count, x) && state.kept[static_cast<size_t>(innermost)].size % count == 0 &&
         is_multiple(state.kept, state.num_kept, innermost) &&
         is_multiple(state.reduced, state.num_reduced, -1);
}

template <class T, class Gather, int kCount>
void join_columns(const KernelContext& ctx, DeviceReduction& state, const T* x,
                  typename Gather::Result* y) {
  // Columns are divided into pieces, so that narrow matrices also keep the device busy. The pieces
  // are the same whether packs can be loaded or not.
  constexpr int64_t kThreads = 1 << 16;
  constexpr int64_t kLeastRows = 32;
  const int64_t wanted =
      std::max<int64_t>(1, kThreads * kColumnsEach<Gather, T> / state.kept_numel);
  state.pieces = std::clamp<int64_t>(state.reduced_numel / kLeastRows, 1, wanted);
  state.piece = std::max<int64_t>(1, (state.reduced_numel + state.pieces - 1) / state.pieces);
  const ScratchArray<typename Gather::Gathered> partial(
      ctx, state.pieces > 1 ? state.kept_numel * state.pieces : 0);
  for_each_element(ctx, state.kept_numel / kCount * state.pieces,
                   JoinColumns<T, Gather, kCount>{state, x, partial.data(), y});
  if (state.pieces > 1) {
    cuda::launch(join_lines<Gather>, cuda::blocks_for(state.kept_numel, 32), dim3(32, kLines), 0,
                 cuda::stream_of(ctx), state, partial.data(), y);
  }
}

template <class T, class Gather>
void reduce(const KernelContext& ctx) {
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
  const T* x = ctx.in(0).as<T>();
  auto* y = ctx.out(0).as<typename Gather::Result>();
  if (!state.has_columns) return join_rows<T, Gather>(ctx, device, x, y);
  constexpr int kCount = kColumnsEach<Gather, T>;
  if (kCount > 1 && has_packed_columns(state, x, kCount)) {
    return join_columns<T, Gather, kCount>(ctx, device, x, y);
  }
  join_columns<T, Gather, 1>(ctx, device, x, y);
}

template <class Row>
KernelChoice select_reduce(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  const KernelFn fn =
      dispatch_all(x.dtype, []<class T>() -> KernelFn { return reduce<T, DeviceGather<Row, T>>; });
  auto state = std::make_shared<ReduceState>(prepare_reduction(x, reduced_dims_of(query)));
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
