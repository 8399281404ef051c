#!/usr/bin/env python3
"""Writes the pages of the op list: one for each folder of ops, one with all functions, and one with
the facts of each op of the table.

The signatures and descriptions come from the public headers, the facts from flow-ops. A public
function whose ops flow-ops does not know is an error, so the list cannot miss one.
"""

import argparse
import html
import json
import pathlib
import re
import sys

ROOMS = {
    "creation": "Making and copying tensors", "elementwise": "Elementwise functions",
    "shape": "Shapes, views and joins", "index": "Indices, sorting and selection",
    "reduce": "Reductions and scans", "linalg": "Linear algebra", "linear": "Products, attention and cells",
    "fft": "Fourier transforms",
    "special": "Special functions",
    "conv": "Convolutions, pooling and resizing", "norm": "Norms and softmax",
    "loss": "Losses", "random": "Random numbers and dropout",
}
# Rooms whose functions have a namespace of their own.
NAMESPACES = {"linalg": "flow::linalg", "fft": "flow::fft"}
# Pages that are not called like their folder.
PAGES = {"index": "indexing"}
# Functions whose golden cases have a shorter name.
GOLDEN_NAMES = {
    "binary_cross_entropy": "bce", "binary_cross_entropy_with_logits": "bce_with_logits",
    "scaled_dot_product_attention": "sdpa",
}
# Functions of which a caller needs no facts: they return options, or call another function.
WITHOUT_OPS = {"options_like", "from_blob", "from_dlpack", "to_dlpack", "to_dlpack_legacy",
               "count_batch_", "begin", "end"}


class Function:
    """The declarations of one name in one header, with the comments above them."""

    def __init__(self, name, header):
        self.name, self.header = name, header
        self.signatures, self.comments = [], []


def statements(text):
    """Yields (comment, declaration) of the namespace flow and those in it; a group without gaps
    shares a comment."""
    bodies = re.findall(r"^namespace flow(?:::\w+)? \{\n(.*?)^\}  // namespace flow", text, re.S | re.M)
    comment, lines, declaration, depth = [], iter("\n".join(bodies).splitlines()), [], 0
    for line in lines:
        stripped = line.strip()
        if depth == 0 and not declaration and not stripped:
            comment = []
        elif depth == 0 and not declaration and line.startswith("//"):
            if comment and comment[-1] is None:
                comment = []
            comment.append(line[2:])
        elif stripped:
            code = re.sub(r"//.*", "", line)
            depth += code.count("{") - code.count("}")
            declaration.append(line)
            if depth == 0 and code.rstrip().endswith((";", "}")):
                yield [line for line in comment if line is not None], "\n".join(declaration)
                declaration = []
                comment.append(None)  # the next comment starts a new group
        elif declaration:
            declaration.append(line)


def read_header(path, name):
    """Returns the purpose, the functions in their order, and the options structs by name."""
    text = path.read_text()
    purpose = [line[3:] for line in text[: text.index("#pragma once")].splitlines()]
    functions, structs = {}, {}
    for comment, code in statements(text):
        struct = re.match(r"struct (\w+)", code)
        if struct and not code.endswith(";\n"):
            structs[struct.group(1)] = (comment, code)
            continue
        declared = re.match(r"(?:template <[^;{]*?>\s*)?(?:inline )?[\w:<>&*, ]+?[ &*](\w+)\(", code)
        if not declared or "{" in code.split(")")[-1] or declared.group(1).startswith("operator"):
            continue
        function = functions.setdefault(declared.group(1), Function(declared.group(1), name))
        function.signatures.append(re.sub(r",?\s*Site site = Site::here\(\)|\s*//.*$", "", code, flags=re.M))
        if comment and comment not in function.comments:
            function.comments.append(comment)
    return purpose, functions, structs


def as_html(comment):
    """Paragraphs of a comment; indented lines are code."""
    blocks, kind = [], None
    for line in comment:
        new = "code" if line.startswith("   ") else "text" if line.strip() else None
        if new and new == kind:
            blocks[-1][1].append(line)
        elif new:
            blocks.append((new, [line]))
        kind = new
    parts = []
    for kind, lines in blocks:
        if kind == "code":
            parts.append("```cpp\n" + "\n".join(line.strip() for line in lines) + "\n```\n")
        else:
            parts.append("<p>" + html.escape(" ".join(line.strip() for line in lines)) + "</p>\n")
    return "\n".join(parts)


