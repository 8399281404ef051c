// Puts the elements of a line in order, for sort, topk and order statistics. Elements become
// integer keys; equal keys keep their order. Include it with the other headers, before
// ops/kernel/isa_begin.h; all names live in flow::ops::isa_*.
//
// Lines that fit into a few vectors count for each key the keys before it. Longer ones are sorted
// by one digit of the keys after another, the least significant first (LSD radix sort); digits that
// all keys share are skipped.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/dtype.h"
#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/storage.h"
#include "core/thread_pool.h"
#include "ops/kernel/lines.h"
#include "ops/kernel/vector.h"

#include "ops/kernel/isa_begin.h"

template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

// Keys compare as the elements do. Both zeros have one key, and every NaN has the largest one.
template <class T>
inline KeyOf<T> key_of(T x) {
  using K = KeyOf<T>;
  if constexpr (is_floating(dtype_of<T>)) {
    using F = std::conditional_t<sizeof(T) == 8, double, float>;
    const F value = static_cast<F>(x) + F{0};  // -0 becomes 0
    const K pattern = std::bit_cast<K>(value);
    const K sign = pattern >> (8 * sizeof(K) - 1);
    const K key = pattern ^ (sign & std::numeric_limits<K>::max());
    return value != value ? std::numeric_limits<K>::max() : key;
  } else {
    return static_cast<K>(x);
  }
}

// A key with the position of its element. Items compare by key, then by position.
template <class K>
struct Item {
  uint64_t key;
  int64_t index;

  static Item of(K key, int64_t index) {
    return {static_cast<uint64_t>(key) ^ (uint64_t{1} << 63), index};
  }

  int64_t position() const { return index; }

  uint64_t ordered_key() const { return key; }
};

template <>
struct Item<int32_t> {
  uint64_t key_and_index;

  static Item of(int32_t key, int64_t index) {
    const uint32_t ordered = static_cast<uint32_t>(key) ^ (uint32_t{1} << 31);
    return {static_cast<uint64_t>(ordered) << 32 | static_cast<uint64_t>(index)};
  }

  int64_t position() const { return static_cast<int64_t>(key_and_index & UINT32_MAX); }

  uint64_t ordered_key() const { return key_and_index >> 32; }
};

inline bool operator<(const Item<int64_t>& a, const Item<int64_t>& b) {
  return a.key != b.key ? a.key < b.key : a.index < b.index;
}

inline bool operator<(const Item<int32_t>& a, const Item<int32_t>& b) {
  return a.key_and_index < b.key_and_index;
}

// Lines of at most this many elements can be put in order.
inline constexpr int64_t kLongestOrderedLine = UINT32_MAX;
// Lines of 32-bit keys up to here are ranked; the number of comparisons is the square.
inline constexpr int64_t kLongestRankedLine = 16 * Vec<int32_t>::kLanes;
// Fewer items than this are sorted by comparison.
inline constexpr int64_t kFewItems = 64;

inline Vec<int32_t> count_if(Vec<int32_t> count, Mask<float> m) {
  return count + select(m, Vec<int32_t>::fill(1), Vec<int32_t>::fill(0));
}

// ranks[i] = the number of keys before key i. Both arrays are padded to whole vectors.
inline void rank_keys(const int32_t* keys, int64_t n, int32_t* ranks) {
  using V = Vec<int32_t>;
  constexpr int64_t kLanes = V::kLanes;
  std::array<int32_t, kLanes> lane_numbers;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    lane_numbers[static_cast<size_t>(lane)] = static_cast<int32_t>(lane);
  const V lane = V::load(lane_numbers.data());
  for (int64_t i = 0; i < n; i += kLanes) {
    const V own = V::load(keys + i);
    const int64_t end = std::min(n, i + kLanes);
    V rank = V::fill(0);
    for (int64_t j = 0; j < i; ++j)
      rank = count_if(rank, ~(own < V::fill(keys[j])));
    for (int64_t j = i; j < end; ++j) {
      const V other = V::fill(keys[j]);
      const auto is_earlier = (other == own) & (V::fill(static_cast<int32_t>(j - i)) < lane);
      rank = count_if(rank, (other < own) | is_earlier);
    }
    for (int64_t j = end; j < n; ++j)
      rank = count_if(rank, V::fill(keys[j]) < own);
    rank.store(ranks + i);
  }
}

