// Definitions of sort and topk.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct SortAttrs {
  int64_t dim = 0;
  bool descending = false;

  static constexpr auto fields() {
    return std::tuple(key_field("dim", &SortAttrs::dim),
                      key_field("descending", &SortAttrs::descending));
  }
};

struct TopkAttrs {
  int64_t k = 0;
  int64_t dim = 0;
  bool largest = true;

  static constexpr auto fields() {
    return std::tuple(key_field("k", &TopkAttrs::k), key_field("dim", &TopkAttrs::dim),
                      key_field("largest", &TopkAttrs::largest));
  }
};

extern const OpDef kSort, kTopk;

}  // namespace flow::ops
