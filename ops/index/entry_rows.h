// The walk of gather, scatter and their like over the entries of an index tensor, row by row.
// Include it after the other headers and before ops/kernel/isa_begin.h; all names are in
// flow::ops::isa_*.
//
//   const EntryWalk walk(ctx.pool(), index, x_meta, other, dim, "gather");
//   walk.for_each([&](int64_t place, int64_t i) { y[i] = x[place]; });
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/error.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/kernel/box_copy.h"

#include "ops/kernel/isa_begin.h"

// A stretch of entries. Entry j points to the offset place + entry * scale + j * along in x, and
// its counterpart in the tensor that is indexed like index is at other + j * other_step.
struct EntryRow {
  const int64_t* entries;
  int64_t step;
  int64_t count;
  int64_t place;
  int64_t scale;
  int64_t along;
  int64_t other;
  int64_t other_step;
};

// Steps of 1 are known to the compiler.
template <bool kIsDense, class Fn>
[[gnu::always_inline]] inline void for_entries(const EntryRow& row, const Fn& fn) {
  const int64_t step = kIsDense ? 1 : row.step;
  const int64_t other_step = kIsDense ? 1 : row.other_step;
  for (int64_t j = 0; j < row.count; ++j)
    fn(row.place + row.entries[j * step] * row.scale + j * row.along, row.other + j * other_step);
}

// All entries are one, as in an index that was expanded along the row.
template <class Fn>
[[gnu::always_inline]] inline void for_one_entry(const EntryRow& row, const Fn& fn) {
  const int64_t place = row.place + row.entries[0] * row.scale;
  if (row.along == 1 && row.other_step == 1) {
#pragma GCC ivdep
    for (int64_t j = 0; j < row.count; ++j)
      fn(place + j, row.other + j);
  } else {
    for (int64_t j = 0; j < row.count; ++j)
      fn(place + j * row.along, row.other + j * row.other_step);
  }
}

// Some of the entries, or the places they point to in the row's direction, are held by other ranks.
template <class Fn>
inline void for_held_entries(const EntryRow& row, Range positions, Range columns, const Fn& fn) {
  const int64_t end = std::min(row.count, columns.begin + columns.size);
  for (int64_t j = std::max<int64_t>(0, columns.begin); j < end; ++j) {
    const int64_t entry = row.entries[j * row.step];
    if (entry < positions.begin || entry >= positions.begin + positions.size) continue;
    fn(row.place + entry * row.scale + j * row.along, row.other + j * row.other_step);
  }
}

// Fewer entries are not worth another thread.
constexpr int64_t kEntryGrain = 16384;

class EntryWalk {
 public:
  // `other` is indexed like `index`, whose entries are positions in `dim` of x. A negative entry,
  // or one past the logical size of x, throws.
  EntryWalk(ThreadPool& pool, const TensorView& index, const TensorMeta& x, const TensorView& other,
            int64_t dim, const char* op)
      : pool_(pool), index_(index), x_(x), other_(other), dim_(dim), op_(op) {
    const Shape& size = index.shape();
    row_dim_ = size.size() - 1;
    while (row_dim_ > 0 && size[row_dim_] == 1)
      --row_dim_;
    is_whole_ = x.local_shape == x.shape;
  }

  // True if this rank holds all of x, and no entry is skipped.
  bool is_whole() const { return is_whole_; }

  // Calls fn(place, i) for each entry that points into this rank's part: `place` is the offset in x
  // and i the offset of the counterpart. Entries that point to one place are visited by one thread
  // in row-major order.
  template <class Fn>
  void for_each(const Fn& fn) const {
    run(fn, longest_dim(dim_));
  }

  // As for_each, in any order.
  template <class Fn>
  void for_each_unordered(const Fn& fn) const {
    run(fn, longest_dim(-1));
  }

 private:
  // The longest dim of the index but `without`, or -1. Entries that differ in another dim than dim_
  // point to different places.
  int64_t longest_dim(int64_t without) const {
    const Shape& size = index_.shape();
    int64_t longest = -1;
    for (int64_t i = 0; i < size.size(); ++i) {
      if (i != without && (longest < 0 || size[i] > size[longest])) longest = i;
    }
    return longest;
  }

  // Threads divide the positions of dim `shared`.
  template <class Fn>
  void run(const Fn& fn, int64_t shared) const {
    const Shape& size = index_.shape();
    if (index_.numel() == 0) return;
    if (shared < 0) return for_each_inside(0, 0, size[0], fn);
    const int64_t grain = std::max<int64_t>(1, kEntryGrain / (index_.numel() / size[shared]));
    pool_.parallel_for(0, size[shared], grain, [&](int64_t begin, int64_t end) {
      for_each_inside(shared, begin, end, fn);
    });
  }

