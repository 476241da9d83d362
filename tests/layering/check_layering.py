#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Checks the sources against the rules of the house that a compiler does not know.

Usage: check_layering.py ROOT

Which folder may include which (the order of the layers, and the DEPENDS of its target), that each
folder is one target and one namespace, that no folders or targets stand in a circle, where external
headers may stand, own header first, #pragma once, the licence header, the budget of preprocessor
conditionals, and that documents and comments name files that are there. Prints one line per breach
(path:line: what and what to do); exit 0 without any, 1 with some, 2 when there is nothing to check.
"""
import re
import sys
from pathlib import Path

# From left to right: a folder may include what stands left of it and itself.
COMMON = ["base", "units", "statistics", "mesh", "program", "timeline", "simulate", "workloads",
          "settings", "records", "machine", "preflight"]
MEASURING = ["comm", "executor"]  # needs MPI
READING = ["results", "calibration", "analysis"]  # must build without MPI

ALLOWED = {folder: set(COMMON[:place + 1]) for place, folder in enumerate(COMMON)}
ALLOWED["comm"] = {*COMMON, "comm"}
ALLOWED["executor"] = {*COMMON, *MEASURING}
ALLOWED["results"] = {*COMMON, "results"}
ALLOWED["calibration"] = {*COMMON, "results", "calibration"}
ALLOWED["analysis"] = {*COMMON, *READING}
ALLOWED["runner"] = {*COMMON, *MEASURING, "results", "calibration", "runner"}
ALLOWED["config"] = {*COMMON, "config"}  # nothing below main reads the command line
ALLOWED["main"] = {*COMMON, *MEASURING, *READING, "config", "runner", "main"}

# External headers, by pattern, and the folders that may include them; None = everywhere.
EXTERNAL = [
    (r"mpi\.h|mpi-ext\.h", ["src/comm", "src/executor/host"]),
    (r"hdf5(_hl)?\.h|H5.*\.h", ["results/hdf5"]),
    (r"hwloc(/.*)?\.h|nvml\.h", ["src/machine"]),
    (r"cblas\.h|openblas_config\.h", ["src/executor/host"]),
    (r"cuda.*|cublas.*|nccl.*|cooperative_groups.*|nvtx3/.*", ["src/executor/cuda"]),
    (r"CLI/.*", ["src/config"]),
    (r"toml\+\+/.*", ["workloads", "src/settings", "src/config", "analysis"]),
    (r"nlohmann/.*", ["src/config", "src/preflight", "src/runner", "src/main.cpp",
                       "results", "analysis"]),
    (r"fmt/.*", None),
    (r"dirent\.h", ["src/base"]),  # others read folders by base::entries_of
    # POSIX and the C library of Linux.
    (r"(unistd|fcntl|sched|signal|pthread|dlfcn|poll|termios|netdb|time|link|elf|ucontext)\.h", None),
    (r"(sys|linux|netinet|arpa)/.*\.h", None),
]
# Headers that a build writes, and their component.
GENERATED = {"executor/fingerprint.hpp": "executor"}
# The only conditionals that count are these; #endif and #else come with them.
CONDITIONAL = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CONDITIONALS_PER_1000_LINES = 1.5

TREES = ["src", "workloads", "results", "analysis"]
CPP = {".cpp", ".hpp", ".cu", ".cuh"}
LICENSED = CPP | {".cmake", ".in", ".js", ".mjs", ".py", ".sh", ".toml"}
LICENCE = ["SPDX-FileCopyrightText: The Isoscale authors", "SPDX-License-Identifier: MIT"]


def folder_of(path):
    """The component of a path below the root: src/mesh/x.cpp -> mesh, workloads/x.cpp -> workloads.

    results/records has no HDF5 and stands beneath the machine's facts; the rest is results."""
    parts = path.parts
    if parts[:2] == ("results", "records"):
        return "records"
    if parts[0] != "src":
        return parts[0]
    return parts[1] if len(parts) > 2 else "main"


def file_of_include(root, name):
    """The path of an include in quotes, from the root; None when there is no such file."""
    for base in (root / "src", root):
        if (base / name).is_file():
            return (base / name).relative_to(root)
    return None


COMPONENT = re.compile(r"isoscale_component\((\w+)\s+SOURCES([^()]*)\)")


