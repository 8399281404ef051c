// Batches of sequences of different lengths (torch.nn.utils.rnn).
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"

namespace flow::nn::utils::rnn {

struct PadSequenceOptions {
  bool batch_first = false;
  double padding_value = 0;
  std::string padding_side = "right";  // or "left"
};

// Makes one batch of sequences (length, …), whose shapes differ in dim 0 only: (longest, N, …), or
// (N, longest, …) with batch_first. Throws InvalidArgument for an empty list or other shapes.
//   const Tensor batch = nn::utils::rnn::pad_sequence({tensor({1, 2}), tensor({3})});
Tensor pad_sequence(const std::vector<Tensor>& sequences, const PadSequenceOptions& options = {},
                    Site site = Site::here());

// The sequences of a batch that is padded on the right. lengths: (N), integers. Throws
// InvalidArgument for another number of lengths, or a length that the batch does not have.
std::vector<Tensor> unpad_sequence(const Tensor& padded, const Tensor& lengths,
                                   bool batch_first = false, Site site = Site::here());

// Sequences of different lengths, step by step: first the first steps of all sequences, then the
// second steps of those that have one, and so on, the longest sequence first. Recurrent layers take
// and return it and compute no padding.
struct PackedSequence {
  Tensor data;                       // (sum of the lengths, …)
  std::vector<int64_t> batch_sizes;  // the number of sequences that have step 0, 1, …
  // (N), int64: the position of each sorted sequence in the order given, and the reverse. Undefined
  // if the sequences were given sorted.
  Tensor sorted_indices, unsorted_indices;
};

struct PackOptions {
  bool batch_first = false;
  // Require that the lengths do not increase; if false, they are sorted here.
  bool enforce_sorted = true;
};

// Packs a batch that is padded on the right. lengths: (N), integers, at least 1. Throws
// InvalidArgument for lengths that do not fit, or that increase while enforce_sorted is set.
//   const auto packed = pack_padded_sequence(batch, lengths, {.enforce_sorted = false});
//   const auto [output, h, c] = lstm(packed);
//   const auto [padded, same_lengths] = pad_packed_sequence(output);
PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths,
                                    const PackOptions& options = {}, Site site = Site::here());
// The same for sequences (length, …) that are not padded.
PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted = true,
                             Site site = Site::here());

struct PadPackedOptions {
  bool batch_first = false;
  double padding_value = 0;
  int64_t total_length = 0;  // of the result; 0: the longest length
};

struct PaddedSequence {
  Tensor output;   // (longest, N, …), or (N, longest, …) with batch_first
  Tensor lengths;  // (N), int64
};

// The inverse of pack_padded_sequence, in the order that was given to it. Throws InvalidArgument
// for a total_length below the longest length.
PaddedSequence pad_packed_sequence(const PackedSequence& sequence,
                                   const PadPackedOptions& options = {}, Site site = Site::here());

}  // namespace flow::nn::utils::rnn
