// OpDef: an op's whole meaning in one struct: shape rule, SBP rule, gradient, cost. Kernels are
// apart (core/kernel.h). Definitions are immutable; the OpTable lists them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attrs.h"
#include "core/error.h"
#include "core/generator.h"
#include "core/tensor.h"

namespace flow {

struct OpDef;

// What every rule of an op sees: logical metas and attrs, never values.
class OpContext {
 public:
  OpContext(const OpDef& op, std::span<const MetaPtr> inputs, const void* attrs)
      : op_(op), inputs_(inputs), attrs_(attrs) {}

  const OpDef& op() const { return op_; }

  int num_inputs() const { return static_cast<int>(inputs_.size()); }

  // False for an optional tensor that was not given.
  bool has_input(int i) const {
    return i < num_inputs() && inputs_[static_cast<size_t>(i)] != nullptr;
  }

  const TensorMeta& input(int i) const;

  std::span<const MetaPtr> inputs() const { return inputs_; }

  template <class A>
  const A& attrs() const {
    return *static_cast<const A*>(attrs_);
  }

  const void* raw_attrs() const { return attrs_; }

  // Throws InvalidArgument `[op] parts…` unless `ok`.
  template <class... Parts>
  void check(bool ok, const Parts&... parts) const {
    if (!ok) [[unlikely]]
      fail(str(parts...));
  }

  [[noreturn]] void fail(const std::string& message) const;

 private:
  const OpDef& op_;
  std::span<const MetaPtr> inputs_;
  const void* attrs_;
};

// The logical result of a shape rule. `placement` is set only by ops that choose their layout
// themselves (creation, redistribute); elsewhere the layout follows from the SBP signature.
struct OutputSpec {
  Shape shape;
  DType dtype = DType::kFloat32;
  Placement placement = {};
  NdSbp nd_sbp = {};
  DeviceType device = DeviceType::kCpu;
  bool has_layout = false;
};

class InferContext : public OpContext {
 public:
  using OpContext::OpContext;

  void add_output(const Shape& shape, DType dtype) { outputs_.push_back({shape, dtype}); }

  // As an input: same shape and dtype.
  void add_output_like(int i) { add_output(input(i).shape, input(i).dtype); }

  void add_output(const OutputSpec& spec) { outputs_.push_back(spec); }

  std::span<const OutputSpec> outputs() const { return outputs_; }

 private:
  std::vector<OutputSpec> outputs_;
};

// One legal combination of layouts along one placement axis. An optional input that is not given
// has the entry B.
struct SbpSignature {
  std::vector<Sbp> inputs;
  std::vector<Sbp> outputs;
  friend bool operator==(const SbpSignature&, const SbpSignature&) = default;
};

// Collects the 1-D signatures of a call; "all B -> all B" is always legal and added by the library.
// The shapes seen are those left after outer axes have split (sizes may differ by one per rank).
class SbpContext : public OpContext {
 public:
  SbpContext(const OpDef& op, std::span<const MetaPtr> inputs, const void* attrs,
             std::span<const OutputSpec> outputs, int64_t num_ranks = 0)
      : OpContext(op, inputs, attrs), outputs_(outputs), num_ranks_(num_ranks) {}

  // Ranks along the axis; 0 where unknown, then only signatures true for every number are added.
  int64_t num_ranks() const { return num_ranks_; }

  int num_outputs() const { return static_cast<int>(outputs_.size()); }

  const OutputSpec& output(int i) const { return outputs_[static_cast<size_t>(i)]; }

  void add(std::vector<Sbp> inputs, std::vector<Sbp> outputs) {
    signatures_.push_back({std::move(inputs), std::move(outputs)});
  }

  const std::vector<SbpSignature>& signatures() const { return signatures_; }

