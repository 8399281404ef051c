"""Matrix factorisations and functions of matrices."""

import torch

from op_case import add, f32, ints, pos, r
from op_refusals import refuse

L = torch.linalg


def square(*shape):
    """Matrices that are far from singular."""
    return r(*shape, shape[-1]) + 3 * torch.eye(shape[-1], dtype=torch.float32)


def symmetric(*shape):
    x = r(*shape, shape[-1])
    return (x + x.mT) / 2


def positive(*shape):
    return symmetric(*shape) + 4 * torch.eye(shape[-1], dtype=torch.float32)


def sign_of(x):
    """The factors of columns whose first element of almost the largest magnitude is negative."""
    size = x.detach().abs()
    first = (size >= 0.9 * size.amax(-2, keepdim=True)).int().argmax(-2, keepdim=True)
    return torch.sign(x.detach().gather(-2, first))


def eigh(x):
    values, vectors = L.eigh((x + x.mT) / 2)
    return values, vectors * sign_of(vectors)


def svd(x, **attrs):
    u, s, vh = L.svd(x, **attrs)
    k = s.shape[-1]
    signs = sign_of(u[..., :k])
    return u * signs, s, vh * signs.mT


def triangle(x, upper):
    """PyTorch gives gradients to the triangle that a function does not read; this removes them."""
    return x.triu() if upper else x.tril()


def cholesky_solve(b, factor, upper=False):
    return torch.cholesky_solve(b, triangle(factor, upper), upper=upper)


def cholesky_inverse(factor, upper=False):
    return torch.cholesky_inverse(triangle(factor, upper), upper=upper)


def factors():
    for shape in [(3,), (2, 2)]:
        add("cholesky", positive(*shape), L.cholesky)
        add("cholesky", positive(*shape), L.cholesky, upper=True)
        for upper in [False, True]:
            factor = L.cholesky(positive(*shape), upper=upper).contiguous()
            given = {"upper": True} if upper else {}
            add("cholesky_solve", [r(*shape, 2), factor], cholesky_solve, **given)
            add("cholesky_inverse", factor, cholesky_inverse, **given)
    refuse("cholesky", r(2, 3), L.cholesky)
    refuse("cholesky", -positive(2), L.cholesky)
    refuse("cholesky_solve", [r(2, 3), r(3, 3)], torch.cholesky_solve)
    refuse("cholesky_inverse", r(2, 3), torch.cholesky_inverse)
    for shape in [(3, 3), (2, 3, 4), (2, 4, 3)]:
        add("lu_factor", r(*shape), L.lu_factor)
        add("lu", r(*shape), L.lu)
        add("qr", r(*shape), L.qr)
    refuse("lu_factor", r(3), L.lu_factor)
    refuse("lu_factor", torch.ones(2, 2), L.lu_factor)
    refuse("lu", r(3), L.lu)
    for mode in ["reduced", "complete", "r"]:
        add("qr", r(2, 4, 3), L.qr, mode=mode, grads=mode == "reduced")
        add("qr", r(3, 4), L.qr, mode=mode, grads=mode != "r")
    refuse("qr", r(3), L.qr)
    refuse("qr", r(3, 3), L.qr, mode="full")


def indefinite(*shape):
    """With pivots of two rows: the elements on the diagonal are small."""
    x = r(*shape, shape[-1])
    return x + x.mT - 2 * torch.diag_embed(torch.diagonal(x, dim1=-2, dim2=-1)) * 0.95


def ldl():
    for shape in [(3,), (5,), (2, 4), (2, 3, 2)]:
        add("ldl_factor", indefinite(*shape), L.ldl_factor, grads=False)
        add("ldl_factor_ex", r(*shape, shape[-1]), L.ldl_factor_ex, grads=False)
    for shape in [(4,), (2, 3)]:
        add("ldl_factor_ex", indefinite(*shape), L.ldl_factor_ex, grads=False, check_errors=True)
    singular = torch.stack([torch.eye(3), torch.zeros(3, 3), torch.diag(f32([2.0, 1.0, 0.0]))])
    singular = singular.float()
    add("ldl_factor_ex", singular, L.ldl_factor_ex, grads=False)
    refuse("ldl_factor_ex", singular, L.ldl_factor_ex, check_errors=True)
    for op in ["ldl_factor", "ldl_factor_ex"]:
        for wrong in [r(3), r(2, 3), ints(3, 2, 2)]:
            refuse(op, wrong, getattr(L, op))
    refuse("ldl_factor", torch.zeros(2, 2), L.ldl_factor)
    for batch, sides in [((), (4, 2)), ((2,), (2, 4, 1)), ((2, 2), (2, 2, 4, 3))]:
        ld, pivots = [x.contiguous() for x in L.ldl_factor(indefinite(*batch, 4))]
        add("ldl_solve", {"x": ld, "i": pivots, "b": r(*sides)}, L.ldl_solve, grads=False)
    ld, pivots = [x.contiguous() for x in L.ldl_factor(indefinite(4))]
    for wrong in [{"x": ld, "i": pivots, "b": r(4)}, {"x": ld, "i": pivots, "b": r(3, 2)},
                  {"x": ld, "i": pivots[:3].clone(), "b": r(4, 2)}]:
        refuse("ldl_solve", wrong, L.ldl_solve)


