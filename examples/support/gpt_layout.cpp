#include "support/gpt_layout.h"

#include <numeric>

namespace examples {

namespace nn = flow::nn;
namespace sbp = flow::sbp;

GptLayout::GptLayout(const GptLayoutOptions& options) : options_(options) {
  const int64_t per_stage = options.data * options.tensor;
  if (options.stages * per_stage != flow::env::world_size()) {
    throw flow::InvalidArgument(flow::str(
        "[train_gpt] --pp ", options.stages, " --dp ", options.data, " --tp ", options.tensor,
        " needs ", options.stages * per_stage, " ranks; the job has ", flow::env::world_size(),
        "; start as many with flowrun --ranks=threads:N or -n N"));
  }
  if (flow::env::world_size() == 1 && options.device == "cpu") return;
  for (int64_t stage = 0; stage < options.stages; ++stage) {
    std::vector<int64_t> ranks(static_cast<size_t>(per_stage));
    std::iota(ranks.begin(), ranks.end(), stage * per_stage);
    placements_.emplace_back(flow::parse_device_type(options.device),
                             flow::Shape{options.data, options.tensor}, ranks);
  }
}

flow::TensorOptions GptLayout::batch() const {
  flow::TensorOptions layout{.dtype = flow::int64};
  if (is_local()) return layout;
  layout.placement = placements_.front();
  layout.sbp = {sbp::split(0), sbp::broadcast};
  return layout;
}

void GptLayout::lay_out(flow::models::Gpt& model) const {
  if (is_local()) return;
  const int64_t layers = model.blocks.size();
  if (options_.stages > layers) {
    throw flow::InvalidArgument(flow::str("[train_gpt] --pp ", options_.stages,
                                          " is more than one stage a layer; the model has ", layers,
                                          " layers; give at most --pp ", layers));
  }
  const flow::NdSbp whole = flow::NdSbp::broadcast(2);
  const flow::NdSbp rows_cut{sbp::broadcast, sbp::split(0)};
  const flow::NdSbp columns_cut{sbp::broadcast, sbp::split(1)};
  // Each rank has drawn weights of its own; those of rank 0 count.
  model.to_global(flow::Placement(placements_.front().device_type(), {1}, {0}), sbp::broadcast);
  model.to_global(placements_.back(), whole);  // the last norm and the output layer stay there
  model.wte.to_global(placements_.front(), whole);
  model.wpe.to_global(placements_.front(), whole);
  for (int64_t i = 0; i < layers; ++i) {
    const int64_t stage = i * options_.stages / layers;
    const flow::Placement& placement = placements_[static_cast<size_t>(stage)];
    model.blocks[i].to_global(placement, {{"attn.c_[qkv].*", rows_cut},
                                          {"attn.c_proj.weight", columns_cut},
                                          {"mlp.c_fc.*", rows_cut},
                                          {"mlp.c_proj.weight", columns_cut},
                                          {"*", whole}});
    nn::graph_module(model.blocks[i]).set_stage(stage, placement);
  }
}

std::string GptLayout::describe() const {
  return flow::str(options_.stages, options_.stages == 1 ? " stage x " : " stages x ",
                   options_.data, " data parallel x ", options_.tensor, " tensor parallel ranks");
}

}  // namespace examples
