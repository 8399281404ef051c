#!/usr/bin/env python3
"""Writes docs/pytorch_names.md: every public name of PyTorch, and what flow has for it.

tools/pytorch_names/names.txt holds PyTorch's names, and mapping.txt what flow has for those that it
spells in another way or does not have. A name that flow has needs no line. The compiler says which
names flow has: one source file names all of them. With --check the page is compared, not written.
"""

import argparse
import fnmatch
import functools
import importlib
import inspect
import pathlib
import re
import subprocess
import sys
import typing

from check_doc_examples import compile_command

# PyTorch's modules, and the scopes in which flow has their names.
SCOPES = {
    "torch": ["flow"],
    "torch.Tensor": ["flow::Tensor"],
    "torch.nn": ["flow::nn"],
    "torch.nn.functional": ["flow"],
    "torch.nn.init": ["flow::nn::init"],
    "torch.nn.utils": ["flow::nn::utils"],
    "torch.optim": ["flow::optim"],
    "torch.optim.lr_scheduler": ["flow::optim::lr_scheduler"],
    "torch.utils.data": ["flow::data"],
    "torch.distributed": ["flow::comm"],
    "torch.linalg": ["flow::linalg"],
    "torch.special": ["flow"],
    "torch.fft": ["flow::fft"],
    "torch.autograd": ["flow"],
}
KEYWORDS = {"and", "bool", "char", "double", "float", "int", "long", "not", "or", "short", "xor"}
# Python's names of operators, without those that take the operands in turned order.
OPERATORS = ["abs", "add", "and", "bool", "eq", "floordiv", "ge", "getitem", "gt", "iadd", "iand",
             "ifloordiv", "imod", "imul", "invert", "ior", "ipow", "isub", "itruediv", "ixor", "le",
             "len", "lshift", "lt", "matmul", "mod", "mul", "ne", "neg", "or", "pow", "rshift",
             "setitem", "sub", "truediv", "xor"]
KINDS = {"present": "same name", "other": "another spelling", "missing": "missing", "out": "no counterpart"}
SIGNS = {"~": "present", "=": "other", "!": "missing", "-": "out"}

PAGE = """\
# PyTorch's names

`tools/pytorch_names.py` writes this page; do not edit it. It lists every public name of PyTorch {version} in the modules
below and says what flow has instead of it. The names in the right column exist: the script compiles them. [Coming from
PyTorch](from_pytorch.md) explains what differs between a Python and a C++ program. In spellings, `x`, `y` and `z` are tensors, and
`n` is a number.

* *Same name*: flow has the name; a note says what differs.
* *Another spelling*: flow has it under another name, as an operator, or as a word of C++.
* *Missing*: flow could have it and does not; the entry says what to use instead.
* *No counterpart*: the name belongs to something that flow does not have or does in another way, such as sparse or
  quantized tensors, or Python itself; the entry gives the reason.
"""


# ---- PyTorch's names

def public_names(module_name):
    """The public names of a module, or of torch.Tensor. PyTorch does not list them in one place."""
    if module_name == "torch.Tensor":
        tensor = importlib.import_module("torch").Tensor
        return sorted([name for name in dir(tensor) if not name.startswith("_")]
                      + [f"__{name}__" for name in OPERATORS])
    module = importlib.import_module(module_name)
    listed = set(getattr(module, "__all__", []))

    def is_own(name):
        value = getattr(module, name)
        if inspect.ismodule(value):
            return value.__name__.startswith(module_name + ".") and "._" not in value.__name__
        if isinstance(value, typing.TypeVar) or name == "annotations":
            return False
        home = getattr(value, "__module__", None) or "torch"
        if not inspect.isclass(value) and not callable(value):
            return name.islower() or module_name == "torch"
        if module_name not in ("torch", "torch.nn", "torch.nn.functional") and listed:
            return False  # the list is complete there
        return home.split(".")[0] == "torch"

    return sorted(name for name in dir(module)
                  if not name.startswith("_") and (name in listed or is_own(name)))


