#include "graph/plan_file/plan_key.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <unordered_map>

#include <elf.h>
#include <link.h>

#include "boxing/cost.h"
#include "core/context.h"
#include "core/error.h"
#include "core/hash.h"
#include "ops/kernel/cpu_features.h"

namespace flow::graph {

namespace {

// Combines two hashes with different seeds, so that a collision of both is practically impossible.
class ContentHasher {
 public:
  void add(uint64_t word) {
    first_.add(word);
    second_.add(word);
  }

  void add(int64_t number) { add(static_cast<uint64_t>(number)); }

  void add(std::string_view text) {
    add(uint64_t{text.size()});
    while (!text.empty()) {
      uint64_t word = 0;
      std::memcpy(&word, text.data(), std::min(sizeof(word), text.size()));
      add(word);
      text.remove_prefix(std::min(sizeof(word), text.size()));
    }
  }

  std::string text() const {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const uint64_t hash : {uint64_t{first_.value()}, uint64_t{second_.value()}}) {
      for (int shift = 60; shift >= 0; shift -= 4)
        text += kDigits[hash >> shift & 15];
    }
    return text;
  }

 private:
  Hasher first_{1}, second_{2};
};

// Hashes content, not addresses, so that every process computes the same hash.
class TraceHasher {
 public:
  std::string hash(const Graph& graph) {
    hasher_.add(uint64_t{graph.values.size()});
    for (const Value& value : graph.values)
      add(value);
    for (const Node& node : graph.nodes)
      add(node);
    add(graph.inputs);
    for (const Capture& capture : graph.captures)
      add(std::vector{capture.initial, capture.final_value});
    add(graph.outputs);
    hasher_.add(graph.num_draws);
    return hasher_.text();
  }

 private:
  void add(const std::vector<ValueId>& ids) {
    hasher_.add(uint64_t{ids.size()});
    for (const ValueId id : ids)
      hasher_.add(int64_t{id});
  }

  void add(const Value& value) {
    hasher_.add(value.shape.size());
    for (const int64_t size : value.shape)
      hasher_.add(size);
    hasher_.add(static_cast<uint64_t>(value.dtype) * 8 + static_cast<uint64_t>(value.device));
    if (!value.placement.defined()) return;
    auto [known, is_new] = placements_.try_emplace(value.placement.id());
    if (is_new) known->second = str(value.placement);
    hasher_.add(known->second);
    for (const Sbp& sbp : value.nd_sbp)
      hasher_.add(static_cast<uint64_t>(sbp.kind()) * 16 + static_cast<uint64_t>(sbp.dim()));
  }

  void add(const Node& node) {
    hasher_.add(std::string_view(node.op->name));
    if (node.op->attrs != nullptr) hasher_.add(text_of(node));
    add(node.inputs);
    add(node.outputs);
    hasher_.add(node.stage * 4 + static_cast<int64_t>(node.phase));
    hasher_.add(node.draw);
    hasher_.add(node.guard * 2 + (node.is_transient ? 1 : 0));
    hasher_.add(uint64_t{node.line});
    hasher_.add(node.file);
    hasher_.add(node.module);
  }

  // The texts of attrs are cached, because many nodes have the same attrs.
  std::string_view text_of(const Node& node) {
    const AttrsDef& def = *node.op->attrs;
    auto& known = attrs_[{node.op, def.hash(node.raw_attrs(), true)}];
    for (const auto& [other, text] : known) {
      if (def.equal(other->raw_attrs(), node.raw_attrs(), true)) return text;
    }
    return known.emplace_back(&node, def.to_string(node.raw_attrs())).second;
  }

  ContentHasher hasher_;
  std::unordered_map<const void*, std::string> placements_;
  std::map<std::pair<const OpDef*, size_t>, std::vector<std::pair<const Node*, std::string>>>
      attrs_;
};

// A program or shared library in this process.
class LoadedObject {
 public:
  explicit LoadedObject(const dl_phdr_info& info)
      : begin_(info.dlpi_addr), headers_(info.dlpi_phdr, info.dlpi_phnum) {}