def devices(ops, table):
    missing = [op for op in ops if table[op]["on_cuda"] == "unsupported"]
    if missing == list(ops):
        return "CPU"
    return f"CPU; on CUDA without calls that need {', '.join(missing)}" if missing else "CPU, CUDA"


DTYPES = {
    ("bfloat16", "float16", "float32", "float64"): "floating",
    ("int16", "int32", "int64", "int8", "uint8"): "integers",
    ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8"): "numbers",
    ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8"): "all",
    (): "those of its inputs",
}


def dtypes(facts):
    return DTYPES.get(tuple(sorted(facts["dtypes"])), ", ".join(facts["dtypes"]))


def limits(facts):
    found = []
    if facts["gradient"] == "once":
        found.append("the gradient has no gradient itself")
    if facts["has_data_dependent_shape"]:
        found.append("the shape of the result depends on values: graphs refuse it, and a global "
                     "input is gathered")
    if facts["takes_batch_statistics"]:
        found.append("a micro-batch is a batch of its own")
    if facts["is_random"]:
        found.append("draws from the generator")
    if facts["is_view"]:
        found.append("shares memory with its input where strides can express the result")
    if facts["writes_its_inputs"]:
        found.append("writes inputs in place")
    return "; ".join(found)


def layouts(facts):
    """The signatures, most useful first: those with a split or partial tensor."""
    def shown(signature):
        mark = "*" if signature["is_positional"] else ""
        return f"`{signature['text'].replace('->', '→')}`{mark}"
    rows = [shown(s) for s in facts["signatures"] if re.search("[SP]", s["text"])]
    if not facts["signatures"]:
        return "makes any layout that you ask for, or does not depend on layouts"
    if not rows:
        return f"B only (inputs {facts['call']}): other layouts are gathered first"
    return f"inputs {facts['call']}: " + ", ".join(rows)


def gradient_of(name, function, table):
    """The golden cases say that a function has a gradient; else the ops say whether it has one."""
    ops = function["ops"] if "has_gradient" not in function else [name.rstrip("_")]
    has_one = function.get("has_gradient") or any(table[op]["gradient"] != "no" for op in ops if op in table)
    return "yes" if has_one else "no"


def op_link(name):
    return f"[{name}](table.md#op-{name})"


def function_entry(function, known, table, structs):
    yield f"## {function.name} {{#{function.name}}}\n"
    used = [s for s in structs if any(re.search(rf"\b{s}\b", sig) for sig in function.signatures)]
    code = [structs[name][1] for name in used] + function.signatures
    yield "```cpp\n" + "\n".join(code) + "\n```\n"
    for comment in function.comments:
        yield as_html(comment)
    if known is None:
        return
    ops = known["ops"]
    own = function.name.rstrip("_")
    rows = []
    if own in table:
        rows.append(("dtypes", dtypes(table[own])))
        rows.append(("layouts", layouts(table[own])))
    rows.append(("ops", ", ".join(op_link(op) for op in ops) or "none: reads or changes the handle only"))
    if ops:
        rows.append(("devices", devices(ops, table)))
        rows.append(("gradient", gradient_of(function.name, known, table)))
        bounds = "; ".join(dict.fromkeys(filter(None, (limits(table[op]) for op in ops))))
        if bounds:
            rows.append(("limits", bounds))
    yield "| | |\n|---|---|\n" + "".join(f"| {k} | {v} |\n" for k, v in rows)


def room_page(room, headers, functions_of, table):
    yield f"# {ROOMS[room]}\n"
    yield (f"Every function is in namespace `{NAMESPACES.get(room, 'flow')}`. The [list of all functions](index.md) explains the "
           "rows of the tables.\n")
    for path, (_, functions, structs) in headers:
        for function in functions.values():
            yield from function_entry(function, functions_of.get(function.name), table, structs)
        yield f"Header: `#include <flow/{path}>`, part of `<flow/flow.h>`.\n"


