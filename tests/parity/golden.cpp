#include "tests/parity/golden.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nn/file.h"

namespace flow::parity {

Json read_json(const std::string& file) {
  return Json::parse(nn::read_text(PARITY_DATA + file));
}

nn::StateDict read_tensors(const std::string& file) {
  return nn::load_safetensors(PARITY_DATA + file);
}

double relative_distance(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (a.size() != b.size()) return kInfinity;
  double largest = 0, apart = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(a[i]) && std::isfinite(b[i])) {
      largest = std::max(largest, std::abs(b[i]));
      apart = std::max(apart, std::abs(a[i] - b[i]));
    } else if (a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i]))) {
      return kInfinity;
    }
  }
  return apart == 0 ? 0 : apart / largest;
}

}  // namespace flow::parity
