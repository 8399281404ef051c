#include "tools/flow_plan/sequence_diff.h"

#include <algorithm>

#include "core/error.h"

namespace flow::tools {

namespace {

using Sequence = std::span<const uint32_t>;

// A run of equal elements in the middle of a shortest edit script; it may be empty.
struct Snake {
  size_t begin_a = 0;
  size_t begin_b = 0;
  size_t end_a = 0;
  size_t end_b = 0;
};

// The furthest positions in the first sequence by diagonal, from one of the two ends.
class Front {
 public:
  Front(size_t a, size_t b) : reach_(a + b + 3, 0), zero_(static_cast<int64_t>(b) + 1) {}

  int64_t& operator[](int64_t diagonal) { return reach_[static_cast<size_t>(diagonal + zero_)]; }

 private:
  std::vector<int64_t> reach_;
  int64_t zero_;
};

class Search {
 public:
  Search(Sequence a, Sequence b)
      : a_(a),
        b_(b),
        size_a_(static_cast<int64_t>(a.size())),
        size_b_(static_cast<int64_t>(b.size())) {}

  // Requires: both sequences have elements, and neither their first nor their last ones are equal.
  Snake middle() {
    Front forward(a_.size(), b_.size()), backward(a_.size(), b_.size());
    const int64_t difference = size_a_ - size_b_;
    const bool is_odd = difference % 2 != 0;
    for (int64_t edits = 0;; ++edits) {
      for (const bool is_forward : {true, false}) {
        Front& own = is_forward ? forward : backward;
        Front& other = is_forward ? backward : forward;
        for (int64_t k = lowest(edits); k <= highest(edits); k += 2) {
          const auto [begin, end] = extend(own, k, edits, is_forward);
          const int64_t facing = difference - k;  // the same diagonal from the other end
          const int64_t looked = is_forward ? edits - 1 : edits;  // edits of the other end so far
          if (is_odd != is_forward || looked < 0) continue;
          if (facing < lowest(looked) || facing > highest(looked)) continue;
          if (end + other[facing] < size_a_) continue;
          return is_forward ? snake(begin, begin - k, end, end - k)
                            : snake(size_a_ - end, size_b_ - (end - k), size_a_ - begin,
                                    size_b_ - (begin - k));
        }
      }
    }
  }

 private:
  static Snake snake(int64_t begin_a, int64_t begin_b, int64_t end_a, int64_t end_b) {
    return {static_cast<size_t>(begin_a), static_cast<size_t>(begin_b), static_cast<size_t>(end_a),
            static_cast<size_t>(end_b)};
  }

  // The diagonals that so many edits reach within both sequences.
  int64_t lowest(int64_t edits) const {
    return -(edits - 2 * std::max<int64_t>(0, edits - size_b_));
  }

  int64_t highest(int64_t edits) const { return edits - 2 * std::max<int64_t>(0, edits - size_a_); }

  // Goes one edit further on a diagonal, and along equal elements. Returns the positions in the
  // first sequence before and after the equal elements.
  std::pair<int64_t, int64_t> extend(Front& front, int64_t k, int64_t edits,
                                     bool is_forward) const {
    int64_t x = 0;
    if (edits > 0) {
      const bool inserts = k == -edits || (k != edits && front[k - 1] < front[k + 1]);
      x = inserts ? front[k + 1] : front[k - 1] + 1;
    }
    const int64_t begin = x;
    const auto equal = [&](int64_t i, int64_t j) {
      return is_forward ? a_[static_cast<size_t>(i)] == b_[static_cast<size_t>(j)]
                        : a_[static_cast<size_t>(size_a_ - 1 - i)] ==
                              b_[static_cast<size_t>(size_b_ - 1 - j)];
    };
    while (x < size_a_ && x - k < size_b_ && equal(x, x - k))
      ++x;
    front[k] = x;
    return {begin, x};
  }

  Sequence a_, b_;
  int64_t size_a_, size_b_;
};

class Matches {
 public:
  void add(Sequence a, Sequence b, size_t at_a, size_t at_b) {
    while (!a.empty() && !b.empty() && a.front() == b.front()) {
      pairs_.emplace_back(at_a++, at_b++);
      a = a.subspan(1);
      b = b.subspan(1);
    }
    size_t num_last = 0;
    while (!a.empty() && !b.empty() && a.back() == b.back()) {
      ++num_last;
      a = a.first(a.size() - 1);
      b = b.first(b.size() - 1);
    }
    if (!a.empty() && !b.empty()) {
      const Snake middle = Search(a, b).middle();
      add(a.first(middle.begin_a), b.first(middle.begin_b), at_a, at_b);
      for (size_t i = 0; middle.begin_a + i < middle.end_a; ++i)
        pairs_.emplace_back(at_a + middle.begin_a + i, at_b + middle.begin_b + i);
      add(a.subspan(middle.end_a), b.subspan(middle.end_b), at_a + middle.end_a,
          at_b + middle.end_b);
    }
    for (size_t i = 0; i < num_last; ++i)
      pairs_.emplace_back(at_a + a.size() + i, at_b + b.size() + i);
  }

  std::vector<std::pair<size_t, size_t>> take() { return std::move(pairs_); }

 private:
  std::vector<std::pair<size_t, size_t>> pairs_;
};

}  // namespace

std::vector<std::pair<size_t, size_t>> common_subsequence(Sequence a, Sequence b) {
  Matches matches;
  matches.add(a, b, 0, 0);
  return matches.take();
}

}  // namespace flow::tools
