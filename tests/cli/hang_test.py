# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Runs that stand still, fail on one rank or are told to end: who is named, and what is kept.

ISOSCALE_HANGS: how many random hangs are made (default 100). ISOSCALE_SEED: of them.
"""

import glob
import json
import os
import signal
import subprocess
import time

import harness

TIMEOUT = 3 * harness.PATIENCE  # seconds without progress
TO_SAY_SO = 5  # seconds that the program may take to tell, after them
POINTS = ("run --model tiny --scaling weak --set microbatch=1 --set microbatches=2 "
          "--precision 0.01% --workload").split()
LIMITED = ["--timeout", f"{TIMEOUT}s"]


def is_running(process):
    """Whether it has not ended, waited for by its parent or not yet."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def ranks_of(output):
    """{rank: process} of the programs whose command line holds `output`."""
    found = {}
    for entry in glob.glob("/proc/[0-9]*/cmdline"):
        folder = os.path.dirname(entry)
        try:
            with open(entry, "rb") as file:
                words = file.read().split(b"\0")
            if output.encode() not in words or not words[0].endswith(b"isoscale"):
                continue
            with open(os.path.join(folder, "environ"), "rb") as file:
                lines = file.read().split(b"\0")
            settings = dict(line.split(b"=", 1) for line in lines if b"=" in line)
            rank = settings.get(b"OMPI_COMM_WORLD_RANK", settings.get(b"PMI_RANK", b"0"))
            found[int(rank)] = int(folder.rsplit("/", 1)[1])
        except OSError:  # it has just ended, or is none of the ranks
            pass
    return found


def end_ranks_of(output):
    """Waits until no rank is left, and kills those that do not end by themselves."""
    deadline = time.monotonic() + 20 * harness.PATIENCE
    while left := ranks_of(output):
        if time.monotonic() > deadline:
            for process in left.values():
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)


# Only the first of these ranks gets as far as MPI.
ALONE = ["sh", "-c", 'test "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 || exec sleep 60; exec "$@"',
         "sh"]


class Case(harness.Case):
    def launch(self, ranks, *arguments, limit=tuple(LIMITED), by=(), mpiexec=True, workload="dp"):
        self.output = self.path("run.h5")
        launcher = self.started(*POINTS, workload, "--output", self.output, *limit, *arguments,
                                by=by, ranks=ranks if mpiexec else None, stdout=subprocess.PIPE)
        self.addCleanup(self.end_all)
        return launcher

    def end_all(self):
        for process in ranks_of(self.output).values():
            os.kill(process, signal.SIGKILL)

    def assert_end(self, launcher, code, seconds=30):
        """Returns what the launch printed until it ended with this exit code."""
        _, said = launcher.communicate(timeout=seconds * harness.PATIENCE)
        self.assertEqual(launcher.returncode, code, said)
        return said

    def wait_until_measuring(self, launcher, ranks):
        """Until all ranks play steps, which takes them processor time."""
        deadline = time.monotonic() + 180 * harness.PATIENCE
        while len(ranks_of(self.output)) < ranks:
            if launcher.poll() is not None:
                self.fail(f"ended with {launcher.returncode}: {launcher.stderr.read()}")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        time.sleep(2.5 * harness.PATIENCE)

    def hang_of(self):
        return json.loads(self.read("run.h5.hang.json"))


