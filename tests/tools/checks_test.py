"""Each check of tools/check passes a clean tree and names the place in one that breaks its rule."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


class Tree(unittest.TestCase):
    """A scratch source tree with the library's folders."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        subprocess.run(["git", "init", "-q", self.root], check=True)
        for folder in ["core", "ops", "nn"]:
            self.write(f"{folder}/CMakeLists.txt", "a.h a.cpp b.h b.cpp")
        self.write("core/a.h", "#pragma once\nint a();\n")
        self.write("core/a.cpp", '#include "core/a.h"\n\nint a() { return 1; }\n')

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def check(self, tool, *arguments):
        done = subprocess.run([sys.executable, "-B", TOOLS / tool, self.root, *arguments],
                              text=True, capture_output=True, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout if done.returncode else None

    def compile(self, name):
        folder, stem = pathlib.PurePath(name).parts[0], pathlib.PurePath(name).name
        target = self.root / "build" / folder / f"CMakeFiles/flow_{folder}.dir/{stem}.o"
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["c++", "-std=c++20", f"-I{self.root}", "-c", self.root / name,
                        "-o", target], check=True)


class Layers(Tree):
    def test_include_to_the_left_passes(self):
        self.write("ops/b.cpp", '#include "core/a.h"\n')
        self.assertIsNone(self.check("check_layers.py"))

    def test_include_to_the_right_is_named(self):
        self.write("core/b.cpp", '#include "core/a.h"\n#include "nn/b.h"\n')
        self.assertEqual(self.check("check_layers.py"), "core/b.cpp:2: core/ may not include nn/b.h\n")

    def test_include_not_from_the_root_is_named(self):
        self.write("core/b.cpp", '#include "a.h"\n')
        self.assertIn("core/b.cpp:1: write includes from", self.check("check_layers.py"))

    def test_cycle_of_headers_is_named(self):
        self.write("core/b.h", '#include "core/c.h"\n')
        self.write("core/c.h", '#include "core/b.h"\n')
        self.assertEqual(self.check("check_layers.py"),
                         "include cycle: core/b.h -> core/c.h -> core/b.h\n")

    def test_symbol_from_the_right_is_named(self):
        self.write("core/b.cpp", "int from_nn(int);\nint b() { return from_nn(1); }\n")
        self.write("nn/a.cpp", "int from_nn(int x) { return x; }\n")
        self.compile("core/b.cpp")
        self.compile("nn/a.cpp")
        self.assertEqual(self.check("check_layers.py", "--objects", self.root / "build"),
                         "core/b.cpp needs from_nn(int), which nn/ defines\n")

    def test_symbol_from_the_left_passes(self):
        self.write("nn/b.cpp", '#include "core/a.h"\nint b() { return a(); }\n')
        self.compile("core/a.cpp")
        self.compile("nn/b.cpp")
        self.assertIsNone(self.check("check_layers.py", "--objects", self.root / "build"))

    def test_build_tree_without_objects_fails(self):
        self.assertIn("holds no objects",
                      self.check("check_layers.py", "--objects", self.root / "build"))


class Headers(Tree):
    def check_headers(self, options=""):
        source = self.root / "core/a.cpp"
        entry = {"file": str(source.resolve()), "directory": str(self.root),
                 "command": f"c++ -std=c++20 -I{self.root} {options} -o a.o -c {source}"}
        self.write("build/compile_commands.json", json.dumps([entry]))
        return self.check("check_headers.py", "--build", self.root / "build")

    def test_self_contained_headers_pass(self):
        self.write("ops/a.h", '#pragma once\n#include <string>\nstd::string name();\n')
        self.assertIsNone(self.check_headers())

    def test_header_that_lacks_an_include_is_named(self):
        self.write("ops/a.h", "#pragma once\nstd::string name();\n")
        self.assertIn("ops/a.h is not self-contained", self.check_headers())

    def test_precompiled_headers_hide_nothing(self):
        self.write("build/pch.h", "#include <string>\n")
        self.write("core/a.h", "#pragma once\nstd::string name();\n")
        self.assertIn("core/a.h is not self-contained",
                      self.check_headers(f"-Winvalid-pch -include {self.root}/build/pch.h"))

    def test_fragment_is_left_out(self):
        self.write("ops/a.h", "// Not self-contained: stands inside a namespace.\nstd::string n();\n")
        self.assertIsNone(self.check_headers())

    def test_own_header_comes_first(self):
        self.write("core/a.cpp", '#include <string>\n#include "core/a.h"\n')
        self.assertIn('core/a.cpp: include "core/a.h" first', self.check_headers())


