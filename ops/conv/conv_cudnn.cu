// Convolutions by cuDNN 9, which is loaded at its first use: linking it would delay the start of
// every program. Only deterministic algorithms are used, and float32 is computed in float32.
#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include <cudnn.h>

#include "core/device/cuda_device.h"
#include "core/device/cuda_library.h"
#include "core/error.h"
#include "core/log.h"
#include "ops/conv/conv_cuda.h"
#include "ops/conv/conv_cudnn.h"
#include "ops/conv/conv_kernels.h"
#include "ops/kernel/rows_cuda.cuh"

namespace flow::ops {

namespace {

// The functions that are used, by name. All are null if the library is missing.
struct Library {
#define FLOW_CUDNN_FUNCTION(name) decltype(&::cudnn##name) name = nullptr
  FLOW_CUDNN_FUNCTION(GetErrorString);
  FLOW_CUDNN_FUNCTION(Create);
  FLOW_CUDNN_FUNCTION(Destroy);
  FLOW_CUDNN_FUNCTION(SetStream);
  FLOW_CUDNN_FUNCTION(CreateTensorDescriptor);
  FLOW_CUDNN_FUNCTION(DestroyTensorDescriptor);
  FLOW_CUDNN_FUNCTION(SetTensorNdDescriptor);
  FLOW_CUDNN_FUNCTION(CreateFilterDescriptor);
  FLOW_CUDNN_FUNCTION(DestroyFilterDescriptor);
  FLOW_CUDNN_FUNCTION(SetFilterNdDescriptor);
  FLOW_CUDNN_FUNCTION(CreateConvolutionDescriptor);
  FLOW_CUDNN_FUNCTION(DestroyConvolutionDescriptor);
  FLOW_CUDNN_FUNCTION(SetConvolutionNdDescriptor);
  FLOW_CUDNN_FUNCTION(SetConvolutionGroupCount);
  FLOW_CUDNN_FUNCTION(SetConvolutionMathType);
  FLOW_CUDNN_FUNCTION(GetConvolutionForwardAlgorithm_v7);
  FLOW_CUDNN_FUNCTION(GetConvolutionBackwardDataAlgorithm_v7);
  FLOW_CUDNN_FUNCTION(GetConvolutionBackwardFilterAlgorithm_v7);
  FLOW_CUDNN_FUNCTION(ConvolutionForward);
  FLOW_CUDNN_FUNCTION(ConvolutionBackwardData);
  FLOW_CUDNN_FUNCTION(ConvolutionBackwardFilter);
  FLOW_CUDNN_FUNCTION(AddTensor);
#undef FLOW_CUDNN_FUNCTION
  bool is_loaded = false;

  Library() {
    std::string reason;
    void* const handle = cuda::load_library({"libcudnn.so.9"}, "", reason);
    if (handle == nullptr) {
      log_warning(str("[conv] cuDNN 9 cannot be loaded (", reason,
                      "); convolutions on cuda use flow's plain kernels"));
      return;
    }
    bool all = true;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
          cuda::find_function(handle, name));
      all = all && function != nullptr;
    };
#define FLOW_CUDNN_FIND(name) find(name, "cudnn" #name)
    FLOW_CUDNN_FIND(GetErrorString);
    FLOW_CUDNN_FIND(Create);
    FLOW_CUDNN_FIND(Destroy);
    FLOW_CUDNN_FIND(SetStream);
    FLOW_CUDNN_FIND(CreateTensorDescriptor);
    FLOW_CUDNN_FIND(DestroyTensorDescriptor);
    FLOW_CUDNN_FIND(SetTensorNdDescriptor);
    FLOW_CUDNN_FIND(CreateFilterDescriptor);
    FLOW_CUDNN_FIND(DestroyFilterDescriptor);
    FLOW_CUDNN_FIND(SetFilterNdDescriptor);
    FLOW_CUDNN_FIND(CreateConvolutionDescriptor);
    FLOW_CUDNN_FIND(DestroyConvolutionDescriptor);
    FLOW_CUDNN_FIND(SetConvolutionNdDescriptor);
    FLOW_CUDNN_FIND(SetConvolutionGroupCount);
    FLOW_CUDNN_FIND(SetConvolutionMathType);
    FLOW_CUDNN_FIND(GetConvolutionForwardAlgorithm_v7);
    FLOW_CUDNN_FIND(GetConvolutionBackwardDataAlgorithm_v7);
    FLOW_CUDNN_FIND(GetConvolutionBackwardFilterAlgorithm_v7);
    FLOW_CUDNN_FIND(ConvolutionForward);
    FLOW_CUDNN_FIND(ConvolutionBackwardData);
    FLOW_CUDNN_FIND(ConvolutionBackwardFilter);
    FLOW_CUDNN_FIND(AddTensor);
#undef FLOW_CUDNN_FIND
    is_loaded = all;
    if (!all) log_warning("[conv] libcudnn.so.9 lacks functions flow uses; it is not used");
  }
};

