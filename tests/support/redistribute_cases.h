// Random redistributions, and a reader of layouts that shares no code with the planner.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "boxing/cost.h"
#include "boxing/layout.h"
#include "core/shape.h"

namespace flow {

struct RedistributeCase {
  Shape shape;
  boxing::Layout from;
  boxing::Layout to;
  boxing::CostTable cost;  // random costs, so that routes vary
  bool is_packed = false;
};

// Makes the same cases on every rank of a world of `num_ranks`: empty and uneven shapes, and
// placements of any ranks on up to three axes.
class RedistributeCaseMaker {
 public:
  RedistributeCaseMaker(uint64_t seed, int64_t num_ranks) : random_(seed), num_ranks_(num_ranks) {}

  RedistributeCase make();

 private:
  int64_t below(int64_t limit);
  Placement placement();
  NdSbp nd_sbp(const Placement& placement, int64_t dims);

  std::mt19937_64 random_;
  int64_t num_ranks_;
};

using Parts = std::vector<std::vector<float>>;  // indexed by the position in a placement

// The part at `position` before the redistribution. It holds whole numbers, so that sums are exact
// in any order. Replicas are equal; addends differ.
std::vector<float> make_part(const RedistributeCase& c, int64_t position);

// The logical elements that `parts` represent.
std::vector<float> read_parts(const Shape& shape, const boxing::Layout& layout, const Parts& parts,
                              bool& replicas_agree);

}  // namespace flow
