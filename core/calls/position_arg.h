// Arguments of operator[], which cannot have a parameter for the line of the call.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/site.h"

namespace flow {

// A position in a list, and the line of the user's program where it stands.
struct PositionArg {
  PositionArg(int64_t position, Site where = Site::here())  // NOLINT(google-explicit-constructor)
      : value(position), site(where) {}

  int64_t value;
  Site site;
};

// A key, and the line of the user's program where it stands.
struct KeyArg {
  template <class T>

  // NOLINTNEXTLINE(google-explicit-constructor)
  requires std::convertible_to<const T&, std::string_view> KeyArg(const T& key,
                                                                  Site where = Site::here())
      : value(std::string_view(key)), site(where) {}

  std::string value;
  Site site;
};

}  // namespace flow