class Words(Tree):
    def expect_finding(self, name, text, finding):
        self.write(name, text)
        self.assertIn(finding, self.check("check_words.py") or "nothing found")

    def test_clean_tree_passes(self):
        self.assertIsNone(self.check("check_words.py"))

    def test_words_in_comments_and_strings_pass(self):
        self.write("core/a.cpp", '// never printf(x)\nconst char* s = "exit(1)"; // std::endl\n')
        self.assertIsNone(self.check("check_words.py"))

    def test_forbidden_words_are_named(self):
        self.expect_finding("core/b.cpp", "\nvoid f() { std::abort(); }\n", "core/b.cpp:2: std::abort(")
        self.expect_finding("core/b.cpp", "#include <iostream>\n", "core/b.cpp:1: #include <iostream>")
        self.expect_finding("core/b.h", "#pragma once\nusing namespace std;\n", "core/b.h:2: using namespace")
        self.expect_finding("core/b.cpp", "// FIX" + "ME later\n", "core/b.cpp:1: FIX" + "ME")
        self.expect_finding("core/b.cpp", "// NOLINT\n", "core/b.cpp:1: NOLINT")

    def test_members_and_counterparts_pass(self):
        self.write("core/b.cpp", "void f(char* p) { job.abort(); snprintf(p, 1, p); }  // NOLINT(a-b)\n")
        self.assertIsNone(self.check("check_words.py"))

    def test_heavy_header_outside_its_home_is_named(self):
        self.expect_finding("core/b.cpp", "#include <mpi.h>\n", "core/b.cpp:1: #include <mpi.h>")

    def test_file_too_long_is_named(self):
        self.expect_finding("core/b.cpp", "\n" * 801, "core/b.cpp: 801 lines")

    def test_empty_name_is_named(self):
        self.expect_finding("core/utils.h", "#pragma once\n", "core/utils.h: the name says nothing")

    def test_source_not_listed_is_named(self):
        self.expect_finding("core/c.cpp", "\n", "core/c.cpp: not listed in core/CMakeLists.txt")

    def test_cast_of_the_interpreter_is_named(self):
        self.expect_finding("nn/b.cpp", "auto* t = dynamic_cast<Trace*>(thread_state().interpreter);\n",
                            "nn/b.cpp:1: dynamic_cast<Trace*>(thread_state().interpreter")
        self.expect_finding("nn/b.cpp", "\nauto* t = dynamic_cast<const EagerInterpreter*>(i);\n",
                            "nn/b.cpp:2: dynamic_cast<const EagerInterpreter*>")

    def test_other_casts_pass(self):
        self.write("nn/b.cpp", "auto* n = dynamic_cast<Node*>(x.get());\n")
        self.assertIsNone(self.check("check_words.py"))

    def test_dialect_is_named_in_places_that_are_plain(self):
        self.expect_finding("README.md", "# A\nIt " + "lies here.\n", "README.md:2: lies: write plain")
        self.write("README.md", "# A\n")
        self.expect_finding("examples/a.cpp", "int a;  // made " + "anew\n", "examples/a.cpp:1: anew: ")
        self.expect_finding("examples/a.cpp", 'auto s = "x is ' + 'let y";\n', "is let: write plain")

    def test_dialect_in_names_and_other_places_passes(self):
        self.write("examples/a.cpp", "int " + "beside = 0;  // belies\n")
        self.write("tests/a.cpp", "// " + "lies here\n")
        self.assertIsNone(self.check("check_words.py"))

    def test_folder_with_too_many_modules_is_named(self):
        names = [f"m{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(41)]
        for name in names[1:]:
            self.write(f"ops/room/{name}.h", "#pragma once\n")
        self.write("ops/CMakeLists.txt", " ".join(
            [f"room/{name}.h" for name in names] + [f"room/{names[1]}{end}" for end in
                                                    (".cpp", "_cpu.cpp", "_cuda.cu", "_op.h")]))
        for end in (".cpp", "_cpu.cpp", "_cuda.cu", "_op.h"):
            self.write(f"ops/room/{names[1]}{end}", "\n" if end != "_op.h" else "#pragma once\n")
        self.assertIsNone(self.check("check_words.py"))
        self.expect_finding(f"ops/room/{names[0]}.h", "#pragma once\n", "ops/room: 41 modules")

    def test_environment_variable_needs_table_and_docs(self):
        self.expect_finding("core/b.cpp", 'auto v = "FLOW_X";\n', "FLOW_X is not in the table")
        self.write("core/CMakeLists.txt", "a.h a.cpp b.cpp b.h env.cpp")
        self.expect_finding("core/env.cpp", 'auto t = "FLOW_X";\n', "FLOW_X is not explained")
        self.write("docs/a.md", "FLOW_X: a number.\n")
        self.assertIsNone(self.check("check_words.py"))


class Commits(Tree):
    def commit(self, subject):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, "-C", self.root, "commit", "-qm", subject, "--allow-empty"],
                       check=True)

    def check_subject(self, subject):
        subprocess.run(["git", "-C", self.root, "add", "."], check=True)
        self.commit("core: begin")
        self.commit(subject)
        return self.check("check_commits.py", "--base", "HEAD~1")

    def test_area_and_imperative_pass(self):
        self.assertIsNone(self.check_subject("core/a: return one"))

    def test_two_areas_pass(self):
        self.assertIsNone(self.check_subject("core, nn/b: return one"))

    def test_long_subject_is_named(self):
        self.assertIn("73 characters, 72 are allowed", self.check_subject("core: " + "a" * 67))

    def test_period_is_named(self):
        self.assertIn("ends with a period", self.check_subject("core: return one."))

    def test_missing_and_unknown_areas_are_named(self):
        self.assertIn("begins with no area", self.check_subject("Return one"))
        self.assertIn("kernels is no folder", self.check_subject("kernels: return one"))

    def test_clone_without_the_base_passes(self):
        self.commit("Return one")
        self.assertIsNone(self.check("check_commits.py"))


