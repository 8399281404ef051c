#include "tests/support/raw_call.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/context.h"
#include "core/dispatch.h"
#include "eager/runtime.h"

namespace flow::contract {

namespace {

// Global tensors are not changed: on one rank, their part is the whole tensor.
Tensor copy_of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return make_guarded(with_strides(tensor.meta_ptr(), contiguous_strides(tensor.shape())),
                      read_values(tensor));
}

// Records the calls of one op before they are carried out.
class Capture final : public Interpreter {
 public:
  explicit Capture(std::string_view op)
      : op_(op), inner_(std::exchange(thread_state().interpreter, this)) {}

  ~Capture() override { thread_state().interpreter = inner_; }

  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void run(const Call& call, const Decision& decision, Tensor* outputs) override {
    if (call.op.name == op_) {
      RawCall raw{.op = &call.op, .mutates = call.mutates, .random = call.random};
      for (const Tensor* input : call.inputs)
        raw.inputs.push_back(copy_of(*input));
      raw.attrs = call.copy_attrs();
      calls_.push_back(std::move(raw));
    }
    inner_->run(call, decision, outputs);
  }

  void replace(const Tensor& target, const Tensor& value) override {
    inner_->replace(target, value);
  }

  uint32_t version_of(const Tensor& tensor) override { return inner_->version_of(tensor); }

  std::vector<RawCall> take() { return std::move(calls_); }

 private:
  std::string_view op_;
  Interpreter* inner_;
  std::vector<RawCall> calls_;
};

TensorView view_of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {tensor.impl().data(), tensor.meta_ptr()};
}

// Makes a view as the interpreter does; empty if the op must copy.
std::optional<Tensor> make_view(const RawCall& call, const Tensor& input, MetaPtr output) {
  ViewSpec view;
  if (!call.op->view(input.meta(), output->local_shape, call.attrs_data(), view)) return {};
  return Tensor::make(with_strides(output, view.strides), input.impl().storage,
                      input.impl().offset + view.offset);
}

}  // namespace

std::vector<RawCall> capture(const OpSample& sample, const Inputs& inputs) {
  manual_seed(1);
  Capture guard(sample.op);
  sample.call(inputs);
  return guard.take();
}

RawCall capture_first(const OpSample& sample, DType dtype, uint64_t seed) {
  std::vector<RawCall> calls = capture(sample, make_inputs(sample, dtype, seed));
  if (calls.empty()) throw InternalError(describe(sample) + " does not dispatch its op");
  return std::move(calls.front());
}

std::vector<OutputSpec> infer_outputs(const RawCall& call, std::span<const MetaPtr> inputs) {
  InferContext ctx(*call.op, inputs, call.attrs_data());
  call.op->infer(ctx);
  return {ctx.outputs().begin(), ctx.outputs().end()};
}

std::vector<MetaPtr> metas_of(const Inputs& inputs) {
  std::vector<MetaPtr> metas;
  for (const Tensor& input : inputs)
    metas.push_back(input.defined() ? input.meta_ptr() : nullptr);
  return metas;
}

std::vector<MetaPtr> local_outputs(const RawCall& call) {
  std::vector<MetaPtr> metas;
  for (const OutputSpec& spec : infer_outputs(call, metas_of(call.inputs)))
    metas.push_back(local_meta(spec.shape, spec.dtype, spec.device));
  return metas;
}

std::vector<Tensor> dispatch_again(const RawCall& call, const Inputs& inputs) {
  manual_seed(kDrawSeed);
  return dispatch_unseeded(call, inputs);
}

std::vector<Tensor> dispatch_unseeded(const RawCall& call, const Inputs& inputs) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs)
    pointers.push_back(&input);
  Call again{*call.op, pointers, call.attrs_data(), Site::here(), call.mutates};
  const size_t num_outputs = call.op->num_outputs == kVariadic
                                 ? infer_outputs(call, metas_of(inputs)).size()
                                 : static_cast<size_t>(call.op->num_outputs);
  std::vector<Tensor> outputs(num_outputs);
  dispatch(again, outputs.data());
  return outputs;
}

std::optional<std::vector<Tensor>> run_kernel(const RawCall& call, const Inputs& inputs,
                                              std::span<const MetaPtr> output_metas,
                                              const KernelRun& run) {
  if (run.uses_views && call.op->view != nullptr && call.mutates == 0) {
    if (auto view = make_view(call, inputs[0], output_metas[0])) {
      return std::vector<Tensor>{std::move(*view)};
    }
  }
  const std::vector<MetaPtr> input_metas = metas_of(inputs);
  std::vector<MetaPtr> metas(output_metas.begin(), output_metas.end());
  std::vector<Tensor> outputs;
  for (uint32_t left = call.mutates; left != 0; left &= left - 1)
    outputs.push_back(inputs[static_cast<size_t>(std::countr_zero(left))]);
  for (size_t i = 0; i < outputs.size(); ++i)
    metas[i] = outputs[i].meta_ptr();

  const KernelQuery query{*call.op, input_metas, metas, call.attrs_data()};
  const KernelChoice choice = run.kernel != nullptr
                                  ? run.kernel->select(query)
                                  : kernel_table().select(query, DeviceType::kCpu);
  if (choice.fn == nullptr) return {};
  if (outputs.empty()) {
    for (const MetaPtr meta : choice.outputs.empty() ? metas : choice.outputs) {
      if (meta->blocked == nullptr) {
        outputs.push_back(make_guarded(meta, run.fill));
      } else {
        outputs.push_back(Tensor::make(
            meta, Storage::allocate(thread_state().context->allocator(), meta->local_bytes())));
        std::memset(outputs.back().impl().data(), std::to_integer<int>(run.fill.floats),
                    meta->local_bytes());
      }
    }
  }
  std::vector<TensorView> input_views;
  std::vector<TensorView> output_views;
  for (const Tensor& input : inputs)
    input_views.push_back(view_of(input));
  for (const Tensor& output : outputs)
    output_views.push_back(view_of(output));
  RankContext& rank = run.rank != nullptr ? *run.rank : *thread_state().context;
  choice.fn({input_views, output_views, call.attrs_data(), choice.state.get(), call.random, rank});
  for (const Tensor& output : outputs) {
    if (output.meta().blocked != nullptr) {
      output.make_strided();
    } else if (run.checks_guards && call.mutates == 0) {
      FLOW_ASSERT(guards_intact(output, run.fill), call.op->name,
                  " wrote outside of an output; it is ", output.meta());
    }
  }
  return outputs;
}

std::vector<const KernelDef*> kernels_to_try(const RawCall& call) {
  std::vector<const KernelDef*> kernels = {nullptr};
  for (const KernelDef& kernel : kernel_table().kernels(*call.op, DeviceType::kCpu))
    kernels.push_back(&kernel);
  return kernels;
}

const KernelDef& reference_kernel(const OpDef& op) {
  for (const KernelDef& kernel : kernel_table().kernels(op, DeviceType::kCpu)) {
    if (kernel.name == std::string_view("reference")) return kernel;
  }
  throw InternalError(str(op.name, " has no reference kernel"));
}

}  // namespace flow::contract
