# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Each C++ source compiles by itself: where sources are joined, one that lacks an #include is helped
out by those before it. Sources of kernels (.cu) are left out."""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import unittest

BUILD = pathlib.Path(os.environ["ISOSCALE_BUILD"])


def joined_sources():
    """(source, command, folder) of each that this build compiles only together with others."""
    with open(BUILD / "compile_commands.json", encoding="utf-8") as file:
        entries = json.load(file)
    for entry in entries:
        source = pathlib.Path(entry["file"])
        if source.parent.name == "Unity" and source.suffix == ".cxx":
            text = source.read_text(encoding="utf-8")
            parts = re.findall(r'^#include "(.+\.cpp)"', text, re.MULTILINE)
        elif "_each.dir/" in entry["command"]:
            parts = [str(source)]
        else:
            parts = []
        for part in parts:
            yield part, entry["command"].replace(str(source), part), entry["directory"]


def problem_of(source, command, folder):
    """What the compiler says of it, None where it finds nothing wrong."""
    words = shlex.split(command)
    output = words.index("-o")
    del words[output:output + 2]
    words.remove("-c")
    done = subprocess.run([*words, "-fsyntax-only"], cwd=folder, capture_output=True, text=True,
                          check=False)
    return f"{source}\n{done.stderr[:2000]}" if done.returncode != 0 else None


class Sources(unittest.TestCase):
    def test_each_compiles_by_itself(self):
        if not (BUILD / "compile_commands.json").exists():
            self.skipTest("this build keeps no list of its commands")
        sources = list(joined_sources())
        if not sources:
            self.skipTest("this build joins no sources")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = [problem for problem in pool.map(lambda at: problem_of(*at),
                                                     sources) if problem]
        print(f"{len(sources)} sources, {len(found)} that do not compile")
        self.assertEqual(found, [], "\n".join(found))
