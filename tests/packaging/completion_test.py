# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""The scripts of 'isoscale completion' complete what the program understands."""

import re
import shutil

from support import BARE, Case, PROGRAM, run, run_ok

# $1 = the script, the rest = the words of the line; the last one is being typed.
IN_BASH = """source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_isoscale
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Shell(Case):
    shell = ""

    def setUp(self):
        super().setUp()
        if shutil.which(self.shell, path=BARE["PATH"]) is None:
            self.skipTest(f"there is no {self.shell}")
        self.script = self.scratch / f"isoscale.{self.shell}"
        self.script.write_text(run_ok(PROGRAM, "completion", self.shell), encoding="utf-8")
        (self.scratch / "here").mkdir()
        for name in ("one.h5", "plan.toml", "notes.txt"):
            (self.scratch / "here" / name).touch()

    def ask(self, *command):
        return run_ok(*command, cwd=self.scratch / "here", env={**BARE, "HOME": self.scratch})


class OfEveryShell:
    """Tests that every shell must pass; a subclass has `complete`."""

    def assert_completed(self, *cases):
        """(words of the line ..., what completes them)."""
        for *words, completed in cases:
            with self.subTest(words=words):
                self.assertEqual(self.complete(*words), completed)

    def test_every_option_of_every_command(self):
        for command in (word for word in self.complete("") if not word.startswith("-")):
            text = run_ok(PROGRAM, command, "--help")
            options = re.findall(r"^  (?:-h, *)?(--[a-z-]+)", text, flags=re.MULTILINE)
            self.assertIn("--help", options)
            self.assertEqual(sorted(options), sorted(self.complete(command, "--")), command)


class Bash(Shell, OfEveryShell):
    shell = "bash"

    def complete(self, *words):
        text = self.ask("bash", "--norc", "-c", IN_BASH, "_", self.script, "isoscale", *words)
        return [line for line in text.splitlines() if line]

    def test_commands_and_values(self):
        self.assertLessEqual({"run", "report", "list", "--help", "--version"},
                             set(self.complete("")))
        self.assert_completed(
            ("re", ["report"]),
            ("run", "--device", "", ["auto", "cuda", "host"]),
            ("run", "--device", "h", ["host"]),
            ("run", "--device", "=", ["auto", "cuda", "host"]),
            ("run", "--device", "=", "c", ["cuda"]),
            ("run", "--quiet", "--scaling", "w", ["weak"]),
            ("report", "a.h5", "--format", "j", ["json"]),
            ("completion", "z", ["zsh"]),
            ("run", "--workload", "dp,tp,hy", ["dp,tp,hybrid"]),
            ("run", "--set", "microbatches", ["microbatches="]),
            ("run", "--set", "batch", "=", "", []),
            ("run", "--seed", "", []))  # only the user knows

    def test_files_by_their_kind_and_in_folders(self):
        self.assert_completed(
            ("report", "o", ["one.h5"]),
            ("report", "n", []),
            ("run", "pl", ["plan.toml"]),
            ("run", "--output", "", ["one.h5"]))
        (self.scratch / "here/runs").mkdir()
        (self.scratch / "here/runs/three.h5").touch()
        self.assert_completed(("report", "runs/", ["runs/three.h5"]))
        self.assertEqual(sorted(self.complete("run", "--resume", "")), ["one.h5", "runs"])

    def test_names_are_those_that_are_listed(self):
        for option, what in (("--workload", "workloads"), ("--suite", "suites")):
            listed = [line.split()[0] for line in run_ok(PROGRAM, "list", what).splitlines()]
            self.assertEqual(self.complete("run", option, ""), listed)
        self.assertEqual(self.complete("run", "--model", "gpt-13"), ["gpt-13b"])
        self.assertIn("dp", self.complete("list", "options", ""))


# $1 = the script, the rest = the words of the line. What completes them in zsh is replaced, and says
# which candidates it was given.
IN_ZSH = """compdef() { :; }
_describe() { print -l -- ${${(P)2}%%:*} | grep -e "^$PREFIX" }
compadd() { while [[ $1 == -S ]] shift 2; shift; print -l -- "$@" | grep -e "^$PREFIX" }
_files() { print -- "$2" }
compset() { local cut=${(M)PREFIX##${~2}}; PREFIX=${PREFIX#$cut}; [[ -n $cut ]] }
source "$1"; shift
words=("$@") CURRENT=$# PREFIX=${@[-1]}
_isoscale
"""


class Zsh(Shell, OfEveryShell):
    shell = "zsh"

    def complete(self, *words):
        done = run("zsh", "-f", "-c", IN_ZSH, "_", self.script, "isoscale", *words, env=BARE)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_values(self):
        self.assert_completed(
            ("re", ["report"]),
            ("run", "--device", "h", ["host"]),
            ("run", "--device=c", ["cuda"]),
            ("run", "--workload", "dp,tp,hy", ["hybrid"]),
            ("run", "--set", "microbatches", ["microbatches="]),
            ("run", "--resume", "", ["*.h5"]),
            ("run", "--seed", "", []),
            ("list", "mo", ["models"]))
