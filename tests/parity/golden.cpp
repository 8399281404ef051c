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
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 1, distance = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return std::numeric_limits<double>::infinity();
    if (std::isnan(b[i])) continue;
    largest = std::max(largest, std::abs(b[i]));
    distance = std::max(distance, std::abs(a[i] - b[i]));
  }
  return distance / largest;
}

}  // namespace flow::parity
