// Kernels that work on many tensors in one launch ("multi-tensor apply").
//
//   struct Work {       // what is done with one tensor, without gaps; trivially copyable
//     int64_t numel;
//     // Elements [begin, end), by all threads of a block. `begin` is a multiple of every pack.
//     __device__ void operator()(int64_t begin, int64_t end) const;
//     // Queues the kernels: run_on_many(…), perhaps more.
//     static void launch(RankContext& rank, WorkTable<Work>& table);
//   };
//
// join_or_launch(ctx, work) puts a tensor off to be joined with others (JoinLaunches), or launches
// at once. Each tensor gets the same bits either way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/device/cuda_device.h"
#include "core/device/cuda_launch.h"
#include "core/device/joined_launch.h"
#include "core/kernel.h"

namespace flow::ops {

// The elements that one block works on.
#if defined(__CUDACC__)
inline constexpr int64_t kWorkPiece = 1 << 14;
#else
inline constexpr int64_t kWorkPiece = 1 << 10;  // emulated: small tensors have pieces too
#endif

// Passed to kernels by value, so of the size that every device takes.
inline constexpr size_t kTableBytes = 4096;

template <class Work>
struct WorkTable {
  static constexpr int kMost =
      static_cast<int>((kTableBytes - 64) / (sizeof(Work) + sizeof(unsigned)));
  static_assert(std::is_trivially_copyable_v<Work> && kMost > 1);

  int count = 0;
  unsigned end[kMost];  // the number of pieces up to this tensor's last

  union {
    Work work[kMost];
  };

  WorkTable() {}

  unsigned num_pieces() const { return count == 0 ? 0 : end[count - 1]; }

  void add(const Work& one) {
    const int64_t pieces = (one.numel + kWorkPiece - 1) / kWorkPiece;
    end[count] = num_pieces() + static_cast<unsigned>(pieces);
    work[count++] = one;
  }
};

template <class Work>
__global__ void __launch_bounds__(cuda::kBlockThreads) many_tensors(WorkTable<Work> table) {
  static_assert(sizeof(table) <= kTableBytes);
  int low = 0;
  for (int high = table.count - 1; low < high;) {
    const int middle = (low + high) / 2;
    if (blockIdx.x < table.end[middle]) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  const int64_t piece = blockIdx.x - (low == 0 ? 0 : table.end[low - 1]);
  const int64_t begin = piece * kWorkPiece;
  const int64_t end = begin + kWorkPiece;
  const int64_t numel = table.work[low].numel;
  table.work[low](begin, end < numel ? end : numel);
}

template <class Work>
void run_on_many(RankContext& rank, const WorkTable<Work>& table) {
  cuda::launch(many_tensors<Work>, table.num_pieces(), cuda::kBlockThreads, 0,
               cuda::rank_device(rank).stream(), table);
}

// Parts of memory that kernels without an order among them read and write.
class TouchedMemory {
 public:
  // Whether a call could see or change what another one writes.
  bool conflicts(const KernelContext& ctx) const {
    return std::any_of(
               ctx.outputs.begin(), ctx.outputs.end(),
               [&](const TensorView& y) { return overlaps(written_, y) || overlaps(read_, y); }) ||
           std::any_of(ctx.inputs.begin(), ctx.inputs.end(), [&](const TensorView& x) {
             return !is_output(ctx, x) && overlaps(written_, x);
           });
  }

  void add(const KernelContext& ctx) {
    for (const TensorView& y : ctx.outputs)
      add(written_, y);
    for (const TensorView& x : ctx.inputs)
      if (!is_output(ctx, x)) add(read_, x);
  }

 private:
  struct Range {
    const std::byte* begin;
    const std::byte* end;
  };

  static Range range_of(const TensorView& view) {
    if (view.meta == nullptr) return {};
    return {view.data, view.data + view.numel() * dtype_size(view.meta->dtype)};
  }

  // An input that the call overwrites.
  static bool is_output(const KernelContext& ctx, const TensorView& x) {
    return std::any_of(ctx.outputs.begin(), ctx.outputs.end(),
                       [&](const TensorView& y) { return y.data == x.data; });
  }

  static bool overlaps(const std::vector<Range>& ranges, const TensorView& view) {
    const Range own = range_of(view);
    bool found = false;  // without a branch for each range
    for (const Range& range : ranges)
      found |= range.begin < own.end && own.begin < range.end;
    return found;
  }

  static void add(std::vector<Range>& ranges, const TensorView& view) {
    if (view.meta != nullptr) ranges.push_back(range_of(view));
  }

  std::vector<Range> read_;
  std::vector<Range> written_;
};

template <class Work>
class JoinedWork final : public cuda::JoinedLaunch {
 public:
  explicit JoinedWork(RankContext& rank) : rank_(rank) {}

  // Returns false if the call has to wait for those before it, or there is no room.
  bool add(const KernelContext& ctx, const Work& work) {
    if (&ctx.rank != &rank_ || table_.count == WorkTable<Work>::kMost || touched_.conflicts(ctx)) {
      return false;
    }
    touched_.add(ctx);
    table_.add(work);
    return true;
  }

  void launch() override { Work::launch(rank_, table_); }

 private:
  RankContext& rank_;
  WorkTable<Work> table_;
  TouchedMemory touched_;
};

template <class Work>
void join_or_launch(const KernelContext& ctx, const Work& work) {
  if (work.numel == 0) return;
  if (!cuda::joins_launches()) {
    WorkTable<Work> table;
    table.add(work);
    return Work::launch(ctx.rank, table);
  }
  if (auto* joined = dynamic_cast<JoinedWork<Work>*>(cuda::joined_launch())) {
    if (joined->add(ctx, work)) return;
  }
  cuda::queue_joined();
  auto begun = std::make_unique<JoinedWork<Work>>(ctx.rank);
  begun->add(ctx, work);
  cuda::put_off(std::move(begun));
}

}  // namespace flow::ops