def systems():
    add("solve", [square(3), r(3, 2)], L.solve)
    add("solve", [square(3), r(3)], L.solve)
    add("solve", [square(2, 3), r(2, 3)], L.solve)
    add("solve", [square(2, 1, 3), r(4, 3, 2)], L.solve)
    add("solve", [square(3), r(2, 3)], L.solve, left=False)
    add("solve", [square(2, 3), r(2, 2, 3)], L.solve, left=False)
    refuse("solve", [r(2, 3), r(2)], L.solve)
    refuse("solve", [square(3), r(2, 2)], L.solve)
    refuse("solve", [torch.zeros(2, 2), r(2)], L.solve)
    for upper in [False, True]:
        add("solve_triangular", [square(3), r(3, 2)], L.solve_triangular, upper=upper)
        add("solve_triangular", [square(2, 1, 3), r(2, 3, 2)], L.solve_triangular, upper=upper)
        add("solve_triangular", [square(3), r(2, 3)], L.solve_triangular, upper=upper, left=False)
        add("solve_triangular", [square(3), r(3, 2)], L.solve_triangular, upper=upper,
            unitriangular=True)
    refuse("solve_triangular", [square(3), r(2, 2)], L.solve_triangular, upper=True)
    for attrs in [{}, {"left": False}, {"adjoint": True}, {"left": False, "adjoint": True}]:
        lu, pivots = [x.contiguous() for x in L.lu_factor(r(2, 3, 3))]
        add("lu_solve", {"x": lu, "i": pivots, "b": r(2, 3, 3)}, L.lu_solve, **attrs)
    refuse("lu_solve", {"x": r(2, 3), "i": ints(2, 2, low=1, dtype=torch.int32), "b": r(2, 2)},
           L.lu_solve)
    for op in ["inv", "inverse", "det", "slogdet", "logdet"]:
        function = getattr(torch, op, None) or getattr(L, op)
        make = positive if op == "logdet" else square
        for shape in [(3,), (2, 2), (4, 1)]:
            add(op, make(*shape), function)
        refuse(op, r(2, 3), function)
    refuse("inv", torch.ones(2, 2), L.inv)
    add("det", torch.ones(2, 2), L.det, grads=False)
    add("slogdet", torch.ones(2, 2), L.slogdet, grads=False)


def spectra():
    for shape in [(3,), (2, 4)]:
        add("eigh", symmetric(*shape), eigh)
        add("eigvalsh", symmetric(*shape), lambda x: L.eigvalsh((x + x.mT) / 2))
    refuse("eigh", r(2, 3), L.eigh)
    refuse("eigvalsh", r(2, 3), L.eigvalsh)
    for shape in [(3, 3), (2, 4, 4)]:
        add("svd", r(*shape), svd)
    for shape in [(3, 4), (2, 4, 3)]:
        add("svd", r(*shape), svd, full_matrices=False)
        add("svdvals", r(*shape), L.svdvals)
    refuse("svd", r(3), L.svd)
    refuse("svdvals", r(3), L.svdvals)
    for shape in [(3, 4), (2, 4, 3)]:
        add("pinv", r(*shape), L.pinv)
        add("pinverse", r(*shape), torch.pinverse)
        add("matrix_rank", r(*shape), L.matrix_rank, grads=False)
    add("matrix_rank", torch.ones(3, 3), L.matrix_rank, grads=False)
    for op in ["pinv", "matrix_rank"]:
        for attrs in [{"atol": 0.1}, {"atol": 0.5, "rtol": 0.1}, {"rtol": 0.3}]:
            add(op, r(3, 4), getattr(L, op), grads=op == "pinv", **attrs)
        refuse(op, r(3), getattr(L, op))
    for rcond in [0.1, 0.3]:
        add("pinverse", r(4, 3), lambda x, rcond: torch.pinverse(x, rcond), rcond=rcond)
    refuse("pinverse", r(3), torch.pinverse)

    def lstsq(a, b, rcond=None):
        column = b.unsqueeze(-1) if b.dim() == 1 else b
        solution, _, rank, values = L.lstsq(a, column, rcond=rcond, driver="gelsd")
        residuals = a.new_empty(0)
        if a.shape[-2] > a.shape[-1]:
            residuals = (a @ solution - column).square().sum(-2)
        return (solution.squeeze(-1) if b.dim() == 1 else solution), residuals, rank, values

    add("lstsq", [r(4, 3), r(4, 2)], lstsq)
    add("lstsq", [r(3, 4), r(3)], lstsq)
    add("lstsq", [r(2, 3, 3), r(2, 3, 2)], lstsq)
    for rcond in [0.01, 0.001]:
        add("lstsq", [r(4, 3), r(4, 2)], lstsq, rcond=rcond)
    refuse("lstsq", [r(3), r(3)], L.lstsq)


