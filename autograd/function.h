// Custom functions: a user-defined forward and backward that form one node of the graph.
//
//   struct Cube : flow::Function<Cube> {
//     static flow::Tensor forward(flow::FunctionContext& ctx, const flow::Tensor& x) {
//       ctx.save_for_backward({x});
//       return x * x * x;
//     }
//     static std::vector<flow::Tensor> backward(flow::FunctionContext& ctx,
//                                               std::vector<flow::Tensor> dy) {
//       const flow::Tensor x = ctx.saved()[0];
//       return {dy[0] * 3 * x * x};
//     }
//   };
//   flow::Tensor y = Cube::apply(x);
//
// forward takes the context and the arguments of apply(): tensors, vectors of tensors, and values
// of any other type. It returns a tensor or a vector of tensors, and its ops are not recorded.
// backward takes one gradient per output. It returns one gradient per tensor argument (undefined
// means zero), or one per argument, with undefined ones for arguments that are not tensors. A
// gradient of another floating dtype than its argument is cast. Under create_graph the ops of
// backward are recorded, so a backward made of differentiable ops has higher derivatives.
//
// A result may share memory with an argument, as a view or the argument itself does. It must not be
// written in place then, and neither must the argument before the result is used.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/grad_mode.h"
#include "core/tensor.h"

namespace flow {

namespace autograd {
class FunctionNode;
class FunctionCall;
}  // namespace autograd

// The data that forward passes to backward.
class FunctionContext {
 public:
  FunctionContext() = default;
  FunctionContext(const FunctionContext&) = delete;
  FunctionContext& operator=(const FunctionContext&) = delete;

  // In forward: saves tensors that backward reads with saved(). Inputs and outputs keep their
  // history. Always save an output this way: storing it elsewhere in the context makes a reference
  // cycle that is never freed.
  void save_for_backward(const std::vector<Tensor>& tensors) { to_save_ = tensors; }

  // In forward: declares that these outputs get no gradient.
  void mark_non_differentiable(const std::vector<Tensor>& outputs) {
    non_differentiable_ = outputs;
  }

  // In forward: with false, the gradients of unused outputs are undefined in backward; by default
  // they are zeros.
  void set_materialize_grads(bool materialize) { materializes_ = materialize; }

  // Stores one value of any type for backward.
  template <class T>
  void set(T value) {
    value_ = std::make_shared<T>(std::move(value));
    value_type_ = &typeid(T);
  }

  // The value passed to set(). Throws InvalidArgument if it has another type.
  template <class T>
  T& get() const {
    check_value_type(typeid(T));
    return *static_cast<T*>(value_.get());
  }

  // In backward: the tensors passed to save_for_backward. Throws InvalidArgument if one of them was
  // written in place afterwards, or if the graph was freed.
  std::vector<Tensor> saved() const;

  // True if the gradient of the i-th tensor among the arguments is wanted.
  bool needs_input_grad(size_t i) const;

 private:
  friend class autograd::FunctionNode;
  friend class autograd::FunctionCall;

  void check_value_type(const std::type_info& wanted) const;

  std::vector<Tensor> to_save_;
  std::vector<Tensor> non_differentiable_;
  std::vector<bool> inputs_need_grad_;
  bool materializes_ = true;
  std::shared_ptr<void> value_;
  const std::type_info* value_type_ = nullptr;
  autograd::FunctionNode* node_ = nullptr;  // owns this context, once the call is recorded
};

namespace autograd {

using FunctionBackward = std::vector<Tensor> (*)(FunctionContext& ctx, std::vector<Tensor> dy);

// One call of a custom function: collects its tensors, then makes its node.
class FunctionCall {
 public:
  FunctionCall(const std::type_info& type, FunctionBackward backward, Site site);
  ~FunctionCall();
  FunctionCall(const FunctionCall&) = delete;
  FunctionCall& operator=(const FunctionCall&) = delete;

  void add_argument(const Tensor& tensor);
  void add_argument(const std::vector<Tensor>& tensors);

  // An argument of any other type. A TensorArg counts as a tensor.
  template <class T>

  requires(!std::convertible_to<const T&, const Tensor&>)

      void add_argument(const T& /*value*/) {
    is_tensor_.push_back(false);
  }

  FunctionContext& context() { return *context_; }

  // Must be called before forward.
  void begin();
  // Must be called after forward: gives its results their history.
  void finish(std::vector<Tensor>& outputs);

 private:
  const std::type_info& type_;
  FunctionBackward backward_;
  Site site_;
  std::unique_ptr<FunctionContext> context_;
  std::vector<Tensor> inputs_;
  std::vector<bool> is_tensor_;  // one per argument; the tensors of a vector count separately
  std::vector<uint32_t> versions_;
  bool is_recorded_ = false;
};

}  // namespace autograd

template <class Derived>
class Function {
 public:
  // If the first argument is a tensor, errors of backward show the caller's line.
  template <class... Rest>
  static auto apply(const TensorArg& first, Rest&&... rest) {
    return run(first.site(), first.tensor(), std::forward<Rest>(rest)...);
  }

  template <class First, class... Rest>

  requires(!std::convertible_to<First, TensorArg>) static auto apply(First&& first,
                                                                     Rest&&... rest) {
    return run(Site::none(), std::forward<First>(first), std::forward<Rest>(rest)...);
  }

 private:
  template <class... Args>
  static auto run(Site site, Args&&... args) {
    const autograd::FunctionBackward backward = [](FunctionContext& ctx, std::vector<Tensor> dy) {
      return Derived::backward(ctx, std::move(dy));  // which may take a reference
    };
    autograd::FunctionCall call(typeid(Derived), backward, site);
    (call.add_argument(args), ...);
    call.begin();
    auto result = [&] {
      const NoGradGuard no_grad;
      return Derived::forward(call.context(), std::forward<Args>(args)...);
    }();
    if constexpr (std::is_same_v<decltype(result), Tensor>) {
      std::vector<Tensor> outputs = {std::move(result)};
      call.finish(outputs);
      return outputs[0];
    } else {
      static_assert(std::is_same_v<decltype(result), std::vector<Tensor>>,
                    "forward returns a Tensor or a std::vector<Tensor>");
      call.finish(result);
      return result;
    }
  }
};

}  // namespace flow
