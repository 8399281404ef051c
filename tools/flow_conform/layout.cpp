#include "tools/flow_conform/layout.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "boxing/redistribute.h"
#include "core/context.h"
#include "tools/flow_conform/attrs.h"

namespace flow::conform {

namespace {

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

Sbp parse_one(const std::string& text) {
  if (text == "B") return sbp::broadcast;
  if (text == "P" || text == "Psum") return sbp::partial_sum;
  if (text == "Pmax") return sbp::partial_max;
  if (text == "Pmin") return sbp::partial_min;
  int64_t dim = 0;
  const auto [stop, status] = std::from_chars(text.data() + 1, text.data() + text.size(), dim);
  if (!text.starts_with('S') || status != std::errc() || stop != text.data() + text.size()) {
    throw BadSpec("an SBP must be S0, S1, …, B, P, Pmax or Pmin; got " + text);
  }
  return sbp::split(dim);
}

// All ranks in a row for one axis, or as 2 x 2 x … x rest for n axes.
Placement all_ranks(int64_t num_axes) {
  std::vector<int64_t> ranks(static_cast<size_t>(env::world_size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  Shape shape;
  int64_t rest = env::world_size();
  for (int64_t axis = 1; axis < num_axes; ++axis) {
    if (rest % 2 != 0) {
      throw NotSupported(str(env::world_size(), " ranks as ", num_axes, " axes"));
    }
    shape.push_back(2);
    rest /= 2;
  }
  shape.push_back(rest);
  return Placement(DeviceType::kCpu, shape, ranks);
}

// FNV-1a of the id, mixed with a number. It is the same on every rank and machine.
uint64_t hash_of(const std::string& id, uint64_t number) {
  uint64_t hash = 0xCBF29CE484222325ULL ^ number;
  for (const char c : id) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3ULL;
  }
  return hash ^ (hash >> 29);
}

// A sum with zeros loses the sign of a zero.
bool has_negative_zero(const Tensor& value) {
  const std::vector<double> numbers = value.to_vector<double>();
  return std::any_of(numbers.begin(), numbers.end(),
                     [](double number) { return number == 0 && std::signbit(number); });
}

}  // namespace

NdSbp parse_sbp(const std::string& text) {
  NdSbp nd_sbp;
  for (const std::string& axis : split_at(text, '/'))
    nd_sbp.push_back(parse_one(axis));
  return nd_sbp;
}

Layouts::Layouts(const std::string& text, const std::string& id, size_t num_inputs) : id_(id) {
  if (text.empty()) return;
  is_random_ = text == "random";
  if (is_random_) {
    placement_ = all_ranks(1);
    return;
  }
  for (const std::string& input : split_at(text, ','))
    sbps_.push_back(parse_sbp(input));
  if (sbps_.size() != num_inputs) {
    throw BadSpec(str("--layout has ", sbps_.size(), " entries, but case ", id, " has ", num_inputs,
                      " inputs"));
  }
  const int64_t num_axes = sbps_[0].size();
  for (const NdSbp& nd_sbp : sbps_) {
    if (nd_sbp.size() != num_axes)
      throw BadSpec("the entries of --layout must have the same number of axes");
  }
  placement_ = all_ranks(num_axes);
}

NdSbp Layouts::random_sbp(const Tensor& value, size_t position, bool is_written) const {
  const bool may_be_partial =
      is_floating(value.dtype()) && !is_written && !has_negative_zero(value);
  const auto choices = static_cast<uint64_t>(value.dim() + 1 + (may_be_partial ? 1 : 0));
  const auto choice = static_cast<int64_t>(hash_of(id_, position) % choices);
  // A dim of one element may be removed in place.
  if (is_written && choice < value.dim() && value.size(choice) == 1) return sbp::broadcast;
  if (choice < value.dim()) return sbp::split(choice);
  return choice == value.dim() ? sbp::broadcast : sbp::partial_sum;
}

Tensor Layouts::leaf(const Tensor& value) const {
  if (!placement_.defined()) return value;
  return value.to_global({.placement = placement_, .sbp = NdSbp::broadcast(placement_.num_axes())});
}

NdSbp Layouts::sbp_of(const Tensor& value, size_t position, bool is_written) const {
  if (!placement_.defined()) return {};
  return is_random_ ? random_sbp(value, position, is_written) : sbps_[position];
}

Tensor Layouts::lay_out(const Tensor& value, const NdSbp& nd_sbp) {
  return value.is_global() ? value.to_global({.sbp = nd_sbp}) : value;
}

Tensor like(const Tensor& tensor, const Tensor& value) {
  if (!tensor.is_global()) return value;
  const Placement placement = tensor.placement();
  return value.to_global({.placement = placement, .sbp = NdSbp::broadcast(placement.num_axes())});
}

}  // namespace flow::conform
