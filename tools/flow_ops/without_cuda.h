// Ops of the table that have no CUDA kernel.
#pragma once

#include <map>
#include <string>

namespace flow::tools {

// What happens on a device where an op has no kernel.
enum class OnCuda { kUnsupported, kOtherOps };

// Builds without CUDA have no table of CUDA kernels, so flow-ops reads this list.
// tests/ops/cuda_kernels_test.cpp compares it with the table of builds that have one. kOtherOps:
// the functions and passes that run the op on the CPU use other ops on CUDA.
inline const std::map<std::string, OnCuda> kOpsWithoutCuda = {
    {"batch_norm_hardtanh", OnCuda::kOtherOps},
    {"batch_norm_hardtanh_backward", OnCuda::kOtherOps},
    {"border", OnCuda::kOtherOps},
    {"border_backward", OnCuda::kOtherOps},
    {"cdist", OnCuda::kOtherOps},
    {"checked_overlap", OnCuda::kUnsupported},
    {"checked_spreads", OnCuda::kUnsupported},
    {"checked_weights", OnCuda::kUnsupported},
    {"cholesky", OnCuda::kUnsupported},
    {"cholesky_ex", OnCuda::kUnsupported},
    {"ctc_loss", OnCuda::kUnsupported},
    {"ctc_loss_backward", OnCuda::kUnsupported},
    {"cummax", OnCuda::kUnsupported},
    {"cummin", OnCuda::kUnsupported},
    {"distributed_partial_fc_sample", OnCuda::kUnsupported},
    {"eigh", OnCuda::kUnsupported},
    {"eigvalsh", OnCuda::kUnsupported},
    {"fft_c2c", OnCuda::kUnsupported},
    {"fft_c2r", OnCuda::kUnsupported},
    {"fft_r2c", OnCuda::kUnsupported},
    {"gelu_and_slope", OnCuda::kOtherOps},
    {"gelu_tanh_and_slope", OnCuda::kOtherOps},
    {"geqrf", OnCuda::kUnsupported},
    {"grid_sample", OnCuda::kOtherOps},
    {"grid_sample_backward_grid", OnCuda::kOtherOps},
    {"grid_sample_backward_x", OnCuda::kOtherOps},
    {"group_norm", OnCuda::kOtherOps},
    {"group_norm_backward", OnCuda::kOtherOps},
    {"histc", OnCuda::kOtherOps},
    {"kthvalue", OnCuda::kUnsupported},
    {"ldl_factor", OnCuda::kUnsupported},
    {"ldl_solve", OnCuda::kUnsupported},
    {"logcumsumexp", OnCuda::kUnsupported},
    {"lu_factor", OnCuda::kUnsupported},
    {"lu_permutation", OnCuda::kUnsupported},
    {"matrix_exp", OnCuda::kUnsupported},
    {"median", OnCuda::kUnsupported},
    {"median_of_all", OnCuda::kUnsupported},
    {"mode", OnCuda::kUnsupported},
    {"nanmedian", OnCuda::kUnsupported},
    {"nanmedian_of_all", OnCuda::kUnsupported},
    {"pinv", OnCuda::kUnsupported},
    {"qr", OnCuda::kUnsupported},
    {"resample", OnCuda::kOtherOps},
    {"resample_backward", OnCuda::kOtherOps},
    {"searchsorted", OnCuda::kUnsupported},
    {"silu_and_slope", OnCuda::kOtherOps},
    {"solve", OnCuda::kUnsupported},
    {"solve_ex", OnCuda::kUnsupported},
    {"solve_triangular", OnCuda::kUnsupported},
    {"sum_differences", OnCuda::kOtherOps},
    {"svd", OnCuda::kUnsupported},
    {"svdvals", OnCuda::kUnsupported},
};

}  // namespace flow::tools