def components(root):
    """The targets that CMake's files declare, {name: names after DEPENDS}, and the breaches."""
    found, breaches = {}, []
    for tree in TREES:
        for path in sorted((root / tree).rglob("CMakeLists.txt")):
            text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
            if len(COMPONENT.findall(text)) != text.count("isoscale_component("):
                breaches.append(f"{path.relative_to(root)}:1: "
                                "write isoscale_component(NAME SOURCES ... DEPENDS ...)")
            for name, body in COMPONENT.findall(text):
                parts = re.split(r"\b(DEPENDS|EXTERNAL)\b", body)
                keyed = dict(zip(parts[1::2], parts[2::2]))
                where = path.parent.relative_to(root)
                folders = sorted({(where / source).parent.as_posix() for source in parts[0].split()
                                  if not source.startswith("$")})
                if len(folders) != 1 or name != target_of(folders[0]):
                    breaches.append(f"{where.as_posix()}/CMakeLists.txt:1: target {name} has sources of "
                                    f"{', '.join(folders)}: a folder is one target, named after it")
                found[name] = keyed.get("DEPENDS", "").split()
    breaches += [f"{name} DEPENDS on {other}, which is no target"
                 for name in found for other in found[name] if other not in found]
    breaches += [f"{', '.join(circle)}: targets that DEPEND on each other"
                 for circle in circles({name: set(others) for name, others in found.items()})]
    return found, breaches


def target_of(folder):
    """The component of a folder: src/runner/plan -> runner_plan."""
    return folder.removeprefix("src/").replace("/", "_")


def check_depends(root, path, text, reach):
    """Yields (line, message) for each include of a folder that CMake's DEPENDS does not reach."""
    own = target_of(path.parent.as_posix())
    if own not in reach:
        return
    for number, line in enumerate(without_comments(text).splitlines(), start=1):
        match = INCLUDE.match(line)
        other = file_of_include(root, match.group(2)) if match and match.group(1) == '"' else None
        target = target_of(other.parent.as_posix()) if other else own
        if target in reach and target != own and target not in reach[own]:
            yield number, f"{own} must not include {target}: CMake does not name it after DEPENDS"


#: The program, and the plugin, which is built as objects that tests link with stand-ins.
NOT_COMPONENTS = {"src", "src/executor/cuda", "src/executor/cuda/kernels"}

#: Folders whose namespace is that of the folder above: what all workloads share, what stands in run
#: files, and the kernels, whose names every user writes out already.
NAMED_AS_PARENT = {"workloads/api", "workloads/bench", "results/records", "results/hdf5",
                   "results/reader", "results/writer", "src/executor/cuda/kernels"}


#: The functions that make an executor stand beside its interface.
MADE_ABOVE = {("src/executor/host/host_executor.hpp", "isoscale::executor"),
              ("src/executor/cuda/device.hpp", "isoscale::executor")}


def check_namespace(path, text):
    """The complaint about a header whose namespace is not that of its folder."""
    folder = path.parent
    if folder.as_posix() in NAMED_AS_PARENT:
        folder = folder.parent
    parts = [part for part in folder.parts if part != "src"]
    wanted = "::".join(["isoscale", *parts])
    # A namespace that is opened for a forward declaration alone, or to specialise its templates, is
    # that of the other folder.
    lent = r"((?:template <[^>]+>\n)?(?:class|struct) \w+;\n\}|\ntemplate <>\n)?"
    opened = re.findall(rf"^namespace (isoscale[\w:]*) \{{\n{lent}", text, flags=re.M)
    is_own = [f"{name}::".startswith(f"{wanted}::") for name, is_lent in opened
              if (not is_lent or name.startswith(wanted))
              and (path.as_posix(), name) not in MADE_ABOVE]
    if path.suffix not in (".hpp", ".cuh") or is_own and all(is_own):
        return None
    return f"a header of this folder opens namespace {wanted}"


def without_comments(text):
    """Block comments blanked, lines kept, so that an include in a comment is none."""
    return re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)


def check_quoted(root, path, name):
    file = file_of_include(root, name)
    component = folder_of(file) if file else GENERATED.get(name)
    folder = folder_of(path)
    if component is None:
        return f'"{name}" is no file of ours below src/ or the root'
    if folder not in ALLOWED:
        return f"folder '{folder}' has no place in the order of layers; add it to this check"
    if component not in ALLOWED[folder]:
        return f'{folder} must not include "{name}": {component} stands right of it'
    return None


def reachable(arrows):
    """{name: all that it leads to, directly or through others}, of {name: its neighbours}."""
    def reached_from(name):
        reached, queue = set(), [name]
        while queue:
            for other in arrows.get(queue.pop(), ()):
                if other not in reached:
                    reached.add(other)
                    queue.append(other)
        return reached

    return {name: reached_from(name) for name in arrows}


def circles(arrows):
    """Sets of folders or targets that lead to each other: {name: its neighbours}."""
    reach = reachable(arrows)
    return sorted({tuple(sorted(other for other in reach[folder]
                                if folder in reach.get(other, ()))) for folder in arrows
                   if folder in reach[folder]})


def check_external(path, name):
    if "." not in name and "/" not in name:
        return None  # the C++ standard library
    for pattern, places in EXTERNAL:
        if not re.fullmatch(pattern, name):
            continue
        inside = places is None or any(path.is_relative_to(place) for place in places)
        return None if inside else f"<{name}> belongs only in {' and '.join(places)}"
    return f"<{name}> is an unknown external header; add it and its folders to this check"


