#include "nn/graphs/kept_plans.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/error.h"
#include "graph/run/compiled_step.h"

namespace flow::nn {

CompiledGraph* KeptPlans::use(const Test& is_wanted) {
  const auto found = std::find_if(plans_.rbegin(), plans_.rend(),
                                  [&](const auto& plan) { return is_wanted(*plan); });
  if (found == plans_.rend()) return nullptr;
  std::rotate(found.base() - 1, found.base(), plans_.end());
  return plans_.back().get();
}

CompiledGraph& KeptPlans::add(std::unique_ptr<CompiledGraph> plan) {
  return *plans_.emplace_back(std::move(plan));
}

void KeptPlans::remove_last() {
  plans_.pop_back();
  trim_arena();
}

void KeptPlans::clear() {
  plans_.clear();
  trim_arena();
}

void KeptPlans::trim_arena() {
  int64_t most = 0;
  for (const auto& plan : plans_)
    most = std::max(most, plan->plan().arena_bytes());
  arena_->trim(most);
}

void KeptPlans::keep_at_most(int64_t limit) {
  limit_ = limit;
  const int64_t surplus = std::max<int64_t>(0, static_cast<int64_t>(plans_.size()) - limit);
  plans_.erase(plans_.begin(), plans_.begin() + static_cast<std::ptrdiff_t>(surplus));
  num_dropped_ += surplus;
  if (surplus > 0) trim_arena();
}

std::string KeptPlans::summary() const {
  return str("plans of the graph: ", plans_.size(), " kept of at most ", limit_, ", ", num_dropped_,
             " dropped\n");
}

}  // namespace flow::nn
