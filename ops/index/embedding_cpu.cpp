// Reads rows by index (one copy per row) and sums rows.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/index/embedding_op.h"
#include "ops/kernel/box_copy.h"
#include "ops/kernel/vector.h"

#include "ops/kernel/isa_begin.h"

void register_embedding_cpu(KernelTable& table);

namespace {

constexpr int64_t kGrainBytes = 65536;

// The indices in row-major order, each checked to be one of `num_rows`.
std::vector<int64_t> read_indices(const TensorView& indices, int64_t num_rows) {
  std::vector<int64_t> rows(static_cast<size_t>(indices.numel()));
  const Shape& shape = indices.shape();
  const auto copy = [&]<class T>(std::vector<T>& target) {
    copy_box(shape, {reinterpret_cast<std::byte*>(target.data()), contiguous_strides(shape)},
             {indices.data, indices.strides()}, sizeof(T));
  };
  if (indices.meta->dtype == DType::kInt64) {
    copy(rows);
  } else {
    std::vector<int32_t> narrow_rows(rows.size());
    copy(narrow_rows);
    std::copy(narrow_rows.begin(), narrow_rows.end(), rows.begin());
  }
  for (const int64_t row : rows) {
    if (row < 0 || row >= num_rows) {
      throw InvalidArgument(str("[embedding] index ", row, " is out of range for ", num_rows,
                                " rows; received indices of shape ", indices.meta->shape,
                                "; give indices from 0 to the last row, or a larger table"));
    }
  }
  return rows;
}

#if FLOW_ISA == 0

// Traffic: each row is read and written once.
void embed(const KernelContext& ctx) {
  const TensorView& weight = ctx.in(1);
  const TensorView& y = ctx.out(0);
  const std::vector<int64_t> rows = read_indices(ctx.in(0), weight.meta->shape[0]);
  const Range held = local_range(*weight.meta, 0);
  const auto bytes = static_cast<int64_t>(dtype_size(y.meta->dtype));
  const Shape row_shape{weight.shape()[1]};
  const int64_t row_bytes = row_shape[0] * bytes;
  const BoxLoop row_copy(row_shape, {1}, {weight.strides()[1]}, static_cast<size_t>(bytes));
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, row_bytes));
  ctx.pool().parallel_for(
      0, static_cast<int64_t>(rows.size()), grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          std::byte* target = y.data + i * row_bytes;
          const int64_t row = rows[static_cast<size_t>(i)] - held.begin;
          if (row >= 0 && row < held.size) {
            row_copy.copy(target, weight.data + row * weight.strides()[0] * bytes);
          } else {
            std::memset(target, 0, static_cast<size_t>(row_bytes));
          }
        }
      });
}

#endif

// sums[i] += values[i].
template <class T, class Sum>
void add_row(Sum* sums, const T* values, int64_t n) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    for (int64_t i = 0; i < n; ++i)
      sums[i] += static_cast<float>(values[i]);
  } else if constexpr (std::is_floating_point_v<T>) {
    map(
        sums, n, [](auto a, auto b) { return a + b; }, static_cast<const T*>(sums), values);
  } else {
    for (int64_t i = 0; i < n; ++i)
      sums[i] = static_cast<Sum>(sums[i] + values[i]);
  }
}

// The columns are divided among threads and each thread goes through all rows in order, so the sums
// do not depend on the number of threads.
template <class T>
void embed_backward(const KernelContext& ctx) {
  using Sum =
      std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>, float, T>;
  const auto& attrs = ctx.attrs_as<EmbeddingBackwardAttrs>();
  const TensorView& dy = ctx.in(1);
  const TensorView& dweight = ctx.out(0);
  const std::vector<int64_t> rows = read_indices(ctx.in(0), attrs.num_rows);
  const Range held = local_range(*dweight.meta, 0);
  const int64_t columns = dweight.shape()[1];
  Ref<Storage> contiguous_dy;
  const T* values = dy.as<T>();
  if (!dy.meta->is_contiguous) {
    contiguous_dy = ctx.scratch(static_cast<size_t>(dy.numel()) * sizeof(T));
    copy_box(dy.shape(), {contiguous_dy->data(), contiguous_strides(dy.shape())},
             {dy.data, dy.strides()}, sizeof(T));
    values = reinterpret_cast<const T*>(contiguous_dy->data());
  }
  Ref<Storage> scratch;
  Sum* sums = nullptr;
  if constexpr (std::is_same_v<Sum, T>) {
    sums = dweight.as<T>();
  } else {
    scratch = ctx.scratch(static_cast<size_t>(dweight.numel()) * sizeof(Sum));
    sums = reinterpret_cast<Sum*>(scratch->data());
  }
  std::memset(sums, 0, static_cast<size_t>(dweight.numel()) * sizeof(Sum));
  // Stretches of columns that the core fetches ahead, enough of them to be worth a thread.
  constexpr int64_t kStretch = 64;
  const auto num_rows = static_cast<int64_t>(rows.size());
  const int64_t wanted =
      kGrainBytes / static_cast<int64_t>(sizeof(T)) / std::max<int64_t>(1, num_rows);
  const int64_t grain = (std::max<int64_t>(1, wanted) + kStretch - 1) / kStretch * kStretch;
  ctx.pool().parallel_for(0, columns, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < num_rows; ++i) {
      const int64_t row = rows[static_cast<size_t>(i)];
      const int64_t local = row - held.begin;
      if (row == attrs.padding_idx || local < 0 || local >= held.size) continue;
      add_row<T, Sum>(sums + local * columns + begin, values + i * columns + begin, end - begin);
    }
  });
  if constexpr (!std::is_same_v<Sum, T>) {
    for (int64_t i = 0; i < dweight.numel(); ++i)
      dweight.as<T>()[i] = T(sums[i]);
  }
}

KernelChoice select_backward(const KernelQuery& query) {
  return {dispatch_floating(query.input(1).dtype,
                            []<class T>() -> KernelFn { return embed_backward<T>; }),
          nullptr};
}

}  // namespace

void register_embedding_cpu(KernelTable& table) {
  const char* name = FLOW_ISA == 0 ? "reference" : FLOW_ISA_NAME;
#if FLOW_ISA == 0
  table.add(kEmbedding, DeviceType::kCpu, {name, always<embed>});
#endif
  table.add(kEmbeddingBackward, DeviceType::kCpu, {name, select_backward});
}

#include "ops/kernel/isa_end.h"
