#include "nn/layers/checks.h"

#include "core/error.h"
#include "ops/conv/window.h"

namespace flow::nn::internal {

void check_sizes(const char* layer, std::initializer_list<NamedSize> sizes, Site site) {
  for (const auto& [name, value] : sizes) {
    if (value >= 0) continue;
    throw InvalidArgument(str("[", layer, "] ", name, " must not be negative; received ", value),
                          site);
  }
}

void check_sizes(const char* layer, const char* name, const Shape& shape, Site site) {
  for (const int64_t size : shape) {
    if (size >= 0) continue;
    throw InvalidArgument(
        str("[", layer, "] ", name, " must not have a negative size; received ", shape), site);
  }
}

void check_positive(const char* layer, std::initializer_list<NamedSize> sizes, Site site) {
  for (const auto& [name, value] : sizes) {
    if (value > 0) continue;
    throw InvalidArgument(str("[", layer, "] ", name, " must be positive; received ", value), site);
  }
}

void check_numbers(const char* layer, int64_t spatial_dims,
                   std::initializer_list<NamedNumbers> lists, Site site) {
  const SiteScope scope(site);
  for (const auto& [name, values, least] : lists)
    ops::spatial_numbers(values, spatial_dims, least, least, layer, name);
}

}  // namespace flow::nn::internal
