#include "graph/compiled_step.h"

#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "boxing/comm/thread_world.h"
#include "core/context.h"
#include "core/hash.h"

namespace flow::graph {

CompiledStep compile_step(Graph traced, PassSet passes, const Lowering& lowering) {
  CompiledStep step{.graph = std::move(traced), .passes = {}, .programs = {}, .certificate = {}};
  step.passes = run_passes(step.graph, passes);
  const bool is_global = std::any_of(step.graph.values.begin(), step.graph.values.end(),
                                     [](const Value& v) { return v.placement.defined(); });
  // Ranks whose tensors are all local need not know of each other.
  step.programs = is_global ? lower_all(step.graph, lowering) : lower_here(step.graph, lowering);
  step.certificate = certify(step.programs);
  if (!is_global) step.certificate.ranks[0].rank = env::rank();
  return step;
}

namespace {

// Two hashes with different seeds: what differs in both is not met by chance.
using Key = std::array<uint64_t, 2>;

class KeyHasher {
 public:
  void add(uint64_t word) {
    first_.add(word);
    second_.add(word);
  }

  void add(int64_t number) { add(static_cast<uint64_t>(number)); }

  void add(const std::string& text) {
    add(uint64_t{text.size()});
    for (const char c : text)
      add(static_cast<uint64_t>(c));
  }

  void add(const std::vector<ValueId>& ids) {
    add(uint64_t{ids.size()});
    for (const ValueId id : ids)
      add(int64_t{id});
  }

  void add(const Value& value) {
    add(value.shape.size());
    for (const int64_t size : value.shape)
      add(size);
    add(static_cast<uint64_t>(value.dtype) * 8 + static_cast<uint64_t>(value.device));
    add(std::bit_cast<uint64_t>(value.placement.id()));
    add(value.nd_sbp.size());
    for (const Sbp& sbp : value.nd_sbp)
      add(static_cast<uint64_t>(sbp.kind()) * 16 + static_cast<uint64_t>(sbp.dim()));
  }

  void add(const Node& node) {
    add(std::bit_cast<uint64_t>(node.op));
    if (node.op->attrs != nullptr) add(node.op->attrs->hash(node.raw_attrs(), true));
    add(node.inputs);
    add(node.outputs);
    add(node.stage);
    add(static_cast<uint64_t>(node.phase));
    add(node.draw);
    add(node.guard * 2 + (node.is_transient ? 1 : 0));
    add(uint64_t{node.line});
    if (node.file != file_) {  // most are one file's
      add(node.file);
      file_ = node.file;
    }
  }

  Key key() const { return {first_.value(), second_.value()}; }

 private:
  Hasher first_{1}, second_{2};
  std::string file_;
};

Key key_of(const Graph& graph, PassSet passes, const Lowering& lowering) {
  KeyHasher hasher;
  for (const Value& value : graph.values)
    hasher.add(value);
  for (const Node& node : graph.nodes)
    hasher.add(node);
  hasher.add(graph.inputs);
  for (const Capture& capture : graph.captures)
    hasher.add(std::vector{capture.initial, capture.final_value});
  hasher.add(graph.outputs);
  hasher.add(graph.num_draws);
  hasher.add(static_cast<uint64_t>(passes));
  hasher.add(lowering.name);
  return hasher.key();
}

// What the thread ranks of a world have compiled. Thread safe.
class CompiledSteps {
 public:
  using Made = std::shared_ptr<const CompiledStep>;

  // One that `make` threw for is made again by the next that asks.
  Made get(const Key& key, const std::function<CompiledStep()>& make) {
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
      made = std::make_shared<const CompiledStep>(make());
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
    std::weak_ptr<const CompiledStep> made;
    bool is_being_made = false;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, Entry> entries_;  // guarded by mutex_
};

}  // namespace

std::shared_ptr<const CompiledStep> compile_once(Graph traced, PassSet passes,
                                                 const Lowering& lowering) {
  const auto world = thread_state().context->slot_ptr<boxing::ThreadWorld>();
  if (world == nullptr) {
    return std::make_shared<const CompiledStep>(compile_step(std::move(traced), passes, lowering));
  }
  return world->slot<CompiledSteps>().get(key_of(traced, passes, lowering), [&] {
    return compile_step(std::move(traced), passes, lowering);
  });
}

}  // namespace flow::graph
