// Job functions are written for logical blobs, compiled to the plan of a graph, and run by ranks
// that are threads of this process. The caller is not a rank and sees only Arrays.
//
//   namespace job = flow::job;
//   job::config::device_num("cpu", 2);
//   auto train = job::global_function({.type = "train"},
//       job::Placeholder({100, 784}, flow::float32), job::Placeholder({100}, flow::int32),
//       [](job::Blob images, job::Blob labels) {
//         auto logits = job::layers::dense(images, 10, {.name = "dense"});
//         auto loss = job::sparse_softmax_cross_entropy_with_logits(labels, logits);
//         job::optimizer::SGD({.lr_scheduler = job::PiecewiseConstant({}, {0.1})}).minimize(loss);
//         return loss;
//       });
//   job::CheckPoint().init();
//   flow::Array loss = train(images, labels);  // one loss per sample
//
// Consistent view: a function takes and returns whole arrays; batches (dim 0) are split over the
// devices. Mirrored view: every device runs the function on its own array with its own copy of the
// model, and gradients are averaged over the devices.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "nn/graph_values.h"
#include "nn/job/array.h"

namespace flow::job {

// The values that a job function computes with.
using Blob = Tensor;

enum class View : uint8_t { kConsistent, kMirrored };

constexpr View consistent_view() {
  return View::kConsistent;
}

constexpr View mirrored_view() {
  return View::kMirrored;
}

namespace config {
// Sets how many devices of this machine run the jobs; the default is one CPU device. Must be called
// before the first job runs and before this thread makes tensors, else InvalidArgument. A device
// other than "cpu" is Unsupported.
void device_num(std::string_view device, int64_t count);
// Seeds initial values and dropout. Must be called before the first job runs, else InvalidArgument.
void manual_seed(uint64_t seed);
}  // namespace config

// Ends the ranks of the devices. Variables and the settings made by config:: are lost; functions
// remain. Afterwards this thread may make tensors.
void close();

struct FunctionOptions {
  std::string type = "predict";  // or "train": the function calls an optimizer's minimize
  View default_logical_view = consistent_view();
};

namespace internal {
struct InputSpec {
  Shape shape;
  DType dtype;
};
}  // namespace internal

// An argument in consistent view: an Array of exactly this shape and dtype.
class Placeholder {
 public:
  using Value = Array;
  static constexpr View kView = View::kConsistent;

  Placeholder(const Shape& shape, DType dtype) : spec{shape, dtype} {}

  internal::InputSpec spec;
};

// An argument in mirrored view: one Array of this shape and dtype for each device.
class ListPlaceholder {
 public:
  using Value = std::vector<Array>;
  static constexpr View kView = View::kMirrored;

  ListPlaceholder(const Shape& shape, DType dtype) : spec{shape, dtype} {}

  internal::InputSpec spec;
};

namespace internal {

// A job function without its C++ types.
struct Definition {
  int64_t number = 0;  // in order of definition
  bool is_train = false;
  View view = View::kConsistent;
  std::vector<InputSpec> inputs = {};
  std::function<std::vector<Blob>(const std::vector<Blob>&)> body = {};
};

// Throws InvalidArgument for an unknown type, or if the placeholders are not those of the view.
std::shared_ptr<const Definition> define(const FunctionOptions& options, View placeholders,
                                         Definition definition);

// By argument or result, then by device. In consistent view there is one array for all devices.
using Arrays = std::vector<std::vector<Array>>;

Arrays call(const std::shared_ptr<const Definition>& definition, const Arrays& inputs);

void read_value(const Array& value, Arrays& arrays);
void read_value(const std::vector<Array>& value, Arrays& arrays);

// Maps Blob to Value, and pairs and tuples element by element.
template <class Value, class Returned>
struct ResultOf {
  static_assert(std::is_same_v<Returned, Tensor>,
                "a job function returns a Blob, or a pair or tuple of Blobs");
  using Type = Value;
};

template <class Value, class A, class B>
struct ResultOf<Value, std::pair<A, B>> {
  using Type = std::pair<typename ResultOf<Value, A>::Type, typename ResultOf<Value, B>::Type>;
};

template <class Value, class... T>
struct ResultOf<Value, std::tuple<T...>> {
  using Type = std::tuple<typename ResultOf<Value, T>::Type...>;
};

void write_value(Array& value, Arrays& arrays, size_t& next);
void write_value(std::vector<Array>& value, Arrays& arrays, size_t& next);

template <class Tuple>
void write_value(Tuple& value, Arrays& arrays, size_t& next) {
  std::apply([&](auto&... element) { (write_value(element, arrays, next), ...); }, value);
}

}  // namespace internal

// A callable that takes one Value for each placeholder. Calls from several threads run one after
// another.
template <class Result, class... In>
class JobFunction {
 public:
  explicit JobFunction(std::shared_ptr<const internal::Definition> definition)
      : definition_(std::move(definition)) {}

  // The first call traces, compiles and runs the function; later calls only run it. Throws
  // InvalidArgument, before anything runs, if an array does not have the shape and dtype of its
  // placeholder or if there is not one array per device in mirrored view. Rethrows what the body
  // throws.
  Result operator()(const typename In::Value&... inputs) {
    internal::Arrays arrays;
    (internal::read_value(inputs, arrays), ...);
    internal::Arrays outputs = internal::call(definition_, arrays);
    Result result;
    size_t next = 0;
    internal::write_value(result, outputs, next);
    return result;
  }

 private:
  std::shared_ptr<const internal::Definition> definition_;
};

namespace internal {

template <class Tuple, size_t... I>
auto make_function(const FunctionOptions& options, const Tuple& arguments,
                   std::index_sequence<I...>) {
  using First = std::tuple_element_t<0, Tuple>;
  using Body = std::tuple_element_t<sizeof...(I), Tuple>;
  using Returned =
      std::decay_t<decltype(std::declval<const Body&>()((static_cast<void>(I), Blob())...))>;
  static_assert((std::is_same_v<First, std::tuple_element_t<I, Tuple>> && ...),
                "placeholders are all whole (Placeholder) or all lists (ListPlaceholder)");
  Definition definition;
  (definition.inputs.push_back(std::get<I>(arguments).spec), ...);
  definition.body = [body = std::get<sizeof...(I)>(arguments)](const std::vector<Blob>& inputs) {
    const Returned result = body(inputs[I]...);
    nn::internal::TensorReader reader;
    nn::internal::visit_tensors(result, reader);
    return reader.tensors;
  };
  using Result = typename ResultOf<typename First::Value, Returned>::Type;
  return JobFunction<Result, std::tuple_element_t<I, Tuple>...>(
      define(options, First::kView, std::move(definition)));
}

}  // namespace internal

// global_function(options, placeholders..., body): `body` takes a Blob for each placeholder and
// returns a Blob, or a pair or tuple of Blobs. Every trace calls it on all devices at the same
// time, so what it captures must be thread safe. Random ops, and everything that is not an op,
// behave as in nn::Graph.
template <class... Args>
auto global_function(const FunctionOptions& options, Args... args) {
  static_assert(sizeof...(Args) >= 2, "give at least one placeholder, and the function last");
  return internal::make_function(options, std::tuple<Args...>(std::move(args)...),
                                 std::make_index_sequence<sizeof...(Args) - 1>());
}

}  // namespace flow::job