// Returns the sorted items, which are in one of the two arrays. Requires: from kFewItems on, items
// with one key are in the order of their positions.
template <class K>
inline Item<K>* sort_items(Item<K>* items, Item<K>* spare, int64_t n) {
  if (n < kFewItems) {
    std::sort(items, items + n);
    return items;
  }
  constexpr size_t kDigits = sizeof(K);
  std::array<std::array<uint32_t, 256>, kDigits> counts{};
  const auto digit = [](const Item<K>& item, size_t d) {
    return item.ordered_key() >> 8 * d & 255;
  };
  for (int64_t i = 0; i < n; ++i) {
    for (size_t d = 0; d < kDigits; ++d)
      ++counts[d][digit(items[i], d)];
  }
  for (size_t d = 0; d < kDigits; ++d) {
    if (counts[d][digit(items[0], d)] == n) continue;
    uint32_t begin = 0;
    for (uint32_t& count : counts[d])
      begin += std::exchange(count, begin);
    for (int64_t i = 0; i < n; ++i)
      spare[counts[d][digit(items[i], d)]++] = items[i];
    std::swap(items, spare);
  }
  return items;
}

// The memory in which lines of one length are put in order.
template <class T>
class LineOrder {
 public:
  static int64_t bytes(int64_t size) {
    const int64_t padded = size + Vec<int32_t>::kLanes;
    const int64_t wide_keys = sizeof(T) == 8 ? padded * 8 : 0;
    return wide_keys + 2 * padded * 4 + 2 * padded * static_cast<int64_t>(sizeof(Item<KeyOf<T>>));
  }

  LineOrder(const KernelContext& ctx, int64_t size)
      : memory_(ctx.scratch(static_cast<size_t>(bytes(size)))),
        size_(size),
        keys_(reinterpret_cast<KeyOf<T>*>(memory_->data())),
        narrow_(reinterpret_cast<int32_t*>(memory_->data())) {
    const int64_t padded = size + Vec<int32_t>::kLanes;
    if constexpr (sizeof(T) == 8) narrow_ += 2 * padded;
    ranks_ = narrow_ + padded;
    items_ = ranks_ + padded;
  }

  // Reads a line and calls fn(keys) with 32-bit or 64-bit keys.
  template <class Fn>
  void with_keys(const T* x, int64_t stride, bool descending, const Fn& fn) {
    read_keys(x, stride, descending);
    if constexpr (sizeof(T) == 8) {
      const auto [least, most] = std::minmax_element(keys_, keys_ + size_);
      const uint64_t first = static_cast<uint64_t>(*least);
      if (static_cast<uint64_t>(*most) - first > UINT32_MAX) return fn(keys_);
      for (int64_t i = 0; i < size_; ++i) {
        const auto distance = static_cast<uint32_t>(static_cast<uint64_t>(keys_[i]) - first);
        narrow_[i] = static_cast<int32_t>(distance ^ uint32_t{1} << 31);
      }
    }
    fn(narrow_);
  }

  // Calls put(place, position) for the first `wanted` places of the ordered line.
  template <class K, class Put>
  void order(const K* keys, int64_t wanted, const Put& put) {
    if constexpr (std::is_same_v<K, int32_t>) {
      if (size_ <= kLongestRankedLine) return order_by_rank(keys, wanted, put);
    }
    const Item<K>* sorted = 4 * wanted < size_ ? order_first(keys, wanted) : order_all(keys);
    for (int64_t place = 0; place < wanted; ++place)
      put(place, sorted[place].position());
  }

