"""Fourier transforms, and complex numbers as real tensors."""

import torch

from op_case import add, f32, ints, kwargs_named, mask, pos, r
from op_refusals import refuse


def complex_of(x):
    return torch.view_as_complex(x.contiguous())


def from_complex(function):
    """The function of a complex tensor, for its real form."""
    return lambda x, **attrs: function(complex_of(x), **attrs)


def to_complex(function):
    """The real form of the function's complex result."""
    def call(*args, **attrs):
        return torch.view_as_real(function(*args, **attrs).resolve_conj()).contiguous()
    return call


def lines():
    forms = {"fft": lambda f: to_complex(from_complex(f)), "ifft": lambda f: to_complex(from_complex(f)),
             "rfft": to_complex, "ihfft": to_complex, "irfft": from_complex, "hfft": from_complex}
    for op, form in forms.items():
        call = form(getattr(torch.fft, op))
        parts = [] if op in ("rfft", "ihfft") else [2]
        for shape in [[5], [3, 8], [2, 6, 3]]:
            add(op, r(*shape, *parts), call)
            for dim in [0, len(shape) - 1, -len(shape)]:
                add(op, r(*shape, *parts), call, dim=dim)
        for n in [4, 7, 11]:
            add(op, r(3, 6, *parts), call, n=n)
        for norm in ["backward", "ortho", "forward"]:
            for n in [6, 9]:
                add(op, r(5, *parts), call, n=n, norm=norm)
        add(op, r(37, *parts), call, dim=0)
        refuse(op, r(3, *parts), call, n=0)
        refuse(op, r(3, *parts), call, dim=1)
        refuse(op, r(3, *parts), call, norm="half")


def planes():
    forms = {"fft": lambda f: to_complex(from_complex(f)), "ifft": lambda f: to_complex(from_complex(f)),
             "rfft": to_complex, "irfft": from_complex, "hfft": from_complex, "ihfft": to_complex}
    for word, form in forms.items():
        parts = [] if word in ("rfft", "ihfft") else [2]
        for op in [word + "2", word + "n"]:
            call = form(getattr(torch.fft, op))
            add(op, r(3, 4, 5, *parts), call)
            add(op, r(4, 3, *parts), call, s=[3, 5])
            add(op, r(4, 3, *parts), call, s=[-1, 6])
            add(op, r(2, 4, 3, *parts), call, dim=[0, 1])
            add(op, r(2, 4, 3, *parts), call, dim=[-1, 0], s=[4, 5])
            for norm in ["ortho", "forward"]:
                add(op, r(4, 5, *parts), call, norm=norm)
            refuse(op, r(4, 5, *parts), call, dim=[0, 0])
            refuse(op, r(4, 5, *parts), call, s=[3], dim=[0, 1])


def frequencies():
    for op in ["fftfreq", "rfftfreq"]:
        function = getattr(torch.fft, op)
        add(op, [], function, n=6)
        add(op, [], function, n=7, d=0.5)
        add(op, [], function, n=1, d=2.0)
        refuse(op, [], lambda n: torch.fft.fft(torch.ones(n)), n=0)
    for op in ["fftshift", "ifftshift"]:
        function = getattr(torch.fft, op)
        add(op, r(5), function)
        add(op, r(3, 4), function)
        add(op, ints(9, 6), function)
        add(op, r(3, 4), function, dim=[0])
        add(op, r(3, 4, 5), function, dim=[-1, 0])
        for dim in [[0], [-1]]:
            add(op, r(3, 4, 2), lambda x, dim, is_complex, f=function: torch.view_as_real(
                f(complex_of(x), dim=dim)), dim=dim, is_complex=True)
        refuse(op, r(3), function, dim=[1])


