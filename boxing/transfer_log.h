// The record behind boxing_report(). Each rank has one, which grows as routes run.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "boxing/report.h"
#include "boxing/route.h"

namespace flow::boxing {

// Thread safe.
class TransferLog {
 public:
  void add(Site site, const Route& route, double took_us);
  std::vector<BoxingEntry> entries() const;
  void clear();

 private:
  // What moves, and where in the program.
  struct Key {
    std::string_view file;  // lives for ever and ends with a zero, as a Site's
    uint32_t line;
    Shape shape;
    DType dtype;
    Layout from;
    Layout to;
    friend bool operator==(const Key&, const Key&) = default;
  };

  struct KeyHash {
    size_t operator()(const Key& key) const;
  };

  struct Runs {
    Route route;
    int64_t count = 0;
    double least_us = 0;
    double total_us = 0;
  };

  mutable std::mutex mutex_;
  std::unordered_map<Key, Runs, KeyHash> runs_;  // guarded by mutex_
};

// The entry of a route that has not run.
BoxingEntry describe(Site site, const Route& route);

}  // namespace flow::boxing
