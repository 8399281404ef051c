// Histograms with edges, and weights.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace flow {

struct HistogramOptions {
  // The lowest and the highest edge of each dim, where the number of bins is given; empty: the
  // smallest and the largest element. If both are equal, they move apart by 1. Throws
  // InvalidArgument, except in a graph, if an element is not finite and there is no range.
  std::vector<std::pair<double, double>> range = {};
  Tensor weight = {};    // how much each element counts; of the shape of x without its last dim
                         // (histogramdd), or of x (histogram)
  bool density = false;  // divide by the sum and by the widths, so that the integral is 1
};

struct HistogramResult {
  Tensor hist;
  Tensor bin_edges;  // one more than hist
};

// Counts the elements of x in `bins` intervals of equal width, or between the given edges, a vector
// in ascending order. An interval includes its lower edge, and the last one its upper edge too;
// other elements, and NaN, are not counted. Floating only; hist and bin_edges have the dtype of x.
//   histogram(tensor({1.f, 2.f, 2.f, 5.f}), 4).hist: 1, 2, 0, 1
HistogramResult histogram(const TensorArg& x, int64_t bins, const HistogramOptions& options = {});
HistogramResult histogram(const TensorArg& x, const TensorArg& bins,
                          const HistogramOptions& options = {});

struct HistogramddResult {
  Tensor hist;
  std::vector<Tensor> bin_edges;  // of each dim
};

// The same for points of D dims: x is (…, D), `bins` has the number of bins or the edges of each
// dim, and hist has D dims.
HistogramddResult histogramdd(const TensorArg& x, const std::vector<int64_t>& bins,
                              const HistogramOptions& options = {});
HistogramddResult histogramdd(const TensorArg& x, const std::vector<Tensor>& bins,
                              const HistogramOptions& options = {});

}  // namespace flow
