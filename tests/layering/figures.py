#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Prints how the product's sources are cut into files.

Usage: figures.py [--list] [ROOT]

Counts what git knows below src, workloads, results and analysis: files, lines, their median, files that are too long,
headers with a single includer, and how many headers a source file reaches. --list prints the files that count instead.
"""
import re
import statistics
import subprocess
import sys
from pathlib import Path

TREES = ["src", "workloads", "results", "analysis"]
CPP = {".cpp", ".hpp", ".cu", ".cuh"}
SCRIPT = {".js", ".mjs"}
HEADER = {".hpp", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def product_files(root):
    """Paths below `root` that count, as git lists them."""
    named = subprocess.run(["git", "-C", root, "ls-files", "--", *TREES], capture_output=True, text=True, check=True)
    paths = [Path(name) for name in named.stdout.split()]
    return [path for path in paths if path.suffix in CPP | SCRIPT and (root / path).is_file()]


def includes_of(root, files):
    """Of each C++ file, the product's headers that it includes itself."""
    known = set(files)
    found = {}
    for path in files:
        if path.suffix not in CPP:
            continue
        names = INCLUDE.findall((root / path).read_text(encoding="utf-8"))
        candidates = [(Path("src") / name, Path(name), path.parent / name) for name in names]
        found[path] = {next(one for one in some if one in known) for some in candidates if known & set(some)}
    return found


def reached_from(path, includes):
    """The headers that `path` reaches through any number of includes."""
    reached, open_ends = set(), [path]
    while open_ends:
        for header in includes.get(open_ends.pop(), ()):
            if header not in reached:
                reached.add(header)
                open_ends.append(header)
    return reached - {path}


def lines_by_kind(text):
    """(blank, comment, other) lines; a comment is a line that begins as one."""
    lines = text.splitlines()
    blank = sum(not line.strip() for line in lines)
    comment = sum(line.lstrip().startswith(("//", "/*", "*")) for line in lines)
    return blank, comment, len(lines) - blank - comment


def figures(root):
    """Pairs of a name and a figure."""
    files = product_files(root)
    texts = {path: (root / path).read_text(encoding="utf-8") for path in files}
    cpp = [path for path in files if path.suffix in CPP]
    lengths = [len(texts[path].splitlines()) for path in cpp]
    includes = includes_of(root, files)
    # Beside the source of its own name, which is no reader of it.
    includers = {path: [other for other, headers in includes.items()
                        if path in headers and other.with_suffix("") != path.with_suffix("")]
                 for path in cpp if path.suffix in HEADER}
    alone = [path for path, some in includers.items() if len(some) == 1 and some[0].parent == path.parent]
    reached = [len(reached_from(path, includes)) for path in cpp if path.suffix == ".cpp"]
    blank, comment, code = (sum(kind) for kind in zip(*(lines_by_kind(text) for text in texts.values())))
    return [("lines", blank + comment + code), ("blank lines", blank), ("comment lines", comment),
            ("C++ files", len(cpp)), ("JavaScript files", len(files) - len(cpp)),
            ("median lines of a C++ file", statistics.median(lengths)),
            ("C++ files above 400 lines, %", round(100 * sum(n > 400 for n in lengths) / len(lengths), 1)),
            ("C++ files above 600 lines", sum(n > 600 for n in lengths)),
            ("headers with one reader, in their own folder", len(alone)),
            ("median of project headers that a .cpp reaches", statistics.median(reached))]


def main(arguments):
    """Prints the figures, or the files that they are of."""
    lists = "--list" in arguments
    rest = [argument for argument in arguments if argument != "--list"]
    root = Path(rest[0] if rest else ".").resolve()
    if lists:
        print("\n".join(str(path) for path in product_files(root)))
        return
    for name, figure in figures(root):
        print(f"{figure:>9}  {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
