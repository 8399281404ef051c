// OpDef: the whole meaning of an op in one struct: shape rule, SBP rule, gradient, cost. Kernels
// are separate (core/kernel.h). Definitions are immutable; the OpTable lists them.
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
#include "core/micro_batch_rules.h"
#include "core/tensor.h"

namespace flow {

struct OpDef;

// What every rule of an op sees: logical metas and attrs, but no values.
class OpContext {
 public:
  OpContext(const OpDef& op, std::span<const MetaPtr> inputs, const void* attrs)
      : op_(op), inputs_(inputs), attrs_(attrs) {}

  const OpDef& op() const { return op_; }

  int num_inputs() const { return static_cast<int>(inputs_.size()); }

  // False for an optional tensor that is not given.
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

// The logical result of a shape rule. Only ops that choose their layout themselves (creation,
// redistribute) set `placement`; otherwise the layout follows from the SBP signature.
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

  // Adds an output with the shape and dtype of input i.
  void add_output_like(int i) { add_output(input(i).shape, input(i).dtype); }

  void add_output(const OutputSpec& spec) { outputs_.push_back(spec); }

  std::span<const OutputSpec> outputs() const { return outputs_; }

 private:
  std::vector<OutputSpec> outputs_;
};

// One legal combination of layouts along one placement axis. The entry of an optional input that is
// not given is B. Two signatures are equal if their layouts are.
struct SbpSignature {
  std::vector<Sbp> inputs;
  std::vector<Sbp> outputs;
  // True if the kernel needs to know where its parts begin in the logical tensors (their
  // local_begin). False if the kernel computes the same from parts whose position is unknown, such
  // as the samples of one micro-batch.
  bool is_positional = false;

  friend bool operator==(const SbpSignature& a, const SbpSignature& b) {
    return a.inputs == b.inputs && a.outputs == b.outputs;
  }
};

// Collects the signatures of a call along one axis. "all B -> all B" is always legal, and the
// library adds it. The shapes are those that remain after outer axes have split (sizes may differ
// by one between ranks).
class SbpContext : public OpContext {
 public:
  SbpContext(const OpDef& op, std::span<const MetaPtr> inputs, const void* attrs,
             std::span<const OutputSpec> outputs, int64_t num_ranks = 0)
      : OpContext(op, inputs, attrs), outputs_(outputs), num_ranks_(num_ranks) {}

  // The number of ranks along the axis. If it is 0, the number is unknown, and only signatures that
  // are true for every number are added.
  int64_t num_ranks() const { return num_ranks_; }

  int num_outputs() const { return static_cast<int>(outputs_.size()); }

  const OutputSpec& output(int i) const { return outputs_[static_cast<size_t>(i)]; }

  // Adds a signature whose kernel does not need the position of its parts.
  void add(std::vector<Sbp> inputs, std::vector<Sbp> outputs) {
    add({std::move(inputs), std::move(outputs), false});
  }

  // Adds a signature whose kernel reads the position of its parts from their metas.
  void add_positional(std::vector<Sbp> inputs, std::vector<Sbp> outputs) {
    add({std::move(inputs), std::move(outputs), true});
  }

  void add(SbpSignature signature) { signatures_.push_back(std::move(signature)); }

  const std::vector<SbpSignature>& signatures() const { return signatures_; }

 private:
  std::span<const OutputSpec> outputs_;
  int64_t num_ranks_;
  std::vector<SbpSignature> signatures_;
};

// The arithmetic of one call on its logical shapes. Memory traffic follows from the metas.
struct Cost {
  double flops = 0;
};

// What a gradient rule sees. Rules are written with public ops, so that recording them gives double
// backward. They never read values.
class GradContext {
 public:
  virtual ~GradContext() = default;
  // The gradient of output i; undefined means zero.
  virtual const Tensor& dy(int i = 0) const = 0;
  // A saved input or output (OpDef::saved_inputs, saved_outputs). Throws InvalidArgument, which
  // names the op, if it has been overwritten in place since.
  virtual Tensor input(int i) const = 0;
  virtual Tensor output(int i = 0) const = 0;
  virtual MetaPtr input_meta(int i) const = 0;  // null for an optional input that is not given
  virtual MetaPtr output_meta(int i = 0) const = 0;
  virtual int num_inputs() const = 0;
  // True if the gradient of input i is needed.
  virtual bool needs(int i) const = 0;
  virtual void set(int i, Tensor dx) = 0;
  virtual const RandomStream& random() const = 0;
  virtual const char* op_name() const = 0;