  template <class K>
  const Item<K>* order_all(const K* keys) {
    Item<K>* items = items_as<K>();
    if constexpr (std::is_same_v<K, int32_t>) {
      if (size_ <= kLongestRankedLine) {
        order_by_rank(keys, size_,
                      [&](int64_t place, int64_t i) { items[place] = Item<K>::of(keys[i], i); });
        return items;
      }
    }
    for (int64_t i = 0; i < size_; ++i)
      items[i] = Item<K>::of(keys[i], i);
    return sort_items(items, items + size_, size_);
  }

  // The position of the element that belongs to place `rank`.
  int64_t find(const T* x, int64_t stride, int64_t rank) {
    int64_t found = 0;
    with_keys(x, stride, false, [&](const auto* keys) { found = find_key(keys, rank); });
    return found;
  }

 private:
  static constexpr int64_t kGroup = 32;  // keys that are compared together

  template <class K>
  Item<K>* items_as() {
    return reinterpret_cast<Item<K>*>(items_);
  }

  void read_keys(const T* x, int64_t stride, bool descending) {
    const KeyOf<T> flip = descending ? -1 : 0;  // reverses the order of the keys
    if (stride == 1) {
      for (int64_t i = 0; i < size_; ++i)
        keys_[i] = key_of(x[i]) ^ flip;
    } else {
      for (int64_t i = 0; i < size_; ++i)
        keys_[i] = key_of(x[i * stride]) ^ flip;
    }
  }

  template <class Put>
  void order_by_rank(const int32_t* keys, int64_t wanted, const Put& put) {
    rank_keys(keys, size_, ranks_);
    for (int64_t i = 0; i < size_; ++i)
      if (ranks_[i] < wanted) put(ranks_[i], i);
  }

  // Keeps the best `wanted` items so far, and some candidates that came after them.
  template <class K>
  const Item<K>* order_first(const K* keys, int64_t wanted) {
    Item<K>* items = items_as<K>();
    if (wanted == 0) return items;
    for (int64_t i = 0; i < wanted; ++i)
      items[i] = Item<K>::of(keys[i], i);
    K limit = *std::max_element(keys, keys + wanted);
    int64_t count = wanted;
    const int64_t room = 2 * wanted + 2;
    const auto drop_others = [&] {
      std::nth_element(items, items + wanted - 1, items + count);
      limit = keys[items[wanted - 1].position()];
      count = wanted;
    };
    for (int64_t begin = wanted; begin < size_; begin += kGroup) {
      const int64_t end = std::min(size_, begin + kGroup);
      for (uint32_t left = keys_before(keys + begin, end - begin, limit); left != 0;
           left &= left - 1) {
        const int64_t i = begin + std::countr_zero(left);
        items[count++] = Item<K>::of(keys[i], i);
      }
      if (count > room) drop_others();
    }
    drop_others();
    if (wanted >= kFewItems) collect_up_to(items[wanted - 1], keys, items);
    return sort_items(items, items + wanted, wanted);
  }

  // Puts the items up to `last` into `items`, in the order of their positions.
  template <class K>
  void collect_up_to(const Item<K> last, const K* keys, Item<K>* items) {
    int64_t count = 0;
    for (int64_t i = 0; i < size_; ++i) {
      items[count] = Item<K>::of(keys[i], i);
      count += last < items[count] ? 0 : 1;
    }
  }

  // Bit i is set if keys[i] < limit, i < n <= kGroup.
  static uint32_t keys_before(const int32_t* keys, int64_t n, int32_t limit) {
    constexpr int64_t kLanes = Vec<int32_t>::kLanes;
    const Vec<int32_t> limits = Vec<int32_t>::fill(limit);
    uint32_t found = 0;
    for (int64_t i = 0; i < n; i += kLanes)  // keys are padded to whole vectors
      found |= bits(Vec<int32_t>::load(keys + i) < limits) << i;
    return n == kGroup ? found : found & ((1U << n) - 1U);
  }