const Library& library() {
  static const Library& instance = *new Library;  // immortal: handles are closed late
  return instance;
}

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw Error(str("[conv] ", call, " failed: ", library().GetErrorString(status),
                  "; look the code up in cuDNN's manual, or run the convolution on device cpu"));
}

// One per rank.
class Handle {
 public:
  Handle() { check(library().Create(&handle_), "cudnnCreate"); }

  ~Handle() { static_cast<void>(library().Destroy(handle_)); }

  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  cudnnHandle_t on(cudaStream_t stream) {
    check(library().SetStream(handle_, stream), "cudnnSetStream");
    return handle_;
  }

  std::mutex mutex;  // held while the handle is used

 private:
  cudnnHandle_t handle_ = nullptr;
};

cudnnDataType_t data_type(DType dtype) {
  if (dtype == DType::kFloat16) return CUDNN_DATA_HALF;
  if (dtype == DType::kBFloat16) return CUDNN_DATA_BFLOAT16;
  return dtype == DType::kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

// The descriptors of a call and its algorithms, searched at the first run. Shared by ranks.
class ConvState {
 public:
  // An algorithm is the one that was proposed only together with its math type, which is in the
  // descriptor of the convolution.
  struct Algorithm {
    Algorithm(const ConvState& state, int proposed, cudnnMathType_t math, size_t bytes);
    ~Algorithm();
    Algorithm(const Algorithm&) = delete;
    Algorithm& operator=(const Algorithm&) = delete;

    const int number;
    const size_t workspace;  // bytes
    cudnnConvolutionDescriptor_t conv = nullptr;
  };

  ConvState(const ConvRoles& call_roles, const ConvSizes& call_sizes, DType call_dtype,
            KernelChoice otherwise)
      : roles(call_roles), sizes(call_sizes), dtype(call_dtype), fallback(std::move(otherwise)) {
    const Library& lib = library();
    check(lib.CreateTensorDescriptor(&x), "cudnnCreateTensorDescriptor");
    check(lib.CreateTensorDescriptor(&y), "cudnnCreateTensorDescriptor");
    check(lib.CreateTensorDescriptor(&bias), "cudnnCreateTensorDescriptor");
    check(lib.CreateFilterDescriptor(&weight), "cudnnCreateFilterDescriptor");
    std::vector<int> in, out, kernel;
    const size_t first = sizes.num_dims == 3 ? 0 : 1;  // at least two spatial dims
    for (size_t d = first; d < kMaxSpatialDims; ++d) {
      const WindowDim& window = sizes.window[d];
      in.push_back(static_cast<int>(window.in));
      out.push_back(static_cast<int>(window.out));
      kernel.push_back(static_cast<int>(window.kernel));
      padding_.push_back(static_cast<int>(window.padding));
      stride_.push_back(static_cast<int>(window.stride));
      dilation_.push_back(static_cast<int>(window.dilation));
    }
    const cudnnDataType_t type = data_type(dtype);
    set_tensor(x, type, sizes.batch, sizes.in_channels, in);
    set_tensor(y, type, sizes.batch, sizes.out_channels, out);
    set_tensor(bias, type, 1, sizes.out_channels, std::vector<int>(in.size(), 1));
    const int64_t groups = sizes.groups;
    const std::vector<int> filter = joined(sizes.out_channels, sizes.in_channels / groups, kernel);
    check(lib.SetFilterNdDescriptor(weight, type, CUDNN_TENSOR_NCHW,
                                    static_cast<int>(filter.size()), filter.data()),
          "cudnnSetFilterNdDescriptor");
  }

  ~ConvState() {
    const Library& lib = library();
    static_cast<void>(lib.DestroyTensorDescriptor(x));
    static_cast<void>(lib.DestroyTensorDescriptor(y));
    static_cast<void>(lib.DestroyTensorDescriptor(bias));
    static_cast<void>(lib.DestroyFilterDescriptor(weight));
  }

  ConvState(const ConvState&) = delete;
  ConvState& operator=(const ConvState&) = delete;

  // cuDNN's first choice among its deterministic algorithms that no call has refused; null: there
  // is none. It stays valid as long as the state.
  const Algorithm* algorithm(cudnnHandle_t handle) const {
    const std::lock_guard lock(mutex_);
    if (!is_searched_) {
      search(handle);
      is_searched_ = true;
    }
    return next_ < algorithms_.size() ? algorithms_[next_].get() : nullptr;
  }

  // A call has refused the algorithm, although the search proposed it.
  void refuse(const Algorithm& algorithm) const {
    const std::lock_guard lock(mutex_);
    if (next_ < algorithms_.size() && algorithms_[next_].get() == &algorithm) ++next_;
  }

  const ConvRoles roles;
  const ConvSizes sizes;
  const DType dtype;
  const KernelChoice fallback;
  cudnnTensorDescriptor_t x = nullptr;
  cudnnTensorDescriptor_t y = nullptr;
  cudnnTensorDescriptor_t bias = nullptr;
  cudnnFilterDescriptor_t weight = nullptr;

 private:
  static std::vector<int> joined(int64_t first, int64_t second, const std::vector<int>& rest) {
    std::vector<int> all{static_cast<int>(first), static_cast<int>(second)};
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }

  static void set_tensor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int64_t batch,
                         int64_t channels, const std::vector<int>& spatial) {
    const std::vector<int> size = joined(batch, channels, spatial);
    std::vector<int> stride(size.size(), 1);
    for (size_t i = size.size() - 1; i > 0; --i)
      stride[i - 1] = stride[i] * size[i];
    check(library().SetTensorNdDescriptor(tensor, type, static_cast<int>(size.size()), size.data(),
                                          stride.data()),
          "cudnnSetTensorNdDescriptor");
  }

  void search(cudnnHandle_t handle) const {
    const Library& lib = library();
    const cudnnMathType_t math =
        is_half(dtype) ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH;  // no TF32 unasked
    const Algorithm any(*this, 0, math, 0);
    if (roles.writes_x) {
      keep<cudnnConvolutionBwdDataAlgoPerf_t>([&](int count, int* found, auto* results) {
        return lib.GetConvolutionBackwardDataAlgorithm_v7(handle, weight, y, any.conv, x, count,
                                                          found, results);
      });
    } else if (roles.writes_weight) {
      keep<cudnnConvolutionBwdFilterAlgoPerf_t>([&](int count, int* found, auto* results) {
        return lib.GetConvolutionBackwardFilterAlgorithm_v7(handle, x, y, any.conv, weight, count,
                                                            found, results);
      });
    } else {
      keep<cudnnConvolutionFwdAlgoPerf_t>([&](int count, int* found, auto* results) {
        return lib.GetConvolutionForwardAlgorithm_v7(handle, x, weight, any.conv, y, count, found,
                                                     results);
      });
    }
  }

  template <class Perf, class Get>
  void keep(const Get& get) const {
    constexpr size_t kMostWorkspace = size_t{1} << 30;
    std::array<Perf, 16> results{};
    int found = 0;
    if (get(static_cast<int>(results.size()), &found, results.data()) != CUDNN_STATUS_SUCCESS) {
      return;
    }
    for (int i = 0; i < found; ++i) {
      const Perf& result = results[static_cast<size_t>(i)];
      if (result.status != CUDNN_STATUS_SUCCESS || result.memory > kMostWorkspace ||
          result.determinism != CUDNN_DETERMINISTIC) {
        continue;
      }
      if (dtype == DType::kFloat32 && result.mathType != CUDNN_FMA_MATH) continue;  // TF32
      algorithms_.push_back(std::make_unique<const Algorithm>(*this, static_cast<int>(result.algo),
                                                              result.mathType, result.memory));
    }
  }

  std::vector<int> padding_, stride_, dilation_;
  mutable std::mutex mutex_;
  mutable bool is_searched_ = false;
  mutable std::vector<std::unique_ptr<const Algorithm>> algorithms_;  // as cuDNN orders them
  mutable size_t next_ = 0;  // the first that no call has refused
};

