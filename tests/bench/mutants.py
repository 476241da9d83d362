#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Tells which small errors in the product the tests notice: mutants, drawn by seed, one at a time.

Usage: mutants.py draw [--seed S] [--count N] TABLE TREE [OTHER_TREE]
       mutants.py apply TABLE TREE
       mutants.py reach TABLE BUILD RECORD
       mutants.py run TABLE BUILD RECORD [--only NUMBER...]

draw writes a table of statements, each with one operator exchanged. Of two trees it takes only
statements that stand once in both, so that both versions' tests are judged by the same errors.
apply writes all of them into the sources of a scratch tree, each behind a switch that
ISOSCALE_MUTANT sets; the tree is then built once. reach runs the default tests with no mutant on,
and keeps in the folder RECORD which test reached which mutant and how long it took. run repeats
for each mutant the tests that reach it, the quickest first, until one fails that passes without the
mutant. Fixtures of ctest are what reach left.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

EXCHANGED = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ",
             " == ": " != ", " != ": " == ", " && ": " || ", " || ": " && ",
             " + ": " - ", " - ": " + ", " * ": " / ", " / ": " * ",
             "true": "false", "false": "true", "std::min(": "std::max(", "std::max(": "std::min("}
OPERATOR = re.compile("|".join(rf"\b{re.escape(key)}" if key[0].isalpha() else re.escape(key)
                               for key in sorted(EXCHANGED, key=len, reverse=True)))
STATEMENT = re.compile(r"(?P<head>return |if \(|while \(|"
                       r"(?:const )?[\w.:>\[\]()*-]+(?: \w+)? [-+*/]?= )"
                       r"(?P<value>.+?)(?P<tail>;|\) \{)$")
SWITCH = """\
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
namespace isoscale_mutants {
inline bool is_on(int number) {
  static const char* on = std::getenv("ISOSCALE_MUTANT");
  static const char* record = std::getenv("ISOSCALE_MUTANT_RECORD");
  static bool reached[1000] = {};
  if (record != nullptr && !reached[number]) {
    reached[number] = true;
    const std::string name = record + std::string("/") + std::to_string(number);
    if (std::FILE* file = std::fopen(name.c_str(), "w")) std::fclose(file);
  }
  return on != nullptr && std::atoi(on) == number;
}
constexpr bool mutant(int number) { return !std::is_constant_evaluated() && is_on(number); }
}  // namespace isoscale_mutants
"""


def statements(tree):
    """{statement: [file, line number]} of those that stand once and begin on their line."""
    found, often = {}, set()
    for folder in ("src", "workloads", "results", "analysis"):
        for path in sorted((tree / folder).rglob("*.cpp")):
            if "cuda" in path.parts:  # played by a GPU only
                continue
            before = ";"
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
                text = line.strip()
                begins = before.endswith((";", "{", "}")) or before.startswith("//")
                if begins and STATEMENT.match(text):
                    if text in found:
                        often.add(text)
                    found[text] = [str(path.relative_to(tree)), number]
                before = text or before
    return {text: place for text, place in found.items() if text not in often}


def mutated(text, draw):
    """The statement with an operator exchanged if the switch `@` is on; None if it has none."""
    head, value, tail = STATEMENT.match(text).group("head", "value", "tail")
    unfit = value.startswith("{") or any(part in value for part in ('"', "[&", " = "))
    places = [] if unfit else list(OPERATOR.finditer(value))
    if not places or value.count("(") != value.count(")") or value.count("{") != value.count("}"):
        return None
    at = draw.choice(places)
    other = value[:at.start()] + EXCHANGED[at.group()] + value[at.end():]
    return f"{head}@ ? ({other}) : ({value}){tail}"


def draw_table(given):
    draw = random.Random(given.seed)
    trees = [statements(tree) for tree in given.trees]
    common = sorted(set.intersection(*(set(tree) for tree in trees)))
    table = []
    for text in draw.sample(common, len(common)):
        changed = mutated(text, draw)
        if changed is not None and len(table) < given.count:
            table.append({"statement": text, "mutant": changed, "file": trees[0][text][0]})
    given.table.write_text(json.dumps(table, indent=1), encoding="utf-8")
    print(f"{len(table)} of {len(common)} statements that stand once in each tree")


