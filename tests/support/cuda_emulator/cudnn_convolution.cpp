// cuDNN's convolutions: checks descriptors and calls, proposes algorithms, and computes in loops.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>

#include "core/error.h"
#include "core/float16.h"
#include "emulated_cudnn.h"

using cuda_emulator::cudnn_mistake;
using cuda_emulator::cudnn_refusal;
using cuda_emulator::LibraryObject;
using flow::str;

struct EmulatedTensor : LibraryObject {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int64_t> size;  // empty: not set
  std::vector<int64_t> stride;

  int64_t extent() const {
    int64_t last = 0;
    for (size_t i = 0; i < size.size(); ++i)
      last += (size[i] - 1) * stride[i];
    return last + 1;
  }
};

struct EmulatedFilter : LibraryObject {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int64_t> size;

  int64_t numel() const {
    return std::accumulate(size.begin(), size.end(), int64_t{1}, std::multiplies<>());
  }
};

struct EmulatedConvolution : LibraryObject {
  std::vector<int64_t> padding;
  std::vector<int64_t> stride;
  std::vector<int64_t> dilation;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  cudnnDataType_t sums = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int64_t groups = 1;
};

namespace {

constexpr size_t kMostDims = 5;  // of tensors: a volume has three spatial dims

// y = x * w; for gradients, one of the others is the result.
struct Problem {
  size_t num_spatial = 0;
  int64_t batch = 0, out_channels = 0, groups = 0;
  int64_t in_group = 0;  // channels of x in a group
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1};
  std::array<int64_t, 3> padding{}, stride{1, 1, 1}, dilation{1, 1, 1};
  std::array<int64_t, kMostDims> x_stride{}, y_stride{};  // of batch, channel, spatial dims
  int64_t x_numel = 0, w_numel = 0, y_numel = 0;          // elements of their memory
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
};

cudnnStatus_t describe(const char* call, const EmulatedTensor* x, const EmulatedFilter* w,
                       const EmulatedConvolution* conv, const EmulatedTensor* y, Problem& problem) {
  if (x == nullptr || w == nullptr || conv == nullptr || y == nullptr || x->size.empty() ||
      w->size.empty() || conv->stride.empty() || y->size.empty()) {
    return cudnn_mistake(str(call, ": a descriptor is missing or not set"));
  }
  const size_t num_dims = x->size.size();
  if (y->size.size() != num_dims || w->size.size() != num_dims ||
      conv->stride.size() + 2 != num_dims) {
    return cudnn_mistake(str(call, ": the descriptors differ in their number of dims"));
  }
  if (x->type != w->type || x->type != y->type) {
    return cudnn_mistake(str(call, ": the descriptors differ in their types"));
  }
  const bool is_double = x->type == CUDNN_DATA_DOUBLE;
  if (num_dims > kMostDims || conv->mode != CUDNN_CROSS_CORRELATION ||
      conv->sums != (is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT)) {
    return cudnn_refusal(CUDNN_STATUS_NOT_SUPPORTED, str(call, ": not emulated"));
  }
  problem.num_spatial = num_dims - 2;
  problem.batch = x->size[0];
  problem.out_channels = w->size[0];
  problem.in_group = w->size[1];
  problem.groups = conv->groups;
  problem.type = x->type;
  if (x->size[1] != w->size[1] * conv->groups || w->size[0] % conv->groups != 0 ||
      y->size[1] != w->size[0] || y->size[0] != x->size[0]) {
    return cudnn_mistake(str(call, ": ", x->size[1], " channels of x, ", y->size[1],
                             " of y, a filter of ", w->size[0], " by ", w->size[1], ", ",
                             conv->groups, " groups, batches of ", x->size[0], " and ",
                             y->size[0]));
  }
  for (size_t d = 0; d < problem.num_spatial; ++d) {
    problem.in[d] = x->size[d + 2];
    problem.out[d] = y->size[d + 2];
    problem.kernel[d] = w->size[d + 2];
    problem.padding[d] = conv->padding[d];
    problem.stride[d] = conv->stride[d];
    problem.dilation[d] = conv->dilation[d];
    const int64_t reach = (problem.kernel[d] - 1) * problem.dilation[d] + 1;
    const int64_t room = problem.in[d] + 2 * problem.padding[d] - reach;
    if (room < 0 || room / problem.stride[d] + 1 != problem.out[d]) {
      return cudnn_mistake(str(call, ": spatial dim ", d, " of y has ", problem.out[d],
                               " elements, not ", room / problem.stride[d] + 1));
    }
  }
  std::copy(x->stride.begin(), x->stride.end(), problem.x_stride.begin());
  std::copy(y->stride.begin(), y->stride.end(), problem.y_stride.begin());
  problem.x_numel = x->extent();
  problem.w_numel = w->numel();
  problem.y_numel = y->extent();
  return CUDNN_STATUS_SUCCESS;
}

