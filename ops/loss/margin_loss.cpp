#include "ops/loss/margin_loss.h"

#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/index/index.h"
#include "ops/linear/similarity.h"
#include "ops/loss/loss_op.h"
#include "ops/named_errors.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

using ops::loss_operand;
using ops::parse_reduction;
using ops::reduced;

// max(0, x)
Tensor positive_part(const TensorArg& x) {
  return clamp(x, {.min = 0});
}

// Reports two operands of a loss that do not fit together.
[[noreturn]] void throw_operands(const char* op, const char* wanted, const TensorArg& input,
                                 const TensorArg& target) {
  throw InvalidArgument(str("[", op, "] takes ", wanted, "; received ", input->meta(), " and ",
                            target->meta(), "; reshape them"),
                        input.site());
}

}  // namespace

Tensor margin_ranking_loss(const TensorArg& a, const TensorArg& b, const TensorArg& target,
                           const MarginOptions& options) {
  return ops::named("margin_ranking_loss", a.site(), [&]() -> Tensor {
    const auto reduction = parse_reduction(options.reduction, "margin_ranking_loss");
    if (a->dim() != b->dim() || a->dim() != target->dim()) {
      throw InvalidArgument(
          str("[margin_ranking_loss] the tensors must have the same number of dims; received ",
              a->meta(), ", ", b->meta(), ", ", target->meta(), "; reshape them"),
          a.site());
    }
    const Tensor difference = sub({loss_operand(a), a.site()}, loss_operand(b));
    const Tensor lead = mul({difference, a.site()}, target);
    const Tensor lack = options.margin - TensorArg(lead, a.site());
    return reduced(clamp({lack, a.site()}, {.min = 0}), reduction, a.site());
  });
}

Tensor hinge_embedding_loss(const TensorArg& input, const TensorArg& target,
                            const HingeOptions& options) {
  return ops::named("hinge_embedding_loss", input.site(), [&]() -> Tensor {
    const Site site = input.site();
    const auto reduction = parse_reduction(options.reduction, "hinge_embedding_loss");
    ops::warn_of_broadcast("hinge_embedding_loss", input, target);
    const Tensor x = loss_operand(input);
    const Tensor lack = positive_part({options.margin - TensorArg(x, site), site});
    const Tensor far = where({ne(target, 1), site}, {lack, site}, 0);
    const Tensor near = where({ne(target, -1), site}, {x, site}, 0);
    return reduced(add({far, site}, near), reduction, site);
  });
}

Tensor cosine_embedding_loss(const TensorArg& a, const TensorArg& b, const TensorArg& target,
                             const CosineEmbeddingOptions& options) {
  return ops::named("cosine_embedding_loss", a.site(), [&]() -> Tensor {
    const Site site = a.site();
    const auto reduction = parse_reduction(options.reduction, "cosine_embedding_loss");
    if (a->dim() != b->dim() || a->dim() != target->dim() + 1 || a->dim() > 2) {
      throw_operands("cosine_embedding_loss", "two (N, D) and a target (N), or (D) and ()", a,
                     target);
    }
    constexpr double kEps = 1e-12;
    const Tensor x = loss_operand(a);
    const Tensor y = loss_operand(b);
    const auto squares = [&](const Tensor& v) {
      return add({sum({square({v, site}), site}, -1), site}, kEps);
    };
    const Tensor product = sum({mul({x, site}, y), site}, -1);
    const Tensor length = sqrt({mul({squares(x), site}, squares(y)), site});
    const Tensor cosine = div({product, site}, length);
    const Tensor near = where({eq(target, 1), site}, {1 - TensorArg(cosine, site), site}, 0);
    const Tensor excess = positive_part({sub({cosine, site}, options.margin), site});
    const Tensor far = where({eq(target, -1), site}, {excess, site}, 0);
    return reduced(add({near, site}, far), reduction, site);
  });
}

