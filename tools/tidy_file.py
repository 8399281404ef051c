#!/usr/bin/env python3
"""Runs clang-tidy on one file, unless the same text passed before with the same options and checks.

CMake calls this script in the preset tidy:
tidy_file.py CLANG-TIDY OPTIONS... SOURCE -- COMPILER ARGUMENTS...
It records files that passed under ${XDG_CACHE_HOME:-~/.cache}/flow-tidy, for all checkouts, because
clang-tidy takes hours for all files on two cores, and the preprocessor minutes.
"""

import hashlib
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "flow-tidy"
WITH_VALUE = {"-o", "-MF", "-MT", "-MQ"}
DROPPED = {"-c", "-MD", "-MMD", "-MP"}


def preprocess_command(compiler):
    """Returns the compiler's command, changed to print comments, macros and code without line marks."""
    command, skip = [], False
    for argument in compiler:
        if skip or argument in WITH_VALUE:
            skip = not skip
        elif argument not in DROPPED:
            command.append(argument)
    return command + ["-E", "-C", "-P", "-dD"]


def fingerprint(tidy, source, compiler):
    """Returns a hash of all input of clang-tidy, or None if the file does not compile."""
    text = subprocess.run(preprocess_command(compiler), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    if text.returncode != 0:
        return None
    digest = hashlib.sha256(text.stdout)
    digest.update(subprocess.run([tidy[0], "--version"], stdout=subprocess.PIPE, check=True).stdout)
    options = [word for word in compiler if word.startswith(("-W", "-f", "-std", "-D", "-m"))]
    digest.update("\0".join(tidy[1:] + options).replace(str(ROOT), "").encode())
    for folder in pathlib.Path(source).resolve().parents:
        checks = folder / ".clang-tidy"
        if checks.exists():
            digest.update(checks.read_bytes())
    return digest.hexdigest()


def main(arguments):
    end = arguments.index("--")
    tidy, source, compiler = arguments[:end - 1], arguments[end - 1], arguments[end + 1:]
    name = fingerprint(tidy, source, compiler)
    if name is not None and (CACHE / name).exists():
        return 0
    status = subprocess.run(arguments, check=False).returncode
    if status == 0 and name is not None:
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / name).touch()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
