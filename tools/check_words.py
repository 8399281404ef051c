#!/usr/bin/env python3
"""Fails on words, includes, names and sizes that the house style forbids. Prints file:line."""

import argparse
import pathlib
import re
import subprocess
import sys

from check_layers import ORDER

WARN_LINES, FAIL_LINES = 500, 800
MAX_MODULES = 40
SOURCE_SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}

# Forbidden in the library's code, but not in comments and strings: a pattern and the alternative.
LIBRARY_RULES = [
    (r"#\s*include\s*<iostream>", "the library does not write to streams; use core/log.h"),
    (r"#\s*include\s*<(format|source_location|expected)>", "not in every supported compiler"),
    (r"\bstd::(views|ranges::views)\b", "clang 14 cannot compile range views"),
    (r"(?<![\w.>:])((std)?::)?f?printf\s*\(", "use core/log.h, or an ostream given by the caller"),
    (r"(?<![\w.>:])(?<!void )((std)?::)?(abort|exit|_exit|quick_exit|terminate)\s*\(",
     "the library never ends the process: throw an Error"),
    (r"\bstd::endl\b", "it flushes; write '\\n'"),
    (r"\bassert\s*\(", "use FLOW_ASSERT, which throws"),
    (r"\bdynamic_cast\s*<[^>;]*>\s*\([^;()]*\bthread_state\s*\(\s*\)\s*\.\s*interpreter\b"
     r"|\bdynamic_cast\s*<[^>;]*\b\w*Interpreter\b[^>;]*>",
     "ThreadState says what runs; do not guess it from the interpreter's type"),
]
HEADER_RULES = [
    (r"^\s*using\s+namespace\b", "not in a header"),
    (r"\bFLOW_WITH_[A-Z]+\b", "what the library was built with may not change a header"),
]
# Expensive headers, and the files that may include them.
HOMES = [
    (r"#\s*include\s*<mpi\.h>", r"boxing/comm/mpi_[a-z_]+\.(h|cpp)"),
    (r"#\s*include\s*<nccl\.h>", r"boxing/comm/nccl_[a-z_]+\.(h|cpp)"),
    (r"#\s*include\s*<cuda[a-z_]*\.h>",
     r"core/device/cuda[a-z_]*\.(h|cpp)|ops/vendor/(cublas|cudnn)[a-z_]*\.cpp|boxing/comm/nccl[a-z_]*\.cpp|graph/run/cuda_[a-z_]+\.cpp|.*\.cuh?"),
    (r"#\s*include\s*<glog/", r"core/log\.(h|cpp)"),
    (r"#\s*include\s*<(oneapi/dnnl/)?dnnl[a-z_.]*>", r"ops/vendor/onednn[a-z_]*\.(h|cpp)"),
    (r"#\s*include\s*<(cblas|openblas_config)\.h>", r"ops/vendor/openblas[a-z_]*\.(h|cpp)"),
    (r"#\s*include\s*<kissfft/", r"ops/fft/kiss_line\.cpp"),
    (r"#\s*include\s*<zlib\.h>", r"[a-z_/]+\.cpp"),
    (r"#\s*include\s*<nlohmann/json\.hpp>", r"[a-z_/]+\.cpp"),
    (r"#\s*include\s*<CLI/", r"(tools|examples|benchmarks)/[a-z_/]+\.cpp"),
]
# Forbidden everywhere, also in comments.
TEXT_RULES = [
    (r"\b(TODO|FIXME|XXX)\b", "finish it, or raise Unsupported with the reason"),
    (r"NOLINT(NEXTLINE|BEGIN|END)?(?![A-Z(])", "name the check: NOLINT(check-name)"),
    (r"(?<![\w.$}])/(root|home)/", "a path of one machine"),
]
# Words that a native reader stumbles over: in comments, strings and pages, and what to write.
DIALECT_RULES = [
    (r"\banew\b", "again"),
    (r"\blies\b", "is stored, is located"),
    (r"\bbeside\b", "next to, besides, in addition to"),
    (r"\b(is|are) let\b", "is allowed to"),
    (r"\bone's\s+own\b", "name the owner"),
    (r"\blets go\b", "releases"),
    (r"\bhas it that\b", "says that"),
]
# Where these words are gone: files and folders that DIALECT_RULES hold for. Add each that is rewritten.
PLAIN_ENGLISH = ["README.md", "autograd/", "benchmarks/", "boxing/", "cmake/", "core/", "docs/", "eager/", "examples/",
                 "graph/", "nn/", "ops/", "pipeline/", "tools/check_commits.py"]
EMPTY_NAMES = re.compile(r"(^|/)(utils?|common|misc|impl|helpers?|manager)(\.|/)")

# (file, part of the text that was found): the reason why it is allowed there.
ALLOWED = {
    ("core/log.cpp", "iostream"): "writes to stderr where glog is not built in",
    ("boxing/ranks/rank_status.cpp", "exit"): "ends a rank that hangs at its start, after a failure or at its end",
    ("boxing/ranks/program_main.cpp", "exit"): "replaces exit in a program with thread ranks",
}
# Files with more than FAIL_LINES lines, and the reason.
LONG_FILES = {}


def tracked_files(root):
    listing = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                             cwd=root, check=True, capture_output=True).stdout
    names = listing.decode().split("\0")
    return [name for name in names if name and (root / name).is_file()]


def blank_comments(text, blank_strings):
    """Replaces comments, and if asked the content of string literals, keeping line numbers."""
    def replace(match):
        token = match.group(0)
        if token.startswith("/"):
            return re.sub(r"[^\n]", " ", token)
        return '""' + "\n" * token.count("\n") if blank_strings and token[0] == '"' else token

    token = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(token, replace, text, flags=re.S)


