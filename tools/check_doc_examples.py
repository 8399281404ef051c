#!/usr/bin/env python3
"""Compiles every ```cpp block of README.md and docs/ against the headers of a build tree.

Errors name the page and its line. Blocks marked ```cpp fragment are skipped.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys


def examples(root):
    for page in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")]):
        text = page.read_text()
        for match in re.finditer(r"^```cpp\n(.*?)^```", text, re.S | re.M):
            line = text[: match.start()].count("\n") + 2
            yield f'#line {line} "{page.relative_to(root)}"\n{match.group(1)}'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=".", type=pathlib.Path)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    command = ["c++", "-std=c++20", "-Wall", "-Wextra", f"-I{arguments.build / 'include'}",
               f"-I{arguments.root}", "-fsyntax-only", "-x", "c++", "-"]

    def compile_example(source):
        return subprocess.run(command, input=source, text=True, capture_output=True, check=False)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = [run for run in pool.map(compile_example, examples(arguments.root))
                  if run.returncode != 0]
    for run in failed:
        print(run.stderr.strip())
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
