#include "core/sbp.h"

#include <algorithm>
#include <charconv>
#include <ostream>
#include <string>

#include "core/error.h"

namespace flow {

namespace {
void check_axes(size_t axes) {
  if (axes > NdSbp::kMaxAxes) {
    throw InvalidArgument(str("[sbp] too many entries; received ", axes,
                              "; give one for each placement axis, of which "
                              "there are at most ",
                              NdSbp::kMaxAxes));
  }
}

[[noreturn]] void throw_unparsable(std::string_view text) {
  throw InvalidArgument(str("[sbp] cannot parse '", text,
                            "'; write S(0), B, P, P(max), P(min) or a list such as (S(0), B)"));
}

Sbp parse_one(std::string_view word, std::string_view whole) {
  if (word == "B") return sbp::broadcast;
  if (word == "P" || word == "P(sum)") return sbp::partial_sum;
  if (word == "P(max)") return sbp::partial_max;
  if (word == "P(min)") return sbp::partial_min;
  if (!word.starts_with("S(") || !word.ends_with(")")) throw_unparsable(whole);
  int64_t dim = -1;
  const char* first = word.data() + 2;
  const char* last = word.data() + word.size() - 1;
  const auto [end, status] = std::from_chars(first, last, dim);
  if (status != std::errc() || end != last || dim < 0) throw_unparsable(whole);
  return sbp::split(dim);
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}
}  // namespace

namespace sbp::internal {
void throw_bad_split_dim(int64_t dim) {
  throw InvalidArgument(
      str("[sbp] split dim must be in [0, 8); got ", dim,
          "; a layout does not know the number of dims, so count from the front"));
}
}  // namespace sbp::internal

NdSbp::NdSbp(std::initializer_list<Sbp> entries) : NdSbp(std::vector<Sbp>(entries)) {}

NdSbp::NdSbp(const std::vector<Sbp>& entries) : size_(static_cast<int8_t>(entries.size())) {
  check_axes(entries.size());
  std::copy(entries.begin(), entries.end(), entries_.begin());
}

void NdSbp::push_back(Sbp sbp) {
  check_axes(static_cast<size_t>(size_) + 1);
  entries_[static_cast<uint8_t>(size_++)] = sbp;
}

NdSbp NdSbp::with(int64_t axis, Sbp sbp) const {
  NdSbp result = *this;
  result.entries_[static_cast<size_t>(axis)] = sbp;
  return result;
}

bool NdSbp::has_partial() const {
  return std::any_of(begin(), end(), [](const Sbp& s) { return s.is_partial(); });
}

NdSbp NdSbp::broadcast(int64_t axes) {
  NdSbp result;
  for (int64_t i = 0; i < axes; ++i)
    result.push_back(sbp::broadcast);
  return result;
}

NdSbp NdSbp::parse(std::string_view text) {
  std::string_view rest = trim(text);
  if (!rest.starts_with("(")) return parse_one(rest, text);
  if (!rest.ends_with(")")) throw_unparsable(text);
  rest = rest.substr(1, rest.size() - 2);
  NdSbp result;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    result.push_back(parse_one(trim(rest.substr(0, comma)), text));
    rest = comma == std::string_view::npos ? std::string_view() : trim(rest.substr(comma + 1));
  }
  return result;
}

std::ostream& operator<<(std::ostream& out, const Sbp& sbp) {
  switch (sbp.kind()) {
    case Sbp::Kind::kBroadcast:
      return out << 'B';
    case Sbp::Kind::kSplit:
      return out << "S(" << sbp.dim() << ')';
    case Sbp::Kind::kPartialSum:
      return out << 'P';
    case Sbp::Kind::kPartialMax:
      return out << "P(max)";
    case Sbp::Kind::kPartialMin:
      return out << "P(min)";
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const NdSbp& nd_sbp) {
  if (nd_sbp.size() == 1) return out << nd_sbp[0];
  out << '(';
  for (int64_t i = 0; i < nd_sbp.size(); ++i)
    out << (i == 0 ? "" : ", ") << nd_sbp[i];
  return out << ')';
}

}  // namespace flow
