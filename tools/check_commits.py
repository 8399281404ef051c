#!/usr/bin/env python3
"""Fails on subjects of commits that the house style rules out: <area>[/<module>]: <imperative>.

Looks at the commits after BASE, where the rule began. A shallow clone does not have BASE, so nothing is
checked there.
"""

import argparse
import pathlib
import re
import subprocess
import sys

BASE = "a832fa40b84178c71add2eacf3176609c2a46163"
MAX_LENGTH = 72


def git(root, *arguments):
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def known_areas(root):
    """Folders and files of the top level, without suffix and leading dot, those of history included."""
    names = git(root, "log", "--format=", "--name-only", "--no-renames") or ""
    top = {name.split("/")[0].lstrip(".") for name in names.splitlines() if name}
    return top | {name.split(".")[0] for name in top}


def check_subject(subject, areas):
    if len(subject) > MAX_LENGTH:
        yield f"{len(subject)} characters, {MAX_LENGTH} are allowed"
    if subject.endswith("."):
        yield "ends with a period"
    match = re.match(r"([^:]+): \S", subject)
    if not match:
        yield "begins with no area: write <area>[/<module>]: <what the commit does>"
        return
    for area in match.group(1).split(", "):
        if area.split("/")[0] not in areas:
            yield f"{area} is no folder of the repository"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=".", type=pathlib.Path)
    parser.add_argument("--base", default=BASE, help=f"default: {BASE[:7]}")
    arguments = parser.parse_args()
    log = git(arguments.root, "log", "--no-merges", "--format=%h %s", f"{arguments.base}..HEAD")
    if log is None:
        print(f"note: {arguments.base[:7]} is not in this clone; no subjects were checked")
        return 0
    areas = known_areas(arguments.root)
    problems = [f"{line.split(' ')[0]}: {line.split(' ', 1)[1]}: {problem}" for line in log.splitlines()
                for problem in check_subject(line.split(" ", 1)[1], areas)]
    print("\n".join(problems), end="\n" if problems else "")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
