// What a piece of code reads of modules, and whether it would still read the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "nn/module.h"
#include "nn/module_state.h"

namespace flow::nn {

// Confined to one thread. Keeps the states of the modules, but not the objects, alive.
class ModuleReads {
 public:
  // True if the modules are in the modes that they had at the end of the recording.
  bool has_modes() const;
  // True if the modules have the tensors, sub-modules, hooks and options that they had when they
  // were first read, if no byte of an object that was called and still exists has changed since the
  // end of the recording, and if all noted conditions hold. What members keep outside the object is
  // not looked at.
  bool fits() const;

  // The modules that were called, in the order of the first calls. Handles of one module appear
  // once.
  std::vector<ModuleBase> called() const;

 private:
  friend class CalledModules;

  struct Read {
    ModuleBase module;
    ModuleBase::State::Form form;  // at the first read
    bool is_called = false;
    bool is_training = false;
  };

  // The bytes of a module object; the tensors and modules among its members are pointers.
  struct Object {
    const std::byte* begin;
    std::vector<std::byte> bytes;
    std::weak_ptr<const bool> life;
  };

  std::vector<Read> reads_;
  std::vector<Object> objects_;

  // By what they are about.
  std::map<const void*, std::function<bool()>> conditions_;

  // The result for all reads of each question, and the number of changes to modules at which it was
  // found.
  struct Known {
    uint64_t num_changes = ~uint64_t{0};
    bool has_modes = false;
    bool fits = false;
  };

  const Known& known() const;
  mutable Known known_;
};

// While an instance lives, records every module that this thread calls or reads. Instances cannot
// be nested.
class CalledModules {
 public:
  // `recomputes_blocks`: recompute in backward, instead of saving, the activations of stages and of
  // those elements of module lists that are outside any stage.
  explicit CalledModules(bool recomputes_blocks = false);
  ~CalledModules();
  CalledModules(const CalledModules&) = delete;
  CalledModules& operator=(const CalledModules&) = delete;

  bool recomputes_blocks() const { return recomputes_blocks_; }

  void note_read(const ModuleBase& module);
  // `bytes`: the size of the object that is called.
  void note_call(const ModuleBase& module, size_t bytes);

  // What is recorded depends on this condition, which holds when no code of the recording runs. Of
  // several conditions about one subject the first counts.
  void note_condition(const void* subject, std::function<bool()> holds);

  // What was recorded. Ends the recording.
  ModuleReads take();

 private:
  struct Object {
    size_t bytes = 0;
    std::weak_ptr<const bool> life = {};
  };

  size_t add(const ModuleBase& module);

  bool recomputes_blocks_;
  ModuleReads reads_;
  std::unordered_map<const void*, size_t> index_of_;  // of reads, by state
  std::map<const std::byte*, Object> objects_;        // by address
};

// Notes a condition in this thread's recording, if there is one.
void note_condition(const void* subject, std::function<bool()> holds);

// True if this thread is in a CalledModules that recomputes blocks.
bool recomputes_blocks();

namespace internal {
// The recording of this thread; null: there is none.
extern constinit thread_local CalledModules* module_recorder;
}  // namespace internal

}  // namespace flow::nn