class Status(Tree):
    """A table of one row, with a test program that is a script."""

    def setUp(self):
        super().setUp()
        self.program("core_test", passes=True)
        self.write("build/release/CTestTestfile.cmake", f"add_test(tools.site /usr/bin/touch {self.root}/site)\n")

    def program(self, name, passes):
        case = {"name": "Passes", "result": "COMPLETED" if passes else "SKIPPED"}
        report = json.dumps({"testsuites": [{"name": "CudaOnes", "testsuite": [case]}]})
        self.write(f"build/release/bin/{name}", f"""#!/bin/sh
if [ "$1" = --gtest_list_tests ]; then printf 'CudaOnes.\\n  Passes\\nOthers/0.  # TypeParam = int\\n  Pass\\n'; exit; fi
echo "$@" >> {self.root}/ran
echo '{report}' > "${{GTEST_OUTPUT#json:}}"
""")
        (self.root / f"build/release/bin/{name}").chmod(0o755)

    def check_row(self, commands, *options):
        self.write("docs/status.md", f"| capability | what works | shown by |\n|---|---|---|\n| a | b | {commands} |\n")
        output = self.check("check_status.py", *options)
        return output and output.splitlines()

    def test_filters_that_select_tests_pass(self):
        self.assertIsNone(self.check_row("`core_test --gtest_filter='CudaOnes.*:*Others*.Pass-*.Not*'`"))

    def test_each_pattern_selects_a_test(self):
        self.assertEqual(self.check_row("`core_test --gtest_filter='CudaOnes.*:*Npz*'`"),
                         ["a: *Npz* selects no test of core_test"])

    def test_unknown_programs_and_selections_are_named(self):
        self.assertEqual(self.check_row("`nn_test`"), ["a: nn_test is not a program"])
        self.assertEqual(self.check_row("`ctest -R tutorials`"), ["a: `ctest -R tutorials` selects no test"])

    def test_run_runs_programs_and_ctest(self):
        self.assertIsNone(self.check_row("`core_test --gtest_filter=CudaOnes.*`, `ctest -R site`", "--run"))
        self.assertEqual((self.root / "ran").read_text(), "--gtest_filter=CudaOnes.* --gtest_brief=1\n")
        self.assertTrue((self.root / "site").exists())

    def test_a_build_tree_that_is_missing_is_named(self):
        self.assertEqual(self.check_row("`ctest --test-dir build/cuda-emulated -L cuda`", "--run"),
                         ["`ctest --test-dir build/cuda-emulated -L cuda`: build/cuda-emulated is missing; "
                          "run tools/build cuda-emulated"])

    def test_what_is_only_skipped_shows_nothing(self):
        self.program("core_test", passes=False)
        self.assertEqual(self.check_row("`core_test`", "--run"), ["`core_test`: no test passed"])