Tensor soft_margin_loss(const TensorArg& input, const TensorArg& target,
                        const SoftMarginOptions& options) {
  return ops::named("soft_margin_loss", input.site(), [&]() -> Tensor {
    const Site site = input.site();
    const auto reduction = parse_reduction(options.reduction, "soft_margin_loss");
    ops::warn_of_broadcast("soft_margin_loss", input, target);
    const Tensor x = loss_operand(input);
    const Tensor agreement = mul({x, site}, target);
    const Tensor loss = reduced(neg({logsigmoid({agreement, site}), site}), reduction, site);
    return is_floating(x.dtype()) ? loss.to(x.dtype()) : loss;
  });
}

Tensor multi_margin_loss(const TensorArg& input, const TensorArg& target,
                         const MultiMarginOptions& options) {
  return ops::named("multi_margin_loss", input.site(), [&]() -> Tensor {
    const Site site = input.site();
    const auto reduction = parse_reduction(options.reduction, "multi_margin_loss");
    if (options.p != 1 && options.p != 2) {
      throw InvalidArgument(str("[multi_margin_loss] p is ", options.p, "; give 1 or 2"), site);
    }
    const bool is_batch = input->dim() == 2;
    if (is_batch ? target->dim() != 1 || target->size(0) != input->size(0)
                 : input->dim() > 1 || target->numel() != 1) {
      throw_operands("multi_margin_loss", "(N, C) and classes (N), or (C) and ()", input, target);
    }
    Tensor x = loss_operand(input);
    if (!is_batch) x = reshape({x, site}, {1, x.numel()});
    if (options.weight.defined() && options.weight.shape() != Shape{x.size(1)}) {
      throw InvalidArgument(str("[multi_margin_loss] weight must have one element for each of the ",
                                x.size(1), " classes; received ", options.weight.meta()),
                            site);
    }
    const Tensor classes = reshape(target, {-1});
    const Tensor place = unsqueeze({classes, site}, 1);
    const Tensor own = gather({x, site}, 1, {place, site});
    Tensor lack = positive_part({add({sub({x, site}, own), site}, options.margin), site});
    if (options.p == 2) lack = square({lack, site});
    const Tensor others = scatter({lack, site}, 1, {place, site}, 0);
    Tensor losses = div({sum({others, site}, 1), site}, static_cast<double>(x.size(1)));
    if (options.weight.defined()) {
      losses = mul({losses, site}, index_select({options.weight, site}, 0, {classes, site}));
    }
    return reduced(reshape({losses, site}, target->shape()), reduction, site);
  });
}

Tensor multilabel_margin_loss(const TensorArg& input, const TensorArg& target,
                              const MultilabelMarginOptions& options) {
  return ops::named("multilabel_margin_loss", input.site(), [&]() -> Tensor {
    const Site site = input.site();
    const auto reduction = parse_reduction(options.reduction, "multilabel_margin_loss");
    if (input->dim() > 2 || input->shape() != target->shape()) {
      throw_operands("multilabel_margin_loss", "input and classes (N, C) or (C)", input, target);
    }
    const bool is_batch = input->dim() == 2;
    const auto batched = [&](const Tensor& v) {
      return is_batch ? v : reshape({v, site}, {1, v.numel()});
    };
    const Tensor x = batched(loss_operand(input));
    const Tensor given = batched(target);
    // Entries after the first -1 do not count.
    const Tensor counts = cumprod({cast({ge({given, site}, 0), site}, DType::kInt64), site}, 1);
    const Tensor is_named = gt({counts, site}, 0);
    const Tensor place = mul({given, site}, counts);
    const Tensor votes =
        scatter_add({zeros_like({counts, site}), site}, 1, {place, site}, {counts, site});
    const Tensor is_other = eq({votes, site}, 0);
    const Tensor own = gather({x, site}, 1, {place, site});
    const Tensor lead = sub({unsqueeze({own, site}, 2), site}, unsqueeze({x, site}, 1));
    const Tensor lack = positive_part({1 - TensorArg(lead, site), site});
    const Tensor compared =
        logical_and({unsqueeze({is_named, site}, 2), site}, {unsqueeze({is_other, site}, 1), site});
    const Tensor counted = where({compared, site}, {lack, site}, 0);
    Tensor losses = div({sum({counted, site}, {1, 2}), site}, static_cast<double>(x.size(1)));
    if (!is_batch) losses = squeeze({losses, site}, 0);
    return reduced(losses, reduction, site);
  });
}

