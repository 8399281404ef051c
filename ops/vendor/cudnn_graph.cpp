#include "ops/vendor/cudnn_graph.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "core/device/cuda_device.h"
#include "core/device/cuda_library.h"
#include "core/error.h"
#include "core/log.h"

namespace flow::ops {

namespace {

// Before this version, callers had to clear the sums of attention's gradient.
constexpr size_t kLeastVersion = 90600;

struct Library {
  decltype(&cudnnGetVersion) get_version = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnGetErrorString) error_string = nullptr;
  decltype(&cudnnGetLastErrorString) last_error = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;
  bool is_usable = false;

  Library() {
    std::string reason;
    void* const handle = cuda::load_library({"libcudnn.so.9"}, "", reason);
    if (handle == nullptr) {
      log_info(str("[cudnn] cuDNN 9 cannot be loaded (", reason,
                   "); attention on cuda uses flow's own kernels"));
      return;
    }
    is_usable = true;
    find(handle, "cudnnGetVersion", get_version);
    find(handle, "cudnnCreate", create);
    find(handle, "cudnnDestroy", destroy);
    find(handle, "cudnnSetStream", set_stream);
    find(handle, "cudnnGetErrorString", error_string);
    find(handle, "cudnnGetLastErrorString", last_error);
    find(handle, "cudnnBackendCreateDescriptor", create_descriptor);
    find(handle, "cudnnBackendDestroyDescriptor", destroy_descriptor);
    find(handle, "cudnnBackendSetAttribute", set_attribute);
    find(handle, "cudnnBackendGetAttribute", get_attribute);
    find(handle, "cudnnBackendFinalize", finalize);
    find(handle, "cudnnBackendExecute", execute);
    if (is_usable && get_version() >= kLeastVersion) return;
    is_usable = false;
    log_info("[cudnn] libcudnn.so.9 is older than 9.6; attention on cuda uses flow's own kernels");
  }

  template <class Function>
  void find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(cuda::find_function(handle, name));
    is_usable = is_usable && function != nullptr;
  }
};

const Library& library() {
  static const Library& instance = *new Library;  // immortal: handles are closed late
  return instance;
}

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> message = {};
  library().last_error(message.data(), message.size());
  throw CudnnRefusal(str(call, ": ", library().error_string(status), " ", message.data()));
}

// One per rank.
class Handle {
 public:
  Handle() { check(library().create(&handle_), "cudnnCreate"); }

  ~Handle() { static_cast<void>(library().destroy(handle_)); }

  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

cudnnHandle_t handle_of(RankContext& rank) {
  return rank.slot<Handle>().get();
}

CudnnGraph::Dims row_major(const CudnnGraph::Dims& size) {
  return {size[1] * size[2] * size[3], size[2] * size[3], size[3], 1};
}

CudnnDescriptor pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t precision) {
  CudnnDescriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  function.set(CUDNN_ATTR_POINTWISE_MATH_PREC, precision);
  return function;
}

}  // namespace

bool has_cudnn_graphs() {
  return library().is_usable;
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  check(library().create_descriptor(type, &descriptor_), "cudnnBackendCreateDescriptor");
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) static_cast<void>(library().destroy_descriptor(descriptor_));
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, nullptr)) {}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          int64_t count, const void* values) {
  check(library().set_attribute(descriptor_, name, type, count, values),
        "cudnnBackendSetAttribute");
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, int64_t value) {
  set(name, CUDNN_TYPE_INT64, 1, &value);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, float value) {
  set(name, CUDNN_TYPE_FLOAT, 1, &value);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, bool value) {
  set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
}

void CudnnDescriptor::finalize() {
  check(library().finalize(descriptor_), "cudnnBackendFinalize");
}

void CudnnPlan::run(RankContext& rank, std::span<const int64_t> ids,
                    std::span<void* const> addresses, void* workspace) const {
  const cudnnHandle_t handle = handle_of(rank);
  check(library().set_stream(handle, cuda::rank_device(rank).stream()), "cudnnSetStream");
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, static_cast<int64_t>(ids.size()),
           ids.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           static_cast<int64_t>(addresses.size()), addresses.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  check(library().execute(handle, plan_.get(), pack.get()), "cudnnBackendExecute");
}