  // As for_each, for the entries at positions [begin, end) of dim `part`.
  template <class Fn>
  void for_each_inside(int64_t part, int64_t begin, int64_t end, const Fn& fn) const {
    const int64_t dims = index_.shape().size();
    Shape first = Shape::filled(dims, 0);
    Shape last = index_.shape();
    first[part] = begin;
    last[part] = end;
    Shape at = first;
    while (true) {
      bool is_held = true;
      const EntryRow row = row_at(at, last[row_dim_] - first[row_dim_], is_held);
      check(row);
      if (is_whole_ && row.step == 0) {
        for_one_entry(row, fn);
      } else if (is_whole_ && row.step == 1 && row.other_step == 1) {
        for_entries<true>(row, fn);
      } else if (is_whole_) {
        for_entries<false>(row, fn);
      } else if (is_held) {
        for_held_entries(row, local_range(x_, dim_), held_columns(first[row_dim_], row.count), fn);
      }
      int64_t i = dims - 1;
      while (i >= 0 && (i == row_dim_ || ++at[i] == last[i])) {
        at[i] = first[i];
        --i;
      }
      if (i < 0) return;
    }
  }

  // The row that begins at `at`. `is_held` becomes false if another rank holds the part of x to
  // which all of its entries point.
  EntryRow row_at(const Shape& at, int64_t count, bool& is_held) const {
    EntryRow row{.entries = index_.as<int64_t>(),
                 .step = index_.strides()[row_dim_],
                 .count = count,
                 .place = 0,
                 .scale = x_.strides[dim_],
                 .along = row_dim_ == dim_ ? 0 : x_.strides[row_dim_],
                 .other = 0,
                 .other_step = other_.strides()[row_dim_]};
    for (int64_t i = 0; i < at.size(); ++i) {
      const int64_t position = at[i] + index_.meta->local_begin[i];
      row.entries += at[i] * index_.strides()[i];
      row.other += (position - other_.meta->local_begin[i]) * other_.strides()[i];
      const int64_t in_x = (i == dim_ ? 0 : position) - x_.local_begin[i];
      row.place += in_x * x_.strides[i];
      if (i != dim_ && i != row_dim_) is_held &= in_x >= 0 && in_x < x_.local_shape[i];
    }
    return row;
  }

  // The columns of a row of `count` entries from column `first` on that point into this rank's
  // part, counted from `first`.
  Range held_columns(int64_t first, int64_t count) const {
    if (row_dim_ == dim_) return {0, count};
    const Range held = local_range(x_, row_dim_);
    return {held.begin - index_.meta->local_begin[row_dim_] - first, held.size};
  }

  // An entry is outside if the highest bit of it or of (last position - entry) is set.
  void check(const EntryRow& row) const {
    const uint64_t last = static_cast<uint64_t>(x_.shape[dim_]) - 1;
    uint64_t bits = 0;
    const auto add = [&](int64_t entry) {
      bits |= static_cast<uint64_t>(entry) | (last - static_cast<uint64_t>(entry));
    };
    if (row.step == 1) {
      for (int64_t j = 0; j < row.count; ++j)
        add(row.entries[j]);
    } else {
      for (int64_t j = 0; j < (row.step == 0 ? 1 : row.count); ++j)
        add(row.entries[j * row.step]);
    }
    if (bits >> 63 != 0) throw_outside();
  }

  // Names the first entry that is outside, whichever thread saw one.
  [[noreturn]] void throw_outside() const {
    const int64_t size = x_.shape[dim_];
    Shape at = Shape::filled(index_.shape().size(), 0);
    for (int64_t i = at.size() - 1;; i = at.size() - 1) {
      int64_t offset = 0;
      for (int64_t d = 0; d < at.size(); ++d)
        offset += at[d] * index_.strides()[d];
      const int64_t entry = index_.as<int64_t>()[offset];
      if (entry < 0 || entry >= size) {
        throw InvalidArgument(str("[", op_, "] index ", entry, " at ", at,
                                  " is out of range for dim ", dim_, " of size ", size,
                                  "; give positions from 0 to ", size - 1));
      }
      while (++at[i] == index_.shape()[i]) {
        at[i] = 0;
        --i;
      }
    }
  }

  ThreadPool& pool_;
  const TensorView& index_;
  const TensorMeta& x_;
  const TensorView& other_;
  int64_t dim_;
  const char* op_;
  int64_t row_dim_ = 0;
  bool is_whole_ = true;
};

#include "ops/kernel/isa_end.h"
