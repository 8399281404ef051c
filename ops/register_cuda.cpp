// The list of all CUDA kernels. ops/no_cuda.cpp replaces it in builds without CUDA.
#include "core/kernel.h"
#include "ops/register.h"

namespace flow {

namespace ops {
// Each family has one line in both lists, in alphabetical order.
void register_activation_and_grad_cuda(KernelTable& table);
void register_activation_cuda(KernelTable& table);
void register_adaptive_update_cuda(KernelTable& table);
void register_attention_cuda(KernelTable& table);
void register_attention_tiles_cuda(KernelTable& table);
void register_batch_norm_cuda(KernelTable& table);
void register_binary_cuda(KernelTable& table);
void register_bitwise_cuda(KernelTable& table);
void register_channel_cuda(KernelTable& table);
void register_compare_cuda(KernelTable& table);
void register_concat_cuda(KernelTable& table);
void register_conv_cuda(KernelTable& table);
void register_copy_cuda(KernelTable& table);
void register_creation_cuda(KernelTable& table);
void register_cross_entropy_cuda(KernelTable& table);
void register_diagonal_cuda(KernelTable& table);
void register_dropout_cuda(KernelTable& table);
void register_embedding_cuda(KernelTable& table);
void register_extrema_cuda(KernelTable& table);
void register_fused_cuda(KernelTable& table);
void register_gather_cuda(KernelTable& table);
void register_index_cuda(KernelTable& table);
void register_loss_cuda(KernelTable& table);
void register_matmul_cuda(KernelTable& table);
void register_max_unpool_cuda(KernelTable& table);
void register_norm_cuda(KernelTable& table);
void register_pool_cuda(KernelTable& table);
void register_random_cuda(KernelTable& table);
void register_recurrent_cuda(KernelTable& table);
void register_reduce_cuda(KernelTable& table);
void register_scan_cuda(KernelTable& table);
void register_slice_cuda(KernelTable& table);
void register_softmax_cuda(KernelTable& table);
void register_sort_cuda(KernelTable& table);
void register_special_cuda(KernelTable& table);
void register_statistics_cuda(KernelTable& table);
void register_ternary_cuda(KernelTable& table);
void register_to_device_cuda(KernelTable& table);
void register_trigonometry_cuda(KernelTable& table);
void register_unary_cuda(KernelTable& table);
void register_update_cuda(KernelTable& table);
void register_view_cuda(KernelTable& table);
void register_where_cuda(KernelTable& table);
}  // namespace ops

void register_cuda_kernels(KernelTable& table) {
  ops::register_activation_and_grad_cuda(table);
  ops::register_activation_cuda(table);
  ops::register_adaptive_update_cuda(table);
  ops::register_attention_cuda(table);
  ops::register_attention_tiles_cuda(table);
  ops::register_batch_norm_cuda(table);
  ops::register_binary_cuda(table);
  ops::register_bitwise_cuda(table);
  ops::register_channel_cuda(table);
  ops::register_compare_cuda(table);
  ops::register_concat_cuda(table);
  ops::register_conv_cuda(table);
  ops::register_copy_cuda(table);
  ops::register_creation_cuda(table);
  ops::register_cross_entropy_cuda(table);
  ops::register_diagonal_cuda(table);
  ops::register_dropout_cuda(table);
  ops::register_embedding_cuda(table);
  ops::register_extrema_cuda(table);
  ops::register_fused_cuda(table);
  ops::register_gather_cuda(table);
  ops::register_index_cuda(table);
  ops::register_loss_cuda(table);
  ops::register_matmul_cuda(table);
  ops::register_max_unpool_cuda(table);
  ops::register_norm_cuda(table);
  ops::register_pool_cuda(table);
  ops::register_random_cuda(table);
  ops::register_recurrent_cuda(table);
  ops::register_reduce_cuda(table);
  ops::register_scan_cuda(table);
  ops::register_slice_cuda(table);
  ops::register_softmax_cuda(table);
  ops::register_sort_cuda(table);
  ops::register_special_cuda(table);
  ops::register_statistics_cuda(table);
  ops::register_ternary_cuda(table);
  ops::register_to_device_cuda(table);
  ops::register_trigonometry_cuda(table);
  ops::register_unary_cuda(table);
  ops::register_update_cuda(table);
  ops::register_view_cuda(table);
  ops::register_where_cuda(table);
}

}  // namespace flow