class Hangs(Case):
    def resume(self, *arguments):
        done = self.isoscale("run --resume run.h5", *arguments, ranks=3)
        return done, {point["index"]: point["status"] for point in self.points_in()}

    def test_two_resumes_get_past_a_point_that_always_hangs(self):
        self.output = self.path("run.h5")
        self.write("e.toml",
                   "".join(f'[[experiment]]\nworkload = "{workload}"\nmax_ranks = {most}\n'
                           for workload, most in (("dp", 3), ("tp", 2), ("pp", 2))))
        done = self.ended(4, "run e.toml", *POINTS[1:-1], *LIMITED,
                          "--max-time 0.3s --ranks 2,3 --inject stuck=2:spin --output", self.output,
                          ranks=3)
        run, hang = self.run_of(), self.hang_of()
        self.assertEqual([point["status"] for point in run["points"]], ["ok", "failed"])
        self.assertRegex(run["points"][1]["reason"], r"^hang: rank 2 is in gemm")
        self.assertIn("rank 2", done.stderr)
        self.assertEqual([one["rank"] for one in hang["culprits"]], [2])
        self.assertEqual((hang["point"], hang["left"]), (1, 2))
        past = {0: "ok", 1: "failed", 2: "ok", 3: "ok"}
        for _ in range(2):
            done, statuses = self.resume()
            self.assertEqual((done.returncode, statuses), (1, past), done.stderr)
            self.assertIn("point 2 hung", done.stdout)
            self.assertNotIn("nothing is left", done.stdout)
        done, statuses = self.resume("--retry hung")
        self.assertEqual((done.returncode, statuses), (4, past), done.stderr)

    def test_a_rank_that_throws_ends_the_job_and_is_named(self):
        for victim, of_point, of_launch in [(1, 2, 3), (0, 1, 1)]:
            self.output = self.path("run.h5")
            self.ended(4, *POINTS, "dp,tp", *LIMITED, "--max-time 0.3s --ranks",
                       str(of_point), "--inject", f"stuck={victim}:throw", "--force --output",
                       self.output, ranks=of_launch)
            [point] = self.points_in()
            self.assertRegex(point["reason"], f"^hang: rank {victim} failed: .*injected")

    def test_a_job_that_does_not_start_ends(self):
        launcher = self.launch(2, by=ALONE)
        said = self.said_until(launcher, "MPI has not started")
        self.assertIn("isoscale: hang:", said)
        self.assert_end(launcher, 4, seconds=90)

    def test_a_stopped_rank_ends_the_job_and_is_named(self):
        launcher = self.launch(3, "--max-time 60s --ranks 1,3")
        self.wait_until_measuring(launcher, 3)
        os.kill(ranks_of(self.output)[1], signal.SIGSTOP)
        self.said_until(launcher, "never answered")
        self.assert_end(launcher, 4)
        self.assertEqual(self.hang_of()["silent"], [1])
        self.assertEqual(self.points_in()[-1]["status"], "failed")


class OtherHangs(Case):
    def test_a_point_that_hung_without_rank_0_is_left_as_it_is(self):
        launcher = self.launch(2, "--max-time 2s --ranks 2", workload="dp,tp,pp")
        self.said_until(launcher, "stopped by")
        time.sleep(harness.PATIENCE)
        os.kill(ranks_of(self.output)[0], signal.SIGSTOP)
        self.said_until(launcher, "rank 0 never answered")
        self.assert_end(launcher, 4)
        self.assertEqual(len(self.points_in()), 1)
        self.assertEqual(self.isoscale("run --resume run.h5", ranks=2).returncode, 1)
        points = self.points_in()
        self.assertEqual([point["status"] for point in points], ["ok", "failed", "ok"])
        # mpirun wakes a stopped rank to end it; it may then tell itself where it was.
        self.assertRegex(points[1]["reason"], "^hang: rank 0 (never answered|is in )")

    def test_without_a_timeout_it_waits(self):
        launcher = self.launch(2, "--max-time 8s --ranks 2", limit=["--timeout", "0s"])
        self.wait_until_measuring(launcher, 2)
        stopped = ranks_of(self.output)[1]
        os.kill(stopped, signal.SIGSTOP)
        time.sleep(TIMEOUT + 1)
        os.kill(stopped, signal.SIGCONT)
        self.assert_end(launcher, 0, seconds=60)
        self.assertFalse(os.path.exists(self.output + ".hang.json"))


