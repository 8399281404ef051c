// Padding layers. `padding` lists the amounts before and after the last dim, then before and after
// the dim before it, and so on; one number stands for all of them. x: (N, C, …) or (C, …) with as
// many spatial dims as the layer's name says; another number of dims is InvalidArgument. The modes
// are those of pad() in ops/shape/concat.h.
#pragma once

#include <string>

#include "nn/module.h"
#include "ops/shape/concat.h"

namespace flow::nn {

// The padding that the layers share, of `num_dims` spatial dims of x, (N, C, …) or (C, …).
class PaddingBase {
 protected:
  PaddingBase(const char* layer, int64_t num_dims, const Ints& padding, PadOptions options,
              Site site);
  Tensor padded(const Tensor& x) const;
  // See ModuleBase::set_extra_repr.
  std::string option_text() const;

 private:
  const char* layer_;
  int64_t num_dims_;
  Ints padding_;
  PadOptions options_;
};

class ConstantPad1d : public Module<ConstantPad1d>, private PaddingBase {
 public:
  ConstantPad1d(const Ints& padding, double value, Site site = Site::here())
      : PaddingBase("ConstantPad1d", 1, padding, {.mode = "constant", .value = value}, site) {
    set_extra_repr(option_text());
  }

  Tensor forward(const Tensor& x) { return padded(x); }
};

class ConstantPad2d : public Module<ConstantPad2d>, private PaddingBase {
 public:
  ConstantPad2d(const Ints& padding, double value, Site site = Site::here())
      : PaddingBase("ConstantPad2d", 2, padding, {.mode = "constant", .value = value}, site) {
    set_extra_repr(option_text());
  }

  Tensor forward(const Tensor& x) { return padded(x); }
};

class ConstantPad3d : public Module<ConstantPad3d>, private PaddingBase {
 public:
  ConstantPad3d(const Ints& padding, double value, Site site = Site::here())
      : PaddingBase("ConstantPad3d", 3, padding, {.mode = "constant", .value = value}, site) {
    set_extra_repr(option_text());
  }

  Tensor forward(const Tensor& x) { return padded(x); }
};

class ZeroPad1d : public Module<ZeroPad1d>, private PaddingBase {
 public:
  explicit ZeroPad1d(const Ints& padding, Site site = Site::here())
      : PaddingBase("ZeroPad1d", 1, padding, {}, site) {
    set_extra_repr(option_text());
  }

  Tensor forward(const Tensor& x) { return padded(x); }
};

class ZeroPad2d : public Module<ZeroPad2d>, private PaddingBase {
 public:
  explicit ZeroPad2d(const Ints& padding, Site site = Site::here())
      : PaddingBase("ZeroPad2d", 2, padding, {}, site) {
    set_extra_repr(option_text());
  }

  Tensor forward(const Tensor& x) { return padded(x); }
};

class ZeroPad3d : public Module<ZeroPad3d>, private PaddingBase {
 public:
  explicit ZeroPad3d(const Ints& padding, Site site = Site::here())
      : PaddingBase("ZeroPad3d", 3, padding, {}, site) {
    set_extra_repr(option_text());
  }

  Tensor forward(const Tensor& x) { return padded(x); }
};

class ReflectionPad1d : public Module<ReflectionPad1d>, private PaddingBase {
 public:
  explicit ReflectionPad1d(const Ints& padding, Site site = Site::here())
      : PaddingBase("ReflectionPad1d", 1, padding, {.mode = "reflect"}, site) {
    set_extra_repr(option_text());
  }

  Tensor forward(const Tensor& x) { return padded(x); }
};

class ReflectionPad2d : public Module<ReflectionPad2d>, private PaddingBase {
 public:
  explicit ReflectionPad2d(const Ints& padding, Site site = Site::here())
      : PaddingBase("ReflectionPad2d", 2, padding, {.mode = "reflect"}, site) {
    set_extra_repr(option_text());
  }

  Tensor forward(const Tensor& x) { return padded(x); }
};

class ReflectionPad3d : public Module<ReflectionPad3d>, private PaddingBase {
 public:
  explicit ReflectionPad3d(const Ints& padding, Site site = Site::here())
      : PaddingBase("ReflectionPad3d", 3, padding, {.mode = "reflect"}, site) {
    set_extra_repr(option_text());
  }

  Tensor forward(const Tensor& x) { return padded(x); }
};

class ReplicationPad1d : public Module<ReplicationPad1d>, private PaddingBase {
 public:
  explicit ReplicationPad1d(const Ints& padding, Site site = Site::here())
      : PaddingBase("ReplicationPad1d", 1, padding, {.mode = "replicate"}, site) {
    set_extra_repr(option_text());
  }

  Tensor forward(const Tensor& x) { return padded(x); }
};

class ReplicationPad2d : public Module<ReplicationPad2d>, private PaddingBase {
 public:
  explicit ReplicationPad2d(const Ints& padding, Site site = Site::here())
      : PaddingBase("ReplicationPad2d", 2, padding, {.mode = "replicate"}, site) {
    set_extra_repr(option_text());
  }

  Tensor forward(const Tensor& x) { return padded(x); }
};

class ReplicationPad3d : public Module<ReplicationPad3d>, private PaddingBase {
 public:
  explicit ReplicationPad3d(const Ints& padding, Site site = Site::here())
      : PaddingBase("ReplicationPad3d", 3, padding, {.mode = "replicate"}, site) {
    set_extra_repr(option_text());
  }

  Tensor forward(const Tensor& x) { return padded(x); }
};

class CircularPad1d : public Module<CircularPad1d>, private PaddingBase {
 public:
  explicit CircularPad1d(const Ints& padding, Site site = Site::here())
      : PaddingBase("CircularPad1d", 1, padding, {.mode = "circular"}, site) {
    set_extra_repr(option_text());
  }

  Tensor forward(const Tensor& x) { return padded(x); }
};

class CircularPad2d : public Module<CircularPad2d>, private PaddingBase {
 public:
  explicit CircularPad2d(const Ints& padding, Site site = Site::here())
      : PaddingBase("CircularPad2d", 2, padding, {.mode = "circular"}, site) {
    set_extra_repr(option_text());
  }

  Tensor forward(const Tensor& x) { return padded(x); }
};

class CircularPad3d : public Module<CircularPad3d>, private PaddingBase {
 public:
  explicit CircularPad3d(const Ints& padding, Site site = Site::here())
      : PaddingBase("CircularPad3d", 3, padding, {.mode = "circular"}, site) {
    set_extra_repr(option_text());
  }

  Tensor forward(const Tensor& x) { return padded(x); }
};

}  // namespace flow::nn
