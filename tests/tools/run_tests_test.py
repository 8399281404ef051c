"""tools/run_tests.py counts cases, skips and crashes for what they are."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import run_tests  # noqa: E402

PASSED = {"name": "Passes", "result": "COMPLETED"}
FAILED = {"name": "Fails", "result": "COMPLETED", "failures": [{"failure": "1 != 2"}]}
SKIPPED = {"name": "NeedsCuda", "result": "SKIPPED"}
EXPECTED = {"may_skip": [{"tests": "S\\.NeedsCuda", "reason": "no GPU", "not_in": ["cuda-emulated"]},
                         {"tests": "echo .*", "reason": "no nvcc", "only_in": ["nvcc"]}],
            "least_passed": {"release": 2}, "one_thread": []}


class Counting(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.report = pathlib.Path(scratch.name) / "report.json"
        self.totals = run_tests.Totals()
        self.addCleanup(setattr, run_tests, "EXPECTED", run_tests.EXPECTED)
        run_tests.EXPECTED = EXPECTED

    def add(self, ctest_failed, *cases):
        if cases:
            self.report.write_text(json.dumps({"testsuites": [{"name": "S", "testsuite": cases}]}))
        run_tests.add_googletest(self.totals, "release", "core_test.S", ctest_failed, self.report)
        return self.totals.line()

    def test_cases_are_counted_one_by_one(self):
        self.assertEqual(self.add(True, PASSED, FAILED, SKIPPED, PASSED),
                         "2 passed, 1 failed, 1 skipped")
        self.assertEqual(self.totals.failed, ["release: S.Fails"])
        self.assertEqual(self.totals.skipped, ["release: S.NeedsCuda"])

    def test_a_skip_that_is_not_listed_fails(self):
        self.add(False, PASSED, {**SKIPPED, "name": "NeedsCudaToo"})
        self.assertEqual(self.totals.line(), "1 passed, 1 failed, 0 skipped")
        self.assertIn("S.NeedsCudaToo was skipped", self.totals.failed[0])

    def test_a_row_holds_for_its_presets(self):
        self.assertEqual(run_tests.reason_to_skip("asan", "S.NeedsCuda"), "no GPU")
        self.assertIsNone(run_tests.reason_to_skip("cuda-emulated", "S.NeedsCuda"))
        self.assertEqual(run_tests.reason_to_skip("nvcc", "echo 1"), "no nvcc")
        self.assertIsNone(run_tests.reason_to_skip("asan", "echo 1"))

    def test_too_few_passed_cases_fail(self):
        self.add(False, PASSED)
        self.totals.require_passed("release")
        self.assertEqual(self.totals.line(), "1 passed, 1 failed, 0 skipped")
        self.add(False, PASSED)
        self.totals.require_passed("release")
        self.assertEqual(self.totals.line(), "2 passed, 1 failed, 0 skipped")

    def test_crash_without_a_report_is_one_failure(self):
        self.assertEqual(self.add(True), "0 passed, 1 failed, 0 skipped")
        self.assertEqual(self.totals.failed, ["release: core_test.S"])

    def test_a_program_that_ends_well_without_a_report_is_one_failure(self):
        self.assertEqual(self.add(False), "0 passed, 1 failed, 0 skipped")
        self.assertIn("core_test.S ended with 0, but wrote no report", self.totals.failed[0])

    def test_failure_after_a_clean_report_is_one_failure(self):
        self.assertEqual(self.add(True, PASSED), "1 passed, 1 failed, 0 skipped")

    def test_failed_command_counts_and_is_named(self):
        self.assertFalse(run_tests.step(self.totals, "tidy", ["false"]))
        self.assertEqual(self.totals.failed, ["tidy: false"])

    def test_a_command_adds_its_three_counts(self):
        run_tests.counted_step(self.totals, "nvcc", ["echo", "2 passed, 0 failed, 0 skipped"])
        self.assertEqual(self.totals.line(), "2 passed, 0 failed, 0 skipped")

    def test_what_a_command_skips_is_no_pass(self):
        for section in ("nvcc", "tidy"):
            run_tests.counted_step(self.totals, section, ["echo", "0 passed, 0 failed, 1 skipped"])
        self.assertEqual(self.totals.line(), "0 passed, 1 failed, 1 skipped")
        self.assertIn("tidy: echo", self.totals.failed[0])

    def test_a_command_without_counts_or_with_a_bad_status_fails(self):
        run_tests.counted_step(self.totals, "nvcc", ["echo", "done"])
        run_tests.counted_step(self.totals, "nvcc", ["sh", "-c", "echo 1 passed, 0 failed, 0 skipped; exit 1"])
        self.assertEqual(self.totals.line(), "1 passed, 2 failed, 0 skipped")

    def test_random_cases_are_those_of_the_commits_day(self):
        def day_of(seconds, environment):
            commit = subprocess.CompletedProcess([], 0, stdout=seconds)
            with mock.patch.object(run_tests, "git", return_value=commit), \
                    mock.patch.dict(os.environ, environment):
                if not environment:
                    os.environ.pop("FLOW_TEST_DAY", None)
                run_tests.choose_random_cases()
                return os.environ.get("FLOW_TEST_DAY")

        self.assertEqual(day_of("172799\n", {}), "1")
        self.assertEqual(day_of("172800\n", {}), "2")
        self.assertEqual(day_of("172800\n", {"FLOW_TEST_DAY": "7"}), "7")
        self.assertIsNone(day_of("", {}))  # not a checkout

    def test_records_become_a_table(self):
        record = {"passed": 2, "failed": ["release: S.Fails"], "skipped": ["release: S.NeedsCuda"],
                  "seconds": 170, "date": "2026-01-02", "machine": "2 cores"}
        self.assertEqual(run_tests.records_table({"release": record}, ["release", "soak"])[2:],
                         ["| release | 2 | 1 | 1 | 3 | 2026-01-02 | 2 cores |",
                          "| soak | has not run | | | | | |", "- 1 skipped: no GPU"])

    def test_each_part_has_a_name_of_its_own(self):
        names = [name for name, _ in run_tests.units()]
        self.assertEqual(len(names), len(set(names)))
        self.assertIn("tsan 4/4", names)


class Records(unittest.TestCase):
    """What `--all` keeps of a commit."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.runs = []
        for name, value in (("ROOT", pathlib.Path(scratch.name)), ("commit", lambda: "abc"), ("units", self.units)):
            self.addCleanup(setattr, run_tests, name, getattr(run_tests, name))
            setattr(run_tests, name, value)

    def units(self):
        def run(name, failures, totals):
            self.runs.append(name)
            totals.passed += 1000
            totals.failed += failures
        for name, failures in (("slow tests 1/2", []), ("slow tests 2/2", ["a test"])):
            yield name, lambda totals, name=name, failures=failures: run(name, failures, totals)

    def test_only_what_has_not_passed_runs_again(self):
        for _ in range(2):
            run_tests.run_everything(run_tests.Totals(), 1, 1)
        self.assertEqual(self.runs, ["slow tests 1/2", "slow tests 2/2", "slow tests 2/2"])

    def test_a_part_keeps_what_another_one_recorded_meanwhile(self):
        first, second = self.units()

        def other_part_first(totals):
            run_tests.run_everything(run_tests.Totals(), 2, 2)
            first[1](totals)
        run_tests.units = lambda: iter([(first[0], other_part_first), second])
        run_tests.run_everything(run_tests.Totals(), 1, 2)
        self.assertEqual(set(run_tests.records_of("abc")), {"slow tests 1/2", "slow tests 2/2"})
        self.assertEqual(run_tests.records_of("abd"), {})


