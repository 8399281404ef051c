// cuDNN's graphs of operations: checks descriptors, and runs the operations one after another.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "core/error.h"
#include "core/float16.h"
#include "emulated_cudnn.h"

using cuda_emulator::cudnn_mistake;
using cuda_emulator::cudnn_refusal;
using cuda_emulator::LibraryObject;
using flow::str;

namespace {

constexpr size_t kDims = 4;
using Dims = std::array<int64_t, kDims>;

constexpr size_t kPlanWorkspace = 4096;

// What a descriptor holds. Others share it, as a caller may destroy a descriptor that it has set as
// an attribute of another one.
struct Node : LibraryObject {
  struct Attribute {
    cudnnBackendAttributeType_t type;
    int64_t count;
    std::vector<std::byte> bytes;
    std::vector<std::shared_ptr<const Node>> nodes;
  };

  cudnnBackendDescriptorType_t type{};
  bool is_finalized = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;
  int config = 0;                     // of an engine configuration
  std::shared_ptr<const Node> graph;  // that it is for

  bool has(cudnnBackendAttributeName_t name) const { return attributes.contains(name); }

  template <class T>
  T value(cudnnBackendAttributeName_t name, size_t index = 0) const {
    T result{};
    std::memcpy(&result, attributes.at(name).bytes.data() + index * sizeof(T), sizeof(T));
    return result;
  }

  const Node& node(cudnnBackendAttributeName_t name) const {
    return *attributes.at(name).nodes.front();
  }

  Dims dims(cudnnBackendAttributeName_t name) const {
    Dims result{};
    for (size_t i = 0; i < kDims; ++i)
      result[i] = value<int64_t>(name, i);
    return result;
  }
};

struct Descriptor {
  std::shared_ptr<Node> node = std::make_shared<Node>();
};

Descriptor& descriptor_of(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<Descriptor*>(descriptor);
}

Node& node_of(cudnnBackendDescriptor_t descriptor) {
  return *descriptor_of(descriptor).node;
}

// ---- which attributes a descriptor has

struct Rule {
  cudnnBackendDescriptorType_t owner;
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int64_t count;  // 0: any number
  bool is_required;
};

constexpr int64_t kAny = 0;
constexpr auto kRef = CUDNN_TYPE_BACKEND_DESCRIPTOR;

constexpr Rule kRules[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, false},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, false},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1,
     true},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1,
     true},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, false},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
     kRef, 1, true},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kRef, 1,
     true},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, kRef, 1,
     false},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, kRef, 1,
     false},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kRef, 1,
     true},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1,
     CUDNN_TYPE_FLOAT, 1, false},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2,
     CUDNN_TYPE_FLOAT, 1, false},
    {CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, true},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_ADESC, kRef, 1, true},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_BDESC, kRef, 1, true},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_CDESC, kRef, 1, true},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_DESC, kRef, 1, true},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1,
     true},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_OPERATOR,
     CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, true},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_DESC, kRef, 1,
     true},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kRef, 1,
     true},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, kRef, 1,
     true},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, kRef, 1, true},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, kRef, 1, true},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, kRef, kAny, true},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
     1, true},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, kRef, 1, true},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1,
     true},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kRef, 1,
     true},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
     kAny, true},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
     CUDNN_TYPE_VOID_PTR, kAny, true},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
     1, true},
};

size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_FLOAT:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_POINTWISE_MODE:
    case CUDNN_TYPE_REDUCTION_OPERATOR_TYPE:
      return 4;
  }
  return 0;
}

// ---- tensors and operations

struct TensorView {
  int64_t id = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Dims size{}, stride{};
  uint64_t alignment = 1;
  bool is_virtual = false, is_number = false;