CudnnGraph::Id CudnnGraph::add(cudnnDataType_t type, const Dims& size, const Dims& stride,
                               bool is_between, bool is_number) {
  constexpr int64_t kAlignment = 16;
  const auto id = static_cast<Id>(tensors_.size());
  CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, size.data());
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride.data());
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_between);
  tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, is_number);
  tensor.finalize();
  tensors_.push_back(std::move(tensor));
  return id;
}

CudnnGraph::Id CudnnGraph::tensor(cudnnDataType_t type, const Dims& size, const Dims& stride) {
  return add(type, size, stride, false, false);
}

CudnnGraph::Id CudnnGraph::between(cudnnDataType_t type, const Dims& size) {
  return between(type, size, row_major(size));
}

CudnnGraph::Id CudnnGraph::between(cudnnDataType_t type, const Dims& size, const Dims& stride) {
  return add(type, size, stride, true, false);
}

CudnnGraph::Id CudnnGraph::number() {
  return add(CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true);
}

void CudnnGraph::multiply(Id a, Id b, Id c) {
  CudnnDescriptor function(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  function.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  function.finalize();
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensor_of(a));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensor_of(b));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensor_of(c));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, function);
  operation.finalize();
  functions_.push_back(std::move(function));
  operations_.push_back(std::move(operation));
}

void CudnnGraph::add_pointwise(CudnnDescriptor function, Id x, Id b, Id y, Id t) {
  function.finalize();
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensor_of(x));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensor_of(y));
  if (b != kNone) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensor_of(b));
  if (t != kNone) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, tensor_of(t));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1.0F);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1.0F);
  operation.finalize();
  functions_.push_back(std::move(function));
  operations_.push_back(std::move(operation));
}

void CudnnGraph::apply(cudnnPointwiseMode_t mode, Id x, Id b, Id y, Id t) {
  add_pointwise(pointwise(mode, CUDNN_DATA_FLOAT), x, b, y, t);
}

void CudnnGraph::index(int64_t axis, Id x, Id y) {
  CudnnDescriptor function = pointwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT);
  function.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
  add_pointwise(std::move(function), x, kNone, y, kNone);
}

void CudnnGraph::at_least(Id a, Id b, Id y) {
  add_pointwise(pointwise(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN), a, b, y, kNone);
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t op, Id x, Id y) {
  CudnnDescriptor function(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  function.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  function.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &op);
  function.finalize();
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, function);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensor_of(x));
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensor_of(y));
  operation.finalize();
  functions_.push_back(std::move(function));
  operations_.push_back(std::move(operation));
}

void CudnnGraph::reshape(Id x, Id y) {
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, tensor_of(x));
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, tensor_of(y));
  operation.finalize();
  operations_.push_back(std::move(operation));
}

std::unique_ptr<CudnnPlan> CudnnGraph::plan(RankContext& rank) {
  const cudnnHandle_t handle = handle_of(rank);
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const CudnnDescriptor& operation : operations_)
    operations.push_back(operation.get());
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<int64_t>(operations.size()), operations.data());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  graph.finalize();

  CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  heuristics.finalize();
  constexpr int64_t kMostConfigs = 8;
  std::vector<CudnnDescriptor> configs;
  std::vector<cudnnBackendDescriptor_t> found;
  for (int64_t i = 0; i < kMostConfigs; ++i)
    found.push_back(configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  int64_t count = 0;
  check(library().get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                CUDNN_TYPE_BACKEND_DESCRIPTOR, kMostConfigs, &count, found.data()),
        "cudnnBackendGetAttribute");

  CudnnRefusal reason("its heuristics propose no engine");
  for (int64_t i = 0; i < std::min(count, kMostConfigs); ++i) {
    try {
      CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configs[static_cast<size_t>(i)]);
      plan.finalize();
      int64_t bytes = 0;
      int64_t number = 0;
      check(library().get_attribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                    CUDNN_TYPE_INT64, 1, &number, &bytes),
            "cudnnBackendGetAttribute");
      return std::make_unique<CudnnPlan>(std::move(plan), static_cast<size_t>(bytes));
    } catch (const CudnnRefusal& refusal) {
      reason = refusal;
    }
  }
  throw reason;
}

}  // namespace flow::ops
