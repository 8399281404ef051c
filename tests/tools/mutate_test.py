"""Each mutation of tools/mutate.py applies, and only what its tests find out counts as noticed."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
import mutate  # noqa: E402

# Runs the tool on a tree of one file.
DRIVER = """import pathlib, sys
import mutate
mutate.ROOT = mutate.BUILD = pathlib.Path(sys.argv.pop(1))
mutate.MUTATIONS = [mutate.Mutation("one is two", "a.cpp", "1", "2", "a_test.Suite")]
mutate.main()"""
FAILS = "echo '1/1 Test #1: a_test.Suite .......***Failed 0.01 sec'; exit 8"


def is_running(pid):
    state = pathlib.Path(f"/proc/{pid}/stat")
    try:
        return state.read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Mutations(unittest.TestCase):
    def test_each_applies(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "tools/mutate.py", "--list"], text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines(), [mutation.name for mutation in mutate.MUTATIONS])

    def test_each_names_test_programs(self):
        lists = "\n".join(path.read_text() for path in (ROOT / "tests").glob("*/CMakeLists.txt"))
        programs = set(re.findall(r"flow_add_test\(\s*(\w+)", lists))
        for mutation in mutate.MUTATIONS:
            self.assertLessEqual(mutation.programs(), programs, mutation.name)


class Runs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        self.source = self.root / "a.cpp"
        self.source.write_text("int a = 1;\n")
        for name in ("git", "cmake", "ctest"):
            self.program(name, "exit 0")

    def program(self, name, script):
        file = self.root / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def start(self):
        environment = {**os.environ, "PATH": f"{self.root / 'bin'}:/usr/bin:/bin",
                       "PYTHONPATH": str(ROOT / "tools")}
        return subprocess.Popen([sys.executable, "-B", "-c", DRIVER, self.root], env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_it(self):
        with self.start() as process:
            out, err = process.communicate(timeout=50)
        self.assertEqual(self.source.read_text(), "int a = 1;\n")
        return process.returncode, out, err

    def test_a_test_that_fails_has_noticed(self):
        self.program("ctest", f"grep -q 'a = 1' a.cpp && exit 0; {FAILS}")
        status, out, _ = self.run_it()
        self.assertEqual(status, 0)
        self.assertIn("| one is two | `a.cpp` | a_test.Suite |", out)

    def test_a_mutation_that_nothing_notices_survives(self):
        status, out, _ = self.run_it()
        self.assertEqual(status, 1)
        self.assertIn("| nothing |", out)
        self.assertIn("0 of 1 noticed", out)

    def test_a_test_that_fails_without_a_mutation_ends_the_run(self):
        self.program("ctest", FAILS)
        status, out, err = self.run_it()
        self.assertEqual((status, out), (1, ""))
        self.assertIn("a_test.Suite fails without a mutation", err)

    def test_a_tree_that_does_not_build_ends_the_run(self):
        self.program("cmake", "exit 1")
        self.assertIn("does not build without a mutation", self.run_it()[2])

    def test_only_the_named_program_is_built_and_run(self):
        self.program("cmake", 'echo "$@" >> cmake.log')
        self.program("ctest", 'echo "$@" >> ctest.log')
        self.run_it()
        self.assertIn("--target a_test\n", (self.root / "cmake.log").read_text())
        self.assertIn("-R ^(a_test.Suite)\n", (self.root / "ctest.log").read_text())

    def test_sigterm_restores_the_file_and_ends_the_tests(self):
        pid = self.root / "pid"
        self.program("ctest", f"grep -q 'a = 1' a.cpp && exit 0; sleep 600 & echo $! > t && mv t {pid}; wait")
        with self.start() as process:
            while not pid.exists():
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=50), 1)
            process.stdout.close()
        self.assertEqual(self.source.read_text(), "int a = 1;\n")
        while is_running(int(pid.read_text())):  # at most for the time limit of this test
            time.sleep(0.01)


if __name__ == "__main__":
    unittest.main()
