#!/usr/bin/env python3
"""Builds presets, runs their tests with ctest, and counts the test cases. tools/test calls it."""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The tests that may be skipped, with reasons and, for some, with the presets where they may be (only_in) or may
# not be (not_in); the suites that run on one thread; and how many test cases must pass in selections of tests.
EXPECTED = json.loads((ROOT / "tests/expected.json").read_text())
OPTIONS = ["MPI", "GLOG", "ONEDNN", "OPENBLAS", "KISSFFT"]
JOBS = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count())


COUNTS = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped")


def reason_to_skip(section, test):
    """Why tests/expected.json lets a test of a preset or another section be skipped; None if it does not."""
    return next((row["reason"] for row in EXPECTED["may_skip"]
                 if re.fullmatch(row["tests"], test) and section in row.get("only_in", [section])
                 and section not in row.get("not_in", [])), None)


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

    def add_skip(self, section, test):
        """A skip fails unless tests/expected.json lists the test."""
        if reason_to_skip(section, test):
            self.skipped.append(f"{section}: {test}")
        else:
            self.failed.append(f"{section}: {test} was skipped, but tests/expected.json does not list it")

    def require_passed(self, selection):
        least = EXPECTED["least_passed"].get(selection, 1)
        if self.passed < least:
            self.failed.append(f"{selection}: {self.passed} test cases passed; "
                               f"tests/expected.json expects at least {least}")

    def line(self):
        return f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"


def add_googletest(totals, section, test, ctest_failed, report):
    """Adds the cases of one googletest report. After a crash the report is missing or has no failure; a program
    that ends with 0 before its tests have run writes none either."""
    failed_before = len(totals.failed)
    if not report.exists() and not ctest_failed:
        totals.failed.append(f"{section}: {test} ended with 0, but wrote no report")
    if report.exists():
        for suite in json.loads(report.read_text())["testsuites"]:
            for case in suite["testsuite"]:
                name = f"{section}: {suite['name']}.{case['name']}"
                if case["result"] == "SKIPPED":
                    totals.add_skip(section, f"{suite['name']}.{case['name']}")
                else:
                    totals.add_result(name, "failures" not in case)
    if ctest_failed and len(totals.failed) == failed_before:
        totals.failed.append(f"{section}: {test}")


def tests_with_reports(build):
    """The names of the tests whose environment asks googletest for a report."""
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], cwd=ROOT, check=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout
    return {test["name"] for test in json.loads(listed)["tests"]
            for entry in test.get("properties", []) if entry["name"] == "ENVIRONMENT"
            if any(variable.startswith("GTEST_OUTPUT=") for variable in entry["value"])}


def run_ctest(totals, section, build, selection, environment=None):
    reports = build / "test-results"
    shutil.rmtree(reports, ignore_errors=True)
    junit = build / "junit.xml"
    junit.unlink(missing_ok=True)
    subprocess.run(
        ["ctest", "--test-dir", build, "--output-on-failure", "--no-tests=ignore",
         "--parallel", JOBS, "--output-junit", junit, *selection],
        cwd=ROOT, stdin=subprocess.DEVNULL, check=False, env={**os.environ, **(environment or {})})
    if not junit.exists():
        totals.failed.append(f"{section}: ctest")
        return
    tests = list(xml.etree.ElementTree.parse(junit).getroot().iter("testcase"))
    if not tests:
        totals.failed.append(f"{section}: no test is selected by {' '.join(selection)}")
    with_report = tests_with_reports(build)
    for test in tests:
        name, status = test.get("name"), test.get("status")
        report = reports / f"{name}.json"
        if status == "disabled" or (status == "notrun" and test.find("skipped") is not None
                                    and not name.endswith("_NOT_BUILT")):
            totals.add_skip(section, name)
        elif name in with_report or status != "run":
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


def counted_step(totals, section, command):
    """Runs a command whose last line has the three counts, and adds them up."""
    print(f"== {section}: {' '.join(command)}", flush=True)
    line = ""
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
    counts = COUNTS.fullmatch(line.rstrip("\n"))
    passed, failed, skipped = map(int, counts.groups()) if counts else (0, 1, 0)
    totals.passed += passed
    totals.failed += [f"{section}: {' '.join(command)}"] * (failed or int(process.returncode != 0))
    for _ in range(skipped):
        totals.add_skip(section, " ".join(command))


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


