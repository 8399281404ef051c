"""Rows of flow's benchmarks, for scripts that compare them with other libraries."""

import json
import math
import pathlib
import re
import subprocess
import tempfile

BIN = pathlib.Path(__file__).resolve().parent.parent / "build/release/bin"


def measure(program, names, seconds):
    """Runs the rows with these names, each for some seconds, and returns google-benchmark's results by name."""
    pattern = "|".join(re.escape(name).replace("\\-", "-") for name in names)
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        # The status is 1 if a row exceeds its limit; the times are valid all the same.
        subprocess.run([BIN / program, f"--benchmark_filter=^({pattern})$", f"--benchmark_min_time={seconds}",
                        f"--benchmark_out={out.name}", "--benchmark_out_format=json"],
                       check=False, capture_output=True)
        rows = json.load(open(out.name, encoding="utf-8"))["benchmarks"]
    return {row["name"]: row for row in rows}


def geometric_mean(ratios):
    """NaN for no ratios."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
