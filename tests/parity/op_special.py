"""Special functions, the parts of numbers, histograms and numeric derivatives."""

import torch


from op_case import NAN, add, f32, ints, pos, r, unit


def of_one():
    two_sided = ["i0", "i0e", "i1", "i1e", "bessel_j0", "bessel_j1", "spherical_bessel_j0",
                 "airy_ai", "erfcx", "modified_bessel_i0", "modified_bessel_i1"]
    right = ["bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1",
             "scaled_modified_bessel_k0", "scaled_modified_bessel_k1"]
    without = ["spherical_bessel_j0", "airy_ai", "scaled_modified_bessel_k0",
               "scaled_modified_bessel_k1"]  # PyTorch has no derivative
    # PyTorch's own error is up to 2e-6; tests/ops/special_test.cpp has exact values.
    inexact = ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "airy_ai"]
    for op in two_sided + right:
        function = getattr(torch.special, op)
        make = r if op in two_sided else lambda *shape: pos(*shape) * 4
        has_grads = op not in without
        limit = 1e-5 if op in inexact else None
        add(op, make(2, 3), function, grads=has_grads, limit=limit)
        add(op, make(40) * 8 if op != "erfcx" else make(40), function, grads=False, limit=limit)
        add(op, [("x", make(3, 2), (0, 1))], function, grads=has_grads, limit=limit)
        add(op, ints(5, 4, low=1), function, limit=limit)
        add(op, make(0, 2), function, grads=has_grads)
        add(op, f32([0.0, NAN, 7.5, 24.9, 25.1, 29.9, 30.1, 80.0]), function, grads=False,
            limit=limit)
    for op in ["i0", "i0e", "i1", "i1e", "bessel_j0", "bessel_j1"]:
        add(op, f32([0.0, -1.5, -12.0]), getattr(torch.special, op), grads=op != "i0e",
            limit=1e-5 if op in inexact else None)
    for op, make in [("entr", pos), ("log_ndtr", r), ("ndtri", unit)]:
        function = getattr(torch.special, op)
        add(op, make(2, 3), function)
        add(op, [("x", make(3, 2), (0, 1))], function)
        add(op, f32([-1.0, 0.0, NAN, 0.5, 1.0, -30.0, 1e-20]), function, grads=False)
        add(op, ints(2, 4), function)
    add("log_ndtr", r(9, scale=8.0), torch.special.log_ndtr)
    add("airy_ai", f32([-8.0, -9.0, -9.1, -5.0, 1.0, 1.1, 0.0]), torch.special.airy_ai, grads=False,
        limit=1e-5)


def of_two():
    for op, function in [("gammainc", torch.special.gammainc),
                         ("gammaincc", torch.special.gammaincc), ("igamma", torch.igamma),
                         ("igammac", torch.igammac)]:
        add(op, {"a": pos(2, 3) * 5, "x": pos(2, 3) * 5}, function, constant=("a",))
        add(op, {"a": pos(2, 1) * 5, "x": pos(3) * 5}, function, constant=("a",))
        add(op, {"a": f32([0.0, 1.0, 0.0, -1.0, 25.0, 300.0, 1500.0]),
                 "x": f32([1.0, 0.0, 0.0, 1.0, 20.0, 310.0, 1480.0])}, function, grads=False,
            limit=1e-8)  # PyTorch's own error
        add(op, [r(2, 3), r(4)], function, error=True)
        add(op, [ints(4, 3), ints(4, 3)], function, error=True)
    zeta = torch.special.zeta
    add("zeta", {"s": pos(2, 3) * 4 + 1, "q": pos(2, 3) * 4}, zeta, constant=("s",))
    add("zeta", {"s": pos(2, 1) * 4 + 1, "q": pos(3) * 4}, zeta, constant=("s",))
    add("zeta", {"s": f32([1.0, 0.5, 2.0, 3.0, 2.5]), "q": f32([2.0, 2.0, -1.0, -1.5, -1.5])}, zeta,
        grads=False)
    add("zeta", [ints(5, 4, low=2), ints(5, 4, low=1)], zeta)
    for other in [0.5, 3]:
        add("zeta", pos(4) + 2, lambda x, other: zeta(x, other), other=other, grads=False)
    for c in [2.5, 4]:
        add("zeta", pos(4), lambda x, c: zeta(c, x), c=c)
    add("zeta", [r(2, 3), r(4)], zeta, error=True)
    xlog1py = torch.special.xlog1py
    add("xlog1py", [r(2, 1), unit(3)], xlog1py)
    add("xlog1py", [f32([0.0, 0.0, 0.0, 2.0]), f32([-1.0, NAN, -2.0, -1.0])], xlog1py, grads=False)
    add("xlog1py", [f32([0.0, 0.0]), f32([-1.0, -2.0])], xlog1py)
    add("xlog1py", [ints(4, 3), ints(4, 3)], xlog1py)
    for other in [0.5, 3]:
        add("xlog1py", r(4), lambda x, other: xlog1py(x, other), other=other)
    for c in [-2.5, 4]:
        add("xlog1py", unit(4), lambda x, c: xlog1py(c, x), c=c)
    add("xlog1py", [r(2, 3), r(4)], xlog1py, error=True)
    for op in ["gcd", "lcm"]:
        add(op, [ints(99, 5, low=-99), ints(30, 5, low=-30)])
        add(op, [ints(99, 2, 1, dtype=torch.int32), ints(9, 3, dtype=torch.int32)])
        add(op, [torch.tensor([0, 0, -4, 6]), torch.tensor([0, 5, 6, -9])])
        add(op, [r(3), r(3)], error=True)
        add(op, [ints(9, 2, 3), ints(9, 4)], error=True)
    add("nextafter", [r(2, 3), r(2, 3)])
    add("nextafter", [r(2, 1), r(3)])
    add("nextafter", [f32([1.0, 0.0, 2.0]), f32([1.0, 1.0, NAN])])
    add("nextafter", [ints(9, 3), ints(9, 3)], error=True)
    add("frexp", r(2, 3, scale=9.0))
    add("frexp", f32([0.0, 1.0, -8.0, 0.3, NAN]), grads=False)
    add("frexp", ints(9, 3), error=True)


