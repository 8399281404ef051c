#!/usr/bin/env python3
"""Fails if a function of a header is defined in a file that has another name than the header.

A large class may continue in files whose names begin with that of the header: module_tree.cpp defines
methods of module.h. What an op's header declares (conv_op.h) is in the files of the op (conv.cpp,
conv_cpu.cpp). Inline functions and templates are not looked at.
"""

import collections
import pathlib
import re
import sys

FOLDERS = ["core", "ops", "boxing", "autograd", "eager", "graph", "pipeline", "nn"]
# Headers, by the beginning of their names, whose functions are defined elsewhere, with the reason.
ELSEWHERE = {
    "core/methods/": "each method is defined with the family of its op",
    "core/tensor.h": "each method is defined with the family of its op",
    "core/device/": "one file for each kind of device",
    "ops/elementwise/unary_op.h": "the table of rows defines the functions",
    "ops/register.h": "one file with CUDA, one without",
    "ops/vendor/onednn.h": "one file with the library, one without it",
    "ops/vendor/onednn_desc.h": "one file for each major version of the library",
}
# A function with its parameter list: the last name before the first parenthesis.
NAME = re.compile(r"((?:\w+::)*(?:operator\s*[^\s\w(]+|operator\(\)|~?\w+))\s*\(")
IGNORED = re.compile(r"(using|typedef|friend|template|static_assert|enum|namespace)\b")


def without_comments(text):
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r'R"\w*\(.*?\)\w*"', '""', text, flags=re.DOTALL)
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"'(\\.|[^'\\\n])'", "' '", text)
    return re.sub(r"^[ \t]*#[^\n]*", "", text, flags=re.MULTILINE)


def end_of_block(text, begin):
    depth = 0
    for i in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return len(text)


def functions(text):
    """Yields (scope, name, has a body) of the functions at namespace and class scope."""
    scopes, begin, parentheses, i = [], 0, 0, 0
    while i < len(text):
        c = text[i]
        head = text[begin:i].strip()
        parentheses += {"(": 1, ")": -1}.get(c, 0)
        if parentheses == 0 and c == ":" and head in ("public", "private", "protected"):
            begin = i + 1
        elif parentheses == 0 and c == "}":
            del scopes[-1:]
            begin = i + 1
        elif parentheses == 0 and c in "{;":
            owner = re.match(r"(?:template\s*<.*>\s*)?(namespace|class|struct)\b\s*([\w:]*)", head,
                             re.DOTALL)
            if c == "{" and owner and "(" not in head:
                is_template = head.startswith("template")
                is_hidden = owner[1] == "namespace" and not owner[2]
                scopes.append((owner[1], owner[2], is_template or is_hidden))
                begin = i + 1
            else:
                name = NAME.search(head)
                if name and not IGNORED.match(head) and not any(hidden for *_, hidden in scopes):
                    classes = [own for kind, own, _ in scopes if kind != "namespace"]
                    full = "::".join([*classes, name[1].replace(" ", "")])
                    initialized = "=" in head[:name.start()] or re.search(r"=\s*(0|default|delete)$",
                                                                         head)
                    if not initialized:
                        yield full, c == "{"
                if c == "{":
                    i = end_of_block(text, i)
                begin = i + 1
        i += 1


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    declared, defined = collections.defaultdict(set), collections.defaultdict(set)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".cu"):
                continue
            for name, has_body in functions(without_comments(path.read_text())):
                (defined if has_body else declared)[name].add(path.relative_to(root))
    problems = []
    for name, headers in declared.items():
        for header in sorted(h for h in headers if h.suffix == ".h"):
            if str(header).startswith(tuple(ELSEWHERE)):
                continue
            stem = str(header.with_suffix("")).removesuffix("_op")
            in_class, is_op = "::" in name, header.stem.endswith("_op")
            places = {str(path.with_suffix("")) for path in defined[name]}
            if places and not any(
                    place == stem or ((in_class or is_op) and place.startswith(stem + "_"))
                    for place in places):
                problems.append(f"{header}: {name} is defined in {', '.join(sorted(places))}.cpp")
    for problem in sorted(problems):
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
