// The layouts of a case's inputs when it runs on global tensors.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"

namespace flow::conform {

class Layouts {
 public:
  // `text` is "" (local tensors), "random" (derived from the id), or an entry for each input:
  // "S0,B,P", or "S0/B,B/B" for several placement axes.
  Layouts(const std::string& text, const std::string& id, size_t num_inputs);

  // Makes the leaf from which a case is computed, in layout B. `value` is local and the same on all
  // ranks.
  Tensor leaf(const Tensor& value) const;
  // The layout of the input at a position, given its value. The random layout of an input that the
  // op writes is never partial. Empty for local tensors.
  NdSbp sbp_of(const Tensor& value, size_t position, bool is_written) const;
  // Converts a value to this layout.
  static Tensor lay_out(const Tensor& value, const NdSbp& nd_sbp);

 private:
  NdSbp random_sbp(const Tensor& value, size_t position, bool is_written) const;

  Placement placement_;  // undefined: local tensors
  std::vector<NdSbp> sbps_;
  std::string id_;
  bool is_random_ = false;
};

// Converts a local value, the same on all ranks, to the layout of `tensor`.
Tensor like(const Tensor& tensor, const Tensor& value);

// Parses "S0", "B", "P", "Pmax" or "Pmin"; "/" separates axes.
NdSbp parse_sbp(const std::string& text);

}  // namespace flow::conform