def cpu_isas():
    """The instruction sets of this CPU that flow has kernels for."""
    flags = set(re.search(r"^flags\s*: (.*)$", cpu_info(), re.MULTILINE)[1].split())
    return [isa for isa, flag in (("avx2", "avx2"), ("avx512", "avx512f")) if flag in flags]


def cpu_info():
    return pathlib.Path("/proc/cpuinfo").read_text()


def machine():
    name = re.search(r"^model name\s*: (.*)$", cpu_info(), re.MULTILINE)[1]
    return " ".join([f"{os.cpu_count()} cores,", name, *cpu_isas()[-1:]])


def units():
    """The parts of --all: names and functions of Totals. None should take more than 50 minutes on 2 cores."""
    def shards(name, preset, count, selection, target="all"):
        for i in range(1, count + 1):
            yield f"{name} {i}/{count}", lambda totals, i=i: build_and_test(
                totals, preset, [*selection, "-I", f"{i},,{count}"], target=target)

    # The kernels of a wide instruction set, which the preset asan leaves out.
    def kernels_under_asan(totals, isa):
        section, build = "asan-kernels", ROOT / "build/asan-kernels"
        programs = ["ops_test", "contract_test", "parity_test"]
        if isa not in cpu_isas():
            totals.add_skip(section, f"kernels of {isa}")
        elif (step(totals, section, ["cmake", "--preset", "asan", "-B", build, "-DFLOW_CPU_ISAS=all"])
                and step(totals, section, ["cmake", "--build", build, "--parallel", JOBS, "--target", *programs])):
            run_ctest(totals, f"{section} {isa}", build,
                      ["-R", f"^({'|'.join(programs)})[.]", "-L", "^unit$"], {"FLOW_CPU_ISA": isa})

    def command(name, words):
        return name, lambda totals: totals.add_result(name, step(Totals(), name, words))

    unit = ["-L", "^unit$"]
    yield "release", lambda totals: build_and_test(totals, "release", ["-LE", "^slow$"])
    yield from shards("slow tests", "release", 4, ["-L", "^slow$", "-LE", "^(fuzz|soak)$"])
    yield "soak", lambda totals: build_and_test(totals, "release", ["-L", "^soak$"])
    if shutil.which("clang++-14"):
        yield command("fuzz: build", ["env", "BUILD_TARGETS=tests_fuzz", "tools/build", "fuzz"])
        yield from shards("fuzz", "fuzz", 4, ["-L", "^fuzz$"], "tests_fuzz")
    else:
        yield from shards("fuzz", "release", 4, ["-L", "^fuzz$"])
    yield from shards("asan", "asan", 2, unit, "tests_unit")
    for isa in ("avx2", "avx512"):
        yield f"asan kernels {isa}", lambda totals, isa=isa: kernels_under_asan(totals, isa)
    one_thread = "^(" + "|".join(EXPECTED["one_thread"]) + ")$"
    yield from shards("tsan", "tsan", 4, [*unit, "-E", one_thread], "tests_unit")
    yield "cuda-emulated", lambda totals: build_and_test(
        totals, "cuda-emulated", ["-L", "^cuda$"], target="tests_cuda")
    yield "nvcc", lambda totals: counted_step(totals, "nvcc", ["tools/compile_cuda", "--all"])
    yield command("tidy", ["tools/tidy"])
    for option in OPTIONS:
        yield f"without {option}", lambda totals, option=option: build_and_test(
            totals, "release", unit, [f"-DFLOW_{option}=OFF"], f"without-{option.lower()}")
    yield "shared", lambda totals: build_and_test(
        totals, "release", ["-L", "^(unit|package)$"], ["-DBUILD_SHARED_LIBS=ON"], "shared")
    yield command("fresh Debian 12", ["tools/chroot_proof"])


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, check=False, capture_output=True, text=True)


def commit():
    """The commit that is checked out; None if tracked files have changes."""
    return git("rev-parse", "HEAD").stdout.strip() if git("diff", "--quiet", "HEAD").returncode == 0 else None


