// SBP describes how the ranks along one placement axis hold a logical tensor: split along a dim,
// broadcast, or as partial values that must be reduced. An NdSbp has one entry per placement axis.
// (Yuan et al. 2021, "OneFlow: Redesign the Distributed Deep Learning Framework from Scratch".)
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string_view>
#include <vector>

namespace flow {

// The layout along one placement axis. Prints as S(0), B, P, P(max), P(min).
class Sbp {
 public:
  enum class Kind : uint8_t { kBroadcast, kSplit, kPartialSum, kPartialMax, kPartialMin };

  constexpr explicit Sbp(Kind kind, int64_t dim = 0)
      : kind_(kind), dim_(static_cast<int8_t>(dim)) {}

  constexpr Kind kind() const { return kind_; }

  // The split dim; 0 unless is_split().
  constexpr int64_t dim() const { return dim_; }

  constexpr bool is_split() const { return kind_ == Kind::kSplit; }

  constexpr bool is_broadcast() const { return kind_ == Kind::kBroadcast; }

  constexpr bool is_partial() const { return kind_ >= Kind::kPartialSum; }

  friend constexpr bool operator==(const Sbp&, const Sbp&) = default;

 private:
  Kind kind_;
  int8_t dim_;
};

// One Sbp per placement axis, outermost first; empty means "not given". A small value type: copying
// and comparing touch a few bytes.
class NdSbp {
 public:
  static constexpr int kMaxAxes = 4;

  constexpr NdSbp() = default;

  constexpr NdSbp(Sbp sbp) : size_(1) { entries_[0] = sbp; }  // NOLINT(google-explicit-constructor)

  NdSbp(std::initializer_list<Sbp> entries);
  NdSbp(const std::vector<Sbp>& entries);  // NOLINT(google-explicit-constructor)

  constexpr int64_t size() const { return size_; }

  constexpr bool empty() const { return size_ == 0; }

  constexpr const Sbp& operator[](int64_t axis) const {
    return entries_[static_cast<size_t>(axis)];
  }

  constexpr const Sbp* begin() const { return entries_.data(); }

  constexpr const Sbp* end() const { return entries_.data() + size_; }

  void push_back(Sbp sbp);
  NdSbp with(int64_t axis, Sbp sbp) const;
  bool has_partial() const;
  // All axes are B.
  static NdSbp broadcast(int64_t axes);

  // The inverse of printing: reads "S(0)", "B", "(S(0), B)"; throws InvalidArgument.
  static NdSbp parse(std::string_view text);

  friend constexpr bool operator==(const NdSbp&, const NdSbp&) = default;

 private:
  std::array<Sbp, kMaxAxes> entries_{Sbp(Sbp::Kind::kBroadcast), Sbp(Sbp::Kind::kBroadcast),
                                     Sbp(Sbp::Kind::kBroadcast), Sbp(Sbp::Kind::kBroadcast)};
  int8_t size_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Sbp& sbp);
std::ostream& operator<<(std::ostream& out, const NdSbp& nd_sbp);

namespace sbp {
namespace internal {
[[noreturn]] void throw_bad_split_dim(int64_t dim);
}  // namespace internal

// Each rank of the axis holds a balanced slice along `dim`. Requires: 0 <= dim <= 7.
constexpr Sbp split(int64_t dim) {
  if (dim < 0 || dim > 7) internal::throw_bad_split_dim(dim);
  return Sbp(Sbp::Kind::kSplit, dim);
}

// broadcast: each rank holds the whole tensor. partial_sum, partial_max, partial_min: the logical
// value is the sum, max or min of the ranks' values.
inline constexpr Sbp broadcast{Sbp::Kind::kBroadcast}, partial_sum{Sbp::Kind::kPartialSum},
    partial_max{Sbp::Kind::kPartialMax}, partial_min{Sbp::Kind::kPartialMin};
}  // namespace sbp

}  // namespace flow
