// Definitions of the ops of nn/graphs/inspect.h: copies that look at the values on their way.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "core/op.h"

namespace flow::ops {

// A short text in attrs. Longer ones are cut.
class ShortText {
 public:
  static constexpr size_t kMaxBytes = 95;

  ShortText() = default;
  explicit ShortText(std::string_view text);

  std::string_view view() const { return {bytes_.data(), size_}; }

  friend bool operator==(const ShortText&, const ShortText&) = default;

 private:
  std::array<char, kMaxBytes> bytes_{};
  uint8_t size_ = 0;
};

// How attrs (core/attrs.h) read and write a text: 'a%20b', with other bytes than letters, digits,
// '.', '_' and '-' in hexadecimal.
void hash_field(Hasher& hasher, const ShortText& text);
std::string field_to_string(const ShortText& text);
void parse_field(std::string_view text, ShortText& result);

struct InspectAttrs {
  ShortText name;
  ShortText module;  // the path of the module that makes the call

  static constexpr auto fields() {
    return std::tuple(value_field("name", &InspectAttrs::name),
                      value_field("module", &InspectAttrs::module));
  }
};

// y = x, and prints a line about x.
extern const OpDef kGraphPrint;
// y = x; throws InvalidArgument if a value is infinite or NaN.
extern const OpDef kCheckFinite;

}  // namespace flow::ops