def collect(path):
    lines = [f"PyTorch {importlib.import_module('torch').__version__.split('+')[0]}"]
    for module in SCOPES:
        lines += ["", f"[{module}]", *public_names(module)]
    path.write_text("\n".join(lines) + "\n")


def read_names(path):
    """The version, and the names of each module."""
    version, *lines = path.read_text().splitlines()
    modules = {}
    for line in filter(None, lines):
        if line.startswith("["):
            names = modules.setdefault(line[1:-1], [])
        else:
            names.append(line)
    return version.removeprefix("PyTorch "), modules


# ---- what flow has for them

class Rule:
    """A line of the mapping: `names sign text`, where = has a spelling and perhaps `| note`."""

    def __init__(self, place, modules, names, sign, text):
        self.place, self.modules, self.names, self.kind = place, modules, names, SIGNS[sign]
        self.spelling, self.note = "", text
        if self.kind == "other":
            self.spelling, _, self.note = (part.strip() for part in text.partition(" | "))
        self.used = {name: False for name in names}


def read_rules(path, label):
    rules, reasons, modules = [], {}, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            modules = line.strip()[1:-1].split()
        elif match := re.fullmatch(r"\$(\w+): (.*)", line):
            reasons[match[1]] = match[2]
        elif match := re.fullmatch(r"(.+?) ([=~!-]) (.+)", line):
            text = re.sub(r"\$(\w+)", lambda word: reasons[word[1]], match[3])
            rules.append(Rule(f"{label}:{number}", modules, match[1].split(), match[2], text))
        else:
            raise SystemExit(f"{label}:{number}: not `names sign text`: {line}")
    return rules


def is_entity(spelling):
    return re.fullmatch(r"flow::(\w+::)*(\w+|operator\S+)", spelling) is not None


class Probe:
    """A source file with one line for each claim. The compiler says which lines are true."""

    def __init__(self):
        self.lines = {}

    def add(self, claim):
        self.lines.setdefault(claim, len(self.lines) + 1)

    @staticmethod
    def line_of(claim, number):
        if claim.startswith("flow::Tensor::"):
            return f"struct Member{number} : flow::Tensor {{ using {claim}; }};"
        if is_entity(claim):
            return f"namespace entity{number} {{ using {claim}; }}"
        return (f"struct Module{number} : flow::nn::Module<Module{number}> "
                f"{{ void call() {{ {claim}; }} }};")

    def true_claims(self, command):
        head = "#include <flow/flow.h>\n"
        if not all(is_entity(claim) for claim in self.lines):
            head += ("#include <limits>\n#include <numbers>\n"
                     "extern const flow::Tensor x, y, z;\nextern const int64_t n;\n")
        body = "".join(f'#line {number} "claim"\n{self.line_of(claim, number)}\n'
                       for claim, number in self.lines.items())
        done = subprocess.run([*command, "-Wno-unused-value", "-fno-diagnostics-show-caret"],
                              input=head + body, text=True, capture_output=True, check=False)
        errors = re.findall(r"^(.+?):(\d+):(?:\d+:)? (?:fatal )?error: .*", done.stderr, re.M)
        if strange := [place for place, _ in errors if place != "claim"]:
            raise SystemExit(f"the headers do not compile: {strange[0]}\n{done.stderr[:4000]}")
        false_lines = {int(line) for _, line in errors}
        return {claim for claim, number in self.lines.items() if number not in false_lines}