class BuildTimes(unittest.TestCase):
    def test_last_compilation_of_each_file_counts(self):
        build = (TOOLS / "build").read_text()
        function = build[build.index("print_times() {"):]
        function = function[:function.index("\n}\n") + 3]
        with tempfile.NamedTemporaryFile("w", suffix="_ninja_log") as log:
            log.write("# ninja log v5\n"
                      "0\t1500\t1\tcore/CMakeFiles/flow_core.dir/a.cpp.o\tx\n"
                      "1500\t2000\t1\tlibflow.a\tx\n"
                      "0\t2000\t1\tops/CMakeFiles/flow_ops_avx2.dir/b_cpu.cpp.o\tx\n"
                      "100\t350\t1\tcore/CMakeFiles/flow_core.dir/a.cpp.o\tx\n")
            log.flush()
            done = subprocess.run(["bash", "-c", f"{function}\nprint_times {log.name}"], text=True,
                                  capture_output=True, check=True)
        self.assertEqual([line.strip() for line in done.stdout.splitlines()],
                         ["2.000 s  ops/b_cpu.cpp (flow_ops_avx2)", "0.250 s  core/a.cpp (flow_core)",
                          "2.250 s  2 files"])


class DocExamples(Tree):
    def check_examples(self, page, path=None):
        self.write("flow/flow.h", "")
        self.write("docs/page.md", page)
        done = subprocess.run(
            [sys.executable, "-B", TOOLS / "check_doc_examples.py", self.root, "--build", self.root],
            text=True, capture_output=True, check=False, env=os.environ | {"PATH": path or os.environ["PATH"]})
        return done.stdout if done.returncode else None

    def test_example_that_compiles_passes(self):
        self.assertIsNone(self.check_examples('```cpp\n#include "core/a.h"\nint b = a();\n```\n'))

    def test_error_points_at_the_line_of_the_page(self):
        self.assertIn("docs/page.md:4:", self.check_examples("# Page\n\n```cpp\nint b = c;\n```\n"))

    def test_headers_and_examples_are_parsed_by_clang_too(self):
        clang = self.write("bin/clang++-14", "#!/bin/sh\nif read -r line; then echo \"refused: $line\"; exit 1; fi\n")
        clang.chmod(0o755)
        path = f"{clang.parent}:{os.environ['PATH']}"
        self.assertEqual(self.check_examples("```cpp\nint b = 1;\n```\n", path), "refused: #include <flow/flow.h>\n")
        clang.write_text('#!/bin/sh\nread -r line\ncase $line in "#line"*) echo "refused: $line"; exit 1; esac\n')
        self.assertEqual(self.check_examples("```cpp\nint b = 1;\n```\n", path), 'refused: #line 2 "docs/page.md"\n')

    def test_fragment_is_skipped(self):
        self.assertIsNone(self.check_examples("```cpp fragment\nint b = c;\n```\n"))


