#include "eager/decision_cache.h"

#include <cstring>

#include "core/hash.h"
#include "ops/sbp_rules.h"

namespace flow::eager {

namespace {

MetaPtr meta_of(const Tensor& input) {
  return input.defined() ? input.meta_ptr() : nullptr;
}

// Returns whether the decision depends on value attrs too: if some input is global, the op's
// signatures may depend on them. Signatures of elementwise_sbp depend only on shapes, so a new
// value of an attr needs no new decision.
bool all_attrs_count(const Call& call) {
  if (call.op.sbp == ops::elementwise_sbp) return false;
  for (const Tensor* input : call.inputs) {
    if (input->defined() && input->meta_ptr()->is_global()) return true;
  }
  return false;
}

size_t hash_call(const Call& call, bool all_attrs) {
  Hasher hasher;
  hasher.add(&call.op);
  hasher.add(uint64_t{call.mutates});
  for (const Tensor* input : call.inputs)
    hasher.add(meta_of(*input));
  if (call.op.attrs != nullptr) hasher.add(call.op.attrs->hash(call.attrs, all_attrs));
  return hasher.value();
}

}  // namespace

bool DecisionCache::matches(const Entry& entry, const Call& call, bool all_attrs) {
  const CacheKey& key = entry.key;
  if (key.op != &call.op || key.mutates != call.mutates ||
      key.inputs.size() != call.inputs.size()) {
    return false;
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (key.inputs[i] != meta_of(*call.inputs[i])) return false;
  }
  return call.op.attrs == nullptr || call.op.attrs->equal(key.attrs.data(), call.attrs, all_attrs);
}

const CachedDecision* DecisionCache::find(const Call& call) {
  const bool all_attrs = all_attrs_count(call);
  const size_t hash = hash_call(call, all_attrs);
  for (size_t at = hash % kSlots; slots_[at] != nullptr; at = (at + 1) % kSlots) {
    const Entry& entry = *slots_[at];
    if (entry.hash == hash && matches(entry, call, all_attrs)) {
      ++stats_.hits;
      return entry.decision.get();
    }
  }
  ++stats_.misses;
  return nullptr;
}

const CachedDecision& DecisionCache::insert(const Call& call,
                                            std::unique_ptr<CachedDecision> decision) {
  if (entries_.size() == kMaxEntries) clear();
  auto entry = std::make_unique<Entry>();
  CacheKey& key = entry->key;
  key.op = &call.op;
  key.mutates = call.mutates;
  key.all_attrs = all_attrs_count(call);
  for (const Tensor* input : call.inputs)
    key.inputs.push_back(meta_of(*input));
  if (call.op.attrs != nullptr) {
    key.attrs.resize(call.op.attrs->size);
    std::memcpy(key.attrs.data(), call.attrs, call.op.attrs->size);
  }
  entry->hash = hash_call(call, key.all_attrs);
  entry->decision = std::move(decision);
  place(entry.get());
  entries_.push_back(std::move(entry));
  return *entries_.back()->decision;
}

void DecisionCache::place(Entry* entry) {
  size_t at = entry->hash % kSlots;
  while (slots_[at] != nullptr)
    at = (at + 1) % kSlots;
  slots_[at] = entry;
}

void DecisionCache::clear() {
  retired_ = std::move(entries_);
  entries_.clear();
  slots_.assign(kSlots, nullptr);
}

}  // namespace flow::eager
