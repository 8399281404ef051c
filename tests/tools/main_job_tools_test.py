"""tools/quickstart starts the main job, and tools/report_picture draws its report."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
# A browser that notes its options and, if told so, writes a picture.
BROWSER = """#!/bin/sh
echo "$@" >>"$(dirname "$0")/options"
for word; do case "$word" in --screenshot=*) [ -z "{text}" ] || printf '{text}' >"${{word#*=}}";; esac; done
echo "the browser speaks"
"""


class InScratch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def script(self, path, text):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path


class Quickstart(InScratch):
    """A copy of the script, among tools that only say how they were called."""

    def run_script(self, *options):
        self.script("tools/quickstart", (ROOT / "tools/quickstart").read_text())
        self.script("tools/setup", "#!/bin/sh\n")
        self.script("tools/build", '#!/bin/sh\necho "build $BUILD_TARGETS"\n')
        self.script("build/release/bin/flowrun", '#!/bin/sh\necho "flowrun $*"\n')
        return subprocess.run([str(self.folder / "tools/quickstart"), *options],
                              capture_output=True, text=True)

    def test_trains_two_stages_of_two_ranks_as_threads(self):
        job = self.run_script()
        self.assertEqual(job.returncode, 0, job.stderr)
        self.assertIn("build train_gpt flowrun\n", job.stdout)
        self.assertIn("flowrun --ranks=threads:4 ", job.stdout)
        self.assertIn("/train_gpt --pp 2 --dp 2 --tp 1 ", job.stdout)
        self.assertIn(f" --data {self.folder}/docs {self.folder}/core ", job.stdout)
        self.assertIn(" --steps 1200", job.stdout)

    def test_passes_ranks_layout_and_other_options_on(self):
        for options in (["--ranks=4", "--pp=4", "--dp=1"], ["--ranks", "4", "--pp", "4", "--dp", "1"]):
            job = self.run_script(*options, "--steps", "7", "--run", "a b", "--data=x")
            self.assertEqual(job.returncode, 0, job.stderr)
            self.assertIn("flowrun --ranks=4 ", job.stdout)
            self.assertIn("--pp 4 --dp 1 --tp 1 --steps 7 --run a b --data=x\n", job.stdout)
        self.assertIn("flowrun --ranks=threads:8 ", self.run_script("--tp", "2").stdout)

    def test_refuses_what_is_no_number_and_explains_itself(self):
        for options in (["--pp", "two"], ["--dp=0"], ["--tp"], ["--ranks"]):
            job = self.run_script(*options)
            self.assertEqual(job.returncode, 64, job.stdout)
            self.assertIn("tools/quickstart: ", job.stderr)
        self.assertIn("--ranks=threads:N", self.run_script("--help").stdout)


class ReportPicture(InScratch):
    def draw(self, *options):
        programs = self.folder / "programs"
        programs.mkdir(exist_ok=True)
        for name in ("bash", "cat", "dirname", "head", "id", "mktemp", "realpath", "rm", "sed", "sh", "stat"):
            if not (programs / name).exists():
                (programs / name).symlink_to(shutil.which(name))
        return subprocess.run([str(ROOT / "tools/report_picture"), *map(str, options)],
                              capture_output=True, text=True, env={"PATH": str(programs)})

    def test_says_that_it_needs_a_browser(self):
        job = self.draw("report.html", self.folder)
        self.assertEqual(job.returncode, 69)
        self.assertIn("needs chromium or google-chrome", job.stderr)

    def test_says_that_it_needs_a_report(self):
        self.script("programs/chromium", BROWSER.format(text="RIFF"))
        job = self.draw(self.folder / "none.html", self.folder)
        self.assertEqual(job.returncode, 74)
        self.assertIn("run tools/quickstart first", job.stderr)

    def test_draws_light_and_dark(self):
        report = self.script("report.html", "<p>report</p>")
        for name in BROWSERS:
            browser = self.script("programs/" + name, BROWSER.format(text="RIFF"))
            job = self.draw(report, self.folder)
            self.assertEqual(job.returncode, 0, job.stderr)
            for picture in ("report-light.webp", "report-dark.webp"):
                self.assertEqual((self.folder / picture).read_text(), "RIFF")
            options = (self.folder / "programs/options").read_text().splitlines()
            self.assertEqual(["--force-dark-mode" in line for line in options], [False, True])
            self.assertIn(f"file://{report}", options[0])
            browser.unlink()
            (self.folder / "programs/options").unlink()

    def test_shows_what_a_browser_says_that_draws_nothing(self):
        report = self.script("report.html", "<p>report</p>")
        self.script("programs/chromium", BROWSER.format(text=""))
        (self.folder / "report-light.webp").write_text("RIFF of another day")
        job = self.draw(report, self.folder)
        self.assertEqual(job.returncode, 70)
        self.assertIn("the browser speaks", job.stderr)

    @unittest.skipUnless(any(map(shutil.which, BROWSERS)), "there is no browser")
    def test_a_real_browser_draws(self):
        report = self.script("report.html", "<p>report</p>")
        job = subprocess.run([str(ROOT / "tools/report_picture"), str(report), str(self.folder)],
                             capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        self.assertEqual(job.returncode, 0, job.stderr)
        for picture in ("report-light.webp", "report-dark.webp"):
            self.assertEqual((self.folder / picture).read_bytes()[8:12], b"WEBP")


if __name__ == "__main__":
    unittest.main()