class PytorchNames(Tree):
    MAPPING = """\
$python: belongs to Python
[torch torch.Tensor]
twice = flow::doubled | of one tensor
sum ~ of all elements
py_* - $python
dot ! `sum` of the products
__add__ = flow::operator+
item = x.sum() + n
"""

    def setUp(self):
        super().setUp()
        self.write("flow/flow.h", """\
#include <cstdint>
namespace flow {
struct Tensor { int sum() const; int sum(int dim) const; };
Tensor operator+(Tensor, Tensor);
Tensor doubled(Tensor);
Tensor neg(Tensor);
namespace nn { template <class M> struct Module {}; }
}
""")
        self.write("docs/page.md", "# A page\n")
        self.write("tools/pytorch_names/names.txt",
                   "PyTorch 1.2\n\n[torch]\nneg\npy_type\ntwice\n\n"
                   "[torch.Tensor]\n__add__\ndot\nitem\nsum\n")
        self.write("tools/pytorch_names/mapping.txt", self.MAPPING)
        self.assertIsNone(self.check_names())

    def check_names(self, *options):
        return self.check("pytorch_names.py", "--build", self.root, *options)

    def expect_finding(self, mapping, finding):
        self.write("tools/pytorch_names/mapping.txt", mapping)
        self.assertIn(f"tools/pytorch_names/mapping.txt{finding}\n", self.check_names() or "")

    def test_page_shows_every_name(self):
        page = (self.root / "docs/pytorch_names.md").read_text()
        for row in ["| `neg` | `flow::neg` |", "| `py_type` | belongs to Python |",
                    "| `twice` | `flow::doubled`; of one tensor |", "| `__add__` | `flow::operator+` |",
                    "| `sum` | `x.sum`; of all elements |", "| `dot` | missing: `sum` of the products |",
                    "| [torch](#torch) | 3 | 1 (33 %) | 1 (33 %) | 0 (0 %) | 1 (33 %) |"]:
            self.assertIn(f"\n{row}\n", page)

    def test_page_that_is_current_passes(self):
        self.assertIsNone(self.check_names("--check"))

    def test_page_that_is_not_current_is_named(self):
        self.write("docs/pytorch_names.md", "# PyTorch's names\n")
        self.assertIn("docs/pytorch_names.md is not current", self.check_names("--check"))

    def test_name_without_an_entry_is_named(self):
        self.expect_finding(self.MAPPING.replace("dot !", "inner !"),
                            ": nothing says what flow has for torch.Tensor.dot")

    def test_spelling_that_does_not_compile_is_named(self):
        self.expect_finding(self.MAPPING.replace("doubled", "redoubled"), ":3: flow has no flow::redoubled")
        self.expect_finding(self.MAPPING.replace("x.sum() + n", "x.sum(n, n)"),
                            ":8: flow has no x.sum(n, n)")

    def test_line_for_a_name_that_exists_is_named(self):
        self.expect_finding(self.MAPPING + "neg = flow::doubled\n", ":9: neg exists as flow::neg")

    def test_line_that_nothing_needs_is_named(self):
        self.expect_finding(self.MAPPING + "gone - $python\n",
                            ":9: gone is the name of nothing that needs the line")

    def test_difference_of_a_name_that_is_absent_is_named(self):
        self.expect_finding(self.MAPPING.replace("dot !", "dot ~"),
                            ":6: flow has no dot in flow::Tensor")


if __name__ == "__main__":
    unittest.main()