def check_includes(root, path, text):
    """Yields (line, message)."""
    includes = []
    for number, line in enumerate(without_comments(text).splitlines(), start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        kind, name = match.groups()
        includes.append(name)
        message = check_quoted(root, path, name) if kind == '"' else check_external(path, name)
        if message:
            yield number, message
    own = path.with_suffix(".hpp")
    if path.suffix in (".cpp", ".cu") and (root / own).is_file():
        own_name = (own.relative_to("src") if own.parts[0] == "src" else own).as_posix()
        if not includes or includes[0] != own_name:
            yield 1, f'the first include must be its own header "{own_name}"'
    if path.suffix in (".hpp", ".cuh") and "#pragma once" not in text:
        yield 1, "a header starts with #pragma once"


def check_licence(text):
    lines = text.splitlines()
    if lines and lines[0].startswith("#!"):
        lines = lines[1:]
    marker = re.compile(r"^(//|#) (.*)$")
    found = [match.group(2) if (match := marker.match(line)) else "" for line in lines[:2]]
    return None if found == LICENCE else f"must start with the two comment lines {LICENCE}"


#: A path from the root, as documents and comments name files.
NAMED_FILE = re.compile(r"\b(?:src|workloads|results|analysis|launch|tests)/[\w./-]*\w"
                        r"\.(?:cpp|hpp|cuh?|m?js|py|sh|toml|md)\b")


def check_named_files(root, text):
    """Yields (line, message) for each file that a text names and that is not there."""
    for number, line in enumerate(text.splitlines(), start=1):
        for name in NAMED_FILE.findall(line):
            if not (root / name).is_file():
                yield number, f"there is no file {name}"


def documents(root):
    found = [*root.glob("*.md"), *(path for tree in [*TREES, "docs", "launch", "tests"]
                                   for path in (root / tree).rglob("*.md"))]
    return sorted(path.relative_to(root) for path in found if "node_modules" not in path.parts)


def source_files(root):
    for tree in [*TREES, "tests", "launch"]:
        for path in sorted((root / tree).rglob("*")):
            is_licensed = path.suffix in LICENSED or path.name == "CMakeLists.txt"
            if is_licensed and path.is_file() and "node_modules" not in path.parts:
                yield path.relative_to(root)
    yield Path("CMakeLists.txt")


def check(root):
    """All breaches, as lines of text, and the number of files looked at."""
    targets, breaches = components(root)
    reach = reachable(targets)
    files = conditionals = lines = 0
    arrows = {}
    for path in source_files(root):
        files += 1
        try:
            text = (root / path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            breaches.append(f"{path}:1: cannot be read as UTF-8: {error}")
            continue
        if message := check_licence(text):
            breaches.append(f"{path}:1: {message}")
        if path.suffix not in CPP:
            continue
        source = without_comments(text).splitlines()
        lines += len(source)
        conditionals += sum(1 for line in source if CONDITIONAL.match(line))
        if path.parts[0] in TREES:
            breaches += [f"{path}:{line}: {message}"
                         for line, message in [*check_includes(root, path, text),
                                               *check_depends(root, path, text, reach),
                                               *check_named_files(root, text)]]
            folder = path.parent.as_posix()
            if targets and folder not in NOT_COMPONENTS and target_of(folder) not in targets:
                breaches.append(f"{path}:1: no isoscale_component has the sources of {folder}")
            if message := check_namespace(path, text):
                breaches.append(f"{path}:1: {message}")
            for name in re.findall(r'^#include "([^"]+)"', text, flags=re.M):
                other = file_of_include(root, name)
                if other and other.parent != path.parent and not check_quoted(root, path, name):
                    arrows.setdefault(path.parent.as_posix(), set()).add(other.parent.as_posix())
    breaches += [f"{', '.join(circle)}: folders that include each other in a circle"
                 for circle in circles(arrows)]
    for path in documents(root):
        files += 1
        breaches += [f"{path}:{line}: {message}" for line, message in
                     check_named_files(root, (root / path).read_text(encoding="utf-8"))]
    if conditionals * 1000 > CONDITIONALS_PER_1000_LINES * lines:
        breaches.append(f"{conditionals} preprocessor conditionals in {lines} lines are more than "
                        f"{CONDITIONALS_PER_1000_LINES} per 1000: move the choice into CMake or a "
                        "file of its own")
    return breaches, files


def main(arguments):
    if len(arguments) != 1 or not Path(arguments[0], "CMakeLists.txt").is_file():
        print("usage: check_layering.py ROOT   (the folder of the top CMakeLists.txt)",
              file=sys.stderr)
        return 2
    breaches, files = check(Path(arguments[0]))
    for breach in breaches:
        print(breach)
    print(f"{files} files, {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
