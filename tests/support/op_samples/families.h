// The families of samples, one file each, in alphabetical order.
#pragma once

#include <array>

#include "tests/support/op_samples.h"

namespace flow::contract {

Samples activation_samples();
Samples attention_samples();
Samples batch_norm_samples();
Samples binary_samples();
Samples cast_samples();
Samples channel_samples();
Samples concat_samples();
Samples conv_samples();
Samples copy_samples();
Samples creation_samples();
Samples cross_entropy_samples();
Samples ctc_loss_samples();
Samples diagonal_samples();
Samples distance_samples();
Samples dropout_samples();
Samples embedding_samples();
Samples extrema_samples();
Samples fft_samples();
Samples fused_samples();
Samples gather_samples();
Samples grid_sample_samples();
Samples index_samples();
Samples inspect_samples();
Samples linalg_samples();
Samples loss_samples();
Samples matmul_samples();
Samples norm_samples();
Samples order_statistics_samples();
Samples partial_fc_samples();
Samples pool_samples();
Samples random_samples();
Samples recurrent_samples();
Samples redistribute_samples();
Samples reduce_samples();
Samples resample_samples();
Samples row_samples();
Samples scan_samples();
Samples search_samples();
Samples slice_samples();
Samples softmax_samples();
Samples sort_samples();
Samples special_samples();
Samples statistics_samples();
Samples ternary_samples();
Samples unary_samples();
Samples update_samples();
Samples view_samples();
Samples where_samples();

// Adds samples of a function of one tensor: values where it is smooth, and for its kernels many,
// special and extreme ones.
inline void add_function(Samples& samples, const std::string& op, const SampleInput& input,
                         DTypeSet dtypes, const std::function<void(const Inputs&)>& call) {
  samples.push_back({op, {input}, dtypes, call});
  SampleInput many = input;
  many.shape = {3, 7000};
  samples.push_back({op, {many}, dtypes, call, "many", true});
  samples.push_back({op, {specials({4, 25})}, dtypes, call, "specials", true});
  SampleInput wide = input;
  wide.shape = {4, 25};
  wide.extremes = 0.3;
  wide.zeros = 0.2;
  samples.push_back({op, {wide}, dtypes, call, "extremes", true});
}

inline constexpr std::array kFamilies = {
    activation_samples,   attention_samples, batch_norm_samples,    binary_samples,
    cast_samples,         channel_samples,   concat_samples,        conv_samples,
    copy_samples,         creation_samples,  cross_entropy_samples, ctc_loss_samples,
    diagonal_samples,     distance_samples,  dropout_samples,       embedding_samples,
    extrema_samples,      fft_samples,       fused_samples,         gather_samples,
    grid_sample_samples,  index_samples,     inspect_samples,       linalg_samples,
    loss_samples,         matmul_samples,    norm_samples,          order_statistics_samples,
    partial_fc_samples,   pool_samples,      random_samples,        recurrent_samples,
    redistribute_samples, reduce_samples,    resample_samples,      row_samples,
    scan_samples,         search_samples,    slice_samples,         softmax_samples,
    sort_samples,         special_samples,   statistics_samples,    ternary_samples,
    unary_samples,        update_samples,    view_samples,          where_samples};

}  // namespace flow::contract