class Ctest(unittest.TestCase):
    """Selections of tests that ctest runs in a build tree without programs."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.build = pathlib.Path(scratch.name)
        self.totals = run_tests.Totals()

    def add_test(self, name, script, report=True):
        output = f"GTEST_OUTPUT=json:{self.build}/test-results/{name}.json" if report else "A=1"
        with open(self.build / "CTestTestfile.cmake", "a") as file:
            file.write(f"add_test({name} /bin/sh -c [[{script}]])\n"
                       f"set_tests_properties({name} PROPERTIES LABELS cuda ENVIRONMENT \"{output}\")\n")

    def run_it(self):
        run_tests.run_ctest(self.totals, "cuda-emulated", self.build, ["-L", "^cuda$"])
        return self.totals.line()

    def test_a_googletest_that_writes_no_report_has_not_passed(self):
        self.add_test("a_test.Suite", "exit 0")
        self.add_test("example.a", "exit 0", report=False)
        self.assertEqual(self.run_it(), "1 passed, 1 failed, 0 skipped")
        self.assertIn("a_test.Suite ended with 0", self.totals.failed[0])

    def test_the_emulated_device_may_not_be_missing(self):
        report = {"testsuites": [{"name": "CudaGraph", "testsuite": [{"name": "Runs", "result": "SKIPPED"}]}]}
        self.add_test("cuda_test.CudaGraph",
                      f"d=${{GTEST_OUTPUT#json:}}; mkdir -p ${{d%/*}}; echo '{json.dumps(report)}' > $d")
        self.assertEqual(self.run_it(), "0 passed, 1 failed, 0 skipped")
        self.assertIn("CudaGraph.Runs was skipped", self.totals.failed[0])

    def test_a_label_needs_its_least_number(self):
        calls = []
        for name, value in (("build_and_test", lambda *_, **__: None), ("Totals", lambda: self.totals)):
            self.addCleanup(setattr, run_tests, name, getattr(run_tests, name))
            setattr(run_tests, name, value)
        self.totals.require_passed = calls.append
        self.addCleanup(setattr, sys, "argv", sys.argv)
        sys.argv = ["run_tests.py", "--label", "cuda", "--preset", "cuda-emulated"]
        self.assertRaises(SystemExit, run_tests.main)
        self.assertEqual(calls, ["cuda-emulated cuda"])


if __name__ == "__main__":
    unittest.main()
