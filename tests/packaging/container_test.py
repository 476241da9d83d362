# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""The recipes of containers, as far as they can be looked at without building an image."""

import re
import shutil

from support import Case, SOURCE, run, run_ok

CONTAINER = SOURCE / "launch/container"
SCRIPT = "launch/container/build.sh"


def dockerfile():
    """Its instructions: (word, rest of the line)."""
    text = (CONTAINER / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def definition():
    """The header and the sections of the definition for Apptainer: name -> lines."""
    sections = {"": []}
    name = ""
    for line in (CONTAINER / "isoscale.def").read_text(encoding="utf-8").splitlines():
        if line.startswith("%"):
            name = line[1:].strip()
            sections[name] = []
        elif line and not line.startswith("#"):
            sections[name].append(line.strip())
    return sections


def copied_by_docker():
    return [name for word, rest in dockerfile() if word == "COPY" for name in rest.split()[:-1]]


def packages_of(group):
    lines = (SOURCE / "launch/packages.txt").read_text(encoding="utf-8").splitlines()
    return [name for line in lines if line.split()[:1] == [group] for name in line.split()[1:]]


class Recipes(Case):

    def test_arguments_are_declared_and_alike(self):
        declared = dict(rest.split("=") for word, rest in dockerfile() if word == "ARG")
        self.assertEqual(declared, dict(line.split("=") for line in definition()["arguments"]))
        text = (CONTAINER / "isoscale.def").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"\{\{ *(\w+) *\}\}", text)), set(declared))

    def test_both_copy_the_same(self):
        names = copied_by_docker()
        self.assertEqual(sorted(names), sorted(line.split()[0] for line in definition()["files"]))

    def test_both_run_the_one_script(self):
        (docker,) = [rest for word, rest in dockerfile() if word == "RUN"]
        self.assertIn(f'{SCRIPT} /opt/isoscale "$MPI" "$CUDA"', docker)
        self.assertIn(f'{SCRIPT} /opt/isoscale "{{{{ MPI }}}}" "{{{{ CUDA }}}}"',
                      definition()["post"])

    def test_the_script_refuses_what_it_does_not_know(self):
        run_ok("bash", "-n", SOURCE / SCRIPT)
        for arguments in ([], ["--help"], [self.scratch, "lam"]):
            done = run("bash", SOURCE / SCRIPT, *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn("Usage:", done.stderr)

    def test_its_packages_exist(self):
        names = [*packages_of("build"), *packages_of("mpich")]
        self.assertGreater(len(names), 10)
        if shutil.which("apt-cache") is None:
            self.skipTest("this is no Debian or Ubuntu")
        found = set(re.findall(r"^Package: (.*)$", run("apt-cache", "show", *names).stdout,
                               flags=re.MULTILINE))
        if not found:
            self.skipTest("apt has no lists of packages here")
        self.assertLessEqual(set(names), found)
