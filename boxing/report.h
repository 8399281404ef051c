// A report of the redistributions that a rank has carried out: where in the program, by which
// route, at what cost, and which route was the next best.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/placement.h"
#include "core/sbp.h"
#include "core/shape.h"
#include "core/site.h"

namespace flow {

// All runs of one redistribution at one call site. Times are those of this rank and include waiting
// for other ranks.
struct BoxingEntry {
  Site site = Site::none();  // the user's line, if known
  Shape shape;               // logical
  DType dtype = DType::kFloat32;
  Placement from_placement;
  NdSbp from_sbp;
  Placement to_placement;
  NdSbp to_sbp;
  std::string route;           // "all_gather"; several steps are joined by " + "
  double bytes = 0;            // received by the rank that receives most, per run
  double predicted_us = 0;     // per run, according to the cost table
  std::string runner_up;       // the next best route; empty if there is none
  double runner_up_bytes = 0;  // per run
  double runner_up_us = 0;     // predicted, per run
  int64_t runs = 0;
  double least_us = 0;  // measured
  double total_us = 0;  // measured, all runs
};

// Returns what this rank has carried out so far, sorted by cost, the costliest first.
// Redistributions that moved nothing are left out. Not collective.
//
//   std::cerr << flow::boxing_report();
struct BoxingReport {
  std::vector<BoxingEntry> entries;
};

BoxingReport boxing_report();
// Deletes all entries; the report starts empty.
void reset_boxing_report();

// Prints one paragraph per entry:
//   train.cpp:42: float32 (64, 128), S(0) -> B on cpu:(0, 1)
//     all_gather, 16384 bytes, predicted 5.9 us, measured 6.4 us at least, 7.1 us on average of 100
//     instead of slice + all_reduce, 32768 bytes, predicted 12.1 us
std::ostream& operator<<(std::ostream& out, const BoxingEntry& entry);
std::ostream& operator<<(std::ostream& out, const BoxingReport& report);

}  // namespace flow