INDEX = """# Ops

After reading this page you can find a function, its layouts, dtypes and devices, and what it cannot do.

All functions are in namespace `flow`, those of linear algebra in `flow::linalg`, and Fourier transforms in `flow::fft`.
Every function of `flow` whose first argument is a tensor is also a method: `flow::softmax(x, 1)` is `x.softmax(1)`.
Arguments with a default value are fields of one aggregate: `flow::sum(x, 1, {.keepdim = true})`. A function with an underscore writes in place.

The rows of a function's table:

* **dtypes**: of the main input. *floating* is float16, bfloat16, float32 and float64; *integers* is uint8, int8,
  int16, int32 and int64; *numbers* is both; *all* includes bool.
* **layouts**: the [SBP signatures](../concepts.md#placement-and-sbp) for the inputs of the given shapes: the layout of
  each input → of each output, along one placement axis. With more axes, each axis has one of them. All B is always
  possible. Any other layout works too: flow moves data first ([how layouts are
  chosen](../concepts.md#how-layouts-are-chosen)). `*` marks a signature whose kernel needs the position of its part, so
  that it does not hold for the rows of a micro-batch.
* **ops**: the ops of the [op table](table.md) that the function runs, by its arguments and shapes.
* **devices**: where the function works.
* **gradient**: whether gradients pass through the function.

The pages are made from the headers, the op table, and calls of every function.

"""


def index_page(rooms, functions_of, table):
    yield INDEX
    for room, headers in rooms.items():
        yield f"\n## {ROOMS[room]} {{#{room}}}\n"
        yield "| function | what it does | gradient | devices |\n|---|---|---|---|"
        for _, (_, functions, _) in headers:
            for function in functions.values():
                known = functions_of.get(function.name, {"ops": []})
                gradient = gradient_of(function.name, known, table) if known["ops"] else ""
                where = devices(known["ops"], table).split(";")[0] if known["ops"] else ""
                yield (f"| [{function.name}]({PAGES.get(room, room)}.md#{function.name}) | {first_sentence(function)} "
                       f"| {gradient} | {where} |")


def first_sentence(function):
    text = " ".join(line.strip() for line in function.comments[0] if not line.startswith("   ")) \
        if function.comments else ""
    sentence = re.split(r"(?<=[.;:])\s", text)[0].rstrip(".;:")
    sentence = sentence if len(sentence) <= 90 else sentence[:87].rsplit(" ", 1)[0] + " …"
    return html.escape(sentence).replace("|", "&#124;")


TABLE = """# Op table

After reading this page you know what the library states of each op: functions run these ops, graphs and profiles show
their names, and [adding an op](../adding_an_op.md) adds to them. [Ops](index.md) explains the rows.

"""


def table_page(table):
    yield TABLE
    for name, facts in sorted(table.items()):
        yield f"## {name} {{#op-{name}}}\n"
        rows = [("dtypes", dtypes(facts)), ("layouts", layouts(facts)), ("devices", "CPU; functions use other ops on CUDA" if facts["on_cuda"] == "other ops"
                 else devices([name], table)),
                ("gradient", {"once": "yes"}.get(facts["gradient"], facts["gradient"]))]
        if limits(facts):
            rows.append(("limits", limits(facts)))
        yield "| | |\n|---|---|\n" + "".join(f"| {k} | {v} |\n" for k, v in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=pathlib.Path, help="the source tree")
    parser.add_argument("facts", type=pathlib.Path, help="what flow-ops wrote")
    parser.add_argument("out", type=pathlib.Path, help="the folder of the pages")
    arguments = parser.parse_args()
    facts = json.loads(arguments.facts.read_text())
    table, functions_of = facts["ops"], facts["functions"]
    for name, golden in GOLDEN_NAMES.items():
        functions_of[name] = functions_of[golden]

    rooms = {room: [] for room in ROOMS}
    for header in re.findall(r'#include "(ops/[^"]+)"', (arguments.root / "nn/flow.h").read_text()):
        rooms[header.split("/")[1]].append((header, read_header(arguments.root / header, header)))
    unknown = [f"{path}: flow-ops does not call {name}; add it to tools/flow_ops/other_functions.cpp"
               for headers in rooms.values() for path, (_, functions, _) in headers
               for name in functions if name not in functions_of and name not in WITHOUT_OPS]
    if unknown:
        sys.exit("\n".join(unknown))

    arguments.out.mkdir(parents=True, exist_ok=True)
    pages = {PAGES.get(room, room): room_page(room, headers, functions_of, table) for room, headers in rooms.items()}
    pages |= {"index": index_page(rooms, functions_of, table), "table": table_page(table)}
    for name, lines in pages.items():
        (arguments.out / f"{name}.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