  static uint32_t keys_before(const int64_t* keys, int64_t n, int64_t limit) {
    uint32_t found = 0;
    for (int64_t i = 0; i < n; ++i)
      found |= (keys[i] < limit ? 1U : 0U) << i;
    return found;
  }

  template <class K>
  int64_t find_key(const K* keys, int64_t rank) {
    if constexpr (std::is_same_v<K, int32_t>) {
      if (size_ <= kLongestRankedLine) {
        rank_keys(keys, size_, ranks_);
        return std::find(ranks_, ranks_ + size_, rank) - ranks_;
      }
    }
    return select_by_digits(keys, rank);
  }

  // Keeps the keys that share the leading digits of the wanted one, a digit at a time.
  template <class K>
  int64_t select_by_digits(const K* keys, int64_t rank) {
    constexpr int kDigitBits = 10;
    Item<K>* items = items_as<K>();
    int shift = static_cast<int>(8 * sizeof(K)) - kDigitBits;
    int64_t count =
        keep_digit<K>(size_, shift, rank, [&](int64_t i) { return Item<K>::of(keys[i], i); });
    while (count >= kFewItems && shift > 0) {
      shift = std::max(0, shift - kDigitBits);
      count = keep_digit<K>(count, shift, rank, [&](int64_t i) { return items[i]; });
    }
    std::nth_element(items, items + rank, items + count);
    return items[rank].position();
  }

  // Keeps of the items at(0), at(1), … those with the digit of item `rank`, which becomes its rank
  // among them. Returns their number.
  template <class K, class At>
  int64_t keep_digit(int64_t n, int shift, int64_t& rank, const At& at) {
    std::array<uint32_t, 1024> counts{};
    const auto digit = [&](int64_t i) {
      return at(i).ordered_key() >> shift & (counts.size() - 1);
    };
    for (int64_t i = 0; i < n; ++i)
      ++counts[digit(i)];
    size_t wanted = 0;
    for (; rank >= counts[wanted]; ++wanted)
      rank -= counts[wanted];
    Item<K>* items = items_as<K>();
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i)
      if (digit(i) == wanted) items[count++] = at(i);
    return count;
  }

  Ref<Storage> memory_;
  int64_t size_;
  KeyOf<T>* keys_;
  int32_t* narrow_;  // the keys if they have 32 bits
  int32_t* ranks_;
  int32_t* items_;
};

// Calls fn(order, line) for each line of x along `dim` in parallel; order is the thread's
// LineOrder<T>.
template <class T, class Fn>
inline void for_each_ordered_line(const KernelContext& ctx, const TensorView& x, int64_t dim,
                                  const Fn& fn) {
  const int64_t size = line_size(x, dim);
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, size));
  ctx.pool().parallel_for(0, num_lines(x, dim), grain, [&](int64_t begin, int64_t end) {
    LineOrder<T> order(ctx, size);
    for (int64_t l = begin; l < end; ++l)
      fn(order, l);
  });
}

// The kernel of an op that puts the lines of its first input along `dim` in order; none if there is
// nothing to order, or if a contiguous copy of the input has lines without gaps.
template <class T>
inline KernelChoice choose_for_lines(const KernelQuery& query, int64_t dim, KernelFn fn) {
  const TensorMeta& x = query.input(0);
  const int64_t size = x.local_shape.empty() ? 1 : x.local_shape[dim];
  if (x.local_numel == 0 || size > kLongestOrderedLine) return {};
  if (!x.is_contiguous && dim == x.dim() - 1 && x.strides[dim] != 1) return {};
  return with_scratch({fn}, {{LineOrder<T>::bytes(size), x.local_numel / size}});
}

#include "ops/kernel/isa_end.h"