  explicit TensorView(const Node& node)
      : id(node.value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        type(node.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        size(node.dims(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        stride(node.dims(CUDNN_ATTR_TENSOR_STRIDES)),
        alignment(static_cast<uint64_t>(node.value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT))),
        is_virtual(node.has(CUDNN_ATTR_TENSOR_IS_VIRTUAL) &&
                   node.value<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)),
        is_number(node.has(CUDNN_ATTR_TENSOR_IS_BY_VALUE) &&
                  node.value<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE)) {}

  int64_t extent() const {
    int64_t last = 0;
    for (size_t d = 0; d < kDims; ++d)
      last += (size[d] - 1) * stride[d];
    return last + 1;
  }

  size_t numel() const { return static_cast<size_t>(size[0] * size[1] * size[2] * size[3]); }

  // The element's number in row-major order. Dims of size 1 serve for every index.
  size_t at(const Dims& index) const {
    int64_t number = 0;
    for (size_t d = 0; d < kDims; ++d)
      number = number * size[d] + (size[d] == 1 ? 0 : index[d]);
    return static_cast<size_t>(number);
  }

  // The element's place in memory.
  size_t place(const Dims& index) const {
    int64_t place = 0;
    for (size_t d = 0; d < kDims; ++d)
      place += index[d] * stride[d];
    return static_cast<size_t>(place);
  }
};

template <class Visit>
void for_each_index(const Dims& size, const Visit& visit) {
  Dims i{};
  for (i[0] = 0; i[0] < size[0]; ++i[0])
    for (i[1] = 0; i[1] < size[1]; ++i[1])
      for (i[2] = 0; i[2] < size[2]; ++i[2])
        for (i[3] = 0; i[3] < size[3]; ++i[3])
          visit(i);
}

float rounded(cudnnDataType_t type, float value) {
  if (type == CUDNN_DATA_HALF) return static_cast<float>(flow::Float16(value));
  if (type == CUDNN_DATA_BFLOAT16) return static_cast<float>(flow::BFloat16(value));
  return value;
}

float load(cudnnDataType_t type, const void* memory, size_t i) {
  if (type == CUDNN_DATA_HALF)
    return static_cast<float>(static_cast<const flow::Float16*>(memory)[i]);
  if (type == CUDNN_DATA_BFLOAT16) {
    return static_cast<float>(static_cast<const flow::BFloat16*>(memory)[i]);
  }
  return static_cast<const float*>(memory)[i];
}

void store(cudnnDataType_t type, void* memory, size_t i, float value) {
  if (type == CUDNN_DATA_HALF) {
    static_cast<flow::Float16*>(memory)[i] = flow::Float16(value);
  } else if (type == CUDNN_DATA_BFLOAT16) {
    static_cast<flow::BFloat16*>(memory)[i] = flow::BFloat16(value);
  } else {
    static_cast<float*>(memory)[i] = value;
  }
}

// The attributes in which an operation keeps its tensors: those that it reads, and the result.
struct Roles {
  std::vector<cudnnBackendAttributeName_t> inputs;
  cudnnBackendAttributeName_t output;
};

Roles roles_of(const Node& operation) {
  if (operation.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
    return {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
            CUDNN_ATTR_OPERATION_MATMUL_CDESC};
  }
  if (operation.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
    return {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC}, CUDNN_ATTR_OPERATION_REDUCTION_YDESC};
  }
  if (operation.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
    return {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC}, CUDNN_ATTR_OPERATION_RESHAPE_YDESC};
  }
  Roles roles{{CUDNN_ATTR_OPERATION_POINTWISE_XDESC}, CUDNN_ATTR_OPERATION_POINTWISE_YDESC};
  for (const auto name :
       {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC})
    if (operation.has(name)) roles.inputs.push_back(name);
  return roles;
}

// ---- what finalize checks

cudnnStatus_t check_tensor(const Node& node) {
  const TensorView tensor(node);
  const bool is_positive =
      std::all_of(tensor.size.begin(), tensor.size.end(), [](int64_t size) { return size > 0; }) &&
      std::all_of(tensor.stride.begin(), tensor.stride.end(),
                  [](int64_t stride) { return stride > 0; });
  if (is_positive && tensor.alignment > 0 && !(tensor.is_virtual && tensor.is_number)) {
    return CUDNN_STATUS_SUCCESS;
  }
  return cudnn_mistake(str("cudnnBackendFinalize: tensor ", tensor.id, " is not well formed"));
}