class Table:
    """For each module its rows: a name, its kind, what flow has and a note."""

    def __init__(self, modules, rules, command, label):
        self.problems, self.rows = [], {}
        probe = Probe()
        for module, names in modules.items():
            for name in names:
                for claim in self.own_claims(module, name):
                    probe.add(claim)
        for rule in rules:
            if rule.spelling:
                probe.add(rule.spelling)
        self.true = probe.true_claims(command)
        for module, names in modules.items():
            own_rules = [rule for rule in rules if module in rule.modules]
            self.rows[module] = [self.row(module, name, own_rules, label) for name in names]
        for rule in rules:
            self.problems += [f"{rule.place}: {name} is the name of nothing that needs the line"
                              for name, used in rule.used.items() if not used]
            if rule.spelling and rule.spelling not in self.true:
                self.problems.append(f"{rule.place}: flow has no {rule.spelling}")

    @staticmethod
    def own_claims(module, name):
        if name in KEYWORDS or name.startswith("__"):
            return []
        return [f"{scope}::{name}" for scope in SCOPES[module]]

    def row(self, module, name, rules, label):
        own = next((claim for claim in self.own_claims(module, name) if claim in self.true), None)
        exact = [rule for rule in rules if name in rule.names]
        if len(exact) > 1:
            self.problems.append(f"{exact[1].place}: {name} has a line above")
        found = exact[0] if exact else None
        if own:
            if found:
                found.used[name] = True
                if found.kind != "present":
                    self.problems.append(f"{found.place}: {name} exists as {own}")
            return name, "present", own, found.note if found else ""
        pattern = name
        if not found:
            matches = ((rule, pattern) for rule in rules for pattern in rule.names
                       if fnmatch.fnmatchcase(name, pattern))
            found, pattern = next(matches, (None, None))
        if not found:
            self.problems.append(f"{label}: nothing says what flow has for {module}.{name}")
            return name, "missing", "", ""
        found.used[pattern] = True
        if found.kind == "present":
            self.problems.append(f"{found.place}: flow has no {name} in {', '.join(SCOPES[module])}")
        return name, found.kind, found.spelling, found.note


# ---- the page

def cell(kind, spelling, note):
    shown = spelling.replace("flow::Tensor::", "x.").replace("|", "\\|")
    code = f"`{shown}`" if shown else ""
    text = f"missing: {note}" if kind == "missing" else note
    return f"{code}; {text}" if code and text else code + text


def page_of(version, rows):
    lines = [PAGE.format(version=version), f"| module | names | {' | '.join(KINDS.values())} |",
             "|---|---:|" + "---:|" * len(KINDS)]

    def count_line(module, module_rows):
        counts = [sum(row[1] == kind for row in module_rows) for kind in KINDS]
        shares = (f"{count} ({100 * count / len(module_rows):.0f} %)" for count in counts)
        return f"| {module} | {len(module_rows)} | {' | '.join(shares)} |"

    lines += [count_line(f"[{module}](#{module.replace('.', '').lower()})", module_rows)
              for module, module_rows in rows.items()]
    lines.append(count_line("all", sum(rows.values(), [])))
    for module, module_rows in rows.items():
        lines += ["", f"## {module}", "", "| PyTorch | flow |", "|---|---|"]
        lines += [f"| `{name}` | {cell(*rest)} |" for name, *rest in module_rows]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=".", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, help="a build tree, for the umbrella header")
    parser.add_argument("--check", action="store_true", help="fail if the page is not current")
    parser.add_argument("--collect", action="store_true",
                        help="write names.txt from the PyTorch that this Python imports")
    arguments = parser.parse_args()
    folder = arguments.root / "tools/pytorch_names"
    if arguments.collect:
        return collect(folder / "names.txt")
    if not arguments.build:
        parser.error("--build is needed")
    version, modules = read_names(folder / "names.txt")
    rules = read_rules(folder / "mapping.txt", "tools/pytorch_names/mapping.txt")
    table = Table(modules, rules, compile_command(arguments.root, arguments.build),
                  "tools/pytorch_names/mapping.txt")
    page, path = page_of(version, table.rows), arguments.root / "docs/pytorch_names.md"
    if not arguments.check:
        path.write_text(page)
    elif not path.exists() or path.read_text() != page:
        table.problems.append("docs/pytorch_names.md is not current: run tools/pytorch_names.py "
                              f"--build {arguments.build}")
    print("\n".join(table.problems), end="\n" if table.problems else "")
    return bool(table.problems)


if __name__ == "__main__":
    sys.exit(main())
