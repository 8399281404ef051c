// Losses.
#include "ops/loss/cross_entropy.h"
#include "ops/loss/ctc_loss.h"
#include "ops/loss/likelihood_loss.h"
#include "ops/loss/loss.h"
#include "ops/loss/margin_loss.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

// The arguments that all losses share. Those of older PyTorch versions are accepted as None.
template <class Options>
Options loss_options(Case& c) {
  Options options;
  c.attrs.read("reduction", options.reduction);
  c.attrs.only("size_average", nullptr);
  c.attrs.only("reduce", nullptr);
  if constexpr (requires { options.weight; }) options.weight = c.named("weight");
  return options;
}

void bind_variants(Bindings& table) {
  table.add("hinge_embedding_loss", [](Case& c) {
    auto options = loss_options<HingeOptions>(c);
    c.attrs.read("margin", options.margin);
    return hinge_embedding_loss(c.in(0), c.in(1), options);
  });
  table.add("cosine_embedding_loss", [](Case& c) {
    auto options = loss_options<CosineEmbeddingOptions>(c);
    c.attrs.read("margin", options.margin);
    return cosine_embedding_loss(c.in(0), c.in(1), c.in(2), options);
  });
  table.add("soft_margin_loss", [](Case& c) {
    return soft_margin_loss(c.in(0), c.in(1), loss_options<SoftMarginOptions>(c));
  });
  table.add("multi_margin_loss", [](Case& c) {
    auto options = loss_options<MultiMarginOptions>(c);
    c.attrs.read("p", options.p);
    c.attrs.read("margin", options.margin);
    return multi_margin_loss(c.in(0), c.in(1), options);
  });
  table.add("multilabel_margin_loss", [](Case& c) {
    return multilabel_margin_loss(c.in(0), c.in(1), loss_options<MultilabelMarginOptions>(c));
  });
  table.add("multilabel_soft_margin_loss", [](Case& c) {
    return multilabel_soft_margin_loss(c.in(0), c.in(1),
                                       loss_options<MultilabelSoftMarginOptions>(c));
  });
  table.add("poisson_nll_loss", [](Case& c) {
    auto options = loss_options<PoissonNllOptions>(c);
    c.attrs.read("log_input", options.log_input);
    c.attrs.read("full", options.full);
    c.attrs.read("eps", options.eps);
    return poisson_nll_loss(c.in(0), c.in(1), options);
  });
  table.add("gaussian_nll_loss", [](Case& c) {
    auto options = loss_options<GaussianNllOptions>(c);
    c.attrs.read("full", options.full);
    c.attrs.read("eps", options.eps);
    return gaussian_nll_loss(c.in(0), c.in(1), c.in(2), options);
  });
  table.add("ctc_loss", [](Case& c) {
    auto options = loss_options<CtcOptions>(c);
    c.attrs.read("blank", options.blank);
    c.attrs.read("zero_infinity", options.zero_infinity);
    return ctc_loss(c.in(0), c.in(1), c.in(2), c.in(3), options);
  });
}

}  // namespace

void bind_losses(Bindings& table) {
  bind_variants(table);
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