def choose_random_cases():
    """Gives the tests the random cases of the commit's day, so that each run of a commit has the same ones."""
    seconds = git("log", "-1", "--format=%ct").stdout.strip()
    if seconds:
        os.environ.setdefault("FLOW_TEST_DAY", str(int(seconds) // 86400))


def record_file(head, unit):
    """Where the record of a unit is. Each has its own file, so that parts may run at the same time."""
    return ROOT / "build/proof" / str(head) / (re.sub(r"\W+", "_", unit) + ".json")


def records_of(head):
    """The records of a commit, by unit."""
    files = {name: record_file(head, name) for name, _ in units()}
    return {name: json.loads(file.read_text()) for name, file in files.items() if file.exists()}


def run_everything(totals, part, parts):
    """Runs the units of the part that have not passed at this commit, and adds up the records of all."""
    head = commit()
    done = records_of(head)
    for name, run in list(units())[part - 1::parts]:
        record = done.get(name)
        if record is None or record["failed"]:
            own, started = Totals(), time.monotonic()
            run(own)
            own.require_passed(name)
            record = {"passed": own.passed, "failed": own.failed, "skipped": own.skipped,
                      "seconds": round(time.monotonic() - started),
                      "date": time.strftime("%Y-%m-%d"), "machine": machine()}
            if head:
                file = record_file(head, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(record, indent=1))
        totals.passed += record["passed"]
        totals.failed += record["failed"]
        totals.skipped += record["skipped"]
        print(f"== {name}: {record['passed']} passed, {len(record['failed'])} failed, "
              f"{len(record['skipped'])} skipped, {record['seconds']} s", flush=True)


def records_table(done, names):
    """Returns the units and why tests were skipped as lines of Markdown, for docs/proof.md."""
    lines = ["| part | passed | failed | skipped | minutes | date | machine |", "|---|---|---|---|---|---|---|"]
    skipped = {}
    for name in names:
        if name not in done:
            lines.append(f"| {name} | has not run | | | | | |")
            continue
        record = done[name]
        lines.append(f"| {name} | {record['passed']} | {len(record['failed'])} | {len(record['skipped'])} | "
                     f"{record['seconds'] / 60:.0f} | {record['date']} | {record['machine']} |")
        for test in record["skipped"]:
            section, _, case = test.partition(": ")
            reason = reason_to_skip(section, case)
            skipped[reason] = skipped.get(reason, 0) + 1
    return lines + [f"- {count} skipped: {reason}" for reason, count in skipped.items()]


def part_of(text):
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError("give N/M with 1 <= N <= M")
    return int(part), int(parts)


def main():
    parser = argparse.ArgumentParser(prog="tools/test", description=(
        "Installs packages, builds, and runs every test that is not labelled slow."))
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("--quick", action="store_true", help="run only tests labelled unit")
    scope.add_argument("--all", action="store_true", help=(
        "also run slow tests and long fuzzing, the asan, tsan, tidy and cuda-emulated presets, a build with "
        "each option OFF, a shared library, and the README's two commands on a fresh Debian 12 (needs root). "
        "What has passed at this commit is not run again; build/proof has the records"))
    scope.add_argument("--label", metavar="L", help="run only tests with this label")
    parser.add_argument("--part", type=part_of, default=(1, 1), metavar="N/M",
                        help="with --all: run only part N of M")
    parser.add_argument("--records", action="store_true", help=(
        "with --all: run nothing, and print what has run at this commit as a table"))
    parser.add_argument("--preset", default="release", help="the preset to build and test (default: release)")
    arguments = parser.parse_args()

    choose_random_cases()
    totals = Totals()
    if arguments.records:
        print("\n".join(records_table(records_of(commit()), [name for name, _ in units()])))
        return
    if arguments.all:
        run_everything(totals, *arguments.part)
    elif arguments.quick:
        build_and_test(totals, arguments.preset, ["-L", "^unit$"], target="tests_unit")
        totals.require_passed(f"{arguments.preset} unit")
    elif arguments.label:
        has_target = arguments.label in ("unit", "mpi", "cuda")
        build_and_test(totals, arguments.preset, ["-L", f"^{arguments.label}$"],
                       target=f"tests_{arguments.label}" if has_target else "all")
        totals.require_passed(f"{arguments.preset} {arguments.label}")
    else:
        build_and_test(totals, arguments.preset, ["-LE", "^slow$"])
        totals.require_passed(arguments.preset)

    for name in totals.skipped:
        print(f"skipped: {name}")
    for name in totals.failed:
        print(f"FAILED: {name}")
    print(totals.line())
    sys.exit(bool(totals.failed))


if __name__ == "__main__":
    main()