ConvState::Algorithm::Algorithm(const ConvState& state, int proposed, cudnnMathType_t math,
                                size_t bytes)
    : number(proposed), workspace(bytes) {
  const Library& lib = library();
  const cudnnDataType_t computes =
      state.dtype == DType::kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  check(lib.CreateConvolutionDescriptor(&conv), "cudnnCreateConvolutionDescriptor");
  check(lib.SetConvolutionNdDescriptor(conv, static_cast<int>(state.padding_.size()),
                                       state.padding_.data(), state.stride_.data(),
                                       state.dilation_.data(), CUDNN_CROSS_CORRELATION, computes),
        "cudnnSetConvolutionNdDescriptor");
  check(lib.SetConvolutionGroupCount(conv, static_cast<int>(state.sizes.groups)),
        "cudnnSetConvolutionGroupCount");
  check(lib.SetConvolutionMathType(conv, math), "cudnnSetConvolutionMathType");
}

ConvState::Algorithm::~Algorithm() {
  static_cast<void>(library().DestroyConvolutionDescriptor(conv));
}

// cuDNN takes memory that is aligned to 4 bytes at least, also of 16-bit elements. Views may begin
// at any element.
constexpr size_t kAlignment = 16;

// A factor of a call, in the type in which cuDNN computes.
class Factor {
 public:
  Factor(int value, DType dtype)
      : float64_(value),
        float32_(static_cast<float>(value)),
        is_float64_(dtype == DType::kFloat64) {}