def norms():
    for ord in ["fro", "nuc", 1, -1, 2, -2, "inf", "-inf"]:
        add("matrix_norm", r(2, 3, 4), L.matrix_norm, ord=ord)
        add("matrix_norm", r(3, 2, 4), L.matrix_norm, ord=ord, dim=[2, 0], keepdim=True)
        add("linalg_norm", r(3, 4), L.norm, ord=ord)
        # PyTorch's gradients of the others fail.
        add("cond", square(2, 3), L.cond, p=ord, grads=ord in [2, -2])
    add("matrix_norm", r(3, 4), L.matrix_norm)
    add("matrix_norm", r(3, 4, 2), L.matrix_norm, dim=[-3, -1])
    refuse("matrix_norm", r(3), L.matrix_norm)
    refuse("matrix_norm", r(3, 3), L.matrix_norm, ord=3)
    refuse("matrix_norm", ints(9, 3, 3), L.matrix_norm)
    add("linalg_norm", r(3, 4), L.norm)
    add("linalg_norm", r(2, 3, 4), L.norm, dim=[1], keepdim=True)
    for ord in [0, 1, 3, "inf"]:
        add("linalg_norm", r(2, 3, 4), L.norm, ord=ord, dim=[-1], grads=ord != 0)
    add("linalg_norm", r(5), L.norm, ord=1)
    add("linalg_norm", r(2, 3, 4), L.norm, ord="nuc", dim=[0, -1], keepdim=True)
    refuse("linalg_norm", r(2, 3, 4), L.norm, ord=1)
    add("cond", r(3, 4), L.cond)
    refuse("cond", r(3), L.cond)


def powers():
    for n in [0, 1, 2, 5, -1, -3]:
        add("matrix_power", square(2, 3), L.matrix_power, n=n)
    refuse("matrix_power", r(2, 3), L.matrix_power, n=2)
    for scale in [0.1, 1.0, 5.0]:
        add("matrix_exp", r(2, 3, 3, scale=scale), torch.matrix_exp)
    refuse("matrix_exp", r(2, 3), torch.matrix_exp)
    add("tensorinv", r(2, 3, 6) + torch.eye(6).reshape(2, 3, 6), L.tensorinv)
    add("tensorinv", square(4).reshape(4, 2, 2), L.tensorinv, ind=1)
    add("tensorinv", square(4).reshape(2, 1, 2, 4), L.tensorinv, ind=3)
    refuse("tensorinv", r(2, 3, 4), L.tensorinv)
    add("tensorsolve", [square(6).reshape(2, 3, 6), r(2, 3)], L.tensorsolve)
    add("tensorsolve", [square(6).reshape(2, 3, 6).movedim(2, 0).contiguous(), r(2, 3)], L.tensorsolve,
        dims=[0])
    add("tensorsolve", [square(6).reshape(2, 3, 2, 3).movedim(2, 1).contiguous(), r(2, 3)], L.tensorsolve,
        dims=[1, -1])
    refuse("tensorsolve", [r(2, 3, 5), r(2, 3)], L.tensorsolve)

    def multi_dot(*tensors):
        return L.multi_dot(tensors)

    add("multi_dot", [r(2, 3), r(3, 4), r(4, 2), r(2, 5)], multi_dot)
    add("multi_dot", [r(3), r(3, 4), r(4)], multi_dot)
    refuse("multi_dot", [r(2, 3), r(4, 2)], multi_dot)
    add("vecdot", [r(2, 3), r(3)], L.vecdot)
    add("vecdot", [r(3, 2), r(3, 2)], L.vecdot, dim=0)
    add("vecdot", [r(3, 2), r(3, 2)], L.vecdot, dim=-2)
    refuse("vecdot", [r(2), r(3)], L.vecdot)
    add("linalg_vander", r(2, 3), L.vander)
    add("linalg_vander", r(3), L.vander, N=2)
    add("linalg_vander", pos(3), L.vander, N=5)
    refuse("linalg_vander", r(3), L.vander, N=0)


