#include "tools/flow_conform/train_summary.h"

#include "autograd/grad_mode.h"
#include "boxing/report.h"
#include "core/allocator.h"
#include "core/context.h"
#include "core/storage.h"
#include "eager/runtime.h"
#include "graph/plan.h"
#include "nn/comm.h"
#include "ops/creation.h"
#include "tools/flow_conform/attrs.h"

namespace flow::conform {

namespace {

// What the allocator counts for a block of so many bytes.
int64_t handed_out(int64_t bytes) {
  const int64_t before = memory_stats().bytes_in_use;
  const auto block =
      Storage::allocate(thread_state().context->allocator(), static_cast<size_t>(bytes));
  return memory_stats().bytes_in_use - before;
}

Json memory_of_all(const RankMemory& own) {
  const NoGradGuard no_grad;
  const Tensor row = tensor(std::vector{own.stated_peak_bytes, own.measured_peak_bytes},
                            Shape{1, 2}, {.dtype = int64});
  const auto all = (env::world_size() == 1 ? row : comm::all_gather(row)).to_vector<int64_t>();
  Json list = Json::array();
  for (size_t rank = 0; rank < all.size() / 2; ++rank) {
    list.push_back({{"rank", rank},
                    {"stated_peak_bytes", all[2 * rank]},
                    {"measured_peak_bytes", all[2 * rank + 1]}});
  }
  return list;
}

// The redistributions that this rank carried out.
Json redistributions() {
  Json list = Json::array();
  for (const BoxingEntry& entry : boxing_report().entries) {
    Json one = {{"site", str(entry.site.file(), ":", entry.site.line())},
                {"shape", str(entry.shape)},
                {"dtype", str(entry.dtype)},
                {"from", str(entry.from_sbp, " on ", entry.from_placement)},
                {"to", str(entry.to_sbp, " on ", entry.to_placement)},
                {"route", entry.route},
                {"bytes", entry.bytes},
                {"predicted_us", entry.predicted_us},
                {"runs", entry.runs},
                {"measured_us", entry.total_us / static_cast<double>(entry.runs)}};
    if (!entry.runner_up.empty()) {
      one["runner_up"] = {{"route", entry.runner_up},
                          {"bytes", entry.runner_up_bytes},
                          {"predicted_us", entry.runner_up_us}};
    }
    list.push_back(one);
  }
  return list;
}

}  // namespace

int64_t stated_peak_bytes(const nn::CompiledGraph& compiled, int64_t other_bytes) {
  const graph::Plan& plan = compiled.plan();
  int64_t bytes = memory_stats().bytes_in_use - other_bytes + handed_out(plan.arena_bytes());
  for (const graph::ValueId output : plan.graph().outputs) {
    const MetaPtr meta = plan.graph().value(output).meta_on(env::rank());
    bytes += handed_out(meta->is_held ? static_cast<int64_t>(meta->local_bytes()) : 0);
  }
  return bytes;
}

std::string summary_of(const RankMemory& memory) {
  const Json summary = {{"memory", memory_of_all(memory)},
                        {"bubble", {{"predicted", 0}, {"measured", 0}}},
                        {"boxing", redistributions()}};
  return summary.dump(2) + '\n';
}

}  // namespace flow::conform
