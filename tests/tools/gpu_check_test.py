"""tools/gpu_check runs its parts in order, names what fails, skips what the machine lacks, and keeps its limits.

The programs are scripts that print what the real ones would."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
GPU_CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools/gpu_check"
loader = importlib.machinery.SourceFileLoader("gpu_check", str(GPU_CHECK))
gpu_check = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
loader.exec_module(gpu_check)
TESTS_PASS = "echo '[       OK ] A.B (1 ms)'; echo '[  PASSED  ] 3 tests.'"
ROW = {"name": "copy/float32/iterations:1/manual_time", "value": 2500.0, "label": "GB/s", "real_time": 10.0,
       "time_unit": "us"}
BENCH = f"""for word in "$@"; do case $word in --benchmark_out=*) out=${{word#*=}} ;; esac; done
echo '{json.dumps({"benchmarks": [ROW]})}' > "$out"; echo 'library: /opt/libcublasLt.so.13' >&2"""
STEPS = """echo '{"losses": [5.5, 5.25], "weights": "aa", "device": "GPU"}'"""
SANITIZER = "shift 4; exec \"$@\""


class GpuCheck(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "bin").mkdir()
        (self.folder / "path").mkdir()
        for name in ("cuda_test", "cuda_kernels_test"):
            self.program(name, TESTS_PASS)
        self.program("bench_cuda", BENCH)
        self.program("cuda_steps", STEPS)
        self.program("train_gpt2", "exit 0")

    def program(self, name, script, folder="bin"):
        file = self.folder / folder / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def run_it(self, *options):
        environment = {**os.environ, "PATH": f"{self.folder / 'path'}:/usr/bin:/bin"}
        return subprocess.run(
            [sys.executable, GPU_CHECK, "--programs", self.folder / "bin", "--out", self.folder / "out", *options],
            env=environment, capture_output=True, text=True, check=False, timeout=50)

    def lines_of(self, *options):
        done = self.run_it(*options)
        lines = {line.split()[1].rstrip(":"): line for line in done.stdout.splitlines()
                 if line.startswith(("ok ", "FAILED ", "skipped "))}
        self.assertEqual(done.returncode, sum(line.startswith("FAILED") for line in lines.values()), done.stderr)
        self.assertEqual((self.folder / "out/summary.txt").read_text(), done.stdout)
        return lines

    def test_the_first_look_names_device_libraries_and_results(self):
        done = self.run_it("--first")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("library: /opt/libcublasLt.so.13", done.stdout)
        self.assertIn("ok       probe: copy/float32 2500 GB/s", done.stdout)
        self.assertIn("ok       kernel: 3 tests", done.stdout)
        self.assertIn("5.25", done.stdout)

    def test_parts_that_pass_pass(self):
        self.program("compute-sanitizer", SANITIZER, "path")
        lines = self.lines_of("--only", "device", "kernels", "repeat", "ranks", "memcheck")
        self.assertEqual(list(lines), ["device", "kernels", "repeat", "ranks", "memcheck"])
        for line in lines.values():
            self.assertTrue(line.startswith("ok "), line)

    def test_a_tool_that_is_refused_is_skipped_with_its_reason(self):
        self.program("ncu", "echo '==ERROR== ERR_NVGPUCTRPERM - no permission'; exit 1", "path")
        lines = self.lines_of("--only", "profile")
        self.assertIn("skipped  profile: the machine refuses ncu: ERR_NVGPUCTRPERM", lines["profile"])

    def test_a_program_that_was_not_built_fails(self):
        (self.folder / "bin/cuda_test").unlink()
        line = self.lines_of("--only", "device")["device"]
        self.assertTrue(line.startswith("FAILED "), line)
        self.assertIn("cuda_test was not built", line)

    def test_a_row_that_fails_does_not_cost_the_others(self):
        failed = {"name": "train/gpt2/iterations:1", "error_occurred": True, "error_message": "out of memory"}
        self.program("bench_cuda", BENCH.replace(json.dumps([ROW]), json.dumps([ROW, failed])))
        done = self.run_it("--only", "bench")
        self.assertIn("train/gpt2/iterations:1 failed: out of memory", done.stdout)
        self.assertIn("FAILED   bench: rows failed: train/gpt2/iterations:1", done.stdout)
        self.assertTrue((self.folder / "out/torch.log").exists())  # the table of the others

    def test_output_that_cannot_be_read_fails_its_part_alone(self):
        self.program("bench_cuda", BENCH.replace("label", "title"))
        self.program("cuda_steps", "echo done")
        lines = self.lines_of("--only", "probe", "device", "repeat", "ranks")
        self.assertIn("FAILED   probe: KeyError: 'label'", lines["probe"])
        self.assertTrue(lines["device"].startswith("ok "))
        self.assertIn("cuda_steps printed no losses", lines["repeat"])
        self.assertIn("cuda_steps printed no losses", lines["ranks"])

    def test_tests_that_fail_or_do_not_run_fail(self):
        self.program("cuda_test", "echo '[  FAILED  ] CudaTensor.Adds'; exit 1")
        self.program("cuda_kernels_test", "echo '[  PASSED  ] 0 tests.'; echo '[  SKIPPED ] 9 tests'")
        lines = self.lines_of("--only", "device", "kernels")
        self.assertIn("[  FAILED  ] CudaTensor.Adds", lines["device"])
        self.assertIn("no test passed", lines["kernels"])

    def test_errors_of_a_memory_checker_fail(self):
        self.program("compute-sanitizer", TESTS_PASS + "; echo '========= Invalid __global__ write of size 4'", "path")
        lines = self.lines_of("--only", "memcheck")
        self.assertIn("FAILED   memcheck: ========= Invalid __global__ write", lines["memcheck"])

    def test_races_are_found_in_a_run_that_is_cut(self):
        line = "========= Error: Race reported between Write access at 0x10"
        self.program("compute-sanitizer", f"{TESTS_PASS}; echo '{line}'; exec sleep 600", "path")
        checks = gpu_check.Checks(self.folder / "bin", self.folder, 50)
        with unittest.mock.patch.dict(os.environ, {"PATH": f"{self.folder / 'path'}:/usr/bin:/bin"}):
            checks.part(*gpu_check.sanitizer("racecheck", 2, "*"))
        self.assertEqual(checks.failed, 1)
        self.assertIn(f"FAILED   racecheck: {line}", (self.folder / "summary.txt").read_text())

    def test_all_forms_of_errors_are_known(self):
        for line in ("========= WARNING: Race reported between Read access", "========= Barrier error detected",
                     "========= ERROR: Race reported between Read access", "========= ERROR SUMMARY: 1 error",
                     "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"):
            self.assertRegex(line, gpu_check.SANITIZER_ERROR)
        for line in ("========= ERROR SUMMARY: 0 errors", "========= Target application returned an error",
                     "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"):
            self.assertNotRegex(line, gpu_check.SANITIZER_ERROR)

    def test_runs_that_differ_fail(self):
        self.program("cuda_steps", """echo "{\\"losses\\": [5.5], \\"weights\\": \\"$$\\"}" """)
        self.assertIn("differ", self.lines_of("--only", "repeat")["repeat"])
        self.program("cuda_steps", """case "$*" in *--cuda-graphs*) weights=bb ;; *) weights=aa ;; esac
