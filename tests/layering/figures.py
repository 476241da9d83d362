#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Prints how the product's sources are cut into files.

Usage: figures.py [ROOT]

Counts what git knows below src, workloads, results and analysis: files, lines, their median, files
that are too long, headers with a single includer, and how many headers a source file reaches.
"""
import statistics
import subprocess
import sys
from pathlib import Path

from check_layering import CPP, INCLUDE, TREES, file_of_include, reachable


def includes_of(root, files):
    """The product's headers that each C++ file includes itself."""
    found = {}
    for path in files:
        lines = (root / path).read_text(encoding="utf-8").splitlines()
        names = [match[2] for match in map(INCLUDE.match, lines) if match and match[1] == '"']
        found[path] = {file_of_include(root, name) or path.parent / name for name in names}
    return found


def lines_by_kind(text):
    """(blank, comment, other) lines; a comment is a line that begins as one."""
    lines = [line.strip() for line in text.splitlines()]
    comment = sum(line.startswith(("//", "/*", "*")) for line in lines)
    return lines.count(""), comment, len(lines) - lines.count("") - comment


def figures(root):
    """Pairs of a name and a figure."""
    named = subprocess.run(["git", "-C", root, "ls-files", "--", *TREES], capture_output=True,
                           text=True, check=True)
    files = [Path(name) for name in named.stdout.split()
             if Path(name).suffix in CPP | {".js", ".mjs"}]
    cpp = [path for path in files if path.suffix in CPP]
    kinds = {path: lines_by_kind((root / path).read_text(encoding="utf-8")) for path in files}
    lengths = [sum(kinds[path]) for path in cpp]
    includes = includes_of(root, cpp)
    # Beside the source of its own name, which is no reader of it.
    readers = {path: [other for other, headers in includes.items() if path in headers
                      and other.with_suffix("") != path.with_suffix("")]
               for path in cpp if path.suffix in (".hpp", ".cuh")}
    alone = [path for path, some in readers.items()
             if len(some) == 1 and some[0].parent == path.parent]
    reach = reachable(includes)
    blank, comment, code = map(sum, zip(*kinds.values()))
    return [("lines", blank + comment + code), ("blank lines", blank), ("comment lines", comment),
            ("C++ files", len(cpp)), ("JavaScript files", len(files) - len(cpp)),
            ("median lines of a C++ file", statistics.median(lengths)),
            ("C++ files above 400 lines, %",
             round(100 * sum(n > 400 for n in lengths) / len(lengths), 1)),
            ("C++ files above 600 lines", sum(n > 600 for n in lengths)),
            ("headers with one reader, in their own folder", len(alone)),
            ("median of project headers that a .cpp reaches",
             statistics.median(len(reach[path]) for path in cpp if path.suffix == ".cpp"))]


if __name__ == "__main__":
    for name, figure in figures(Path(*sys.argv[1:] or ["."]).resolve()):
        print(f"{figure:>9}  {name}")
