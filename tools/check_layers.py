#!/usr/bin/env python3
"""Fails if a folder of the library uses a folder that comes later in ORDER.

Includes are read from the sources. Each must be written from the repository root and name a file of
the same folder or of an earlier one, and headers must not include each other in a cycle. Symbols are
read from a build tree (--objects build/release): no object may need a symbol that only later folders
define. This finds functions that are declared in a folder but defined in a later one.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

ORDER = ["core", "ops", "boxing", "autograd", "eager", "graph", "pipeline", "nn"]
RANK = {name: i for i, name in enumerate(ORDER)}
# Methods of Tensor and of its bases in core/methods, which are defined in the folder that owns what
# they do: the one exception.
DECLARED_IN_CORE = ("flow::Tensor::", "flow::internal::read_values(") + tuple(
    f"flow::{subject}Methods::"
    for subject in ("Autograd", "InPlace", "Index", "Pointwise", "Reduce", "Shape"))
INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]*)"')


def check_includes(root):
    """Returns the violations and, per file, the files of the library it includes."""
    problems = []
    includes = {}
    for folder in ORDER:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in {".h", ".cpp", ".cu", ".cuh"}:
                continue
            name = path.relative_to(root).as_posix()
            includes[name] = []
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                target = match.group(1)
                target_folder = target.split("/")[0]
                if target_folder not in RANK or ".." in target:
                    problems.append(f"{name}:{number}: write includes from the repository root, in "
                                    f"quotes for flow's own files only: \"{target}\"")
                elif RANK[target_folder] > RANK[folder]:
                    problems.append(f"{name}:{number}: {folder}/ may not include {target}")
                else:
                    includes[name].append(target)
    return problems, includes


def check_cycles(includes):
    problems = []
    state = {}

    def visit(name, trail):
        if state.get(name) == "done" or name not in includes:
            return
        if name in trail:
            problems.append("include cycle: " + " -> ".join(trail[trail.index(name):] + [name]))
            return
        for target in includes[name]:
            visit(target, trail + [name])
        state[name] = "done"

    for name in includes:
        visit(name, [])
    return problems


def read_symbols(build, folder):
    """Returns (strong definitions, {undefined symbol: an object that needs it}) of a folder."""
    objects = sorted((build / folder).rglob(f"CMakeFiles/flow_{folder}*.dir/**/*.o"))
    defined, undefined = set(), {}
    if not objects:
        return defined, undefined
    listing = subprocess.run(["nm", "-A", "--format=posix", *objects], check=True, text=True,
                             capture_output=True).stdout
    for line in listing.splitlines():
        where, rest = line.split(": ", 1)
        symbol, kind = rest.split()[:2]
        if kind == "U":
            undefined.setdefault(symbol, where)
        elif kind in "TDBRVWui":
            defined.add(symbol)
    return defined, undefined


def check_symbols(build):
    defined_in = collections.defaultdict(list)
    needed = {}
    for folder in ORDER:
        defined, needed[folder] = read_symbols(build, folder)
        for symbol in defined:
            defined_in[symbol].append(folder)
    problems = []
    for folder, symbols in needed.items():
        for symbol, where in symbols.items():
            homes = defined_in.get(symbol)
            if homes and all(RANK[home] > RANK[folder] for home in homes):
                readable = subprocess.run(["c++filt", symbol], check=True, text=True,
                                          capture_output=True).stdout.strip()
                if readable.startswith(DECLARED_IN_CORE):
                    continue
                source = pathlib.Path(where).name.removesuffix(".o")
                problems.append(f"{folder}/{source} needs {readable}, which {homes[0]}/ defines")
    if not any(defined_in):
        problems.append(f"{build} holds no objects of the library: run tools/build first")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=".", type=pathlib.Path)
    parser.add_argument("--objects", type=pathlib.Path, metavar="BUILD")
    arguments = parser.parse_args()
    problems, includes = check_includes(arguments.root)
    problems += check_cycles(includes)
    if arguments.objects:
        problems += check_symbols(arguments.objects)
    print("\n".join(problems), end="\n" if problems else "")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