def linear_algebra():
    for family in [factors, systems, spectra, norms, powers]:
        family()


def without_errors():
    """The results of matrices that fail are NaN in flow and arbitrary in PyTorch."""
    def ex(function):
        def call(*tensors, **attrs):
            *results, info = function(*tensors, **attrs)
            bad = info != 0
            if function is not L.lu_factor_ex:
                shown = bad.reshape(bad.shape + (1,) * (results[0].dim() - bad.dim()))
                results[0] = results[0].masked_fill(shown, float("nan"))
            return *results, info
        return call

    singular = torch.stack([torch.eye(3), f32([[1.0, 2, 0], [2, 4, 0], [0, 0, 1]])])
    indefinite = torch.stack([torch.eye(3), torch.diag(f32([1.0, -1.0, 2.0]))])
    for op in ["cholesky_ex", "inv_ex", "lu_factor_ex"]:
        function = ex(getattr(L, op))
        make = positive if op == "cholesky_ex" else square
        for attrs in [{}, {"check_errors": True}]:
            add(op, make(3), function, **attrs)
            add(op, make(2, 2), function, **attrs)
        bad = indefinite if op == "cholesky_ex" else singular
        add(op, bad, function, grads=False)
        refuse(op, bad, function, check_errors=True)
        refuse(op, r(3), function)
    for upper in [True, False]:
        for shape in [(3,), (2, 2)]:
            add("cholesky_ex", positive(*shape), ex(L.cholesky_ex), upper=upper)
    solve = ex(L.solve_ex)
    add("solve_ex", [square(3), r(3, 2)], solve)
    add("solve_ex", [square(2, 3), r(2, 3)], solve)
    add("solve_ex", [square(2, 1, 3), r(4, 3, 2)], solve)
    add("solve_ex", [square(3), r(2, 3)], solve, left=False)
    add("solve_ex", [square(2, 3), r(2, 2, 3)], solve, left=False, check_errors=True)
    add("solve_ex", [square(3), r(3)], solve, check_errors=True)
    add("solve_ex", [singular, r(2, 3, 2)], solve, grads=False)
    refuse("solve_ex", [singular, r(2, 3, 2)], L.solve_ex, check_errors=True)
    refuse("solve_ex", [square(3), r(2, 2)], L.solve_ex)


def reflections():
    for shape in [(4, 3), (3, 4), (2, 3, 3)]:
        add("geqrf", r(*shape), torch.geqrf, grads=False)
    refuse("geqrf", r(3), torch.geqrf)
    for op in ["householder_product", "orgqr"]:
        for shape, k in [((4, 3), 3), ((3, 3), 2), ((2, 4, 3), 3), ((4, 3), 0)]:
            add(op, [r(*shape), pos(*shape[:-2], k)], L.householder_product)
        refuse(op, [r(3, 4), r(4)], L.householder_product)
        refuse(op, [r(4, 3), r(2, 3)], L.householder_product)
    for attrs in [{}, {"left": False}, {"transpose": True}, {"left": False, "transpose": True}]:
        other = [2, 4] if attrs.get("left") is False else [4, 2]
        add("ormqr", [r(4, 3), pos(3), r(*other)], torch.ormqr, **attrs)
        add("ormqr", [r(2, 4, 3), pos(2, 3), r(2, *other)], torch.ormqr, **attrs)
    refuse("ormqr", [r(4, 3), pos(3), r(3, 2)], torch.ormqr)


def triangles():
    def mirrored(x, UPLO):
        return x.tril() + x.tril(-1).mT if UPLO == "L" else x.triu() + x.triu(1).mT

    for UPLO in ["L", "U"]:
        for shape in [(3,), (2, 4)]:
            other = r(*shape, shape[-1])  # in the triangle that is not read
            x = symmetric(*shape) + (other.triu(1) if UPLO == "L" else other.tril(-1))
            add("eigh", x, lambda x, UPLO: eigh(mirrored(x, UPLO)), UPLO=UPLO)
            add("eigvalsh", x, lambda x, UPLO: L.eigvalsh(mirrored(x, UPLO)), UPLO=UPLO)
    for op in ["eigh", "eigvalsh"]:
        refuse(op, symmetric(3), getattr(L, op), UPLO="B")
    for shape in [(3, 3), (2, 4, 3)]:
        add("linalg_polar", r(*shape), L.polar)
    refuse("linalg_polar", r(3, 4), L.polar)


def more_linear_algebra():
    for family in [without_errors, reflections, triangles]:
        family()
