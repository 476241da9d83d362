# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""What the command line tests share: a scratch directory and ways to start the program in it.

Environment: ISOSCALE = the program, ISOSCALE_MPIEXEC = mpiexec with its flags up to the rank count.
"""

import csv
import fcntl
import io
import json
import os
import pty
import random
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

PROGRAM = os.environ["ISOSCALE"]
MPIEXEC = shlex.split(os.environ.get("ISOSCALE_MPIEXEC", ""))  # not in a build without MPI
PATIENCE = float(os.environ.get("ISOSCALE_PATIENCE", "1"))
#: Small steps: of most runs it matters that they were measured, not what.
LITTLE = ["--set", "batch=8"]
#: Of a calibration.
FEW_CASES = ["--set sizes=8..4MiB*64 --set rotate=1MiB --set shapes=64x64x64,256x256x256"]
#: Preloaded, it makes calls fail (tests/fault).
FAILING_CALLS = os.environ.get("ISOSCALE_FAILING_CALLS", "")
needs_failing_calls = unittest.skipUnless(FAILING_CALLS,
                                          "a build with sanitizers has none to preload")
MEASURED = {}  # run files, by what was asked for
LAUNCHER_NAMES = ("OMPI_", "PMI", "SLURM_")


def clean_environment(**extra):
    """This environment without any launcher's variables but Open MPI's leave to run as root."""
    kept = {name: value for name, value in os.environ.items()
            if name.startswith("OMPI_ALLOW") or not name.startswith((*LAUNCHER_NAMES, "COLUMNS"))}
    return {**kept, **extra}


def words_of(arguments):
    """The words of a command.

    A text with blanks is taken apart as a shell does. An absolute path and the words of a list may
    have blanks in them and stay whole.
    """
    return [word for text in arguments
            for word in (text if isinstance(text, list) else
                         shlex.split(text) if " " in text and not os.path.isabs(text) else [text])]


class Case(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="isoscale-cli-")
        self.addCleanup(self.scratch.cleanup)
        self.dir = self.scratch.name
        self.program = PROGRAM

    def path(self, name):
        return os.path.join(self.dir, name)

    def files(self):
        return sorted(os.listdir(self.dir))

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def sample(self, name="run.h5"):
        """Puts a made run with something in every field there."""
        subprocess.run([os.environ["ISOSCALE_SAMPLE"], self.path(name)], check=True)

    def command(self, arguments, ranks, by):
        launcher = [] if ranks is None else [*MPIEXEC, str(ranks)]
        return [*launcher, *by, self.program, *words_of(arguments)]

    def started(self, *arguments, ranks=None, by=(), **streams):
        """A launch beside the test, killed at its end; `by` stands before the program."""
        how = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **streams}
        process = subprocess.Popen(self.command(arguments, ranks, by), cwd=self.dir, text=True,
                                   env=clean_environment(), **how)
        for stream in (process.stdout, process.stderr):
            if stream:
                self.addCleanup(stream.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def said_until(self, process, text):
        """What a launch says on standard error up to a line with this text."""
        said = ""
        for line in process.stderr:
            said += line
            if text in line:
                return said
        self.fail(f"the run ended before it said '{text}':\n{said}")

    def on_terminal(self, *arguments, stream, columns=120):
        """What the program writes to this stream, which is a terminal of that many columns."""
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = self.started(*arguments, **{stream: follower})
        os.close(follower)
        shown = b""
        try:
            while chunk := os.read(leader, 65536):
                shown += chunk
        except OSError:  # the terminal went with the process
            pass
        os.close(leader)
        self.assertEqual(process.wait(timeout=60 * PATIENCE), 0)
        return shown.decode()

    def isoscale(self, *arguments, ranks=None, by=(), **environment):
        """Runs the program, under mpiexec when ranks are given; returns the finished process."""
        return subprocess.run(self.command(arguments, ranks, by), cwd=self.dir,
                              env=clean_environment(**environment), capture_output=True, text=True,
                              timeout=400 * PATIENCE, check=False)

    def ended(self, code, *arguments, **how):
        """The finished process, which has this exit code."""
        return self.assert_exit(code, self.isoscale(*arguments, **how))

    def run_ok(self, *arguments, **how):
        return self.ended(0, *arguments, **how)

    def with_failing_calls(self, rank, **variables):
        """Returns the words before the program, after its launcher, that make its calls fail."""
        told = {"LD_PRELOAD": FAILING_CALLS, "ISOSCALE_FAIL_RANK": rank,
                "ISOSCALE_FAIL_COUNTS": self.path("counts"), **variables}
        return ["env", *(f"{name}={value}" for name, value in told.items())]

    def counted_calls(self):
        """{call: how often it was made} by the process that was told to fail."""
        lines = (line.split() for line in self.read("counts").splitlines())
        return {call: int(times) for call, times in lines if call != "failed"}

    def measured(self, name, *arguments, ranks=None, launch=1):
        """Puts the file of this run there: each launch is made once, for all tests of a module."""
        key = (launch, ranks, *arguments)
        if key not in MEASURED:
            self.run_ok(*arguments, "--output", name, ranks=ranks)
            with open(self.path(name), "rb") as file:
                MEASURED[key] = file.read()
        with open(self.path(name), "wb") as file:
            file.write(MEASURED[key])

    def run_of(self, name="run.h5", *options):
        """The run in a file, as the JSON report has it."""
        return self.json_of("report", name, *options)["runs"][0]

    def points_of(self, *arguments, **how):
        """The points of this run, which is written to run.h5."""
        self.run_ok(*arguments, "--force --output run.h5", **how)
        return self.points_in()

    def points_in(self, name="run.h5"):
        return self.run_of(name)["points"]

    def ok_points_in(self, name="run.h5"):
        """Returns the indices of the points that are ok; an empty list if there is no file."""
        if not os.path.exists(self.path(name)):
            return []
        return [point["index"] for point in self.points_in(name) if point["status"] == "ok"]

    def draw(self, what, count, seed=None):
        """A source of chance of ISOSCALE_SEED or this seed, and how many of `what` to make."""
        seed = int(os.environ.get("ISOSCALE_SEED", seed or time.time_ns() % 1_000_000))
        count = int(os.environ.get(f"ISOSCALE_{what.upper()}", count))
        print(f"seed {seed}, {count} {what}", flush=True)
        return random.Random(seed), count

    def json_of(self, *arguments, ranks=None):
        return json.loads(self.run_ok(*arguments, "--format", "json", ranks=ranks).stdout)

    def csv_of(self, *arguments):
        text = self.run_ok(*arguments, "--format", "csv").stdout
        return list(csv.DictReader(io.StringIO(text)))

    def page_of(self, *arguments):
        """What page.html holds, which this command writes, and does not replace without --force."""
        done = self.isoscale(*arguments, "--html", "page.html")
        if "this build has no page" in done.stderr:
            self.assertEqual((done.returncode, "page.html" in self.files()), (2, False))
            self.skipTest("this build has no page")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("wrote page.html", done.stderr)
        self.assert_refused(self.isoscale(*arguments, "--html", "page.html"), "page.html",
                            begin="isoscale: --html:")
        page = self.read("page.html")
        self.run_ok(*arguments, "--html", "page.html", "--force")
        data = page.split('<script id="data" type="application/json">')[1]
        return json.loads(data.split("</script>")[0])

    def assert_verified(self, *points):
        """Each was measured, and gives what it must."""
        for point in points:
            self.assertEqual((point["status"], point["verified"]), ("ok", True), point["reason"])

    def assert_shown(self, text, *words):
        """A text has all of these in it."""
        for word in words:
            self.assertIn(word, text)

    def assert_exit(self, code, done):
        """Returns the finished process, which has this exit code."""
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def assert_refused(self, done, *needles, begin="isoscale:"):
        """Exit 2 and one message on standard error, which begins so and holds the needles."""
        self.assert_exit(2, done)
        said = [line for line in done.stderr.splitlines() if line.startswith(begin)]
        self.assertEqual(len(said), 1, done.stderr)
        self.assert_shown(said[0], *needles)
