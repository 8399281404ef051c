#!/usr/bin/env python3
"""Computes the op cases of tests/parity with PyTorch in float64: data/ops.json says what was run,
data/ops_golden.safetensors holds ID/in.NAME, ID/gout.NAME, ID/out.NAME and ID/grad.NAME. The
format of the cases is that of flow-conform; see README.md."""

import argparse
import json
import math
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import op_cases

WIDE = torch.float64


def function_named(op):
    """PyTorch's function of an op's name; methods are called on the first tensor."""
    for home in (op_cases.RENAMED, torch, F, torch.linalg):
        found = home.get(op) if isinstance(home, dict) else getattr(home, op, None)
        if found is not None:
            return found
    return lambda x, *rest, **attrs: getattr(x, op)(*rest, **attrs)


def arguments(attrs):
    """A case's attributes as PyTorch takes them: infinities and dtypes are words in a spec, where
    float32 is the dtype of the run."""
    words = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
    given = {name: words.get(value, value) if isinstance(value, str) else value
             for name, value in attrs.items()}
    if "dtype" in given:
        given["dtype"] = WIDE if given["dtype"] == "float32" else getattr(torch, given["dtype"])
    return given


def call(case, tensors):
    if case.call is not None:
        outputs = case.call(*tensors, **arguments(case.attrs))
    else:
        outputs = function_named(case.op)(*tensors, **arguments(case.attrs))
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    return [y for y in outputs if y is not None]


def stored_inputs(case, is_wide):
    leaves = {}
    for name, value, _ in case.inputs:
        if name in leaves:
            continue
        leaf = value.to(WIDE) if is_wide and value.is_floating_point() else value.clone()
        leaves[name] = leaf
    return leaves


def run(case):
    """The tensors of a case, by their names in the file, and its entry in the spec."""
    leaves = stored_inputs(case, True)
    grads = [name for name, value in leaves.items()
             if case.has_grads and value.is_floating_point() and name not in case.constant]
    for name in grads:
        leaves[name].requires_grad_()
    views = []
    for name, _, transposed in case.inputs:
        view = leaves[name]
        views.append(view.transpose(*transposed) if transposed else view)
    entry = {"id": case.id, "op": case.op, "file": case.id + ".safetensors", "attrs": case.attrs,
             "inputs": [], "outputs": [], "grads": grads}
    if case.expr:
        entry["expr"] = case.expr
    if case.limit:
        entry["limit"] = case.limit
    if case.differs:
        entry["differs"] = case.differs
    tensors = {f"in.{name}": value for name, value in stored_inputs(case, False).items()}
    for name, value, transposed in case.inputs:
        shown = {"name": name, "dtype": str(value.dtype)[6:], "shape": list(value.shape)}
        if transposed:
            shown["transpose"] = list(transposed)
        entry["inputs"].append(shown)
    if case.is_error:
        entry["error"] = True
        entry["grads"] = []
        try:
            call(case, views)
        except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
            return entry, tensors
        raise RuntimeError(f"{case.id}: PyTorch raises nothing")
    outputs = call(case, views)
    roots, seeds = [], []
    for number, y in enumerate(outputs):
        dtype = "float32" if y.dtype == WIDE else str(y.dtype)[6:]
        entry["outputs"].append({"name": str(number), "dtype": dtype, "shape": list(y.shape)})
        tensors[f"out.{number}"] = y.detach().contiguous().clone()
        if y.requires_grad:
            seed = torch.randn(y.shape, generator=op_cases.generator, dtype=torch.float32)
            tensors[f"gout.{number}"] = seed
            roots.append(y)
            seeds.append(seed.to(WIDE))
    if roots:
        torch.autograd.backward(roots, seeds)
    for name in grads:
        grad = leaves[name].grad
        tensors[f"grad.{name}"] = torch.zeros_like(leaves[name]) if grad is None else grad.contiguous()
    return entry, tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).parent / "data")
    folder = parser.parse_args().out
    torch.set_default_dtype(WIDE)
    torch.manual_seed(0)
    entries, tensors = [], {}
    for case in op_cases.all_cases():
        entry, own = run(case)
        entries.append(entry)
        tensors.update({f"{case.id}/{name}": value.detach() for name, value in own.items()})
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    (folder / "ops.json").write_text('{"cases": [\n' + lines + "\n]}\n")
    save_file(tensors, folder / "ops_golden.safetensors")
    print(len(entries), "cases of", len({entry["op"] for entry in entries}), "ops")


if __name__ == "__main__":
    main()