def samples():
    def counted(x, bins, weight=None, **attrs):
        if "range" in attrs:
            attrs["range"] = tuple(attrs["range"])
        return torch.histogram(x, bins, weight=weight, **attrs)

    add("histogram", r(30), counted, bins=5, grads=False)
    add("histogram", r(3, 10), counted, bins=4, range=[-1.0, 1.5], grads=False)
    add("histogram", f32([2.0, 2.0]), counted, bins=2, grads=False)
    add("histogram", r(20), counted, bins=3, range=[0.0, 2.0], density=True, grads=False)
    add("histogram", {"x": r(20), "weight": pos(20)}, lambda x, weight, **attrs: counted(
        x, weight=weight, **attrs), bins=3, grads=False)
    add("histogram", {"x": r(20), "weight": pos(20)}, lambda x, weight, **attrs: counted(
        x, weight=weight, **attrs), bins=4, density=True, grads=False)
    edges = f32([-1.0, 0.0, 0.25, 2.0])
    add("histogram", {"x": r(20), "edges": edges}, lambda x, edges: torch.histogram(x, edges),
        grads=False)
    add("histogram", {"x": f32([2.0, -1.0, 0.25, NAN, 3.0]), "edges": edges},
        lambda x, edges: torch.histogram(x, edges), grads=False)
    add("histogram", r(5), counted, bins=0, error=True)
    add("histogram", r(5), counted, bins=2, range=[2.0, 1.0], error=True)

    def counted_points(x, bins, weight=None, **attrs):
        hist, edges = torch.histogramdd(x, bins, weight=weight, **attrs)
        return [hist, *edges]

    add("histogramdd", r(20, 2), counted_points, bins=[2, 3], grads=False)
    add("histogramdd", r(20, 2), counted_points, bins=[3, 4], range=[-1.0, 1.0, 0.0, 2.0],
        grads=False)
    add("histogramdd", r(20, 3), counted_points, bins=[2, 2, 2], grads=False, density=True,
        range=[-1.0, 1.0, -2.0, 2.0, 0.0, 1.0])
    for bins in [[2, 2], [3, 1]]:
        add("histogramdd", {"x": r(20, 2), "weight": pos(20)},
            lambda x, weight, **attrs: counted_points(x, weight=weight, **attrs), bins=bins,
            density=bins[1] == 1, grads=False)
    add("histogramdd", r(20, 2), counted_points, bins=[2, 3, 4], error=True)

    def slopes(x, *coordinates, **attrs):
        if coordinates:
            attrs["spacing"] = coordinates
        return list(torch.gradient(x, **attrs))

    add("gradient", r(5), slopes)
    add("gradient", r(4, 5), slopes)
    add("gradient", r(4, 5), slopes, spacing=[2.0, 0.5])
    add("gradient", r(4, 5), slopes, spacing=[0.25], dim=[-1], edge_order=2)
    add("gradient", r(4, 5), slopes, dim=[1, 0], spacing=[2.0, 3.0], edge_order=2)
    for edge_order in [1, 2]:
        add("gradient", {"x": r(4, 5), "coordinates": f32([0.0, 1.0, 1.5, 4.0])}, slopes, dim=[0],
            edge_order=edge_order, constant=("coordinates",))
    add("gradient", {"x": r(3), "coordinates": f32([0.0, 1.0, 4.0])}, slopes,
        constant=("coordinates",))
    add("gradient", ints(9, 6), slopes)
    add("gradient", r(1), slopes, error=True)
    add("gradient", r(2, 3), slopes, dim=[0, 0], error=True)
    add("gradient", r(3, 3), slopes, spacing=[1.0, 2.0, 3.0], error=True)
    for x in [f32([0.0, 2.0, 0.0, -1.0]), ints(2, 3, 4), r()]:
        add("nonzero_static", x, size=3, fill_value=-7, grads=False)
    add("nonzero_static", ints(2, 2, 2), size=6, fill_value=5)
    add("nonzero_static", ints(2, 2, 2), size=0)
    add("nonzero_static", ints(2, 2, 2), size=-1, error=True)


def special_functions():
    of_one()
    of_two()
    samples()