  template <class A>
  const A& attrs() const {
    return *static_cast<const A*>(raw_attrs());
  }

 protected:
  virtual const void* raw_attrs() const = 0;
};

// How the output of a view op shows the memory of its input: strides, and the offset from the
// input's first element.
struct ViewSpec {
  Strides strides;
  int64_t offset = 0;
};

// What a decompose rule sees: the tensors of the call. The rule computes the outputs with public
// ops.
struct DecomposeContext {
  std::span<const Tensor* const> inputs;
  const void* attrs;
  Site site;
};

using InferFn = void (*)(InferContext& ctx);
using SbpFn = void (*)(SbpContext& ctx);
using GradFn = void (*)(GradContext& ctx);
using CostFn = Cost (*)(const SbpContext& ctx);
// Computes the view on this rank's part; `output` is the output's local shape. Returns false if
// strides cannot express the view; the op's kernel then copies.
using ViewFn = bool (*)(const TensorMeta& input, const Shape& output, const void* attrs,
                        ViewSpec& view);
// Writes `part` into the place of `base` that a view by the op shows, with public ops.
using WriteBackFn = void (*)(const Tensor& base, const Tensor& part, const void* attrs, Site site);
// Computes the outputs with public ops. If `outputs` is null, nothing runs, and the rule returns
// whether decomposing moves less data than the call's best signature, which has to move an input.
using DecomposeFn = bool (*)(const DecomposeContext& ctx, const SbpContext& sbp, Tensor* outputs);

// Values of OpDef::grad, OpDef::sbp and OpDef::write_back that refuse a facet on purpose.
void not_differentiable(GradContext& ctx);
// For an op that computes a gradient: throws Unsupported where that is differentiated again.
void not_twice_differentiable(GradContext& ctx);
void only_broadcast(SbpContext& ctx);
[[noreturn]] void cannot_write_back(const Tensor& base, const Tensor& part, const void* attrs,
                                    Site site);

inline constexpr int kVariadic = -1;

// What an AutocastGuard (autograd/autocast.h) does to the floating inputs of a call. It does not
// change float64 inputs and calls that write in place.
enum class AutocastRule : uint8_t {
  kNone,     // no cast
  kLower,    // cast to the guard's dtype
  kFloat32,  // 16-bit inputs are cast to float32
  kWidest,   // all are cast to the widest dtype among them
};

struct OpDef {
  const char* name;
  int num_inputs = 1;  // kVariadic: any number
  int num_outputs = 1;
  const AttrsDef* attrs = nullptr;  // null: none
  InferFn infer = nullptr;
  SbpFn sbp = nullptr;
  GradFn grad = nullptr;
  CostFn cost = nullptr;  // null: only memory traffic
  ViewFn view = nullptr;
  // Required of ops with a view.
  WriteBackFn write_back = nullptr;
  DecomposeFn decompose = nullptr;
  // Bit i: `grad` reads input / output i.
  uint32_t saved_inputs = 0;
  uint32_t saved_outputs = 0;
  // Bit i: input i is always written in place (optimizer steps); the outputs are these inputs in
  // order.
  uint32_t mutates = 0;
  // The op is elementwise in input 0: the kernel may write output 0 over it, so `op_` exists.
  bool allows_in_place = false;
  // A call does more than compute its outputs, such as printing: no pass of a graph removes it or
  // merges it with an equal one.
  bool has_effect = false;
  // The op draws random numbers: each call gets the next stream of the rank's generator.
  bool is_random = false;
  // The output shape depends on values: traces refuse the op, and global inputs are gathered.
  bool has_data_dependent_shape = false;
  AutocastRule autocast = AutocastRule::kNone;
  // Set if the op takes statistics of its batch.
  MicroBatchRules micro_batch = {};
};

// The name under which users know a call of `op` that writes over its input: "exp_" of exp and of
// exp_scalar, "normal_" of normal_fill.
std::string in_place_name(const OpDef& op);

// All ops by name. The table is built once at start; register_op adds to it before the op's first
// use.
class OpTable {
 public:
  // Throws InvalidArgument if the name is taken or a facet is missing.
  void add(const OpDef& op);
  // Returns null for an unknown name.
  const OpDef* find(std::string_view name) const;

  // All ops in the order of registration.
  const std::vector<const OpDef*>& all() const { return order_; }

 private:
  std::map<std::string, const OpDef*, std::less<>> by_name_;
  std::vector<const OpDef*> order_;
};

}  // namespace flow
