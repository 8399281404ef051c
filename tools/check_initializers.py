#!/usr/bin/env python3
"""Fails if an object of a folder that ops need runs code before main.

A tensor may be made before main, as a static of the program. Nothing says that the library's own
dynamic initializers have run by then, so op definitions and tables of these folders must be
constant-initialized (constexpr or constinit), or be made at first use.
"""

import pathlib
import subprocess
import sys

FOLDERS = ["core", "ops", "boxing", "autograd"]


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release")
    problems = []
    num_objects = 0
    for folder in FOLDERS:
        objects = sorted((build / folder).rglob(f"CMakeFiles/flow_{folder}*.dir/**/*.o"))
        num_objects += len(objects)
        if not objects:
            continue
        listing = subprocess.run(["nm", "-A", "--format=posix", *objects], check=True, text=True,
                                 capture_output=True).stdout
        for line in listing.splitlines():
            where, rest = line.split(": ", 1)
            if rest.startswith("_GLOBAL__sub_I"):
                name = pathlib.Path(where).name.removesuffix(".o")
                problems.append(f"{folder}/: {name} initializes something before main; make it "
                                "constexpr or constinit, or make it at first use")
    if num_objects == 0:
        problems.append(f"{build} holds no objects of the library: run tools/build first")
    print("\n".join(problems), end="\n" if problems else "")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