def find(name, text, rules):
    for pattern, advice in rules:
        for match in re.finditer(pattern, text, re.M):
            found = match.group(0).strip()
            if not any(name == file and words in found for file, words in ALLOWED):
                yield f"{name}:{text[:match.start()].count(chr(10)) + 1}: {found}: {advice}"


def check_source(name, text):
    folder = name.split("/")[0]
    code = blank_comments(text, blank_strings=False)
    if folder in ORDER:
        yield from find(name, blank_comments(text, blank_strings=True), LIBRARY_RULES)
        homeless = [(p, f"only in {home}") for p, home in HOMES if not re.fullmatch(home, name)]
        yield from find(name, code, homeless)
    if name.endswith((".h", ".cuh")):
        yield from find(name, code, HEADER_RULES)
        if "#pragma once" not in text and "// Not self-contained:" not in text:
            yield f"{name}:1: a header starts with #pragma once"
    num_lines = text.count("\n")
    if num_lines > FAIL_LINES and name not in LONG_FILES:
        yield f"{name}: {num_lines} lines: split it (limit {FAIL_LINES})"


def prose(name, text):
    """The text with all but comments and string literals blanked; line numbers stay."""
    if pathlib.PurePath(name).suffix not in SOURCE_SUFFIXES:
        return text
    token = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    kept, end = [], 0
    for match in re.finditer(token, text, re.S):
        kept += [re.sub(r"[^\n]", " ", text[end:match.start()]), match.group(0)]
        end = match.end()
    return "".join(kept)


def check_dialect(name, text):
    if any(name == place or place.endswith("/") and name.startswith(place) for place in PLAIN_ENGLISH):
        words = prose(name, text)
        for pattern, instead in DIALECT_RULES:
            for match in re.finditer(pattern, words, re.I):
                line = words[:match.start()].count("\n") + 1
                yield f"{name}:{line}: {match.group(0)}: write plain English: {instead}"


def module_of(path):
    """The stem that the files of one module share: x.h, x.cpp, x_cpu.cpp, x_op.h, no_x.cpp."""
    stem = path.name.split(".")[0].removeprefix("no_")
    while path.parts[0] == "ops" and re.search(r"._(op|cpu|cuda)$", stem):
        stem = stem.rpartition("_")[0]
    return stem


def check_modules(names):
    """No folder of the library holds more modules than a reader can look over."""
    modules = {}
    for path in map(pathlib.PurePosixPath, names):
        if path.parts[0] in ORDER and path.suffix in SOURCE_SUFFIXES:
            modules.setdefault(path.parent, set()).add(module_of(path))
    for folder, stems in sorted(modules.items()):
        if len(stems) > MAX_MODULES:
            yield f"{folder}: {len(stems)} modules: split the folder (limit {MAX_MODULES})"


def check_listed(root, names):
    """Reports sources of the library that the nearest CMakeLists.txt above them does not list."""
    for name in names:
        path = pathlib.PurePath(name)
        if path.parts[0] not in ORDER or path.suffix not in SOURCE_SUFFIXES:
            continue
        folder = next(above for above in path.parents if (root / above / "CMakeLists.txt").is_file())
        lists = (root / folder / "CMakeLists.txt").read_text()
        if not re.search(rf"(?<![\w/]){re.escape(path.relative_to(folder).as_posix())}(?!\w)", lists):
            yield f"{name}: not listed in {folder}/CMakeLists.txt"


def check_environment(root, names):
    """Reports variables in the sources that the library's table or the docs do not contain."""
    table = root / "core/env.cpp"
    declared = table.read_text() if table.exists() else ""
    documented = "".join(path.read_text() for path in (root / "docs").rglob("*.md"))
    for name in names:
        if pathlib.PurePath(name).suffix not in SOURCE_SUFFIXES or name.startswith("tests/"):
            continue
        text = blank_comments((root / name).read_text(), blank_strings=False)
        for match in re.finditer(r'"(FLOW_[A-Z0-9_]+)"', text):
            line = text[: match.start()].count("\n") + 1
            if f'"{match.group(1)}"' not in declared:
                yield f"{name}:{line}: {match.group(1)} is not in the table of core/env.cpp"
            elif not re.search(rf"\b{match.group(1)}\b", documented):
                yield f"{name}:{line}: {match.group(1)} is not explained under docs/"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=".", type=pathlib.Path)
    root = parser.parse_args().root.resolve()
    names = tracked_files(root)
    problems = []
    for name in names:
        if EMPTY_NAMES.search(name):
            problems.append(f"{name}: the name says nothing")
        try:
            text = (root / name).read_text()
        except UnicodeDecodeError:
            continue
        if name not in ("tools/check_words.py", "tests/tools/checks_test.py"):
            problems += find(name, text, TEXT_RULES)
        problems += check_dialect(name, text)
        if pathlib.PurePath(name).suffix in SOURCE_SUFFIXES:
            problems += check_source(name, text)
            if WARN_LINES < text.count("\n") <= FAIL_LINES:
                print(f"note: {name} has {text.count(chr(10))} lines; above {FAIL_LINES} it must be split")
        elif name.endswith("/CMakeLists.txt") and text.count("\n") > 60:
            print(f"note: {name} has {text.count(chr(10))} lines; 60 are plenty")
    problems += check_modules(names)
    problems += check_listed(root, names)
    problems += check_environment(root, names)
    print("\n".join(problems), end="\n" if problems else "")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
