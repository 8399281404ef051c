#include "ops/fft/complex.h"

#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/named_errors.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow::fft {

namespace {

// Real or imaginary parts; part 0 or 1.
Tensor part(const TensorArg& z, int64_t index, const char* function) {
  if (z->dim() < 1 || z->shape().back() != 2 || !is_floating(z->dtype())) {
    throw InvalidArgument(str("[", function,
                              "] takes complex numbers as floating tensors (…, 2); "
                              "received ",
                              z->meta()),
                          z.site());
  }
  return select(z, -1, index);
}

}  // namespace

Tensor complex(const TensorArg& real, const TensorArg& imag) {
  return ops::named("complex", real.site(), [&]() -> Tensor {
    if (!is_floating(real->dtype()) || (imag.defined() && imag->dtype() != real->dtype())) {
      throw InvalidArgument(
          str("[complex] takes floating tensors of one dtype; received ", real->meta(),
              imag.defined() ? str(" and ", imag->meta()) : std::string(), "; cast them"));
    }
    if (!imag.defined()) return stack({real, zeros_like(real)}, -1);
    const Shape shape = broadcast_shapes(real->shape(), imag->shape(), "complex");
    return stack({expand(real, shape), expand(imag, shape)}, -1);
  });
}

Tensor polar(const TensorArg& abs, const TensorArg& angle) {
  return ops::named("polar", abs.site(), [&]() -> Tensor {
    if (!is_floating(abs->dtype()) || !is_floating(angle->dtype())) {
      throw InvalidArgument(str("[polar] takes floating tensors; received ", abs->meta(), " and ",
                                angle->meta(), "; cast them"));
    }
    return complex(flow::mul(abs, cos(angle)), flow::mul(abs, sin(angle)));
  });
}

Tensor real(const TensorArg& z) {
  return ops::named("real", z.site(), [&]() -> Tensor { return part(z, 0, "real"); });
}

Tensor imag(const TensorArg& z) {
  return ops::named("imag", z.site(), [&]() -> Tensor { return part(z, 1, "imag"); });
}

Tensor conj(const TensorArg& z) {
  return ops::named("conj", z.site(), [&]() -> Tensor {
    return stack({part(z, 0, "conj"), neg(part(z, 1, "conj"))}, -1);
  });
}

Tensor abs(const TensorArg& z) {
  return ops::named("abs", z.site(), [&]() -> Tensor {
    part(z, 0, "abs");
    return vector_norm(z, {.ord = 2, .dim = Ints(-1)});
  });
}

Tensor angle(const TensorArg& z) {
  return ops::named("angle", z.site(), [&]() -> Tensor {
    const Tensor re = part(z, 0, "angle"), im = part(z, 1, "angle");
    // At 0 the gradient is 0, and the value depends on the signs of the zeros.
    const Tensor is_zero = logical_and(eq(re, 0), eq(im, 0));
    return where(is_zero, atan2(im.detach(), re.detach()),
                 atan2(masked_fill(im, is_zero, 0), masked_fill(re, is_zero, 1)));
  });
}

Tensor mul(const TensorArg& a, const TensorArg& b) {
  return ops::named("mul", a.site(), [&]() -> Tensor {
    const Tensor a_re = part(a, 0, "mul"), a_im = part(a, 1, "mul");
    const Tensor b_re = part(b, 0, "mul"), b_im = part(b, 1, "mul");
    return complex(sub(flow::mul(a_re, b_re), flow::mul(a_im, b_im)),
                   flow::add(flow::mul(a_re, b_im), flow::mul(a_im, b_re)));
  });
}

}  // namespace flow::fft