// Calls visit(x, w, y) with the places in memory of every product of the convolution.
template <class Visit>
void for_each_product(const Problem& p, const Visit& visit) {
  const auto& [out, kernel] = std::tie(p.out, p.kernel);
  const int64_t taps = kernel[0] * kernel[1] * kernel[2];
  const int64_t out_group = p.out_channels / p.groups;
  std::array<int64_t, 3> o{}, k{};
  for (int64_t n = 0; n < p.batch; ++n) {
    for (int64_t oc = 0; oc < p.out_channels; ++oc) {
      const int64_t first = oc / out_group * p.in_group;
      for (o[0] = 0; o[0] < out[0]; ++o[0]) {
        for (o[1] = 0; o[1] < out[1]; ++o[1]) {
          for (o[2] = 0; o[2] < out[2]; ++o[2]) {
            int64_t y = n * p.y_stride[0] + oc * p.y_stride[1];
            for (size_t d = 0; d < p.num_spatial; ++d)
              y += o[d] * p.y_stride[d + 2];
            int64_t tap = 0;
            for (k[0] = 0; k[0] < kernel[0]; ++k[0]) {
              for (k[1] = 0; k[1] < kernel[1]; ++k[1]) {
                for (k[2] = 0; k[2] < kernel[2]; ++k[2], ++tap) {
                  int64_t x = n * p.x_stride[0];
                  bool is_inside = true;
                  for (size_t d = 0; d < p.num_spatial; ++d) {
                    const int64_t i = o[d] * p.stride[d] - p.padding[d] + k[d] * p.dilation[d];
                    is_inside = is_inside && i >= 0 && i < p.in[d];
                    x += i * p.x_stride[d + 2];
                  }
                  if (!is_inside) continue;
                  for (int64_t c = 0; c < p.in_group; ++c)
                    visit(x + (first + c) * p.x_stride[1], (oc * p.in_group + c) * taps + tap, y);
                }
              }
            }
          }
        }
      }
    }
  }
}

// Which of x, w and y is computed from the others.
enum class Result { kX, kW, kY };

// What a call computes with.
struct Data {
  const void* x;
  const void* w;
  const void* y;
  void* result;
  double alpha;
  double beta;
};

template <class T>
void compute(const Problem& problem, Result result, const Data& data) {
  using Sum = std::conditional_t<sizeof(T) == 8, double, float>;
  const int64_t numel = result == Result::kX   ? problem.x_numel
                        : result == Result::kW ? problem.w_numel
                                               : problem.y_numel;
  std::vector<Sum> sums(static_cast<size_t>(numel));
  std::vector<bool> is_used(sums.size(), result == Result::kW);
  const auto at = [](const void* values, int64_t i) {
    return static_cast<Sum>(static_cast<const T*>(values)[i]);
  };
  const auto add = [&](int64_t i, Sum product) { sums[static_cast<size_t>(i)] += product; };
  for_each_product(problem, [&](int64_t x, int64_t w, int64_t y) {
    if (result == Result::kX) add(x, at(data.y, y) * at(data.w, w));
    if (result == Result::kW) add(w, at(data.x, x) * at(data.y, y));
    if (result == Result::kY) add(y, at(data.x, x) * at(data.w, w));
  });
  // Elements of the result's memory that belong to other tensors are left as they are.
  const auto& stride = result == Result::kX ? problem.x_stride : problem.y_stride;
  const auto& size = result == Result::kX ? problem.in : problem.out;
  const int64_t channels =
      result == Result::kX ? problem.in_group * problem.groups : problem.out_channels;
  for (int64_t plane = 0; plane < problem.batch * channels && result != Result::kW; ++plane) {
    for (int64_t i = 0; i < size[0] * size[1] * size[2]; ++i) {
      int64_t place = plane / channels * stride[0] + plane % channels * stride[1];
      int64_t rest = i;
      for (size_t d = problem.num_spatial; d-- > 0;) {
        place += rest % size[d] * stride[d + 2];
        rest /= size[d];
      }
      is_used[static_cast<size_t>(place)] = true;
    }
  }
  T* const values = static_cast<T*>(data.result);
  for (size_t i = 0; i < sums.size(); ++i) {
    if (!is_used[i]) continue;
    Sum sum = static_cast<Sum>(data.alpha) * sums[i];
    if (data.beta != 0) sum += static_cast<Sum>(data.beta) * static_cast<Sum>(values[i]);
    values[i] = static_cast<T>(sum);
  }
}

