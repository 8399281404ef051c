#!/usr/bin/env python3
"""Compiles every ```cpp block of README.md and docs/, and runs those that are whole programs.

Errors name the page and its line. Blocks marked ```cpp fragment are skipped. A block with a main is
a program: it is built as a user would, against the installed flow, in a project with one precompiled
header, and run in a folder of its own, under ```cpp ranks=N on N ranks as threads. It has to end with
status 0. What has not changed since the last call is not compiled again. Where clang++-14 is installed, it
parses all blocks too, because it refuses some code of headers that GCC accepts.
"""

import argparse
import concurrent.futures
import filecmp
import os
import pathlib
import re
import shutil
import subprocess
import sys
import typing

LIMIT_S = 120
CLANG = "clang++-14"
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(doc_programs LANGUAGES CXX)
find_package(flow REQUIRED)
add_compile_options(-Wall -Wextra)
file(CONFIGURE OUTPUT pch.cpp CONTENT "")
add_library(doc_pch OBJECT ${CMAKE_CURRENT_BINARY_DIR}/pch.cpp)
target_link_libraries(doc_pch PRIVATE flow::flow)
target_precompile_headers(doc_pch PRIVATE <flow/flow.h>)
"""


class Example(typing.NamedTuple):
    page: str
    line: int
    code: str
    ranks: int  # 0: no launcher

    @property
    def name(self):
        return f"{re.sub(r'[^A-Za-z0-9]', '_', self.page.removesuffix('.md'))}_{self.line}"

    @property
    def source(self):
        return f'#line {self.line} "{self.page}"\n{self.code}'

    @property
    def is_program(self):
        return re.search(r"^int main\(", self.code, re.M) is not None


def examples(root):
    for page in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")]):
        text = page.read_text()
        for match in re.finditer(r"^```cpp(?: ranks=(\d+))?\n(.*?)^```", text, re.S | re.M):
            line = text[: match.start()].count("\n") + 2
            yield Example(str(page.relative_to(root)), line, match.group(2), int(match.group(1) or 0))


def run(*command, **options):
    return subprocess.run([str(word) for word in command], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def write_changed(path, text):
    """Keeps the time of a file that has this text already, so that nothing is compiled again."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def install(build, prefix):
    """Installs flow, and keeps the times of the files that have not changed."""
    fresh = prefix.with_name("fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    done = run("cmake", "--install", build, "--prefix", fresh)
    if done.returncode:
        sys.exit(f"{done.stdout[-2000:]}\ncannot install {build}; tools/build builds what is missing")
    for path in fresh.rglob("*"):
        kept = prefix / path.relative_to(fresh)
        if path.is_file() and not (kept.exists() and filecmp.cmp(path, kept, shallow=False)):
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, kept)
    for path in prefix.rglob("*"):
        if path.is_file() and not (fresh / path.relative_to(prefix)).exists():
            path.unlink()
    shutil.rmtree(fresh)


def write_project(programs, project):
    text = PROJECT
    for program in programs:
        text += (f"add_executable({program.name} {program.name}.cpp)\n"
                 f"target_link_libraries({program.name} PRIVATE flow::flow)\n"
                 f"target_precompile_headers({program.name} REUSE_FROM doc_pch)\n")
        write_changed(project / f"{program.name}.cpp", program.source)
    write_changed(project / "CMakeLists.txt", text)


def build_programs(project, prefix, built):
    """Returns the errors of the compiler."""
    launcher = shutil.which("ccache")
    environment = os.environ | {"CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_ctime,include_file_mtime",
                                "CCACHE_BASEDIR": str(project.parent), "CCACHE_NOHASHDIR": "1"}
    done = run("cmake", "-G", "Ninja", "-S", project, "-B", built, f"-DCMAKE_PREFIX_PATH={prefix}",
               f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher or ''}", env=environment)
    if done.returncode == 0:
        jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", os.cpu_count())
        done = run("cmake", "--build", built, "--parallel", jobs, "--", "-k", "0", env=environment)
    return done.stdout if done.returncode else ""


def run_program(program, built, build):
    """Returns what is wrong."""
    folder = built / "runs" / program.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    launcher = [build / "bin/flowrun", f"--ranks=threads:{program.ranks}"] if program.ranks else []
    try:
        done = run(*launcher, built / program.name, cwd=folder, stdin=subprocess.DEVNULL, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"{program.page}:{program.line}: the program still runs after {LIMIT_S} s"
    if done.returncode:
        return f"{program.page}:{program.line}: the program ended with {done.returncode}:\n{done.stdout}"
    return ""


def problems_of_programs(programs, build, prefix):
    work = build / "doc_programs"
    project, built = work / "project", work / "build"
    if prefix is None:
        prefix = work / "prefix"
        install(build, prefix)
    write_project(programs, project)
    errors = build_programs(project.resolve(), prefix.resolve(), built.resolve())
    if errors:
        yield errors
    built_ones = [p for p in programs if (built / p.name).exists()] if not errors else []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from filter(None, pool.map(lambda p: run_program(p, built.resolve(), build.resolve()), built_ones))


def flags(root, build):
    return ["-std=c++20", "-Wall", "-Wextra", f"-I{build / 'include'}", f"-I{root}"]


def compile_command(root, build):
    """The command that checks the C++ source on its standard input."""
    return ["c++", *flags(root, build), "-fsyntax-only", "-x", "c++", "-"]


def problems_of_parts(parts, command):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = pool.map(lambda part: run(*command, input=part.source), parts)
    yield from (one.stdout.strip() for one in done if one.returncode)


def problems_with_clang(parts, root, build):
    """Parses the parts with clang, which parses the headers of flow once."""
    clang = [CLANG, *flags(root, build)]
    header = build / "doc_programs/flow.pch"
    header.parent.mkdir(parents=True, exist_ok=True)
    done = run(*clang, "-x", "c++-header", "-o", header, "-", input="#include <flow/flow.h>\n")
    if done.returncode:
        return [done.stdout.strip()]
    return problems_of_parts(parts, [*clang, "-include-pch", header, "-fsyntax-only", "-x", "c++", "-"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=".", type=pathlib.Path)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--prefix", type=pathlib.Path,
                        help="an installed flow; by default the build tree is installed below itself")
    arguments = parser.parse_args()
    found = list(examples(arguments.root))
    programs = [example for example in found if example.is_program]
    parts = [example for example in found if not example.is_program]
    problems = list(problems_of_parts(parts, compile_command(arguments.root, arguments.build)))
    if shutil.which(CLANG):
        problems += problems_with_clang(found, arguments.root, arguments.build)
    if programs:
        problems += problems_of_programs(programs, arguments.build, arguments.prefix)
    print("\n".join(problems) if problems else
          f"{len(programs)} programs ran, {len(parts)} parts of programs compile")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