echo "{\\"losses\\": [5.5], \\"weights\\": \\"$weights\\"}" """)
        self.assertIn("CUDA graphs give", self.lines_of("--only", "repeat")["repeat"])
        self.program("cuda_steps", """echo "{\\"losses\\": [${FLOW_RANKS:+6}5.5]}" """)
        self.assertIn("four ranks [65.5]", self.lines_of("--only", "ranks")["ranks"])

    def profile_of(self, kernels):
        rows = [["ID", "Kernel Name", "gpu__time_duration.sum"], ["", "", "ns"]]
        rows += [[str(number), name, took] for number, (name, took) in enumerate(kernels)]
        script = "\n".join("echo '" + ",".join(f'"{cell}"' for cell in row) + "'" for row in rows)
        self.program("ncu", script, "path")
        done = self.run_it("--only", "profile")
        self.assertFalse((self.folder / "out/tokens.bin").exists())
        return done.stdout

    def test_the_profile_sums_the_time_of_each_kernel(self):
        shown = self.profile_of([("gemm(float*)", "1,500"), ("add(float*)", "500"), ("gemm(float*)", "500")])
        self.assertIn("80.0 %  gemm, 2 x, 2.0 us", shown)
        self.assertIn("ok       profile: 2 kernels, 3 launches", shown)

    def test_the_profile_begins_where_the_last_step_embeds_its_tokens(self):
        shown = self.profile_of([("void Embed<float>(float*)", "700"), ("add(float*)", "900"),
                                 ("void Embed<float>(float*)", "500"), ("gemm(float*)", "500")])
        self.assertIn("50.0 %  gemm", shown)
        self.assertNotIn("add", shown)

    def test_an_unknown_part_is_refused(self):
        done = self.run_it("--only", "speed")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no part speed", done.stderr)


if __name__ == "__main__":
    unittest.main()
