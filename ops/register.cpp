#include "ops/register.h"

#include <array>

#include "core/kernel.h"
#include "core/op.h"
#include "ops/kernel/cpu_features.h"

namespace flow {

namespace ops {
// Each family has one line here and one in register_ops, in alphabetical order. Kernels are in
// register_cpu.cpp.
void register_activation(OpTable& table);
void register_activation_and_grad(OpTable& table);
void register_adaptive_update(OpTable& table);
void register_attention(OpTable& table);
void register_batch_norm(OpTable& table);
void register_batch_norm_hardtanh(OpTable& table);
void register_binary(OpTable& table);
void register_bitwise(OpTable& table);
void register_border(OpTable& table);
void register_cast(OpTable& table);
void register_channel(OpTable& table);
void register_cholesky(OpTable& table);
void register_compare(OpTable& table);
void register_concat(OpTable& table);
void register_contract_and_sum(OpTable& table);
void register_conv(OpTable& table);
void register_copy(OpTable& table);
void register_count(OpTable& table);
void register_creation(OpTable& table);
void register_cross_entropy(OpTable& table);
void register_ctc_loss(OpTable& table);
void register_diagonal(OpTable& table);
void register_distance(OpTable& table);
void register_dropout(OpTable& table);
void register_eigh(OpTable& table);
void register_embedding(OpTable& table);
void register_extrema(OpTable& table);
void register_fft(OpTable& table);
void register_fused(OpTable& table);
void register_gather(OpTable& table);
void register_grid_sample(OpTable& table);
void register_group_norm(OpTable& table);
void register_index(OpTable& table);
void register_inspect(OpTable& table);
void register_ldl(OpTable& table);
void register_linear_gelu(OpTable& table);
void register_loss(OpTable& table);
void register_lu(OpTable& table);
void register_matmul(OpTable& table);
void register_matrix_exp(OpTable& table);
void register_max_unpool(OpTable& table);
void register_norm(OpTable& table);
void register_order_statistics(OpTable& table);
void register_partial_fc(OpTable& table);
void register_pool(OpTable& table);
void register_qr(OpTable& table);
void register_random(OpTable& table);
void register_recurrent(OpTable& table);
void register_reduce(OpTable& table);
void register_resample(OpTable& table);
void register_scan(OpTable& table);
void register_scatter_reduce(OpTable& table);
void register_search(OpTable& table);
void register_slice(OpTable& table);
void register_softmax(OpTable& table);
void register_sort(OpTable& table);
void register_special(OpTable& table);
void register_statistics(OpTable& table);
void register_svd(OpTable& table);
void register_ternary(OpTable& table);
void register_triangular(OpTable& table);
void register_unary(OpTable& table);
void register_unary_grad(OpTable& table);
void register_update(OpTable& table);
void register_view(OpTable& table);
void register_where(OpTable& table);

// The same for all instruction sets and devices.
void register_batch_norm_hardtanh(KernelTable& table);
void register_cholesky(KernelTable& table);
void register_contract_and_sum(KernelTable& table);
void register_eigh(KernelTable& table);
void register_fft(KernelTable& table);
void register_fused(KernelTable& table);
void register_inspect(KernelTable& table);
void register_ldl(KernelTable& table);
void register_linear_gelu(KernelTable& table);
void register_lu(KernelTable& table);
void register_matrix_exp(KernelTable& table);
void register_qr(KernelTable& table);
void register_svd(KernelTable& table);
void register_to_device(KernelTable& table);
void register_triangular(KernelTable& table);

FLOW_DECLARE_PER_ISA(void register_all_cpu(KernelTable& table))

constexpr std::array kRegisterAllCpu = FLOW_ISA_VARIANTS(register_all_cpu);
}  // namespace ops

void register_ops(OpTable& table) {
  ops::register_activation(table);
  ops::register_activation_and_grad(table);
  ops::register_adaptive_update(table);
  ops::register_attention(table);
  ops::register_batch_norm(table);
  ops::register_batch_norm_hardtanh(table);
  ops::register_binary(table);
  ops::register_bitwise(table);
  ops::register_border(table);
  ops::register_cast(table);
  ops::register_channel(table);
  ops::register_cholesky(table);
  ops::register_compare(table);
  ops::register_concat(table);
  ops::register_contract_and_sum(table);
  ops::register_conv(table);
  ops::register_copy(table);
  ops::register_count(table);
  ops::register_creation(table);
  ops::register_cross_entropy(table);
  ops::register_ctc_loss(table);
  ops::register_diagonal(table);
  ops::register_distance(table);
  ops::register_dropout(table);
  ops::register_eigh(table);
  ops::register_embedding(table);
  ops::register_extrema(table);
  ops::register_fft(table);
  ops::register_fused(table);
  ops::register_gather(table);
  ops::register_grid_sample(table);
  ops::register_group_norm(table);
  ops::register_index(table);
  ops::register_inspect(table);
  ops::register_ldl(table);
  ops::register_linear_gelu(table);
  ops::register_loss(table);
  ops::register_lu(table);
  ops::register_matmul(table);
  ops::register_matrix_exp(table);
  ops::register_max_unpool(table);
  ops::register_norm(table);
  ops::register_order_statistics(table);
  ops::register_partial_fc(table);
  ops::register_pool(table);
  ops::register_qr(table);
  ops::register_random(table);
  ops::register_recurrent(table);
  ops::register_reduce(table);
  ops::register_resample(table);
  ops::register_scan(table);
  ops::register_scatter_reduce(table);
  ops::register_search(table);
  ops::register_slice(table);
  ops::register_softmax(table);
  ops::register_sort(table);
  ops::register_special(table);
  ops::register_statistics(table);
  ops::register_svd(table);
  ops::register_ternary(table);
  ops::register_triangular(table);
  ops::register_unary(table);
  ops::register_unary_grad(table);
  ops::register_update(table);
  ops::register_view(table);
  ops::register_where(table);
}

const KernelTable& ops::cpu_kernels() {
  static const KernelTable table = [] {
    KernelTable kernels;
    register_cpu_kernels(kernels);
    return kernels;
  }();
  return table;
}

const KernelTable& ops::cuda_kernels() {
  static const KernelTable table = [] {
    KernelTable kernels;
    register_cuda_kernels(kernels);
    return kernels;
  }();
  return table;
}

void register_cpu_kernels(KernelTable& table) {
  ops::register_batch_norm_hardtanh(table);
  ops::register_cholesky(table);
  ops::register_contract_and_sum(table);
  ops::register_eigh(table);
  ops::register_fft(table);
  ops::register_fused(table);
  ops::register_inspect(table);
  ops::register_ldl(table);
  ops::register_linear_gelu(table);
  ops::register_lu(table);
  ops::register_matrix_exp(table);
  ops::register_qr(table);
  ops::register_svd(table);
  ops::register_to_device(table);
  ops::register_triangular(table);
  const auto active = static_cast<size_t>(ops::active_isa());
  for (size_t isa = 0; isa <= active; ++isa) {
    if (ops::kRegisterAllCpu[isa] != nullptr) ops::kRegisterAllCpu[isa](table);
  }
}

}  // namespace flow