cudnnStatus_t wrong_shape(const char* operation) {
  return cudnn_mistake(str("cudnnBackendFinalize: the shapes of a ", operation, " do not agree"),
                       CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
}

cudnnStatus_t check_matmul(const Node& node) {
  const TensorView a(node.node(CUDNN_ATTR_OPERATION_MATMUL_ADESC));
  const TensorView b(node.node(CUDNN_ATTR_OPERATION_MATMUL_BDESC));
  const TensorView c(node.node(CUDNN_ATTR_OPERATION_MATMUL_CDESC));
  if (node.node(CUDNN_ATTR_OPERATION_MATMUL_DESC).type != CUDNN_BACKEND_MATMUL_DESCRIPTOR) {
    return cudnn_mistake("cudnnBackendFinalize: a product without its descriptor");
  }
  for (const size_t d : {size_t{0}, size_t{1}})
    if (a.size[d] != c.size[d] || b.size[d] != c.size[d]) return wrong_shape("product");
  if (a.size[2] != c.size[2] || b.size[3] != c.size[3] || a.size[3] != b.size[2]) {
    return wrong_shape("product");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_reduction(const Node& node) {
  const TensorView x(node.node(CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
  const TensorView y(node.node(CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
  for (size_t d = 0; d < kDims; ++d)
    if (y.size[d] != 1 && y.size[d] != x.size[d]) return wrong_shape("reduction");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_reshape(const Node& node) {
  const TensorView x(node.node(CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
  const TensorView y(node.node(CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
  return x.extent() == y.extent() ? CUDNN_STATUS_SUCCESS : wrong_shape("reshape");
}

cudnnStatus_t check_pointwise(const Node& node) {
  const Roles roles = roles_of(node);
  const TensorView y(node.node(roles.output));
  for (const auto name : roles.inputs) {
    const TensorView x(node.node(name));
    for (size_t d = 0; d < kDims; ++d)
      if (x.size[d] != 1 && x.size[d] != y.size[d]) return wrong_shape("pointwise operation");
  }
  const auto mode = node.node(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
                        .value<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
  size_t wanted = 2;
  if (mode == CUDNN_POINTWISE_BINARY_SELECT) wanted = 3;
  for (const auto unary : {CUDNN_POINTWISE_EXP, CUDNN_POINTWISE_LOG, CUDNN_POINTWISE_IDENTITY,
                           CUDNN_POINTWISE_GEN_INDEX})
    if (mode == unary) wanted = 1;
  if (roles.inputs.size() != wanted) {
    return cudnn_mistake(str("cudnnBackendFinalize: pointwise mode ", static_cast<int>(mode),
                             " has ", roles.inputs.size(), " operands"));
  }
  for (const auto name :
       {CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2}) {
    if (node.has(name) && node.value<float>(name) != 1) {
      return cudnn_refusal(CUDNN_STATUS_NOT_SUPPORTED, "factors are not emulated");
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

// Every tensor between two operations is the result of one before it is read, and ids are unique.
cudnnStatus_t check_graph(const Node& node) {
  std::set<int64_t> written;
  std::map<int64_t, const Node*> tensors;
  for (const auto& operation : node.attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).nodes) {
    const Roles roles = roles_of(*operation);
    auto names = roles.inputs;
    names.push_back(roles.output);
    for (const auto name : names) {
      const Node& tensor = operation->node(name);
      const TensorView view(tensor);
      const auto [known, is_new] = tensors.try_emplace(view.id, &tensor);
      if (!is_new && known->second != &tensor) {
        return cudnn_mistake(str("cudnnBackendFinalize: two tensors have the id ", view.id));
      }
      const bool is_output = name == roles.output;
      if (!is_output && view.is_virtual && !written.contains(view.id)) {
        return cudnn_mistake(
            str("cudnnBackendFinalize: tensor ", view.id, " is read before it is computed"));
      }
      if (is_output && !written.insert(view.id).second) {
        return cudnn_mistake(str("cudnnBackendFinalize: tensor ", view.id, " is computed twice"));
      }
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_plan(const Node& node) {
  if (node.node(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).config > 0) return CUDNN_STATUS_SUCCESS;
  // The first engine of the heuristics finds at this point that it does not work.
  return cudnn_refusal(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "the first engine refuses");
}

cudnnStatus_t check_pack(const Node& node) {
  if (node.attributes.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).count ==
      node.attributes.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).count) {
    return CUDNN_STATUS_SUCCESS;
  }
  return cudnn_mistake("cudnnBackendFinalize: the numbers of ids and pointers differ");
}

cudnnStatus_t check_node(const Node& node) {
  using Check = cudnnStatus_t (*)(const Node&);
  static const std::map<cudnnBackendDescriptorType_t, Check> checks{
      {CUDNN_BACKEND_TENSOR_DESCRIPTOR, check_tensor},
      {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, check_matmul},
      {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, check_pointwise},
      {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, check_reduction},
      {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, check_reshape},
      {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, check_graph},
      {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, check_plan},
      {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, check_pack},
  };
  const auto found = checks.find(node.type);
  return found != checks.end() ? found->second(node) : CUDNN_STATUS_SUCCESS;
}

// ---- running a graph

// The values of the tensors of a run, in row-major order. The strides of a tensor between
// operations say only how a reshape reads it; they may even overlap.
class Values {
 public:
  explicit Values(std::map<int64_t, void*> memory) : memory_(std::move(memory)) {}

  void set_number(int64_t id, float value) { values_[id] = {value}; }

  const std::vector<float>& read(const TensorView& tensor) {
    const auto [entry, is_new] = values_.try_emplace(tensor.id);
    if (is_new) {
      entry->second.resize(tensor.numel());
      for_each_index(tensor.size, [&](const Dims& i) {
        entry->second[tensor.at(i)] = load(tensor.type, memory_.at(tensor.id), tensor.place(i));
      });
    }
    return entry->second;
  }

  // Calls value(index) for the elements of a tensor.
  template <class Value>
  void write(const TensorView& tensor, const Value& value) {
    std::vector<float> values(tensor.numel());
    for_each_index(tensor.size, [&](const Dims& i) {
      values[tensor.at(i)] = rounded(tensor.type, value(i));
      if (tensor.is_virtual) return;
      store(tensor.type, memory_.at(tensor.id), tensor.place(i), values[tensor.at(i)]);
    });
    values_[tensor.id] = std::move(values);
  }

 private:
  std::map<int64_t, void*> memory_;
  std::map<int64_t, std::vector<float>> values_;
};

void run_matmul(const Node& node, Values& values) {
  const TensorView a(node.node(CUDNN_ATTR_OPERATION_MATMUL_ADESC));
  const TensorView b(node.node(CUDNN_ATTR_OPERATION_MATMUL_BDESC));
  const std::vector<float>& left = values.read(a);
  const std::vector<float>& right = values.read(b);
  values.write(TensorView(node.node(CUDNN_ATTR_OPERATION_MATMUL_CDESC)), [&](const Dims& i) {
    float sum = 0;
    for (int64_t k = 0; k < a.size[3]; ++k)
      sum += left[a.at({i[0], i[1], i[2], k})] * right[b.at({i[0], i[1], k, i[3]})];
    return sum;
  });
}

void run_reduction(const Node& node, Values& values) {
  const TensorView x(node.node(CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
  const TensorView y(node.node(CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
  const bool is_max =
      node.node(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
          .value<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_MAX;
  const std::vector<float>& from = values.read(x);
  std::vector<float> sums(y.numel(), is_max ? -std::numeric_limits<float>::infinity() : 0.F);
  for_each_index(x.size, [&](const Dims& i) {
    float& sum = sums[y.at(i)];
    sum = is_max ? std::max(sum, from[x.at(i)]) : sum + from[x.at(i)];
  });
  values.write(y, [&](const Dims& i) { return sums[y.at(i)]; });
}

void run_pointwise(const Node& node, Values& values) {
  const Node& function = node.node(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  const auto mode = function.value<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
  const auto axis = function.has(CUDNN_ATTR_POINTWISE_AXIS)
                        ? static_cast<size_t>(function.value<int64_t>(CUDNN_ATTR_POINTWISE_AXIS))
                        : 0;
  std::vector<TensorView> operands;
  std::vector<const std::vector<float>*> data;
  for (const auto name : roles_of(node).inputs)
    operands.emplace_back(node.node(name));
  for (const TensorView& operand : operands) {
    // The positions of x do not depend on its values, which nothing has computed.
    data.push_back(mode == CUDNN_POINTWISE_GEN_INDEX ? nullptr : &values.read(operand));
  }
  values.write(TensorView(node.node(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)), [&](const Dims& i) {
    if (mode == CUDNN_POINTWISE_GEN_INDEX) return static_cast<float>(i[axis]);
    const auto operand = [&](size_t k) { return (*data[k])[operands[k].at(i)]; };
    switch (mode) {
      case CUDNN_POINTWISE_ADD:
        return operand(0) + operand(1);
      case CUDNN_POINTWISE_MUL:
        return operand(0) * operand(1);
      case CUDNN_POINTWISE_DIV:
        return operand(0) / operand(1);
      case CUDNN_POINTWISE_SUB:
        return operand(0) - operand(1);
      case CUDNN_POINTWISE_EXP:
        return std::exp(operand(0));
      case CUDNN_POINTWISE_LOG:
        return std::log(operand(0));
      case CUDNN_POINTWISE_CMP_GE:
        return operand(0) >= operand(1) ? 1.F : 0.F;
      case CUDNN_POINTWISE_BINARY_SELECT:
        return operand(2) != 0 ? operand(0) : operand(1);
      case CUDNN_POINTWISE_IDENTITY:
      case CUDNN_POINTWISE_GEN_INDEX:
        break;
    }
    return operand(0);
  });
}

// The same memory with other dims.
void run_reshape(const Node& node, Values& values) {
  const TensorView x(node.node(CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
  const TensorView y(node.node(CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
  const std::vector<float>& from = values.read(x);
  std::vector<float> memory(static_cast<size_t>(x.extent()));
  for_each_index(x.size, [&](const Dims& i) { memory[x.place(i)] = from[x.at(i)]; });
  values.write(y, [&](const Dims& i) { return memory[y.place(i)]; });
}

void run_graph(const Node& graph, Values& values) {
  for (const auto& operation : graph.attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).nodes) {
    if (operation->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
      run_matmul(*operation, values);
    } else if (operation->type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
      run_reduction(*operation, values);
    } else if (operation->type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
      run_reshape(*operation, values);
    } else {
      run_pointwise(*operation, values);
    }
  }
}

// The tensors of a graph that are in memory or numbers.
std::map<int64_t, TensorView> given_tensors(const Node& graph) {
  std::map<int64_t, TensorView> given;
  for (const auto& operation : graph.attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).nodes) {
    const Roles roles = roles_of(*operation);
    auto names = roles.inputs;
    names.push_back(roles.output);
    for (const auto name : names) {
      const TensorView tensor(operation->node(name));
      if (!tensor.is_virtual) given.try_emplace(tensor.id, tensor);
    }
  }
  return given;
}

}  // namespace

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  auto* const made = new Descriptor;
  made->node->type = type;
  *descriptor = made;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Descriptor*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  constexpr auto* kCall = "cudnnBackendSetAttribute";
  Node& node = node_of(descriptor);
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& r) {
    return r.owner == node.type && r.name == name;
  });
  if (node.is_finalized) return cudnn_mistake(str(kCall, ": the descriptor is finalized"));
  if (rule == std::end(kRules) || values == nullptr) {
    return cudnn_mistake(str(kCall, ": descriptor ", static_cast<int>(node.type),
                             " has no attribute ", static_cast<int>(name)));
  }
  if (rule->type != type || count < 1 || (rule->count != kAny && rule->count != count)) {
    return cudnn_mistake(str(kCall, ": attribute ", static_cast<int>(name), " was given ", count,
                             " values of type ", static_cast<int>(type)),
                         CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  }
  Node::Attribute attribute{type, count, {}, {}};
  const auto* const first = static_cast<const std::byte*>(values);
  attribute.bytes.assign(first, first + static_cast<size_t>(count) * bytes_of(type));
  for (int64_t i = 0; type == kRef && i < count; ++i) {
    const auto& other = descriptor_of(static_cast<const cudnnBackendDescriptor_t*>(values)[i]);
    if (!other.node->is_finalized) {
      return cudnn_mistake(str(kCall, ": attribute ", static_cast<int>(name),
                               " is a descriptor that is not finalized"),
                           CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    }
    attribute.nodes.push_back(other.node);
  }
  node.attributes[name] = std::move(attribute);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Node& node = node_of(descriptor);
  for (const Rule& rule : kRules) {
    if (rule.owner != node.type || !rule.is_required || node.has(rule.name)) continue;
    return cudnn_mistake(str("cudnnBackendFinalize: descriptor ", static_cast<int>(node.type),
                             " lacks attribute ", static_cast<int>(rule.name)));
  }
  const cudnnStatus_t status = check_node(node);
  node.is_finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested,
                                       int64_t* count, void* values) {
  constexpr auto* kCall = "cudnnBackendGetAttribute";
  const Node& node = node_of(descriptor);
  if (!node.is_finalized) {
    return cudnn_mistake(str(kCall, ": the descriptor is not finalized"),
                         CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  }
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64 &&
      node.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && requested >= 1) {
    const auto bytes = static_cast<int64_t>(kPlanWorkspace);
    std::memcpy(values, &bytes, sizeof(bytes));
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  }
  if (name != CUDNN_ATTR_ENGINEHEUR_RESULTS || type != kRef ||
      node.type != CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) {
    return cudnn_mistake(str(kCall, ": attribute ", static_cast<int>(name), " cannot be read"));
  }
  constexpr int64_t kEngines = 2;
  *count = std::min(requested, kEngines);
  for (int64_t i = 0; i < *count; ++i) {
    Node& config = node_of(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
    if (config.type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) {
      return cudnn_mistake(str(kCall, ": the results are no engine configurations"));
    }
    config.config = static_cast<int>(i);
    config.graph = node.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).nodes.front();
    config.is_finalized = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  constexpr auto* kCall = "cudnnBackendExecute";
  if (handle == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  handle->check_user(kCall);
  if (!node_of(plan).is_finalized || !node_of(pack).is_finalized) {
    return cudnn_mistake(str(kCall, ": the plan or the pack is not finalized"),
                         CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  }
  const std::shared_ptr<const Node> graph =
      node_of(plan).node(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).graph;
  const Node& given = node_of(pack);
  const int64_t count = given.attributes.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).count;
  std::map<int64_t, void*> memory;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    memory[given.value<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, at)] =
        given.value<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, at);
  }
  std::map<int64_t, float> numbers;
  for (const auto& [id, tensor] : given_tensors(*graph)) {
    const auto found = memory.find(id);
    if (found == memory.end()) {
      return cudnn_mistake(str(kCall, ": tensor ", id, " has no memory"));
    }
    const size_t bytes = static_cast<size_t>(tensor.extent()) * cuda_emulator::size_of(tensor.type);
    if (tensor.is_number) {
      std::memcpy(&numbers[id], found->second, sizeof(float));
    } else if (reinterpret_cast<uintptr_t>(found->second) % tensor.alignment != 0 ||
               !cuda_emulator::is_allocated(found->second, bytes)) {
      return cudnn_mistake(str(kCall, ": tensor ", id, " is not aligned, or not in device memory"));
    }
  }
  auto* const workspace = given.value<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (!cuda_emulator::is_allocated(workspace, kPlanWorkspace)) {
    return cudnn_mistake(str(kCall, ": the workspace is not in device memory"));
  }
  cuda_emulator::count_call(&cuda_emulator::LibraryCalls::graphs);
  const cudaError_t error = cuda_emulator::enqueue(handle->stream, [=] {
    std::memset(workspace, 0xff, kPlanWorkspace);
    Values values(memory);
    for (const auto& [id, number] : numbers)
      values.set_number(id, number);
    run_graph(*graph, values);
  });
  return error == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

std::vector<cuda_emulator::LibraryFunction> cuda_emulator::cudnn_graph_functions() {
#define EMULATED_CUDNN(name) library_function("cudnn" #name, cudnn##name)
  return {EMULATED_CUDNN(BackendCreateDescriptor), EMULATED_CUDNN(BackendDestroyDescriptor),
          EMULATED_CUDNN(BackendSetAttribute),     EMULATED_CUDNN(BackendGetAttribute),
          EMULATED_CUDNN(BackendFinalize),         EMULATED_CUDNN(BackendExecute)};
#undef EMULATED_CUDNN
}
