#include "tools/flow_conform/box_command.h"

#include "boxing/redistribute.h"
#include "core/context.h"
#include "eager/runtime.h"
#include "nn/safetensors.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/cast.h"
#include "tools/flow_conform/layout.h"

namespace flow::conform {

namespace {

// Reads nested lists of ranks: their shape, and the ranks in row-major order.
void flatten_ranks(const Json& nested, size_t depth, Shape& shape, std::vector<int64_t>& ranks) {
  if (!nested.is_array()) return ranks.push_back(nested.get<int64_t>());
  if (static_cast<size_t>(shape.size()) == depth) {
    shape.push_back(static_cast<int64_t>(nested.size()));
  }
  for (const Json& inner : nested)
    flatten_ranks(inner, depth + 1, shape, ranks);
}

Placement placement_of(const Json& nested) {
  Shape shape;
  std::vector<int64_t> ranks;
  flatten_ranks(nested, 0, shape, ranks);
  return Placement(DeviceType::kCpu, shape, ranks);
}

NdSbp sbp_of(const Json& entries) {
  if (entries.is_string()) return parse_sbp(entries);
  NdSbp nd_sbp;
  for (const Json& entry : entries)
    nd_sbp.push_back(parse_sbp(entry)[0]);
  return nd_sbp;
}

// The part of one rank, copied to all ranks.
Tensor part_of(const Tensor& part, int64_t rank) {
  const Placement alone(DeviceType::kCpu, Shape{1}, {rank});
  return part.to_global({.placement = alone, .sbp = sbp::broadcast}).full();
}

nn::StateDict redistribute(const Json& row, const nn::StateDict& parts, const RunOptions& run) {
  if (run.device != "cpu") throw NotSupported("device " + run.device);
  const std::string id = row.at("id");
  const Placement source = placement_of(row.at("src_ranks"));
  const Placement target = placement_of(row.at("dst_ranks"));
  const int64_t rank = env::rank();
  const auto stored = [&](int64_t of) {
    const auto found = parts.find(str(id, ".src.rank", of));
    if (found == parts.end()) throw BadSpec(str("the tensor ", id, ".src.rank", of, " is missing"));
    const Tensor& part = found->second;
    return is_floating(part.dtype()) && run.floating == float64 ? cast(part, float64) : part;
  };
  // The values that ranks outside the source pass are ignored.
  const Tensor own = stored(source.contains(rank) ? rank : source.ranks()[0]);
  const Tensor before = own.to_global({.placement = source, .sbp = sbp_of(row.at("src"))});
  const Tensor after = before.to_global({.placement = target, .sbp = sbp_of(row.at("dst"))});
  const Tensor got = target.contains(rank) ? after.to_local() : zeros({}, {.dtype = own.dtype()});
  nn::StateDict results;
  for (const int64_t holder : target.ranks())
    results[str(id, ".dst.rank", holder)] = part_of(got, holder);
  return results;
}

}  // namespace

ExitCode run_boxing(const BoxOptions& options) {
  return run_spec(options.table, [&](const Json& table) {
    const nn::StateDict parts = nn::load_safetensors(options.in);
    nn::StateDict results;
    Report report;
    for (const Json& row : table) {
      report.run(row.at("id"), [&] { results.merge(redistribute(row, parts, options.run)); });
    }
    if (env::rank() == 0) nn::save_safetensors(options.out, results);
    return report.exit_code();
  });
}

}  // namespace flow::conform
