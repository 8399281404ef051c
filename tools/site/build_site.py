#!/usr/bin/env python3
"""Collects the pages of the site, builds it with doxygen and mkdocs, and checks it."""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SITE = ROOT / "tools/site"


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True,
                          check=False, **options)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\ntools/docs: {command[0]} failed; its output is above")
    return done.stdout + done.stderr


def without_info(text):
    """Removes what fences say to the checks, which would hide the code from the highlighter."""
    return re.sub(r"^```cpp .*$", "```cpp", text, flags=re.M)


def collect_pages(pages):
    """Copies the pages of docs/. The README becomes the first page, so its links change."""
    shutil.copytree(ROOT / "docs", pages)
    for page in pages.rglob("*.md"):
        page.write_text(without_info(page.read_text()))
    readme = (ROOT / "README.md").read_text()
    readme = re.sub(r"\]\(docs/", "](", readme)
    readme = re.sub(r"(src|srcset)=\"docs/", r'\1="', readme)
    readme = readme.replace("](LICENSE)", "](license.md)")
    (pages / "index.md").write_text(without_info(readme))
    licence = (ROOT / "LICENSE").read_text()
    (pages / "license.md").write_text(f"# Licence\n\n```text\n{licence}```\n")
    (pages / "site").mkdir()
    shutil.copy(SITE / "flow.css", pages / "site")


def check_navigation(pages):
    """MkDocs accepts a page that no menu leads to."""
    named = set(re.findall(r"[\w/]+\.md", (SITE / "mkdocs.yml").read_text()))
    lost = sorted({str(page.relative_to(pages)) for page in pages.rglob("*.md")} - named)
    if lost:
        sys.exit(f"tools/docs: add to nav of tools/site/mkdocs.yml: {', '.join(lost)}")


def make_op_pages(build, out, pages):
    run(build / "bin/flow-ops", out / "ops.json")
    run(SITE / "op_pages.py", ROOT, out / "ops.json", pages / "ops")


def make_header_pages(build, out, pages):
    run("cmake", f"-DCMAKE_INSTALL_PREFIX={out / 'headers'}", "-P", build / "install_headers.cmake")
    settings = (SITE / "Doxyfile").read_text() + f"""
INPUT = flow
INPUT_FILTER = {SITE / 'header_filter.py'}
OUTPUT_DIRECTORY = {pages}
STRIP_FROM_PATH = {out / 'headers/include'}
"""
    warnings = run("doxygen", "-", input=settings, cwd=out / "headers/include")
    if warnings:
        print(warnings, end="")
    # doxygen 1.9 links to the section of nested classes where it leaves the section out.
    for page in (pages / "api").glob("*.html"):
        text = page.read_text()
        if 'href="#nested-classes"' in text and 'name="nested-classes"' not in text:
            page.write_text(re.sub(r'<a href="#nested-classes">Classes</a>( &#124;\s*)?', "", text))


def write_offline_search(site):
    """Puts the index of the search and its worker into a script, for pages that are opened as files."""
    worker, = site.glob("assets/javascripts/workers/search.*.min.js")
    index = json.loads((site / "search/search_index.json").read_text())
    text = (SITE / "offline_search.js").read_text()
    text = text.replace("WORKER_SOURCE", json.dumps(worker.read_text().split("//# sourceMappingURL")[0]))
    (site / "search/offline.js").write_text(text.replace("SEARCH_INDEX", json.dumps(index)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help="a build tree with bin/flow-ops")
    parser.add_argument("out", type=pathlib.Path, help="the folder to build in; the site is OUT/site")
    arguments = parser.parse_args()
    build, out = arguments.build.resolve(), arguments.out.resolve()
    pages, site = out / "pages", out / "site"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    collect_pages(pages)
    make_op_pages(build, out, pages)
    make_header_pages(build, out, pages)
    check_navigation(pages)
    run("mkdocs", "build", "--strict", "--quiet", "--config-file", SITE / "mkdocs.yml")
    write_offline_search(site)
    print(run(SITE / "check_site.py", site), end="")


if __name__ == "__main__":
    main()
