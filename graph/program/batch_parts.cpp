#include "graph/program/batch_parts.h"

#include <algorithm>

namespace flow::graph {

std::vector<Range> BatchCut::samples_of(int64_t micro_batch) const {
  std::vector<Range> samples;
  for (const Range& run : runs) {
    Range part = balanced_part(run.size, num_micro_batches, micro_batch);
    part.begin += run.begin;
    samples.push_back(part);
  }
  return samples;
}

int64_t BatchCut::size_of(int64_t micro_batch) const {
  int64_t size = 0;
  for (const Range& range : samples_of(micro_batch))
    size += range.size;
  return size;
}

int64_t BatchCut::like(int64_t micro_batch) const {
  int64_t first = 0;
  for (const Range& run : runs) {
    // Of the parts of a run, the first ones are one sample longer.
    const int64_t num_longer = run.size % num_micro_batches;
    if (num_longer <= micro_batch) first = std::max(first, num_longer);
  }
  return first;
}

Value part_of(const BatchCut& cut, const Value& value, int64_t dim, int64_t micro_batch) {
  Value part = value;
  part.shape[dim] = value.shape[dim] / cut.num_samples * cut.size_of(micro_batch);
  return part;
}

std::vector<Piece> pieces_of(const BatchCut& cut, const TensorMeta& whole, const TensorMeta& part,
                             int64_t dim, int64_t micro_batch) {
  const int64_t rows = whole.shape[dim] / cut.num_samples;
  const int64_t wanted = part.local_begin[dim], end = wanted + part.local_shape[dim];
  const int64_t held = whole.local_begin[dim], held_end = held + whole.local_shape[dim];
  std::vector<Piece> pieces;
  int64_t at = 0;  // of the range, in the part's logical index space
  for (const Range& range : cut.samples_of(micro_batch)) {
    const int64_t begin = std::max(wanted, at), stop = std::min(end, at + range.size * rows);
    const int64_t first = range.begin * rows + begin - at;  // in the whole's
    at += range.size * rows;
    if (begin >= stop) continue;
    if (first < held || first + stop - begin > held_end) return {};
    const Piece piece{first - held, begin - wanted, stop - begin};
    if (!pieces.empty() && pieces.back().in_whole + pieces.back().size == piece.in_whole) {
      pieces.back().size += piece.size;
    } else {
      pieces.push_back(piece);
    }
  }
  return pieces;
}

}  // namespace flow::graph
