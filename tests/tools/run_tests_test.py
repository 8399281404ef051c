"""tools/run_tests.py counts cases, skips and crashes for what they are."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import run_tests  # noqa: E402

PASSED = {"name": "Passes", "result": "COMPLETED"}
FAILED = {"name": "Fails", "result": "COMPLETED", "failures": [{"failure": "1 != 2"}]}
SKIPPED = {"name": "NeedsCuda", "result": "SKIPPED"}
EXPECTED = {"may_skip": [{"tests": "S\\.NeedsCuda", "reason": "no GPU"}], "least_passed": {"release": 2}}


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

    def test_failure_after_a_clean_report_is_one_failure(self):
        self.assertEqual(self.add(True, PASSED), "1 passed, 1 failed, 0 skipped")

    def test_failed_command_counts_and_is_named(self):
        self.assertFalse(run_tests.step(self.totals, "tidy", ["false"]))
        self.assertEqual(self.totals.failed, ["tidy: false"])

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


if __name__ == "__main__":
    unittest.main()
