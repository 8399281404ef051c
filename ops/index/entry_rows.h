// The walk of gather, scatter and their like over the entries of an index tensor, row by row.
// Include it after the other headers and before ops/kernel/isa_begin.h; all names are in
// flow::ops::isa_*.
//
//   const EntryWalk walk(index, x_meta, other, dim, "gather");
//   walk.for_each([&](int64_t place, int64_t i) { y[i] = x[place]; });
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/error.h"
#include "core/kernel.h"
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

class EntryWalk {
 public:
  // `other` is indexed like `index`, whose entries are positions in `dim` of x. A negative entry,
  // or one past the logical size of x, throws.
  EntryWalk(const TensorView& index, const TensorMeta& x, const TensorView& other, int64_t dim,
            const char* op)
      : index_(index), x_(x), other_(other), dim_(dim), op_(op) {
    const Shape& size = index.shape();
    row_dim_ = size.size() - 1;
    while (row_dim_ > 0 && size[row_dim_] == 1)
      --row_dim_;
    is_whole_ = x.local_shape == x.shape;
  }

  // True if this rank holds all of x, and no entry is skipped.
  bool is_whole() const { return is_whole_; }

  // Calls fn(place, i) for each entry that points into this rank's part: `place` is the offset in x
  // and i the offset of the counterpart. Entries that point to one place come in row-major order.
  template <class Fn>
  void for_each(const Fn& fn) const {
    if (index_.numel() == 0) return;
    const Shape& size = index_.shape();
    const int64_t count = size[row_dim_];
    Shape at = Shape::filled(size.size(), 0);
    while (true) {
      bool is_held = true;
      const EntryRow row = row_at(at, count, is_held);
      check(row, at);
      if (is_whole_ && row.step == 0) {
        for_one_entry(row, fn);
      } else if (is_whole_ && row.step == 1 && row.other_step == 1) {
        for_entries<true>(row, fn);
      } else if (is_whole_) {
        for_entries<false>(row, fn);
      } else if (is_held) {
        for_held_entries(row, local_range(x_, dim_), held_columns(count), fn);
      }
      int64_t i = size.size() - 1;
      while (i >= 0 && (i == row_dim_ || ++at[i] == size[i])) {
        if (i != row_dim_) at[i] = 0;
        --i;
      }
      if (i < 0) return;
    }
  }

 private:
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

  // The columns of a row that point into this rank's part.
  Range held_columns(int64_t count) const {
    if (row_dim_ == dim_) return {0, count};
    const Range held = local_range(x_, row_dim_);
    return {held.begin - index_.meta->local_begin[row_dim_], held.size};
  }

  // An entry is outside if the highest bit of it or of (last position - entry) is set.
  void check(const EntryRow& row, const Shape& at) const {
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
    if (bits >> 63 != 0) throw_outside(row, at);
  }

  [[noreturn]] void throw_outside(const EntryRow& row, Shape at) const {
    const int64_t size = x_.shape[dim_];
    int64_t j = 0;
    while (row.entries[j * row.step] >= 0 && row.entries[j * row.step] < size)
      ++j;
    at[row_dim_] += j;
    throw InvalidArgument(str("[", op_, "] index ", row.entries[j * row.step], " at ", at,
                              " is out of range for dim ", dim_, " of size ", size,
                              "; give positions from 0 to ", size - 1));
  }

  const TensorView& index_;
  const TensorMeta& x_;
  const TensorView& other_;
  int64_t dim_;
  const char* op_;
  int64_t row_dim_ = 0;
  bool is_whole_ = true;
};

#include "ops/kernel/isa_end.h"
