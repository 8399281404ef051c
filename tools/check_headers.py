#!/usr/bin/env python3
"""Fails if a header of the library does not compile by itself.

If the source file of a header includes the header first, a build without precompiled headers proves
that it is self-contained, so this script checks only the order there. It compiles every other header
with the flags of the build tree, without precompiled headers. A header that is not meant to compile by
itself has a line that begins with "// Not self-contained:".
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

from check_layers import ORDER

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]*)[">]', re.M)


def compile_commands(build):
    """Maps each source of the library to its command, as a list of words, without its output."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        commands.setdefault(entry["file"], words[: words.index("-o")])
    return commands


def without_precompiled(command):
    """The command without "-include HEADER", which is how CMake passes a precompiled header."""
    return [word for before, word in zip(["", *command], command)
            if "-include" not in (before, word) and word not in ("-Winvalid-pch", "-x", "c++-header")]


def check_own_header_first(root, commands):
    """Returns the violations and the headers that a source proves self-contained."""
    problems, proved = [], set()
    for folder in ORDER:
        for source in sorted((root / folder).rglob("*.cpp")):
            header = source.with_suffix(".h")
            if not header.exists():
                continue
            name = header.relative_to(root).as_posix()
            first = INCLUDE.search(source.read_text())
            if not first or first.group(1) != name:
                problems.append(f"{source.relative_to(root)}: include \"{name}\" first, so that "
                                "it is known to be self-contained")
            elif "-include" not in commands.get(str(source.resolve()), ["-include"]):
                proved.add(name)
    return problems, proved


def compile_alone(header, command):
    done = subprocess.run([*command, "-fsyntax-only", "-x", "c++", "-"], text=True,
                          input=f'#include "{header}"\n', capture_output=True, check=False)
    return "" if done.returncode == 0 else f"{header} is not self-contained:\n{done.stderr}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=".", type=pathlib.Path)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    root = arguments.root.resolve()

    commands = compile_commands(arguments.build)
    problems, proved = check_own_header_first(root, commands)
    any_command = next(words for source, words in commands.items() if source.startswith(f"{root}/core/"))
    # Kernel headers see the instruction set that every machine has.
    command = [word for word in without_precompiled(any_command)
               if word != "-c" and not word.endswith("ccache")]
    command = [*command, "-DFLOW_ISA=0"]
    headers = []
    for folder in ORDER:
        for path in sorted((root / folder).rglob("*.h")):
            name = path.relative_to(root).as_posix()
            if name not in proved and "// Not self-contained:" not in path.read_text():
                headers.append(name)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems += [p for p in pool.map(lambda h: compile_alone(h, command), headers) if p]
    print("\n".join(problems), end="\n" if problems else "")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
