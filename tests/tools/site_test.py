"""The checks of the site and of the programs in the docs pass what is right and name what is wrong."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


class Folder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run_tool(self, tool, *arguments):
        return subprocess.run([sys.executable, "-B", TOOLS / tool, *arguments], text=True,
                              capture_output=True, check=False)


class Site(Folder):
    def check(self):
        done = self.run_tool("site/check_site.py", self.root)
        return done.stderr if done.returncode else None

    def test_links_within_the_site_and_to_other_sites_pass(self):
        self.write("index.html", '<a href="a/b.html#x">x</a> <a href="https://example.org/y">y</a> '
                                 '<a href="a/">z</a> <script src="a/s.js"></script>')
        self.write("a/b.html", '<h2 id="x">x</h2> <a href="../index.html">up</a> <a href="#x">x</a>')
        self.write("a/index.html", "")
        self.write("a/s.js", "")
        self.assertIsNone(self.check())

    def test_dead_link_is_named(self):
        self.write("index.html", '<a href="gone.html">x</a>')
        self.assertEqual(self.check(), "index.html: dead link gone.html\n")

    def test_dead_anchor_is_named(self):
        self.write("index.html", '<a href="b.html#gone">x</a> <a href="#here">y</a>')
        self.write("b.html", '<h2 id="there">x</h2>')
        self.assertEqual(self.check(), "index.html: dead anchor b.html#gone\nindex.html: dead anchor #here\n")

    def test_what_is_loaded_from_another_host_is_named(self):
        self.write("index.html", '<script src="https://cdn.example.org/s.js"></script>'
                                 '<link rel="stylesheet" href="//cdn.example.org/s.css">')
        self.write("s.css", '@font-face { src: url("https://cdn.example.org/f.woff") }')
        self.assertEqual(self.check(),
                         "index.html: loads https://cdn.example.org/s.js from another host\n"
                         "index.html: loads //cdn.example.org/s.css from another host\n"
                         "s.css: loads https://cdn.example.org/f.woff from another host\n")


class OpPages(Folder):
    HEADER = """// Sums.
#pragma once

namespace flow {

struct SumOptions {
  bool keepdim = false;
};

// The sum of <all> elements.
//
//   Tensor y = sum(x);
Tensor sum(const TensorArg& x, const SumOptions& options = {});

}  // namespace flow
"""
    FACTS = {"dtypes": ["float32"], "call": "(5, 2)", "on_cuda": "unsupported", "gradient": "once",
             "signatures": [{"text": "S(0) -> P", "is_positional": True}, {"text": "B -> B", "is_positional": False}],
             "is_view": False, "is_random": False, "has_data_dependent_shape": False,
             "takes_batch_statistics": False, "writes_its_inputs": False}

    def make(self, functions):
        self.write("nn/flow.h", '#include "ops/reduce/reduce.h"\n')
        self.write("ops/reduce/reduce.h", self.HEADER)
        facts = self.write("facts.json", json.dumps({"functions": functions, "ops": {"sum": self.FACTS}}))
        return self.run_tool("site/op_pages.py", self.root, facts, self.root / "pages")

    def test_page_has_signature_layouts_devices_and_limits(self):
        golden = {name: {"ops": []} for name in ("bce", "bce_with_logits", "sdpa")}
        done = self.make({"sum": {"ops": ["sum"]}, **golden})
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.root / "pages/reduce.md").read_text()
        for text in ["Tensor sum(const TensorArg& x, const SumOptions& options = {});", "struct SumOptions {",
                     "The sum of &lt;all&gt; elements.", "```cpp\nTensor y = sum(x);\n```",
                     "| layouts | inputs (5, 2): `S(0) → P`* |", "| devices | CPU |",
                     "the gradient has no gradient itself"]:
            self.assertIn(text, page)

    def test_function_without_facts_is_named(self):
        golden = {name: {"ops": []} for name in ("bce", "bce_with_logits", "sdpa")}
        done = self.make(golden)
        self.assertEqual(done.stderr, "ops/reduce/reduce.h: flow-ops does not call sum; "
                                      "add it to tools/flow_ops/other_functions.cpp\n")


class DocPrograms(Folder):
    """Runs programs of a page against a package of that name, which stands in for flow."""

    def setUp(self):
        super().setUp()
        self.write("prefix/include/flow/flow.h", "#pragma once\n#include <cstdio>\n")
        self.write("prefix/lib/cmake/flow/flowConfig.cmake",
                   "add_library(flow::flow INTERFACE IMPORTED)\n"
                   "target_include_directories(flow::flow INTERFACE ${CMAKE_CURRENT_LIST_DIR}/../../../include)\n")
        self.write("flow/flow.h", "#include <cstdio>\n")  # for clang
        launcher = self.write("build/bin/flowrun", '#!/bin/sh\necho "launched with $1"\nexec "$2"\n')
        launcher.chmod(0o755)

    def check(self, page):
        self.write("docs/page.md", page)
        done = self.run_tool("check_doc_examples.py", self.root, "--build", self.root / "build",
                             "--prefix", self.root / "prefix")
        return done.returncode, done.stdout

    def test_program_runs_in_a_folder_of_its_own(self):
        status, output = self.check('```cpp\n#include <flow/flow.h>\n'
                                    'int main() { return std::fopen("x", "wx") == nullptr; }\n```\n')
        self.assertEqual((status, output), (0, "1 programs ran, 0 parts of programs compile\n"))
        self.assertFalse(os.path.exists("x"))

    def test_failing_program_is_named_with_its_output(self):
        status, output = self.check('```cpp ranks=2\n#include <flow/flow.h>\nint main() {\n  return 3;\n}\n```\n')
        self.assertEqual(status, 1)
        self.assertIn("docs/page.md:2: the program ended with 3:\nlaunched with --ranks=threads:2\n", output)

    def test_program_that_does_not_compile_is_named(self):
        status, output = self.check("# Page\n\n```cpp\nint main() {\n  return x;\n}\n```\n")
        self.assertEqual(status, 1)
        self.assertIn("docs/page.md:5:", output)


if __name__ == "__main__":
    unittest.main()
