#include "graph/compile.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "boxing/comm/thread_world.h"
#include "core/context.h"
#include "core/error.h"
#include "core/log.h"
#include "eager/runtime.h"
#include "graph/plan_file/plan_reader.h"
#include "graph/plan_file/plan_writer.h"
#include "graph/program/lower.h"

namespace flow::graph {

CompiledArtifact compile_artifact(Graph traced, std::span<const Pass> passes) {
  CompiledArtifact step;
  UnloweredStep unlowered{std::move(traced)};
  step.passes = run_passes(unlowered, passes);
  step.graph = std::move(unlowered.graph);
  const Order order = unlowered.order ? std::move(*unlowered.order) : plain_order(step.graph);
  const bool is_global = std::any_of(step.graph.values.begin(), step.graph.values.end(),
                                     [](const Value& v) { return v.placement.defined(); });
  // Ranks need not know each other's programs if all tensors are local.
  step.programs = is_global ? lower_all(step.graph, order) : lower_here(step.graph, order);
  step.certificate = certify(step.programs, RankKind::of(*thread_state().context));
  if (!is_global) step.certificate.ranks[0].rank = env::rank();
  return step;
}

namespace {

// The steps that the thread ranks of a world have compiled. Thread safe.
class CompiledArtifacts {
 public:
  using Made = std::shared_ptr<const CompiledArtifact>;

  // If `make` throws, the next rank that asks makes the step again.
  Made get(const std::string& key, const std::function<CompiledArtifact()>& make) {
    std::unique_lock lock(mutex_);
    for (;;) {
      Entry& entry = entries_[key];
      if (Made made = entry.made.lock()) return made;
      if (!entry.is_being_made) break;
      changed_.wait(lock);
    }
    entries_[key].is_being_made = true;
    lock.unlock();
    Made made;
    try {
      made = std::make_shared<const CompiledArtifact>(make());
    } catch (...) {
      lock.lock();
      entries_.erase(key);
      changed_.notify_all();
      throw;
    }
    lock.lock();
    std::erase_if(entries_, [](const auto& known) {
      return !known.second.is_being_made && known.second.made.expired();
    });
    entries_[key] = {made, false};
    changed_.notify_all();
    return made;
  }

 private:
  struct Entry {
    std::weak_ptr<const CompiledArtifact> made;
    bool is_being_made = false;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> entries_;  // guarded by mutex_
};

// Returns the saved step with this key, if there is one and it can be used. Otherwise `why_not` is
// the reason, or stays empty if none was saved.
std::optional<CompiledArtifact> read_kept(const PlanStore& store, const PlanKey& key,
                                          bool for_all_ranks, std::string& why_not) {
  try {
    const std::optional<std::string> bytes = store.read(key.name());
    if (!bytes) return {};
    SavedPlan saved = parse_plan(*bytes, key.name(), op_table());
    if (!(saved.key == key)) {
      throw BadFile(
          str("[plan] ", key.name(), " has another key: ", saved.key.difference_from(key)));
    }
    load_programs(saved.step, for_all_ranks);
    return std::move(saved.step);
  } catch (const IoError& error) {
    why_not = error.what();
    log_warning(str("a saved plan is not used: ", why_not));
    return {};
  }
}

void keep(const PlanStore& store, const PlanKey& key, const CompiledArtifact& step) {
  try {
    store.write(key.name(), to_bytes(step, key));
  } catch (const IoError& error) {
    log_warning(str("a plan could not be saved: ", error.what()));
  }
}

}  // namespace

std::shared_ptr<const CompiledArtifact> compile_once(Graph traced, std::span<const Pass> passes,
                                                     const PlanStore& given) {
  const auto world = thread_state().context->slot_ptr<boxing::ThreadWorld>();
  const PlanKey key = plan_key_of(traced, passes);
  const PlanStore store = key.tells_programs_apart() ? given : PlanStore();
  const auto make = [&] {
    std::string why_not;
    if (given.read && !store.read) {
      log_warning(
          "plans are not kept, because the program or a library with its ops has no build id; link "
          "it with -Wl,--build-id");
    }
    if (store.read) {
      std::optional<CompiledArtifact> kept = read_kept(store, key, world != nullptr, why_not);
      if (kept) return std::move(*kept);
    }
    CompiledArtifact step = compile_artifact(std::move(traced), passes);
    step.cache_miss_reason = why_not;
    step.key = key;
    // One process writes for all of its host, because all would write the same, unless their local
    // tensors may differ.
    const bool may_differ =
        step.is_global() && std::any_of(step.graph.values.begin(), step.graph.values.end(),
                                        [](const Value& v) { return !v.placement.defined(); });
    if (store.write && (world != nullptr || env::local_rank() == 0 || may_differ)) {
      keep(store, key, step);
    }
    return step;
  };
  if (world != nullptr) return world->slot<CompiledArtifacts>().get(key.name(), make);
  return std::make_shared<const CompiledArtifact>(make());
}

}  // namespace flow::graph
