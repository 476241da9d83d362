# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""What the tests of packaging share: where things are, and how commands are run."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["ISOSCALE_SOURCE"])
BUILD = pathlib.Path(os.environ["ISOSCALE_BUILD"])
PROGRAM = os.environ["ISOSCALE"]
CMAKE = os.environ["ISOSCALE_CMAKE"]

# A user who has nothing of ours, or of a launcher, in the environment.
#: Nothing but what a sanitizer needs to know of the MPI library.
BARE = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8",
        **{key: value for key, value in os.environ.items() if key in ("ASAN_OPTIONS",
                                                                      "LSAN_OPTIONS")}}


def run(*command, **how):
    """The finished process of a command, with its output as text."""
    how.setdefault("timeout", 100)
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, **how)


def run_ok(*command, **how):
    """What a command prints; an AssertionError with its errors when it fails."""
    done = run(*command, **how)
    if done.returncode != 0:
        said = done.stdout[-3000:] + done.stderr[-3000:]
        raise AssertionError(f"{command} ended with {done.returncode}:\n{said}")
    return done.stdout


def sample_run(folder):
    """A run file with something in every field."""
    path = pathlib.Path(folder) / "sample.h5"
    run_ok(os.environ["ISOSCALE_SAMPLE"], path)
    return path


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="isoscale-packaging-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
