#include "tools/conform/spec.h"

#include <cstdio>
#include <filesystem>
#include <limits>

#include "nn/file.h"
#include "nn/safetensors.h"
#include "ops/cast.h"

namespace flow::conform {

nn::StateDict Spec::tensors(const std::string& file, const Options& options) const {
  nn::StateDict tensors = nn::load_safetensors((std::filesystem::path(folder) / file).string());
  for (auto& [name, tensor] : tensors) {
    if (options.widens && is_floating(tensor.dtype())) tensor = cast(tensor, float64);
  }
  return tensors;
}

Spec read_spec(const std::string& path) {
  Json json = Json::parse(nn::read_text(path), nullptr, false);
  if (json.is_discarded()) throw BadSpec(path + " holds no JSON");
  return {std::move(json), std::filesystem::path(path).parent_path().string()};
}

double to_number(const Json& value) {
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  return value.get<double>();
}

void Report::leave_out(const std::string& id, const std::string& reason) {
  ++num_left_out_;
  std::fprintf(stderr, "unsupported: %s: %s\n", id.c_str(), reason.c_str());
}

}  // namespace flow::conform
