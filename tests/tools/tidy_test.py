"""tools/tidy looks at a file again when anything changed that may change what is found."""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Notes each run; finds fault with files that hold the word `fault`.
CLANG_TIDY = """#!/bin/sh
[ "$1" = --version ] && { echo 1; exit; }
echo run >>"$(dirname "$0")/runs"
for word; do case "$word" in *.cpp) grep -q fault "$word" && exit 1; exit 0;; esac; done
"""


class Remembering(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.tidy = self.folder / "tidy"
        self.tidy.write_text(CLANG_TIDY)
        self.tidy.chmod(0o755)
        self.source = self.folder / "a.cpp"
        (self.folder / "a.h").write_text("int f();\n")
        self.paths = []

    def look(self, text, *options):
        self.source.write_text(text)
        compiler = ["c++", *options, "-MD", "-MF", "a.d", "-o", "a.o", "-c", str(self.source)]
        (self.folder / "compile_commands.json").write_text(json.dumps([{
            "directory": str(self.folder), "command": shlex.join(compiler), "file": str(self.source)}]))
        return subprocess.run(
            [sys.executable, str(ROOT / "tools/tidy"), "--build", str(self.folder),
             "--clang-tidy", str(self.tidy), *self.paths],
            check=False, cwd=self.folder, stdout=subprocess.DEVNULL,
            env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}).returncode

    def runs(self):
        return len((self.folder / "runs").read_text().splitlines())

    def test_a_clean_file_is_looked_at_once(self):
        for _ in range(3):
            self.assertEqual(self.look('#include "a.h"\nint g() { return f(); }\n'), 0)
        self.assertEqual(self.runs(), 1)

    def test_a_fault_is_found_each_time(self):
        for _ in range(2):
            self.assertEqual(self.look("int fault();\n"), 1)
        self.assertEqual(self.runs(), 2)

    def test_text_comments_headers_options_and_checks_count(self):
        text = '#include "a.h"\nint g() { return f(); }\n'
        self.look(text)
        self.look(text.replace("g()", "h()"))
        self.look(text + "// NOLINT(google-*)\n")
        self.look(text, "-DFLOW=1")
        (self.folder / "a.h").write_text("int f();\n#define F 1\n")
        self.look(text)
        (self.folder / ".clang-tidy").write_text("Checks: '*'\n")
        self.look(text)
        self.assertEqual(self.runs(), 6)
        self.look(text)
        self.assertEqual(self.runs(), 6)

    def test_what_does_not_compile_is_left_to_clang_tidy(self):
        for _ in range(2):
            self.look('#include "missing.h"\n')
        self.assertEqual(self.runs(), 2)

    def test_an_empty_selection_fails(self):
        self.paths = ["b.cpp"]
        self.assertEqual(self.look("int f();\n"), 1)
        self.assertFalse((self.folder / "runs").exists())


if __name__ == "__main__":
    unittest.main()