Tensor multilabel_soft_margin_loss(const TensorArg& input, const TensorArg& target,
                                   const MultilabelSoftMarginOptions& options) {
  return ops::named("multilabel_soft_margin_loss", input.site(), [&]() -> Tensor {
    const Site site = input.site();
    const auto reduction = parse_reduction(options.reduction, "multilabel_soft_margin_loss");
    const Tensor x = loss_operand(input);
    const Tensor of_class = mul({logsigmoid({x, site}), site}, target);
    const Tensor of_rest =
        mul({logsigmoid({neg({x, site}), site}), site}, 1 - TensorArg(target, site));
    Tensor losses = neg({add({of_class, site}, of_rest), site});
    if (options.weight.defined()) losses = mul({losses, site}, options.weight);
    return reduced(mean({losses, site}, -1), reduction, site);
  });
}

Tensor triplet_margin_loss(const TensorArg& anchor, const TensorArg& positive,
                           const TensorArg& negative, const TripletOptions& options) {
  return ops::named("triplet_margin_loss", anchor.site(), [&]() -> Tensor {
    const Site site = anchor.site();
    const auto reduction = parse_reduction(options.reduction, "triplet_margin_loss");
    const DistanceOptions distance{.p = options.p, .eps = options.eps};
    if (anchor->dim() != positive->dim() || anchor->dim() != negative->dim() ||
        !(options.margin > 0)) {
      throw InvalidArgument(str("[triplet_margin_loss] takes three tensors with the same number of "
                                "dims and a margin ",
                                "above 0; received ", anchor->meta(), ", ", positive->meta(), ", ",
                                negative->meta(), ", margin = ", options.margin),
                            site);
    }
    const Tensor a = loss_operand(anchor), p = loss_operand(positive), n = loss_operand(negative);
    const Tensor near = pairwise_distance({a, site}, p, distance);
    Tensor far = pairwise_distance({a, site}, n, distance);
    if (options.swap) far = minimum({far, site}, pairwise_distance({p, site}, n, distance));
    const Tensor lack = add({sub({near, site}, far), site}, options.margin);
    return reduced(clamp({lack, site}, {.min = 0}), reduction, site);
  });
}

Tensor triplet_margin_with_distance_loss(const TensorArg& anchor, const TensorArg& positive,
                                         const TensorArg& negative,
                                         const TripletDistanceOptions& options) {
  return ops::named("triplet_margin_with_distance_loss", anchor.site(), [&]() -> Tensor {
    const Site site = anchor.site();
    const auto reduction = parse_reduction(options.reduction, "triplet_margin_with_distance_loss");
    const auto distance = [&](const Tensor& a, const Tensor& b) {
      return options.distance_function ? options.distance_function(a, b)
                                       : pairwise_distance({a, site}, b);
    };
    const Tensor near = distance(anchor, positive);
    Tensor far = distance(anchor, negative);
    if (options.swap) far = minimum({far, site}, distance(positive, negative));
    const Tensor lack = add({sub({near, site}, far), site}, options.margin);
    return reduced(positive_part({lack, site}), reduction, site);
  });
}

Tensor combined_margin_loss(const TensorArg& input, const TensorArg& label,
                            const CombinedMarginOptions& options) {
  return ops::named("combined_margin_loss", input.site(), [&]() -> Tensor {
    const Site site = input.site();
    if (!is_floating(input->dtype()) || input->dim() != 2 || label->dim() != 1 ||
        label->size(0) != input->size(0)) {
      throw InvalidArgument(
          str("[combined_margin_loss] takes cosines (N, C) and labels (N); received ",
              input->meta(), " and ", label->meta()),
          site);
    }
    const Tensor index = unsqueeze({label, site}, 1);
    Tensor cosine = gather(input, 1, {index, site});
    // If the angle does not change, acos and its infinite slope at the ends are skipped.
    if (options.m1 != 1 || options.m2 != 0) {
      const Tensor angle = add({mul({acos({cosine, site}), site}, options.m1), site}, options.m2);
      cosine = cos({angle, site});
    }
    return scatter(input, 1, {index, site}, {sub({cosine, site}, options.m3), site});
  });
}

}  // namespace flow
