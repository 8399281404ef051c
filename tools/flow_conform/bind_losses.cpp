// Losses.
#include "ops/cross_entropy.h"
#include "ops/loss.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

// What all losses share; the arguments of older PyTorch may stand there as None.
template <class Options>
Options loss_options(Case& c) {
  Options options;
  c.attrs.read("reduction", options.reduction);
  c.attrs.only("size_average", nullptr);
  c.attrs.only("reduce", nullptr);
  if constexpr (requires { options.weight; }) options.weight = c.named("weight");
  return options;
}

}  // namespace

void bind_losses(Bindings& table) {
  table.add("mse_loss",
            [](Case& c) { return mse_loss(c.in(0), c.in(1), loss_options<LossOptions>(c)); });
  table.add("l1_loss",
            [](Case& c) { return l1_loss(c.in(0), c.in(1), loss_options<LossOptions>(c)); });
  table.add("smooth_l1_loss", [](Case& c) {
    auto options = loss_options<SmoothL1Options>(c);
    c.attrs.read("beta", options.beta);
    return smooth_l1_loss(c.in(0), c.in(1), options);
  });
  table.add("huber_loss", [](Case& c) {
    auto options = loss_options<HuberOptions>(c);
    c.attrs.read("delta", options.delta);
    return huber_loss(c.in(0), c.in(1), options);
  });
  table.add({"bce", "binary_cross_entropy"}, [](Case& c) {
    return binary_cross_entropy(c.in(0), c.in(1), loss_options<BceOptions>(c));
  });
  table.add({"bce_with_logits", "binary_cross_entropy_with_logits"}, [](Case& c) {
    auto options = loss_options<BceWithLogitsOptions>(c);
    options.pos_weight = c.named("pos_weight");
    return binary_cross_entropy_with_logits(c.in(0), c.in(1), options);
  });
  table.add("kl_div", [](Case& c) {
    auto options = loss_options<KlDivOptions>(c);
    c.attrs.read("log_target", options.log_target);
    return kl_div(c.in(0), c.in(1), options);
  });
  table.add("margin_ranking_loss", [](Case& c) {
    auto options = loss_options<MarginOptions>(c);
    c.attrs.read("margin", options.margin);
    return margin_ranking_loss(c.in(0), c.in(1), c.in(2), options);
  });
  table.add("triplet_margin_loss", [](Case& c) {
    auto options = loss_options<TripletOptions>(c);
    c.attrs.read("margin", options.margin);
    c.attrs.read("p", options.p);
    c.attrs.read("eps", options.eps);
    c.attrs.read("swap", options.swap);
    return triplet_margin_loss(c.in(0), c.in(1), c.in(2), options);
  });
  table.add("nll_loss", [](Case& c) {
    auto options = loss_options<NllLossOptions>(c);
    c.attrs.read("ignore_index", options.ignore_index);
    return nll_loss(c.in(0), c.in(1), options);
  });
  table.add("cross_entropy", [](Case& c) {
    auto options = loss_options<CrossEntropyOptions>(c);
    c.attrs.read("ignore_index", options.ignore_index);
    c.attrs.read("label_smoothing", options.label_smoothing);
    return cross_entropy(c.in(0), c.in(1), options);
  });
}

}  // namespace flow::conform
