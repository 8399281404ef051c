#include <algorithm>
#include <cctype>

#include "ops/creation/inspect_op.h"
#include "ops/sbp_rules.h"

namespace flow::ops {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
}

[[noreturn]] void fail(std::string_view text) {
  throw InvalidArgument(
      str("[attrs] '", text, "' is not a short text; write it in quotes, such as 'a%20b'"));
}

char parse_hex(std::string_view text, size_t at) {
  const size_t high = at + 2 < text.size() ? kHexDigits.find(text[at + 1]) : std::string_view::npos;
  const size_t low = at + 2 < text.size() ? kHexDigits.find(text[at + 2]) : std::string_view::npos;
  if (high == std::string_view::npos || low == std::string_view::npos) fail(text);
  return static_cast<char>(high * 16 + low);
}

void infer_same(InferContext& ctx) {
  ctx.add_output_like(0);
}

// dx = dy
void grad_same(GradContext& ctx) {
  ctx.set(0, ctx.dy());
}

}  // namespace

ShortText::ShortText(std::string_view text) {
  size_ = static_cast<uint8_t>(std::min(text.size(), kMaxBytes));
  std::copy_n(text.begin(), size_, bytes_.begin());
}

void hash_field(Hasher& hasher, const ShortText& text) {
  hasher.add(uint64_t{text.view().size()});
  for (const char c : text.view())
    hasher.add(static_cast<uint64_t>(static_cast<unsigned char>(c)));
}

std::string field_to_string(const ShortText& text) {
  std::string result = "'";
  for (const char c : text.view()) {
    if (is_plain(c)) {
      result += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    result += '%';
    result += kHexDigits[byte / 16];
    result += kHexDigits[byte % 16];
  }
  return result + "'";
}

void parse_field(std::string_view text, ShortText& result) {
  if (text.size() < 2 || text.front() != '\'' || text.back() != '\'') fail(text);
  std::string bytes;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (is_plain(text[i])) {
      bytes += text[i];
    } else if (text[i] == '%') {
      bytes += parse_hex(text, i);
      i += 2;
    } else {
      fail(text);
    }
  }
  if (bytes.size() > ShortText::kMaxBytes) fail(text);
  result = ShortText(bytes);
}

const OpDef kGraphPrint = {
    .name = "graph_print",
    .attrs = attrs_def<InspectAttrs>(),
    .infer = infer_same,
    .sbp = unary_sbp<kLinear | kIncreasing>,
    .grad = grad_same,
    .has_effect = true,
};

const OpDef kCheckFinite = {
    .name = "check_finite",
    .attrs = attrs_def<InspectAttrs>(),
    .infer = infer_same,
    .sbp = unary_sbp<kLinear | kIncreasing>,
    .grad = grad_same,
    .has_effect = true,
};

void register_inspect(OpTable& table) {
  table.add(kGraphPrint);
  table.add(kCheckFinite);
}

}  // namespace flow::ops
