// What redistributions a rank has carried out: from where in the program, by which route, at what
// cost, and what the planner would have taken otherwise.
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

// All runs of one redistribution at one call site. Times are this rank's and include waiting for
// the others.
struct BoxingEntry {
  Site site = Site::none();  // the user's line where one is known
  Shape shape;               // logical
  DType dtype = DType::kFloat32;
  Placement from_placement;
  NdSbp from_sbp;
  Placement to_placement;
  NdSbp to_sbp;
  std::string route;           // "all_gather"; steps joined by " + "
  double bytes = 0;            // received by the rank that receives most, a run
  double predicted_us = 0;     // a run, by the cost table
  std::string runner_up;       // the next best route; empty when there is none
  double runner_up_bytes = 0;  // a run
  double runner_up_us = 0;     // predicted, a run
  int64_t runs = 0;
  double least_us = 0;  // measured
  double total_us = 0;  // measured, all runs
};

// What this rank has carried out so far, the costliest first; redistributions that move nothing
// are left out. Not collective.
//
//   std::cerr << flow::boxing_report();
struct BoxingReport {
  std::vector<BoxingEntry> entries;
};

BoxingReport boxing_report();
// Starts anew.
void reset_boxing_report();

// An entry a paragraph:
//   train.cpp:42: float32 (64, 128), S(0) -> B on cpu:(0, 1)
//     all_gather, 16384 bytes, predicted 5.9 us, measured 6.4 us at least, 7.1 us on average of 100
//     instead of slice + all_reduce, 32768 bytes, predicted 12.1 us
std::ostream& operator<<(std::ostream& out, const BoxingEntry& entry);
std::ostream& operator<<(std::ostream& out, const BoxingReport& report);

}  // namespace flow
