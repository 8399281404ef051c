// Checks of the sizes and options that layers are constructed from. All throw InvalidArgument
// with the layer's name, the argument's name and the line of the construction.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/calls/site_scope.h"
#include "core/shape.h"

namespace flow::nn::internal {

struct NamedSize {
  const char* name;
  int64_t value;
};

// Requires that no size is negative.
//   check_sizes("Linear", {{"in_features", in_features}, {"out_features", out_features}}, site)
void check_sizes(const char* layer, std::initializer_list<NamedSize> sizes, Site site);
// The same for the sizes of a shape.
void check_sizes(const char* layer, const char* name, const Shape& shape, Site site);
// Requires that all sizes are positive.
void check_positive(const char* layer, std::initializer_list<NamedSize> sizes, Site site);

struct NamedNumbers {
  const char* name;
  const Ints& values;
  int64_t least;
};

// Requires of each list that it has one number, or one for each of the spatial dims, and that none
// is below `least`.
void check_numbers(const char* layer, int64_t spatial_dims,
                   std::initializer_list<NamedNumbers> lists, Site site);

}  // namespace flow::nn::internal
