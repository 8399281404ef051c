#!/usr/bin/env python3
"""Checks the table of docs/status.md: every row names what would fail if its claim were false.

A row needs a test program with tests that its filter selects, an example or a test that ctest runs, or a
script of this repository. With --run, runs the test programs, and fails if one fails or runs no test.
"""

import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = ROOT / "build/release/bin"


def rows():
    for line in (ROOT / "docs/status.md").read_text().splitlines():
        # The last column has no bar of its own.
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|") and len(cells) == 3 and cells[0].strip() != "capability":
            yield cells[0].strip("| "), re.findall(r"`([^`]+)`", cells[2])


def listed_by_ctest(selection):
    """The names of the tests that ctest runs."""
    listed = subprocess.run(["ctest", "--test-dir", ROOT / "build/release", "-N", *selection], check=True,
                            capture_output=True, text=True).stdout
    return re.findall(r"Test +#\d+: (\S+)", listed)


def examples():
    """The names of the examples and benchmarks that ctest runs."""
    return {name.split(".")[1] for name in listed_by_ctest([]) if name.startswith(("example.", "bench."))}


def selected(words):
    listed = subprocess.run([BIN / words[0], "--gtest_list_tests", *words[1:]], check=False,
                            capture_output=True, text=True)
    return [line for line in listed.stdout.splitlines() if line.startswith("  ")]


def problems_of(command, in_ctest, proofs):
    """Yields what is wrong with a command; appends it to `proofs` if something can fail in it."""
    words = shlex.split(command)
    if words[0].startswith(("tools/", ".ci/")):
        proofs.append(words)
        if not (ROOT / words[0]).exists():
            yield f"{words[0]} does not exist"
    elif words[0].endswith("_test"):
        proofs.append(words)
        if not (BIN / words[0]).exists():
            yield f"{words[0]} is not a program"
        elif not selected(words):
            yield f"`{command}` selects no test"
    elif words[0] == "ctest" and "--test-dir" not in words:
        proofs.append(words)
        if not listed_by_ctest(words[1:]):
            yield f"`{command}` selects no test"
    else:
        program = pathlib.Path(words[3] if words[0] == "flowrun" and "-n" in words else words[0]).name
        if program in in_ctest:
            proofs.append(words)
        if not (BIN / program).exists() and words[0] != "ctest":
            yield f"{program} is not a program"


def main():
    in_ctest = examples()
    problems, to_run = [], []
    for capability, commands in rows():
        proofs = []
        for command in commands:
            problems += [f"{capability}: {problem}"
                         for problem in problems_of(command, in_ctest, proofs)]
        if not proofs:
            problems.append(f"{capability}: no command could fail; name a test")
        to_run += [words for words in proofs if words[0].endswith("_test")]
    if sys.argv[1:] == ["--run"]:
        for words in to_run:
            command = [BIN / words[0], *words[1:], "--gtest_brief=1"]
            if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
                problems.append(f"`{shlex.join(words)}` fails")
    print("\n".join(problems))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
