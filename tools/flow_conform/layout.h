// Where the inputs of a case lie when it runs on global tensors.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"

namespace flow::conform {

class Layouts {
 public:
  // text: "" (local tensors), "random" (follows from the id), or an entry for each input:
  // "S0,B,P", for several placement axes "S0/B,B/B".
  Layouts(const std::string& text, const std::string& id, size_t num_inputs);

  // A local tensor, the same on all ranks, as the leaf a case is computed from: broadcast.
  Tensor leaf(const Tensor& value) const;
  // Where the input at a position lies when the op gets it, given its value; random layouts of one
  // that it writes are not partial. Empty for local tensors.
  NdSbp sbp_of(const Tensor& value, size_t position, bool is_written) const;
  // Brings a value there.
  static Tensor lay_out(const Tensor& value, const NdSbp& nd_sbp);

 private:
  NdSbp random_sbp(const Tensor& value, size_t position, bool is_written) const;

  Placement placement_;  // undefined: local tensors
  std::vector<NdSbp> sbps_;
  std::string id_;
  bool is_random_ = false;
};

// A local value, the same on all ranks, laid out like `tensor`.
Tensor like(const Tensor& tensor, const Tensor& value);

// "S0", "B", "P", "Pmax", "Pmin"; axes joined by "/".
NdSbp parse_sbp(const std::string& text);

}  // namespace flow::conform