class Random(Case):
    def test_the_right_rank_is_named_in_time(self):
        draw, count = self.draw("hangs", 100)
        for number in range(count):
            how = draw.choice(["stop", "spin", "throw"])
            ranks = draw.choice([2, 3, 4])
            victim = draw.randrange(ranks)
            with self.subTest(number=number, how=how, ranks=ranks, victim=victim):
                self.one(how, ranks, victim, draw)
            for name in self.files():
                os.remove(self.path(name))

    def one(self, how, ranks, victim, draw):
        inject = [] if how == "stop" else ["--inject", f"stuck={victim}:{how}"]
        launcher = self.launch(ranks, "--max-time 60s --ranks", str(ranks), *inject)
        if how == "stop":
            self.wait_until_measuring(launcher, ranks)
            time.sleep(draw.uniform(0, 1))
            os.kill(ranks_of(self.output)[victim], signal.SIGSTOP)
            begin = time.monotonic()
        self.said_until(launcher, "isoscale: hang:")
        if how == "stop":
            self.assertLess(time.monotonic() - begin, TIMEOUT + TO_SAY_SO)
        self.assert_end(launcher, 4)
        self.assertEqual([one["rank"] for one in self.hang_of()["culprits"]], [victim])


class Signals(Case):
    def end_at_once(self, processes, number):
        begin = time.monotonic()
        for process in processes:
            os.kill(process, number)
        while any(map(is_running, processes)):
            self.assertLess(time.monotonic() - begin, 5)
            time.sleep(0.01)
        self.assertLess(time.monotonic() - begin, 0.5 * harness.PATIENCE)

    def test_sigterm_and_sigint_end_it_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                launcher = self.launch(2, "--max-time 30s --ranks 2 --force")
                self.wait_until_measuring(launcher, 2)
                self.end_at_once(list(ranks_of(self.output).values()), number)
                said = self.assert_end(launcher, 128 + number)
                self.assertIn(f"ended by {number.name}", said)
                # Before the first point has ended there is no file to go on with.
                self.assertEqual("--resume" in said, os.path.exists(self.output))

    def test_sigterm_ends_it_where_nobody_reads_standard_error(self):
        launcher = self.launch(1, "--max-time 60s --ranks 1", mpiexec=False)
        self.wait_until_measuring(launcher, 1)
        # Another way into the same pipe: one that does not wait, where the program's own does.
        pipe = os.open(f"/proc/self/fd/{launcher.stderr.fileno()}", os.O_WRONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, pipe)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(pipe, b"x")
        begin = time.monotonic()
        launcher.terminate()
        self.assertEqual(launcher.wait(timeout=30), 128 + signal.SIGTERM)
        self.assertLess(time.monotonic() - begin, 0.5 * harness.PATIENCE)

    def test_sigterm_ends_a_job_that_does_not_start(self):
        launcher = self.launch(2, "--max-time 1s", limit=["--timeout", "0s"], by=ALONE)
        while not (processes := list(ranks_of(self.output).values())):
            self.assertIsNone(launcher.poll())
            time.sleep(0.05)
        time.sleep(harness.PATIENCE)
        self.end_at_once(processes[:1], signal.SIGTERM)
        self.assert_end(launcher, 128 + signal.SIGTERM, seconds=90)

    def test_sigusr1_finishes_the_point(self):
        launcher = self.launch(2, "--max-time", f"{4 * harness.PATIENCE}s", "--ranks 1,2")
        self.wait_until_measuring(launcher, 2)
        os.kill(ranks_of(self.output)[0], signal.SIGUSR1)
        said = self.assert_end(launcher, 0, seconds=120)
        self.assertIn("1 of 2 points left", said)
        points = self.points_in()
        self.assertEqual(sorted((p["status"], p["reason"] or "") for p in points)[1],
                         ("skipped", "signal"))
        self.run_ok("run --resume run.h5", ranks=2)
        self.assertEqual({p["status"] for p in self.points_in()}, {"ok"})