def apply_table(given):
    (given.tree / "src/mutants.hpp").write_text(SWITCH, encoding="utf-8")
    places = statements(given.tree)
    for number, row in enumerate(json.loads(given.table.read_text(encoding="utf-8"))):
        path = given.tree / places[row["statement"]][0]
        text = path.read_text(encoding="utf-8")
        changed = row["mutant"].replace("@", f"isoscale_mutants::mutant({number})")
        text = re.sub(rf"^( *){re.escape(row['statement'])}$", lambda at: at[1] + changed, text,
                      flags=re.M)
        if '#include "mutants.hpp"' not in text:
            text = '#include "mutants.hpp"\n' + text
        path.write_text(text, encoding="utf-8")
        print(f"{number:3} {path}: {changed}")


def default_tests(build):
    """Those that tests/run.sh runs: name, command, folder, environment, seconds allowed."""
    command = ["ctest", "--test-dir", build, "-LE", "^long$", "--show-only=json-v1"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for test in json.loads(listed)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        if not properties.get("DISABLED") and "command" in test:
            yield {"name": test["name"], "command": test["command"],
                   "folder": properties.get("WORKING_DIRECTORY", build),
                   "environment": dict(entry.split("=", 1)
                                       for entry in properties.get("ENVIRONMENT", [])),
                   "limit": properties.get("TIMEOUT", 1500),
                   "skipped": properties.get("SKIP_RETURN_CODE"),
                   "fixture": "FIXTURES_SETUP" in properties}


def seconds_of(test, **environment):
    """Seconds that the test took, negative if it failed."""
    start = time.monotonic()
    with subprocess.Popen(test["command"], cwd=test["folder"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, start_new_session=True,
                          env={**os.environ, **test["environment"], **environment}) as process:
        try:
            status = process.wait(test["limit"])
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = -1
    took = max(time.monotonic() - start, 1e-3)
    return took if status in (0, test["skipped"]) else -took


def reach(given):
    """Plays what sets something up one by one, and the rest on all cores."""
    tests = sorted(default_tests(given.build), key=lambda test: not test["fixture"])
    taken = {}

    def play(test):
        folder = given.record / test["name"]
        folder.mkdir(parents=True, exist_ok=True)
        taken[test["name"]] = seconds_of(test, ISOSCALE_MUTANT_RECORD=str(folder.resolve()))

    for fixture in filter(lambda test: test["fixture"], tests):
        play(fixture)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(play, (test for test in tests if not test["fixture"])))
    (given.record / "seconds.json").write_text(json.dumps(taken, indent=1), encoding="utf-8")
    failed = [name for name, took in taken.items() if took < 0]
    print(f"{len(taken)} tests; failed without a mutant: {failed}")


def run(given):
    taken = json.loads((given.record / "seconds.json").read_text(encoding="utf-8"))
    tests = sorted((test for test in default_tests(given.build) if taken.get(test["name"], -1) > 0),
                   key=lambda test: taken[test["name"]])
    table = json.loads(given.table.read_text(encoding="utf-8"))

    def verdict(number):
        reaching = [test for test in tests if (given.record / test["name"] / str(number)).exists()]
        caught = next((test["name"] for test in reaching
                       if seconds_of(test, ISOSCALE_MUTANT=str(number)) < 0
                       and seconds_of(test) > 0), None)
        print(f"{number:3} {caught or 'NOT CAUGHT'} ({len(reaching)} tests reach it) "
              f"{table[number]['file']}: {table[number]['mutant']}", flush=True)
        return caught is not None

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        numbers = given.only or range(len(table))
        caught = sum(pool.map(verdict, numbers))
    print(f"{caught} of {len(numbers)} mutants are caught")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    works = {"draw": draw_table, "apply": apply_table, "reach": reach, "run": run}
    for name, work in works.items():
        command = commands.add_parser(name)
        command.set_defaults(work=work)
        command.add_argument("table", type=pathlib.Path)
        if name == "draw":
            command.add_argument("trees", nargs="+", type=pathlib.Path)
            command.add_argument("--seed", type=int, default=1)
            command.add_argument("--count", type=int, default=40)
        elif name == "apply":
            command.add_argument("tree", type=pathlib.Path)
        else:
            command.add_argument("build", type=pathlib.Path)
            command.add_argument("record", type=pathlib.Path)
        if name == "run":
            command.add_argument("--only", type=int, nargs="+", help="numbers of mutants")
    given = parser.parse_args()
    given.work(given)


if __name__ == "__main__":
    main()
