#!/usr/bin/env python3
"""flow-calibrate writes a table that programs read at their next start.

flow_calibrate_test.py PROGRAM
"""

import os
import pathlib
import subprocess
import sys
import tempfile


def run(*words, table):
    return subprocess.run([sys.argv[1], *words], check=True, capture_output=True, text=True,
                          env={**os.environ, "FLOW_CPU_TABLE": table}).stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        table = str(pathlib.Path(folder) / "new" / "cpu.table")
        measured = run("--output", table, table="")
        assert f"{table} is read at the next start" in measured, measured
        shown = run("show", table=table)
        assert f"table: {table}, measured on" in shown, shown
        text = pathlib.Path(table).read_text(encoding="utf-8")
        assert text.startswith("flow cpu table 2\n") and len(text.splitlines()) == 92, text[:200]


if __name__ == "__main__":
    main()