// What the search proposes, the fastest first.
struct Proposal {
  int algorithm;
  cudnnStatus_t status;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t math;
};

// The first needs more memory than a caller can have; for gradients, the second is not
// deterministic; the last does not take the problem. The math types of 16-bit elements differ from
// what a caller asks for, so that it must take over what a result names.
std::vector<Proposal> proposals(const Problem& problem, const EmulatedConvolution& conv,
                                Result result) {
  const bool is_16_bit = problem.type == CUDNN_DATA_HALF || problem.type == CUDNN_DATA_BFLOAT16;
  const bool is_float = problem.type == CUDNN_DATA_FLOAT;
  const cudnnMathType_t fast =
      is_16_bit || (is_float && conv.math != CUDNN_FMA_MATH) ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  const auto bytes = static_cast<size_t>(problem.y_numel) * 4 + 64;
  constexpr size_t kHuge = size_t{16} << 30;
  std::vector<Proposal> all;
  if (result == Result::kY) {
    all = {{CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_STATUS_SUCCESS, kHuge, CUDNN_DETERMINISTIC, fast},
           {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_STATUS_SUCCESS, bytes,
            CUDNN_DETERMINISTIC, fast},
           {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_STATUS_SUCCESS, 0, CUDNN_DETERMINISTIC,
            CUDNN_FMA_MATH}};
  } else {
    // The numbers of both gradients are the same.
    all = {{CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, CUDNN_STATUS_SUCCESS, kHuge, CUDNN_DETERMINISTIC,
            fast},
           {CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_STATUS_SUCCESS, 0, CUDNN_NON_DETERMINISTIC,
            CUDNN_FMA_MATH},
           {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_STATUS_SUCCESS, bytes, CUDNN_DETERMINISTIC,
            fast}};
  }
  all.push_back({0, CUDNN_STATUS_NOT_SUPPORTED, 0, CUDNN_NON_DETERMINISTIC, CUDNN_DEFAULT_MATH});
  return all;
}

