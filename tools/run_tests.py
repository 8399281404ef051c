#!/usr/bin/env python3
"""Builds presets, runs their tests with ctest, and counts the test cases. tools/test calls it."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPTIONS = ["MPI", "GLOG", "ONEDNN", "OPENBLAS"]
JOBS = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count())


class Totals:
    """The number of test cases that passed, and the names of those that failed or were skipped."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    def add_result(self, name, passed):
        if passed:
            self.passed += 1
        else:
            self.failed.append(name)

    def line(self):
        return f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"


def add_googletest(totals, section, test, ctest_failed, report):
    """Adds the cases of one googletest report. After a crash the report is missing or has no failure."""
    failed_before = len(totals.failed)
    if report.exists():
        for suite in json.loads(report.read_text())["testsuites"]:
            for case in suite["testsuite"]:
                name = f"{section}: {suite['name']}.{case['name']}"
                if case["result"] == "SKIPPED":
                    totals.skipped.append(name)
                else:
                    totals.add_result(name, "failures" not in case)
    if ctest_failed and len(totals.failed) == failed_before:
        totals.failed.append(f"{section}: {test}")


def run_ctest(totals, section, build, selection):
    reports = build / "test-results"
    shutil.rmtree(reports, ignore_errors=True)
    junit = build / "junit.xml"
    junit.unlink(missing_ok=True)
    subprocess.run(
        ["ctest", "--test-dir", build, "--output-on-failure", "--no-tests=ignore",
         "--parallel", JOBS, "--output-junit", junit, *selection],
        cwd=ROOT, stdin=subprocess.DEVNULL, check=False)
    if not junit.exists():
        totals.failed.append(f"{section}: ctest")
        return
    for test in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
        name, status = test.get("name"), test.get("status")
        report = reports / f"{name}.json"
        if status == "disabled" or (status == "notrun" and test.find("skipped") is not None
                                    and not name.endswith("_NOT_BUILT")):
            totals.skipped.append(f"{section}: {name}")
        elif report.exists() or status != "run":
            add_googletest(totals, section, name, status != "run", report)
        else:
            totals.passed += 1


def step(totals, section, command, environment=None):
    """Runs one command, and counts it as a failed test if it fails."""
    print(f"== {section}: {' '.join(str(word) for word in command)}", flush=True)
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        totals.failed.append(f"{section}: {' '.join(str(word) for word in command)}")
    return done.returncode == 0


def build_and_test(totals, preset, selection, configure=(), build=None, target="all"):
    section = build or preset
    where = ["-B", f"build/{build}"] if build else []
    if build:
        ready = (step(totals, section, ["cmake", "--preset", preset, *where, *configure])
                 and step(totals, section, ["cmake", "--build", f"build/{build}", "--parallel", JOBS]))
    else:
        ready = step(totals, section, ["tools/build", preset, *configure],
                     {"BUILD_TARGETS": target})
    if ready:
        run_ctest(totals, section, ROOT / "build" / section, selection)


def run_everything(totals):
    build_and_test(totals, "release", [])
    unit = ["-L", "^unit$"]
    for preset in ["asan", "tsan"]:
        build_and_test(totals, preset, unit, target="tests_unit")
    build_and_test(totals, "cuda-emulated", ["-L", "^cuda$"], target="tests_cuda")
    totals.add_result("tidy", step(Totals(), "tidy", ["tools/build", "tidy"]))
    for option in OPTIONS:
        build_and_test(totals, "release", unit, [f"-DFLOW_{option}=OFF"],
                       f"without-{option.lower()}")
    build_and_test(totals, "release", ["-L", "^(unit|package)$"], ["-DBUILD_SHARED_LIBS=ON"],
                   "shared")
    totals.add_result("fresh Debian 12", step(Totals(), "fresh Debian 12", ["tools/chroot_proof"]))


def main():
    parser = argparse.ArgumentParser(prog="tools/test", description=(
        "Installs packages, builds, and runs every test that is not labelled slow."))
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("--quick", action="store_true", help="run only tests labelled unit")
    scope.add_argument("--all", action="store_true", help=(
        "also run slow tests and long fuzzing, the asan, tsan, tidy and cuda-emulated presets, a build with "
        "each option OFF, a shared library, and the README's two commands on a fresh Debian 12 (needs root)"))
    scope.add_argument("--label", metavar="L", help="run only tests with this label")
    parser.add_argument("--preset", default="release", help="the preset to build and test (default: release)")
    arguments = parser.parse_args()

    totals = Totals()
    if arguments.all:
        run_everything(totals)
    elif arguments.quick:
        build_and_test(totals, arguments.preset, ["-L", "^unit$"], target="tests_unit")
    elif arguments.label:
        build_and_test(totals, arguments.preset, ["-L", f"^{arguments.label}$"])
    else:
        build_and_test(totals, arguments.preset, ["-LE", "^slow$"])

    for name in totals.skipped:
        print(f"skipped: {name}")
    for name in totals.failed:
        print(f"FAILED: {name}")
    print(totals.line())
    sys.exit(bool(totals.failed))


if __name__ == "__main__":
    main()
