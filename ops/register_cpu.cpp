// Compiled once for each instruction set, like the kernels it lists.
#include "core/kernel.h"

#include "ops/kernel/isa_begin.h"

// Each family has one line in both lists, in alphabetical order.

void register_activation_and_grad_cpu(KernelTable& table);
void register_activation_cpu(KernelTable& table);
void register_adaptive_update_cpu(KernelTable& table);
void register_attention_cpu(KernelTable& table);
void register_batch_norm_blocked_cpu(KernelTable& table);
void register_batch_norm_cpu(KernelTable& table);
void register_binary_cpu(KernelTable& table);
void register_bitwise_cpu(KernelTable& table);
void register_border_cpu(KernelTable& table);
void register_cast_cpu(KernelTable& table);
void register_channel_cpu(KernelTable& table);
void register_compare_cpu(KernelTable& table);
void register_concat_cpu(KernelTable& table);
void register_conv_cpu(KernelTable& table);
void register_conv_depthwise_cpu(KernelTable& table);
void register_copy_cpu(KernelTable& table);
void register_count_cpu(KernelTable& table);
void register_creation_cpu(KernelTable& table);
void register_cross_entropy_cpu(KernelTable& table);
void register_ctc_loss_cpu(KernelTable& table);
void register_diagonal_cpu(KernelTable& table);
void register_distance_cpu(KernelTable& table);
void register_dropout_cpu(KernelTable& table);
void register_embedding_cpu(KernelTable& table);
void register_extrema_cpu(KernelTable& table);
void register_gather_cpu(KernelTable& table);
void register_grid_sample_cpu(KernelTable& table);
void register_group_norm_cpu(KernelTable& table);
void register_index_cpu(KernelTable& table);
void register_loss_cpu(KernelTable& table);
void register_matmul_cpu(KernelTable& table);
void register_max_pool_blocked_cpu(KernelTable& table);
void register_max_unpool_cpu(KernelTable& table);
void register_nonzero_cpu(KernelTable& table);
void register_norm_cpu(KernelTable& table);
void register_order_statistics_cpu(KernelTable& table);
void register_partial_fc_cpu(KernelTable& table);
void register_pool_cpu(KernelTable& table);
void register_random_cpu(KernelTable& table);
void register_recurrent_cpu(KernelTable& table);
void register_reduce_cpu(KernelTable& table);
void register_resample_cpu(KernelTable& table);
void register_scan_cpu(KernelTable& table);
void register_search_cpu(KernelTable& table);
void register_slice_cpu(KernelTable& table);
void register_softmax_cpu(KernelTable& table);
void register_sort_cpu(KernelTable& table);
void register_special_cpu(KernelTable& table);
void register_statistics_cpu(KernelTable& table);
void register_ternary_cpu(KernelTable& table);
void register_trigonometry_cpu(KernelTable& table);
void register_unary_cpu(KernelTable& table);
void register_unary_grad_cpu(KernelTable& table);
void register_update_cpu(KernelTable& table);
void register_view_cpu(KernelTable& table);
void register_where_cpu(KernelTable& table);

void register_all_cpu(KernelTable& table);

void register_all_cpu(KernelTable& table) {
  register_activation_and_grad_cpu(table);
  register_activation_cpu(table);
  register_adaptive_update_cpu(table);
  register_attention_cpu(table);
  register_batch_norm_cpu(table);
  register_batch_norm_blocked_cpu(table);  // preferred
  register_binary_cpu(table);
  register_bitwise_cpu(table);
  register_border_cpu(table);
  register_cast_cpu(table);
  register_channel_cpu(table);
  register_compare_cpu(table);
  register_concat_cpu(table);
  register_conv_cpu(table);
  register_conv_depthwise_cpu(table);
  register_copy_cpu(table);
  register_count_cpu(table);
  register_creation_cpu(table);
  register_cross_entropy_cpu(table);
  register_ctc_loss_cpu(table);
  register_diagonal_cpu(table);
  register_distance_cpu(table);
  register_dropout_cpu(table);
  register_embedding_cpu(table);
  register_extrema_cpu(table);
  register_gather_cpu(table);
  register_grid_sample_cpu(table);
  register_group_norm_cpu(table);
  register_index_cpu(table);
  register_loss_cpu(table);
  register_matmul_cpu(table);
  register_max_unpool_cpu(table);
  register_nonzero_cpu(table);
  register_norm_cpu(table);
  register_order_statistics_cpu(table);
  register_partial_fc_cpu(table);
  register_pool_cpu(table);
  register_max_pool_blocked_cpu(table);  // preferred
  register_random_cpu(table);
  register_recurrent_cpu(table);
  register_reduce_cpu(table);
  register_resample_cpu(table);
  register_scan_cpu(table);
  register_search_cpu(table);
  register_slice_cpu(table);
  register_softmax_cpu(table);
  register_sort_cpu(table);
  register_special_cpu(table);
  register_statistics_cpu(table);
  register_ternary_cpu(table);
  register_trigonometry_cpu(table);
  register_unary_cpu(table);
  register_unary_grad_cpu(table);
  register_update_cpu(table);
  register_view_cpu(table);
  register_where_cpu(table);
}

#include "ops/kernel/isa_end.h"
