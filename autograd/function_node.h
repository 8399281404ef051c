// The node of a custom function.
#pragma once

#include <string>

#include "autograd/function.h"
#include "autograd/node.h"
#include "autograd/saved_tensor.h"

namespace flow::autograd {

class FunctionNode final : public Node {
 public:
  // The role of a saved tensor in the call.
  enum class Role { kInput, kOutput, kIntermediate };

  struct Saved {
    SavedTensor tensor;
    Role role;
    uint32_t index;  // index of the input or output
  };

  FunctionNode(const Block& block, const NodeScope& scope, std::string name,
               FunctionBackward backward, std::unique_ptr<FunctionContext> context,
               std::vector<bool> is_tensor);

  const char* name() const override { return name_.c_str(); }

  bool is_custom() const override { return true; }

  void apply(const Tensor* dy, Tensor* dx) override;
  void free_saved() override;

  void save(Saved saved) { saved_.push_back(std::move(saved)); }

  std::vector<Tensor> saved() const;

  using Node::number;

 private:
  void check_number_of_gradients(size_t given) const;
  // Moves what backward returned to the gradients of the edges.
  void place_gradients(std::vector<Tensor>& given, Tensor* dx) const;

  std::string name_;
  const Autocaster* autocast_ = thread_state().autocast;  // autocast of the forward
  FunctionBackward backward_;
  std::unique_ptr<FunctionContext> context_;
  std::vector<bool> is_tensor_;
  std::vector<Saved> saved_;
};

}  // namespace flow::autograd
