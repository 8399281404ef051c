#include "nn/module_reads.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace flow::nn {

namespace internal {
constinit thread_local CalledModules* module_recorder = nullptr;
}  // namespace internal

const ModuleReads::Known& ModuleReads::known() const {
  const uint64_t now = num_module_changes.load(std::memory_order_relaxed);
  if (known_.num_changes == now) return known_;
  known_ = {.num_changes = now, .has_modes = true, .fits = true};
  for (const Read& read : reads_) {
    known_.has_modes &= read.module.is_training() == read.is_training;
    known_.fits &= read.module.live_state().form() == read.form;
  }
  return known_;
}

bool ModuleReads::has_modes() const {
  return known().has_modes;
}

bool ModuleReads::fits() const {
  const auto is_unchanged = [](const Object& object) {
    return object.life.expired() ||
           std::memcmp(object.begin, object.bytes.data(), object.bytes.size()) == 0;
  };
  return known().fits && std::all_of(objects_.begin(), objects_.end(), is_unchanged) &&
         std::all_of(conditions_.begin(), conditions_.end(),
                     [](const auto& condition) { return condition.second(); });
}

std::vector<ModuleBase> ModuleReads::called() const {
  std::vector<ModuleBase> modules;
  for (const Read& read : reads_) {
    if (read.is_called) modules.push_back(read.module);
  }
  return modules;
}

CalledModules::CalledModules(bool recomputes_blocks) : recomputes_blocks_(recomputes_blocks) {
  internal::module_recorder = this;
}

CalledModules::~CalledModules() {
  internal::module_recorder = nullptr;
}

size_t CalledModules::add(const ModuleBase& module) {
  const auto [known, is_new] = index_of_.try_emplace(module.state_.get(), reads_.reads_.size());
  if (is_new) {
    internal::module_recorder = nullptr;  // the look at the module is not a read of the program
    reads_.reads_.push_back({module, module.live_state().form()});
    internal::module_recorder = this;
  }
  return known->second;
}

void CalledModules::note_read(const ModuleBase& module) {
  add(module);
}

void CalledModules::note_call(const ModuleBase& module, size_t bytes) {
  reads_.reads_[add(module)].is_called = true;
  Object& object = objects_[reinterpret_cast<const std::byte*>(&module)];
  if (object.life.expired()) object = {bytes, module.life_.watch()};
}

void CalledModules::note_condition(const void* subject, std::function<bool()> holds) {
  reads_.conditions_.emplace(subject, std::move(holds));
}

ModuleReads CalledModules::take() {
  internal::module_recorder = nullptr;
  for (ModuleReads::Read& read : reads_.reads_)
    read.is_training = read.module.is_training();
  const std::byte* end = nullptr;
  for (const auto& [begin, object] : objects_) {
    // An object inside another one is compared with that one, which comes first.
    if (object.life.expired() || begin < end) continue;
    end = begin + object.bytes;
    reads_.objects_.push_back({begin, {begin, end}, object.life});
  }
  return std::move(reads_);
}

void note_condition(const void* subject, std::function<bool()> holds) {
  if (internal::module_recorder != nullptr) {
    internal::module_recorder->note_condition(subject, std::move(holds));
  }
}

bool recomputes_blocks() {
  return internal::module_recorder != nullptr && internal::module_recorder->recomputes_blocks();
}

}  // namespace flow::nn
