#!/usr/bin/env python3
"""Checks the table of docs/status.md: every row names what would fail if its claim were false.

tools/check_status.py [ROOT] [--run]

A row needs a test program, an example or a test that ctest runs, or a script of this repository. Each pattern
of a filter selects a test. With --run, runs the test programs and the selections of ctest, and fails if one
fails, or if none of its tests passes.
"""

import argparse
import fnmatch
import functools
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import run_tests


def rows(root):
    for line in (root / "docs/status.md").read_text().splitlines():
        # The last column has no bar of its own.
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|") and len(cells) == 3 and cells[0].strip() != "capability":
            yield cells[0].strip("| "), re.findall(r"`([^`]+)`", cells[2])


def listed_by_ctest(root, selection):
    """The names of the tests that ctest runs."""
    listed = subprocess.run(["ctest", "--test-dir", root / "build/release", "-N", *selection], check=True,
                            capture_output=True, text=True).stdout
    return re.findall(r"Test +#\d+: (\S+)", listed)


def examples(root):
    """The names of the examples and benchmarks that ctest runs."""
    return {name.split(".")[1] for name in listed_by_ctest(root, []) if name.startswith(("example.", "bench."))}


@functools.lru_cache(maxsize=None)
def tests_of(program):
    """The names Suite.Case of a googletest program."""
    listed = subprocess.run([program, "--gtest_list_tests"], check=False, capture_output=True, text=True).stdout
    names, suite = [], ""
    for line in listed.splitlines():
        words = line.split()
        if line.startswith("  "):
            names.append(suite + words[0])
        elif words and words[0].endswith("."):
            suite = words[0]
    return names


def dead_patterns(program, options):
    """The patterns of a filter that select no test."""
    for option in options:
        if option.startswith("--gtest_filter="):
            for pattern in option.partition("=")[2].partition("-")[0].split(":"):
                if not fnmatch.filter(tests_of(program), pattern):
                    yield pattern


def problems_of(root, command, in_ctest, proofs):
    """Yields what is wrong with a command; appends it to `proofs` if something can fail in it."""
    words = shlex.split(command)
    bin_folder = root / "build/release/bin"
    if words[0].startswith(("tools/", ".ci/")):
        proofs.append(words)
        if not (root / words[0]).exists():
            yield f"{words[0]} does not exist"
    elif words[0].endswith("_test"):
        proofs.append(words)
        program = bin_folder / words[0]
        if not program.exists():
            yield f"{words[0]} is not a program"
        elif not tests_of(program):
            yield f"{words[0]} has no test"
        else:
            for pattern in dead_patterns(program, words[1:]):
                yield f"{pattern} selects no test of {words[0]}"
    elif words[0] == "ctest":
        proofs.append(words)
        if "--test-dir" not in words and not listed_by_ctest(root, words[1:]):
            yield f"`{command}` selects no test"
    else:
        program = pathlib.Path(words[3] if words[0] == "flowrun" and "-n" in words else words[0]).name
        if program in in_ctest:
            proofs.append(words)
        if not (bin_folder / program).exists():
            yield f"{program} is not a program"


def run_program(root, words):
    """The counts of the tests that a googletest program runs."""
    totals = run_tests.Totals()
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch) / "report.json"
        done = subprocess.run([root / "build/release/bin" / words[0], *words[1:], "--gtest_brief=1"], cwd=root,
                              check=False, env={**os.environ, "GTEST_OUTPUT": f"json:{report}"})
        run_tests.add_googletest(totals, "release", words[0], done.returncode != 0, report)
    return totals


def run_ctest(root, words):
    """The counts of the tests that ctest selects, in build/release if the words name no other build tree."""
    totals, build, selection = run_tests.Totals(), root / "build/release", words[1:]
    if "--test-dir" in selection:
        at = selection.index("--test-dir")
        build = root / selection[at + 1]
        selection = selection[:at] + selection[at + 2:]
    if build.exists():
        run_tests.run_ctest(totals, build.name, build, selection)
    else:
        totals.failed.append(f"build/{build.name} is missing; run tools/build {build.name}")
    return totals


def run_proofs(root, proofs):
    """Yields what fails, and what shows nothing."""
    for words in proofs:
        if words[0] == "ctest" or words[0].endswith("_test"):
            totals = (run_ctest if words[0] == "ctest" else run_program)(root, words)
            command = shlex.join(words)
            yield from (f"`{command}`: {failure}" for failure in totals.failed)
            if totals.passed == 0 and not totals.failed:
                yield f"`{command}`: no test passed"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=run_tests.ROOT)
    parser.add_argument("--run", action="store_true", help="run the tests")
    arguments = parser.parse_args()
    in_ctest = examples(arguments.root)
    problems, to_run = [], []
    for capability, commands in rows(arguments.root):
        proofs = []
        for command in commands:
            problems += [f"{capability}: {problem}"
                         for problem in problems_of(arguments.root, command, in_ctest, proofs)]
        if not proofs:
            problems.append(f"{capability}: no command could fail; name a test")
        to_run += map(tuple, proofs)
    if arguments.run:
        problems += run_proofs(arguments.root, dict.fromkeys(to_run))
    print("\n".join(problems))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
