#include "tools/flow_conform/train_log.h"

#include <charconv>
#include <cmath>

#include "core/error.h"
#include "nn/file.h"

namespace flow::conform {

namespace {
std::string shortest(double value) {
  if (!std::isfinite(value))
    return std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}
}  // namespace

std::string log_line(int64_t step, double loss, double grad_norm, double lr) {
  return str("{\"step\": ", step, ", \"loss\": ", shortest(loss),
             ", \"grad_norm\": ", shortest(grad_norm), ", \"lr\": ", shortest(lr), "}\n");
}

void write_text(const std::string& path, const std::string& text) {
  nn::OutputFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace flow::conform
