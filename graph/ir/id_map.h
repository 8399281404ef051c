// A table with one entry for each id of a graph or program.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace flow::graph {

// Entries are found by id: a ValueId of a graph, a BufferId of a program. Ids count from 0, so the
// entries are one vector. Requires of [] that the id is in the table.
template <class Id, class T>
class IdMap {
 public:
  IdMap() = default;

  explicit IdMap(size_t size, const T& initial = T()) : entries_(size, initial) {}

  decltype(auto) operator[](Id id) { return entries_[static_cast<size_t>(id)]; }

  decltype(auto) operator[](Id id) const { return entries_[static_cast<size_t>(id)]; }

  bool contains(Id id) const { return id >= 0 && static_cast<size_t>(id) < entries_.size(); }

  size_t size() const { return entries_.size(); }

  // Gives the table `size` entries, all equal to `initial`.
  void assign(size_t size, const T& initial) { entries_.assign(size, initial); }

  // Adds an entry and returns its id.
  Id add(T entry) {
    entries_.push_back(std::move(entry));
    return static_cast<Id>(entries_.size() - 1);
  }

  friend bool operator==(const IdMap&, const IdMap&) = default;

 private:
  std::vector<T> entries_;
};

}  // namespace flow::graph