template <class Perf>
cudnnStatus_t search(const char* call, cudnnHandle_t handle, const EmulatedTensor* x,
                     const EmulatedFilter* w, const EmulatedConvolution* conv,
                     const EmulatedTensor* y, Result result, int requested, int* found,
                     Perf* results) {
  *found = 0;
  if (handle == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  if (requested < 1) return cudnn_mistake(str(call, ": nothing is asked for"));
  Problem problem;
  const cudnnStatus_t status = describe(call, x, w, conv, y, problem);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  for (const Proposal& proposal : proposals(problem, *conv, result)) {
    if (*found == requested) break;
    results[(*found)++] = {static_cast<decltype(results->algo)>(proposal.algorithm),
                           proposal.status,
                           -1,
                           proposal.memory,
                           proposal.determinism,
                           proposal.math,
                           {}};
  }
  return CUDNN_STATUS_SUCCESS;
}

// Also 16-bit elements are aligned to 4 bytes.
bool holds(const void* data, int64_t elements, cudnnDataType_t type) {
  const size_t size = cuda_emulator::size_of(type);
  return reinterpret_cast<uintptr_t>(data) % std::max<size_t>(size, 4) == 0 &&
         cuda_emulator::is_allocated(data, static_cast<size_t>(elements) * size);
}

double read_scale(const void* number, cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? *static_cast<const double*>(number)
                                   : static_cast<double>(*static_cast<const float*>(number));
}

// What the three forms of a convolution have in common.
struct Call {
  const char* name;
  Result result;
  cudnnHandle_t handle;
  const EmulatedTensor* x_desc;
  const EmulatedFilter* w_desc;
  const EmulatedTensor* y_desc;
  const EmulatedConvolution* conv;
  int algorithm;
  void* workspace;
  size_t workspace_bytes;
  const void* alpha;
  const void* beta;
};

cudnnStatus_t convolve(const Call& call, const void* x, const void* w, const void* y,
                       void* result) {
  if (call.handle == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  call.handle->check_user(call.name);
  Problem problem;
  const cudnnStatus_t status =
      describe(call.name, call.x_desc, call.w_desc, call.conv, call.y_desc, problem);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const auto all = proposals(problem, *call.conv, call.result);
  const auto proposal = std::find_if(all.begin(), all.end(), [&](const Proposal& p) {
    return p.algorithm == call.algorithm && p.status == CUDNN_STATUS_SUCCESS;
  });
  if (proposal == all.end()) {
    return cudnn_mistake(str(call.name, ": no algorithm ", call.algorithm));
  }
  if (proposal->math != call.conv->math) {
    return cudnn_mistake(str(call.name, ": algorithm ", call.algorithm,
                             " was proposed with math type ", static_cast<int>(proposal->math),
                             ", but the convolution has ", static_cast<int>(call.conv->math)),
                         CUDNN_STATUS_NOT_SUPPORTED);
  }
  if (proposal - all.begin() < cuda_emulator::refused_algorithms()) {
    cuda_emulator::count_call(&cuda_emulator::LibraryCalls::conv_refusals);
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  if (call.workspace_bytes < proposal->memory) {
    return cudnn_mistake(str(call.name, ": algorithm ", call.algorithm, " needs ", proposal->memory,
                             " bytes of workspace, not ", call.workspace_bytes));
  }
  if (call.workspace_bytes > 0 &&
      !cuda_emulator::is_allocated(call.workspace, call.workspace_bytes)) {
    return cudnn_mistake(str(call.name, ": the workspace is not in device memory"));
  }
  if (!holds(x, problem.x_numel, problem.type) || !holds(w, problem.w_numel, problem.type) ||
      !holds(y, problem.y_numel, problem.type)) {
    return cudnn_mistake(str(call.name, ": x, the filter or y is not in device memory as a whole"));
  }
  const Data data{
      x, w, y, result, read_scale(call.alpha, problem.type), read_scale(call.beta, problem.type)};
  cuda_emulator::count_call(&cuda_emulator::LibraryCalls::convolutions);
  const cudaError_t error = cuda_emulator::enqueue(
      call.handle->stream,
      [problem, data, which = call.result, workspace = call.workspace, bytes = proposal->memory] {
        if (bytes > 0) std::memset(workspace, 0xff, bytes);
        if (problem.type == CUDNN_DATA_FLOAT) compute<float>(problem, which, data);
        if (problem.type == CUDNN_DATA_DOUBLE) compute<double>(problem, which, data);
        if (problem.type == CUDNN_DATA_HALF) compute<flow::Float16>(problem, which, data);
        if (problem.type == CUDNN_DATA_BFLOAT16) compute<flow::BFloat16>(problem, which, data);
      });
  return error == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

bool has_values(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF ||
         type == CUDNN_DATA_BFLOAT16;
}

bool are_at_least(int least, int count, const int* values) {
  return std::all_of(values, values + count, [&](int value) { return value >= least; });
}

template <class T>
void add_to(const EmulatedTensor& c_desc, const std::vector<int64_t>& a_stride, const void* a_data,
            void* c_data, double alpha, double beta) {
  using Sum = std::conditional_t<sizeof(T) == 8, double, float>;
  const auto* a = static_cast<const T*>(a_data);
  auto* c = static_cast<T*>(c_data);
  std::vector<int64_t> index(c_desc.size.size());
  while (true) {
    int64_t from = 0;
    int64_t to = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      from += index[d] * a_stride[d];
      to += index[d] * c_desc.stride[d];
    }
    Sum sum = static_cast<Sum>(alpha) * static_cast<Sum>(a[from]);
    if (beta != 0) sum += static_cast<Sum>(beta) * static_cast<Sum>(c[to]);
    c[to] = static_cast<T>(sum);
    size_t d = index.size();
    while (d > 0 && ++index[d - 1] == c_desc.size[d - 1])
      index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* desc) {
  *desc = new EmulatedTensor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t desc) {
  delete desc;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t desc, cudnnDataType_t type,
                                         int num_dims, const int size[], const int stride[]) {
  constexpr int kLeastDims = 4, kMost = 8;
  if (num_dims < kLeastDims || num_dims > kMost || !has_values(type) ||
      !are_at_least(1, num_dims, size) || !are_at_least(1, num_dims, stride)) {
    return cudnn_mistake("cudnnSetTensorNdDescriptor: wrong dims, strides or type");
  }
  desc->type = type;
  desc->size.assign(size, size + num_dims);
  desc->stride.assign(stride, stride + num_dims);
  constexpr int64_t kMostElements = int64_t{1} << 31;
  if (desc->extent() < kMostElements) return CUDNN_STATUS_SUCCESS;
  return cudnn_refusal(CUDNN_STATUS_NOT_SUPPORTED, "cudnnSetTensorNdDescriptor: too large");
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* desc) {
  *desc = new EmulatedFilter;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t desc) {
  delete desc;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int num_dims,
                                         const int size[]) {
  if (num_dims < 3 || !has_values(type) || !are_at_least(1, num_dims, size)) {
    return cudnn_mistake("cudnnSetFilterNdDescriptor: wrong dims or type");
  }
  if (format != CUDNN_TENSOR_NCHW) {
    return cudnn_refusal(CUDNN_STATUS_NOT_SUPPORTED, "cudnnSetFilterNdDescriptor: not emulated");
  }
  desc->type = type;
  desc->size.assign(size, size + num_dims);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* desc) {
  *desc = new EmulatedConvolution;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t desc) {
  delete desc;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t desc, int num_dims,
                                              const int padding[], const int stride[],
                                              const int dilation[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t sums) {
  if (num_dims < 2 || num_dims > 3 || !are_at_least(0, num_dims, padding) ||
      !are_at_least(1, num_dims, stride) || !are_at_least(1, num_dims, dilation)) {
    return cudnn_mistake("cudnnSetConvolutionNdDescriptor: wrong padding, stride or dilation");
  }
  desc->padding.assign(padding, padding + num_dims);
  desc->stride.assign(stride, stride + num_dims);
  desc->dilation.assign(dilation, dilation + num_dims);
  desc->mode = mode;
  desc->sums = sums;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t desc, int groups) {
  if (groups < 1) return cudnn_mistake("cudnnSetConvolutionGroupCount: no group");
  desc->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t desc, cudnnMathType_t math) {
  if (math < CUDNN_DEFAULT_MATH || math > CUDNN_FMA_MATH) {
    return cudnn_mistake("cudnnSetConvolutionMathType: no such type");
  }
  desc->math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y, int requested, int* found,
    cudnnConvolutionFwdAlgoPerf_t* results) {
  return search("cudnnGetConvolutionForwardAlgorithm", handle, x, w, conv, y, Result::kY, requested,
                found, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t dx, int requested, int* found,
    cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return search("cudnnGetConvolutionBackwardDataAlgorithm", handle, dx, w, conv, dy, Result::kX,
                requested, found, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t conv, cudnnFilterDescriptor_t dw, int requested, int* found,
    cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return search("cudnnGetConvolutionBackwardFilterAlgorithm", handle, x, dw, conv, dy, Result::kW,
                requested, found, results);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      cudnnTensorDescriptor_t x_desc, const void* x,
                                      cudnnFilterDescriptor_t w_desc, const void* w,
                                      cudnnConvolutionDescriptor_t conv,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      size_t workspace_bytes, const void* beta,
                                      cudnnTensorDescriptor_t y_desc, void* y) {
  return convolve({"cudnnConvolutionForward", Result::kY, handle, x_desc, w_desc, y_desc, conv,
                   algorithm, workspace, workspace_bytes, alpha, beta},
                  x, w, y, y);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           cudnnFilterDescriptor_t w_desc, const void* w,
                                           cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           cudnnConvolutionDescriptor_t conv,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           size_t workspace_bytes, const void* beta,
                                           cudnnTensorDescriptor_t dx_desc, void* dx) {
  return convolve({"cudnnConvolutionBackwardData", Result::kX, handle, dx_desc, w_desc, dy_desc,
                   conv, algorithm, workspace, workspace_bytes, alpha, beta},
                  dx, w, dy, dx);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnTensorDescriptor_t dy_desc, const void* dy, cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace, size_t workspace_bytes,
    const void* beta, cudnnFilterDescriptor_t dw_desc, void* dw) {
  return convolve({"cudnnConvolutionBackwardFilter", Result::kW, handle, x_desc, dw_desc, dy_desc,
                   conv, algorithm, workspace, workspace_bytes, alpha, beta},
                  x, dw, dy, dw);
}

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha,
                             cudnnTensorDescriptor_t a_desc, const void* a, const void* beta,
                             cudnnTensorDescriptor_t c_desc, void* c) {
  if (handle == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  if (a_desc->size.size() != c_desc->size.size() || a_desc->type != c_desc->type) {
    return cudnn_mistake("cudnnAddTensor: the descriptors differ in dims or type");
  }
  std::vector<int64_t> stride(a_desc->stride);
  for (size_t d = 0; d < stride.size(); ++d) {
    if (a_desc->size[d] == 1) stride[d] = 0;
    if (a_desc->size[d] != 1 && a_desc->size[d] != c_desc->size[d]) {
      return cudnn_mistake(str("cudnnAddTensor: dim ", d, " of a is neither 1 nor that of c"));
    }
  }
  if (!holds(a, a_desc->extent(), a_desc->type) || !holds(c, c_desc->extent(), c_desc->type)) {
    return cudnn_mistake("cudnnAddTensor: a or c is not in device memory as a whole");
  }
  // The descriptor may change or end before the work runs.
  auto to = std::make_shared<EmulatedTensor>();
  to->type = c_desc->type;
  to->size = c_desc->size;
  to->stride = c_desc->stride;
  const double factor = read_scale(alpha, to->type), old = read_scale(beta, to->type);
  const cudaError_t error = cuda_emulator::enqueue(handle->stream, [=] {
    if (to->type == CUDNN_DATA_FLOAT) add_to<float>(*to, stride, a, c, factor, old);
    if (to->type == CUDNN_DATA_DOUBLE) add_to<double>(*to, stride, a, c, factor, old);
    if (to->type == CUDNN_DATA_HALF) add_to<flow::Float16>(*to, stride, a, c, factor, old);
    if (to->type == CUDNN_DATA_BFLOAT16) add_to<flow::BFloat16>(*to, stride, a, c, factor, old);
  });
  return error == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

std::vector<cuda_emulator::LibraryFunction> cuda_emulator::cudnn_convolution_functions() {
#define EMULATED_CUDNN(name) library_function("cudnn" #name, cudnn##name)
  return {EMULATED_CUDNN(CreateTensorDescriptor),
          EMULATED_CUDNN(DestroyTensorDescriptor),
          EMULATED_CUDNN(SetTensorNdDescriptor),
          EMULATED_CUDNN(CreateFilterDescriptor),
          EMULATED_CUDNN(DestroyFilterDescriptor),
          EMULATED_CUDNN(SetFilterNdDescriptor),
          EMULATED_CUDNN(CreateConvolutionDescriptor),
          EMULATED_CUDNN(DestroyConvolutionDescriptor),
          EMULATED_CUDNN(SetConvolutionNdDescriptor),
          EMULATED_CUDNN(SetConvolutionGroupCount),
          EMULATED_CUDNN(SetConvolutionMathType),
          EMULATED_CUDNN(GetConvolutionForwardAlgorithm_v7),
          EMULATED_CUDNN(GetConvolutionBackwardDataAlgorithm_v7),
          EMULATED_CUDNN(GetConvolutionBackwardFilterAlgorithm_v7),
          EMULATED_CUDNN(ConvolutionForward),
          EMULATED_CUDNN(ConvolutionBackwardData),
          EMULATED_CUDNN(ConvolutionBackwardFilter),
          EMULATED_CUDNN(AddTensor)};
#undef EMULATED_CUDNN
}