  const void* data() const { return is_float64_ ? static_cast<const void*>(&float64_) : &float32_; }

 private:
  double float64_;
  float float32_;
  bool is_float64_;
};

// False if the call refuses its algorithm; throws for another failure.
bool is_taken(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_NOT_SUPPORTED) return false;
  check(status, call);
  return true;
}

// Queues the convolution. Returns false if the call refuses the algorithm.
bool convolve(const KernelContext& ctx, cudnnHandle_t handle, const ConvState::Algorithm& algorithm,
              const void* a, const void* b) {
  const auto& state = ctx.state_as<ConvState>();
  const Library& lib = library();
  const auto workspace = ctx.scratch(algorithm.workspace + 1);
  const Factor one(1, state.dtype), zero(0, state.dtype);
  void* result = ctx.out(0).data;
  if (state.roles.writes_x) {
    return is_taken(lib.ConvolutionBackwardData(
                        handle, one.data(), state.weight, b, state.y, a, algorithm.conv,
                        static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm.number),
                        workspace->data(), algorithm.workspace, zero.data(), state.x, result),
                    "cudnnConvolutionBackwardData");
  }
  if (state.roles.writes_weight) {
    return is_taken(lib.ConvolutionBackwardFilter(
                        handle, one.data(), state.x, a, state.y, b, algorithm.conv,
                        static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm.number),
                        workspace->data(), algorithm.workspace, zero.data(), state.weight, result),
                    "cudnnConvolutionBackwardFilter");
  }
  return is_taken(
      lib.ConvolutionForward(handle, one.data(), state.x, a, state.weight, b, algorithm.conv,
                             static_cast<cudnnConvolutionFwdAlgo_t>(algorithm.number),
                             workspace->data(), algorithm.workspace, zero.data(), state.y, result),
      "cudnnConvolutionForward");
}

void add_bias(const KernelContext& ctx, cudnnHandle_t handle) {
  const auto& state = ctx.state_as<ConvState>();
  if (!state.roles.has_bias || state.roles.writes_x) return;
  if (state.roles.writes_weight) return sum_conv_bias(ctx, state.sizes);
  const Factor one(1, state.dtype);
  const DenseInput bias(ctx, 2, kAlignment);
  check(library().AddTensor(handle, one.data(), state.bias, bias.as<std::byte>(), one.data(),
                            state.y, ctx.out(0).data),
        "cudnnAddTensor");
}

// A call may refuse an algorithm that the search has proposed; the next one then has its turn.
void run(const KernelContext& ctx) {
  const auto& state = ctx.state_as<ConvState>();
  auto& own = ctx.rank.slot<Handle>();
  const std::lock_guard lock(own.mutex);
  const cudnnHandle_t handle = own.on(cuda::stream_of(ctx));
  const DenseInput first(ctx, 0, kAlignment);
  const DenseInput second(ctx, 1, kAlignment);
  while (const ConvState::Algorithm* const algorithm = state.algorithm(handle)) {
    if (convolve(ctx, handle, *algorithm, first.as<std::byte>(), second.as<std::byte>()))
      return add_bias(ctx, handle);
    state.refuse(*algorithm);
  }
  state.fallback.fn({ctx.inputs, ctx.outputs, ctx.attrs, state.fallback.state.get(), ctx.random,
                     ctx.rank, ctx.site});
}

// cuDNN counts windows from the padding at both ends alike, and elements in 32 bits.
bool fits_cudnn(const ConvSizes& sizes) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const int64_t x = sizes.batch * sizes.in_channels * sizes.in_size();
  const int64_t y = sizes.batch * sizes.out_channels * sizes.out_size();
  if (x == 0 || y == 0 || sizes.groups == 0 || x >= kMost || y >= kMost) return false;
  return std::all_of(sizes.window.begin(), sizes.window.end(), [](const WindowDim& dim) {
    return count_windows(dim.in + 2 * dim.padding, dim.reach(), dim.stride) == dim.out;
  });
}

}  // namespace

KernelChoice select_conv_cudnn(const KernelQuery& query, const KernelChoice& fallback) {
  const ConvSizes sizes = conv_sizes(query);
  if (fallback.fn == nullptr || !fits_cudnn(sizes) || !library().is_loaded) return {};
  return {run, std::make_shared<const ConvState>(conv_roles(query), sizes, query.output(0).dtype,
                                                 fallback)};
}

}  // namespace flow::ops