def complex_numbers():
    add("complex", [r(3), r(3)], to_complex(torch.complex))
    add("complex", [r(3, 1), r(4)], to_complex(lambda x, y: torch.complex(
        x.expand(3, 4), y.expand(3, 4))))
    add("complex", r(3), lambda x: torch.stack([x, torch.zeros_like(x)], -1))
    refuse("complex", [ints(9, 3), ints(9, 3)], torch.complex)
    add("polar", [pos(3), r(3)], to_complex(torch.polar))
    refuse("polar", [ints(9, 3), ints(9, 3)], torch.polar)
    add("fft_mul", [r(3, 2), r(2, 1, 2)],
        lambda x, y: torch.view_as_real(complex_of(x) * complex_of(y)))
    refuse("fft_mul", [r(3, 3), r(3, 3)], lambda x, y: complex_of(x) * complex_of(y))
    for op in ["real", "imag", "conj", "fft_abs", "angle"]:
        function = getattr(torch, op.replace("fft_", ""))
        call = from_complex(function)
        if op == "conj":
            call = lambda x: torch.view_as_real(complex_of(x).conj().resolve_conj())
        add(op, r(3, 4, 2), call)
        if op in ["fft_abs", "angle"]:
            add(op, f32([[0.0, 0.0], [1.0, 0.0], [0.0, -2.0]]), call)
        refuse(op, r(3), from_complex(function))


def short_windows():
    def stft(x, n_fft, window=None, **attrs):
        return to_complex(torch.stft)(x, n_fft, window=window, return_complex=True, **attrs)

    def istft(x, n_fft, window=None, **attrs):
        return torch.istft(complex_of(x), n_fft, window=window, **attrs)

    windowed = kwargs_named("window")
    for op, function, make in [("stft", stft, lambda: r(2, 24)), ("istft", istft, lambda: r(2, 5, 7, 2))]:
        call = windowed(function, 1)
        add(op, make(), call, n_fft=8)
        add(op, make()[0], call, n_fft=8, hop_length=3)
        add(op, {"x": make(), "window": pos(8)}, call, n_fft=8, hop_length=4)
        add(op, {"x": make(), "window": pos(6)}, call, n_fft=8, win_length=6, hop_length=2)
        add(op, {"x": make(), "window": pos(5)}, call, n_fft=8, win_length=5, hop_length=1)
        add(op, {"x": make(), "window": pos(8)}, call, n_fft=8, center=False)
        add(op, make(), call, n_fft=8, center=False, normalized=True)
        add(op, make(), call, n_fft=8, normalized=True)
        refuse(op, make(), call, n_fft=8, hop_length=0)
        refuse(op, {"x": make(), "window": pos(7)}, call, n_fft=8)
    add("istft", r(2, 5, 7, 2), windowed(istft, 1), n_fft=9)
    for mode in ["constant", "replicate", "reflect", "circular"]:
        add("stft", r(2, 24), windowed(stft, 1), n_fft=8, pad_mode=mode)
    for n_fft in [8, 5]:
        add("stft", r(2, 24), windowed(stft, 1), n_fft=n_fft, onesided=False)
        add("istft", r(n_fft, 7, 2), windowed(istft, 1), n_fft=n_fft, onesided=False)
    for length in [9, 12, 18]:
        add("istft", r(2, 5, 7, 2), windowed(istft, 1), n_fft=8, length=length)
    refuse("stft", r(4), windowed(stft, 1), n_fft=8, center=False)
    refuse("istft", {"x": r(5, 3, 2), "window": torch.zeros(8)}, windowed(istft, 1), n_fft=8)
    refuse("istft", r(4, 7, 2), windowed(istft, 1), n_fft=8)


def integer_signals():
    add("rfft", ints(9, 3, 8), to_complex(torch.fft.rfft), n=6)
    add("rfft", mask(7), to_complex(torch.fft.rfft))
    add("ihfft", ints(9, 5), to_complex(torch.fft.ihfft), norm="ortho")
    add("rfft2", ints(9, 4, 3, dtype=torch.int32), to_complex(torch.fft.rfft2))


def fourier():
    for family in [lines, planes, frequencies, complex_numbers, short_windows]:
        family()
