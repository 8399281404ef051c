// The table of decisions that a thread has made. Keys hold everything that a decision depends on:
// op, key attrs, input metas, mutated inputs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/dispatch.h"
#include "core/kernel_call.h"

namespace flow::eager {

// A decision, and how the eager interpreter runs it on this rank.
struct CachedDecision : Decision {
  // The interpreter makes it at the first run and never changes it.
  mutable std::optional<const KernelCall> kernel_call;
};

struct CacheKey {
  const OpDef* op = nullptr;
  uint32_t mutates = 0;
  bool all_attrs = false;  // value attrs are part of the key too, because some input is global
  std::vector<MetaPtr> inputs;
  std::vector<std::byte> attrs;

  friend bool operator==(const CacheKey& a, const CacheKey& b) {
    return a.op == b.op && a.mutates == b.mutates && a.all_attrs == b.all_attrs &&
           a.inputs == b.inputs &&
           (a.op->attrs == nullptr ||
            a.op->attrs->equal(a.attrs.data(), b.attrs.data(), a.all_attrs));
  }
};

struct CacheStats {
  int64_t hits = 0;
  int64_t misses = 0;
};

// Uses open addressing with linear probing. The size is bounded: when the table holds kMaxEntries,
// all entries are retired. They stay alive until the next time the table is full, so that decisions
// that nested dispatches use remain valid.
class DecisionCache {
 public:
  static constexpr size_t kMaxEntries = 8192;

  // The decision for this call, or null.
  const CachedDecision* find(const Call& call);
  // Requires: find(call) has just returned null.
  const CachedDecision& insert(const Call& call, std::unique_ptr<CachedDecision> decision);
  void clear();

  const CacheStats& stats() const { return stats_; }

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    size_t hash;
    CacheKey key;
    std::unique_ptr<CachedDecision> decision;
  };

  static bool matches(const Entry& entry, const Call& call, bool all_attrs);
  void place(Entry* entry);

  static constexpr size_t kSlots = 4 * kMaxEntries;
  std::vector<Entry*> slots_ = std::vector<Entry*>(kSlots, nullptr);
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<std::unique_ptr<Entry>> retired_;
  CacheStats stats_;
};

}  // namespace flow::eager
