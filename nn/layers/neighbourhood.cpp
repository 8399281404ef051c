#include "nn/layers/neighbourhood.h"

namespace flow::nn {

Tensor LocalResponseNorm::forward(const Tensor& x) {
  return local_response_norm(x, size_, options_);
}

Tensor LPPool1d::forward(const Tensor& x) {
  return lp_pool1d(x, norm_type_, kernel_size_, options_);
}

Tensor LPPool2d::forward(const Tensor& x) {
  return lp_pool2d(x, norm_type_, kernel_size_, options_);
}

Tensor LPPool3d::forward(const Tensor& x) {
  return lp_pool3d(x, norm_type_, kernel_size_, options_);
}

Tensor ChannelShuffle::forward(const Tensor& x) {
  return channel_shuffle(x, groups_);
}

}  // namespace flow::nn
