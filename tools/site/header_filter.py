#!/usr/bin/env python3
"""Filters a header for doxygen: the comments of declarations become comments that doxygen reads."""

import re
import sys


# How clang-tidy is told what to leave out, which is no description.
TIDY_MARK = "NO" "LINT"


def escaped(text):
    return re.sub(r"([\\@<>&#$%\"])", r"\\\1", text)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = file.read().splitlines()
    is_purpose = True  # until the first line that is no comment
    for line in lines:
        comment = re.match(r"(\s*)//(.*)$", line)
        trailing = re.match(r"(.*[;,{})]\s*)//(.*)$", line)
        if is_purpose and comment:
            print(f"/// \\file\n///{escaped(comment.group(2))}" if line is lines[0]
                  else f"///{escaped(comment.group(2))}")
        elif comment and TIDY_MARK not in line:
            print(f"{comment.group(1)}///{escaped(comment.group(2))}")
        elif trailing and '"' not in line and TIDY_MARK not in line:
            print(f"{trailing.group(1)}///<{escaped(trailing.group(2))}")
        else:
            print(line)
        is_purpose = is_purpose and bool(comment)


if __name__ == "__main__":
    main()
