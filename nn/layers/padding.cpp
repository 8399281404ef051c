#include "nn/layers/padding.h"

#include "core/error.h"
#include "nn/layers/option_text.h"

namespace flow::nn {

PaddingBase::PaddingBase(const char* layer, int64_t num_dims, const Ints& padding,
                         PadOptions options, Site site)
    : layer_(layer), num_dims_(num_dims), padding_(padding), options_(std::move(options)) {
  if (padding.size() == 1) {
    padding_ = std::vector<int64_t>(static_cast<size_t>(2 * num_dims), padding[0]);
  } else if (padding.size() != 2 * num_dims) {
    throw InvalidArgument(
        str("[", layer, "] padding must be one number or ", 2 * num_dims, " numbers; received ",
            padding.size(), "; give two for each padded dim"),
        site);
  }
}

std::string PaddingBase::option_text() const {
  std::string amounts = internal::text_of(padding_);
  if (!std::string_view(layer_).starts_with("Constant")) return amounts;
  return "padding=" + amounts + ", value=" + internal::text_of(options_.value);
}

Tensor PaddingBase::padded(const Tensor& x) const {
  if (x.dim() != num_dims_ + 1 && x.dim() != num_dims_ + 2) {
    throw InvalidArgument(str("[", layer_, "] the input must have ", num_dims_,
                              " dims after the channel dim; received ", x.meta(),
                              "; use the layer for its number of dims"));
  }
  return pad(x, padding_, options_);
}

}  // namespace flow::nn