 private:
  std::span<const OutputSpec> outputs_;
  int64_t num_ranks_;
  std::vector<SbpSignature> signatures_;
};

// Arithmetic of one call on its logical shapes; memory traffic follows from the metas.
struct Cost {
  double flops = 0;
};

// What a gradient rule sees. Rules are written with public ops, so recording them again gives
// double backward, and never read values.
class GradContext {
 public:
  virtual ~GradContext() = default;
  // Gradient of output i; undefined stands for zero.
  virtual const Tensor& dy(int i = 0) const = 0;
  // A saved input or output (OpDef::saved_inputs, saved_outputs); throws InvalidArgument naming the
  // op when it was overwritten in place since.
  virtual Tensor input(int i) const = 0;
  virtual Tensor output(int i = 0) const = 0;
  virtual MetaPtr input_meta(int i) const = 0;  // null for an optional input not given
  virtual MetaPtr output_meta(int i = 0) const = 0;
  virtual int num_inputs() const = 0;
  // Whether input i's gradient is wanted.
  virtual bool needs(int i) const = 0;
  virtual void set(int i, Tensor dx) = 0;
  virtual const RandomStream& random() const = 0;

  template <class A>
  const A& attrs() const {
    return *static_cast<const A*>(raw_attrs());
  }

 protected:
  virtual const void* raw_attrs() const = 0;
};

// The memory a view op's output shares: strides and the offset from the input's first element.
struct ViewSpec {
  Strides strides;
  int64_t offset = 0;
};

// What a decompose rule sees: the tensors of the call; it answers with public ops.
struct DecomposeContext {
  std::span<const Tensor* const> inputs;
  const void* attrs;
  Site site;
};

using InferFn = void (*)(InferContext& ctx);
using SbpFn = void (*)(SbpContext& ctx);
using GradFn = void (*)(GradContext& ctx);
using CostFn = Cost (*)(const SbpContext& ctx);
// Of this rank's part: `output` is the output's local shape. False: not expressible, so the op's
// kernel copies.
using ViewFn = bool (*)(const TensorMeta& input, const Shape& output, const void* attrs,
                        ViewSpec& view);
// Gives the outputs by public ops. Asked without outputs (null), before anything runs, it says
// whether that moves less than the call's best signature, which has to move an input.
using DecomposeFn = bool (*)(const DecomposeContext& ctx, const SbpContext& sbp, Tensor* outputs);

// Values of OpDef::grad and OpDef::sbp that say a facet is refused on purpose.
void not_differentiable(GradContext& ctx);
void only_broadcast(SbpContext& ctx);

inline constexpr int kVariadic = -1;

// What an AutocastGuard (autograd/autocast.h) does to the floating inputs of a call. float64 and
// calls that write in place are left alone.
enum class AutocastRule : uint8_t {
  kNone,     // as they are
  kLower,    // cast to the guard's dtype
  kFloat32,  // 16-bit ones are cast to float32
  kWidest,   // cast to the widest among them
};

struct OpDef {
  const char* name;
  int num_inputs = 1;  // kVariadic: any number
  int num_outputs = 1;
  const AttrsDef* attrs = nullptr;  // null: none
  InferFn infer = nullptr;
  SbpFn sbp = nullptr;
  GradFn grad = nullptr;
  CostFn cost = nullptr;  // null: memory traffic only
  ViewFn view = nullptr;
  DecomposeFn decompose = nullptr;
  // Bit i: input / output i is read by `grad`.
  uint32_t saved_inputs = 0;
  uint32_t saved_outputs = 0;
  // Bit i: input i is always written in place (optimizer steps); outputs are these inputs in order.
  uint32_t mutates = 0;
  // Elementwise in input 0: the kernel may write output 0 over it, so `op_` exists.
  bool allows_in_place = false;
  // Draws numbers: the call gets the next stream of the rank's generator.
  bool is_random = false;
  // The shape depends on values: refused in traces; global inputs are gathered.
  bool has_data_dependent_shape = false;
  AutocastRule autocast = AutocastRule::kNone;
};

// All ops by name. Built once at start, extended by register_op before the op's first use.
class OpTable {
 public:
  // Throws InvalidArgument when the name is taken or a facet is missing.
  void add(const OpDef& op);
  // Null when unknown.
  const OpDef* find(std::string_view name) const;

  // In order of registration.
  const std::vector<const OpDef*>& all() const { return order_; }

 private:
  std::map<std::string, const OpDef*, std::less<>> by_name_;
  std::vector<const OpDef*> order_;
};

}  // namespace flow
