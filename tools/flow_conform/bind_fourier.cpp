// Fourier transforms, and complex numbers as real tensors.
#include "ops/fft/complex.h"
#include "ops/fft/fft.h"
#include "ops/fft/stft.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

using OneDim = Tensor (*)(const TensorArg&, const fft::FftOptions&);
using SeveralDims = Tensor (*)(const TensorArg&, const fft::FftnOptions&);
using TwoDims = Tensor (*)(const TensorArg&, const fft::Fft2Options&);

void bind_one(Bindings& table, const char* name, OneDim function) {
  table.add(name, [function](Case& c) {
    fft::FftOptions options;
    c.attrs.read("n", options.n);
    c.attrs.read("dim", options.dim);
    c.attrs.read("norm", options.norm);
    return function(c.in(0), options);
  });
}

void bind_several(Bindings& table, const char* name, SeveralDims function) {
  table.add(name, [function](Case& c) {
    fft::FftnOptions options;
    c.attrs.read("s", options.s);
    c.attrs.read("dim", options.dim);
    c.attrs.read("norm", options.norm);
    return function(c.in(0), options);
  });
}

void bind_two(Bindings& table, const char* name, TwoDims function) {
  table.add(name, [function](Case& c) {
    fft::Fft2Options options;
    c.attrs.read("s", options.s);
    c.attrs.read("dim", options.dim);
    c.attrs.read("norm", options.norm);
    return function(c.in(0), options);
  });
}

void bind_transforms(Bindings& table) {
  bind_one(table, "fft", fft::fft);
  bind_one(table, "ifft", fft::ifft);
  bind_one(table, "rfft", fft::rfft);
  bind_one(table, "irfft", fft::irfft);
  bind_one(table, "hfft", fft::hfft);
  bind_one(table, "ihfft", fft::ihfft);
  bind_several(table, "fftn", fft::fftn);
  bind_several(table, "ifftn", fft::ifftn);
  bind_several(table, "rfftn", fft::rfftn);
  bind_several(table, "irfftn", fft::irfftn);
  bind_several(table, "hfftn", fft::hfftn);
  bind_several(table, "ihfftn", fft::ihfftn);
  bind_two(table, "hfft2", fft::hfft2);
  bind_two(table, "ihfft2", fft::ihfft2);
  bind_two(table, "fft2", fft::fft2);
  bind_two(table, "ifft2", fft::ifft2);
  bind_two(table, "rfft2", fft::rfft2);
  bind_two(table, "irfft2", fft::irfft2);
}

void bind_frequencies(Bindings& table) {
  for (const char* name : {"fftfreq", "rfftfreq"}) {
    table.add(name, [](Case& c) {
      const auto n = c.attrs.get<int64_t>("n");
      const auto d = c.attrs.get<double>("d", 1);
      const TensorOptions options{.dtype = c.floating()};
      return c.op() == "fftfreq" ? fft::fftfreq(n, d, options) : fft::rfftfreq(n, d, options);
    });
  }
  for (const char* name : {"fftshift", "ifftshift"}) {
    table.add(name, [](Case& c) {
      fft::ShiftOptions options;
      c.attrs.read("dim", options.dim);
      c.attrs.read("is_complex", options.is_complex);
      return c.op() == "fftshift" ? fft::fftshift(c.in(0), options)
                                  : fft::ifftshift(c.in(0), options);
    });
  }
}

void bind_complex(Bindings& table) {
  table.add("complex", [](Case& c) {
    return c.num_inputs() == 1 ? fft::complex(c.in(0)) : fft::complex(c.in(0), c.in(1));
  });
  table.add("polar", [](Case& c) { return fft::polar(c.in(0), c.in(1)); });
  table.add("real", [](Case& c) { return fft::real(c.in(0)); });
  table.add("imag", [](Case& c) { return fft::imag(c.in(0)); });
  table.add("conj", [](Case& c) { return fft::conj(c.in(0)); });
  table.add("angle", [](Case& c) { return fft::angle(c.in(0)); });
  table.add("fft_abs", [](Case& c) { return fft::abs(c.in(0)); });
  table.add("fft_mul", [](Case& c) { return fft::mul(c.in(0), c.in(1)); });
}

template <class Options>
Options windows_of(Case& c) {
  Options options;
  c.attrs.read("hop_length", options.hop_length);
  c.attrs.read("win_length", options.win_length);
  options.window = c.named("window");
  c.attrs.read("center", options.center);
  c.attrs.read("normalized", options.normalized);
  c.attrs.read("onesided", options.onesided);
  return options;
}

void bind_short_windows(Bindings& table) {
  table.add("stft", [](Case& c) {
    auto options = windows_of<StftOptions>(c);
    c.attrs.read("pad_mode", options.pad_mode);
    return stft(c.in(0), c.attrs.get<int64_t>("n_fft"), options);
  });
  table.add("istft", [](Case& c) {
    auto options = windows_of<IstftOptions>(c);
    c.attrs.read("length", options.length);
    return istft(c.in(0), c.attrs.get<int64_t>("n_fft"), options);
  });
}

}  // namespace

void bind_fourier(Bindings& table) {
  bind_transforms(table);
  bind_frequencies(table);
  bind_complex(table);
  bind_short_windows(table);
}

}  // namespace flow::conform