  bool contains(uintptr_t wanted) const {
    return std::any_of(headers_.begin(), headers_.end(), [&](const auto& header) {
      const uintptr_t begin = begin_ + header.p_vaddr;
      return header.p_type == PT_LOAD && wanted >= begin && wanted < begin + header.p_memsz;
    });
  }

  // The build id that the linker gave to it; empty if it gave none.
  std::string build_id() const {
    std::string text;
    for (const auto& header : headers_) {
      if (header.p_type != PT_NOTE) continue;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader has addresses as integers
      const auto* at = reinterpret_cast<const std::byte*>(begin_ + header.p_vaddr);
      const std::byte* end = at + header.p_memsz;
      while (at + sizeof(ElfW(Nhdr)) <= end) {
        const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
        const auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
        const std::byte* id = at + sizeof(*note) + padded(note->n_namesz);
        if (note->n_type == NT_GNU_BUILD_ID) {
          constexpr std::string_view kDigits = "0123456789abcdef";
          for (size_t i = 0; i < note->n_descsz; ++i) {
            text += kDigits[static_cast<size_t>(id[i]) >> 4];
            text += kDigits[static_cast<size_t>(id[i]) & 15];
          }
        }
        at = id + padded(note->n_descsz);
      }
    }
    return text;
  }

 private:
  uintptr_t begin_;
  std::span<const ElfW(Phdr)> headers_;
};

// The build ids of the program, of what contains this code, and of what defines the ops of the
// step: passes and programs depend on the rules of ops. Empty if one of them has none.
std::string build_ids(const Graph& graph) {
  std::vector<LoadedObject> objects;  // the program is the first
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t /*size*/, void* data) {
        static_cast<std::vector<LoadedObject>*>(data)->emplace_back(*info);
        return 0;
      },
      &objects);
  std::set<uintptr_t> addresses = {reinterpret_cast<uintptr_t>(&build_ids)};
  for (const Node& node : graph.nodes)
    addresses.insert(reinterpret_cast<uintptr_t>(node.op));
  std::string ids;
  for (size_t i = 0; i < objects.size(); ++i) {
    const bool is_used = std::any_of(addresses.begin(), addresses.end(), [&](uintptr_t address) {
      return objects[i].contains(address);
    });
    if (i > 0 && !is_used) continue;
    const std::string id = objects[i].build_id();
    if (id.empty()) return {};
    ids += ids.empty() ? id : " " + id;
  }
  return ids;
}

}  // namespace

std::string PlanKey::name() const {
  ContentHasher hasher;
  for (const auto& [name, value] : facts) {
    hasher.add(std::string_view(name));
    hasher.add(std::string_view(value));
  }
  return hasher.text();
}

std::string PlanKey::difference_from(const PlanKey& other) const {
  std::string text;
  for (const auto& [name, value] : facts) {
    const std::string its = other.fact(name);
    if (its != value) text += str(text.empty() ? "" : ", ", name, " ", value, " instead of ", its);
  }
  return text.empty() && !(*this == other) ? "the order or names of its facts differ" : text;
}

std::string PlanKey::fact(std::string_view name) const {
  const auto found = std::find_if(facts.begin(), facts.end(),
                                  [&](const auto& fact) { return fact.first == name; });
  return found == facts.end() ? "" : found->second;
}

bool PlanKey::tells_programs_apart() const {
  return !fact("build").empty();
}

PlanKey plan_key_of(const Graph& traced, std::span<const Pass> passes) {
  std::string names;
  for (const Pass& pass : passes)
    names += str(names.empty() ? "" : " ", pass.name);
  PlanKey key{{{"step", TraceHasher().hash(traced)},
               {"build", build_ids(traced)},
               {"ranks", str(env::world_size())},
               {"passes", names},
               {"cost table", str(boxing::hash_of(boxing::cost_table()))},
               {"instruction set", str(ops::to_string(ops::active_isa()))}}};
  for (const Pass& pass : passes) {
    if (!pass.settings.empty()) key.facts.emplace_back(pass.name, pass.settings);
  }
  return key;
}

}  // namespace flow::graph
