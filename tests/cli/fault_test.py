# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Whole runs in which one call of MPI, HDF5 or files fails on one rank, or one allocation of memory
(tests/fault): each ends by itself, with a documented exit code and a sentence, and keeps what it
said was finished.

ISOSCALE_FAULTS: how many (default 3, 3 and 2 in Few, 2 and 3 in Serving, 400 in Many).
ISOSCALE_SEED: of them.
"""

import contextlib
import errno
import os
import re

import harness

RANKS = 2
# Only memory that a point or the run may lack is made to fail: the library that reads the command
# line ends the program when memory runs out.
MEMORY = "operator_new"
AFTER_START = "MPI_Init_thread,1"
ERRORS = [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EACCES]
# 0: the fault was of no weight; 134 and the like, a crash, are none of them.
DOCUMENTED = {0, 1, 2, 4}
CALLS = {}


@harness.needs_failing_calls
class Case(harness.Case):
    workload = [*"--workload dp,tp --max-time 0.05s --precision 50%".split(), *harness.LITTLE]
    points = 2

    def arguments(self):
        return ["run", *self.workload, "--model", "tiny", "--ranks", str(RANKS), "--timeout", "10s",
                "--output", "run.h5", "--fallback-dir", "fallback"]

    def fail_many(self, default, only=None):
        draw, count = self.draw("faults", default, self.seed)
        ends = {}
        for _ in range(count):
            rank = draw.randrange(RANKS)
            known = self.calls_of(rank)
            call = only or draw.choice(sorted(known))
            fault = f"{call},{draw.randint(1, known[call])},{draw.choice(ERRORS)}"
            with self.subTest(rank=rank, fault=fault), self.told(f"rank {rank}, {fault}"):
                code = self.end_with(rank, fault, after=AFTER_START if call == MEMORY else "")
                ends[code] = ends.get(code, 0) + 1
            self.clear()
        print("exit codes:", ends)

    @contextlib.contextmanager
    def told(self, fault):
        """Tells at once what did not end well: a long test may not come to its end."""
        try:
            yield
        except Exception as error:
            print(f"{fault}: {error}", flush=True)
            raise

    def clear(self):
        for folder in (self.dir, self.path("fallback")):
            for name in os.listdir(folder):
                if os.path.isfile(os.path.join(folder, name)):
                    os.remove(os.path.join(folder, name))

    def faulty(self, rank, **variables):
        os.makedirs(self.path("fallback"), exist_ok=True)
        return self.isoscale(*self.arguments(), ranks=RANKS,
                             by=self.with_failing_calls(rank, **variables))

    def calls_of(self, rank):
        """How often a rank calls what in a run in which nothing fails; memory since MPI started.
        Each rank of a workload is counted once, for all tests."""
        of = (rank, *self.workload)
        if of not in CALLS:
            done = self.faulty(rank, ISOSCALE_FAIL=f"{MEMORY},0,0", ISOSCALE_FAIL_AFTER=AFTER_START)
            self.assertEqual(done.returncode, 0, done.stderr)
            CALLS[of] = self.counted_calls()
            self.clear()
        return CALLS[of]

    def end_with(self, rank, fault, after):
        """The exit code of a run with this fault, after a look at what it left."""
        done = self.faulty(rank, ISOSCALE_FAIL=fault, ISOSCALE_FAIL_AFTER=after)
        self.assertIn(done.returncode, DOCUMENTED, done.stderr)
        if done.returncode != 0:
            self.assertRegex(done.stderr, "(?m)^isoscale: .{20}|^point .*: failed: .{20}")
        moved = re.search(r"the run continues in (\S+),", done.stderr)
        kept = set(self.ok_points_in(moved[1] if moved else "run.h5"))
        # It keeps all points that it said it had finished.
        said = re.findall(r"point (\d+) of \d+: .*(?:stopped by|: \d+ rows)", done.stderr)
        self.assertLessEqual({int(number) - 1 for number in said}, kept, done.stderr)
        if done.returncode == 0:
            self.assertEqual(kept, set(range(self.points)), done.stderr)
        if not fault.startswith(("unlink", "renameat2")):  # what cannot be removed stays
            self.assertEqual([name for name in self.files() if name.endswith(".tmp")], [])
        return done.returncode

    def fail_reading(self, default):
        """Fails calls of a report: it says the same as ever, or that the file cannot be read."""
        draw, count = self.draw("faults", default, self.seed)
        self.run_ok(*self.arguments(), ranks=RANKS)
        report = ["report", "run.h5", "--format", "json"]
        whole = self.run_ok(*report, by=self.with_failing_calls(0)).stdout
        known = {call: times for call, times in self.counted_calls().items()
                 if call.startswith("H5") or call.endswith("@libhdf5")}
        for _ in range(count):
            call = draw.choice(sorted(known))
            fault = f"{call},{draw.randint(1, known[call])},{draw.choice(ERRORS)}"
            with self.subTest(fault=fault):
                done = self.isoscale(*report, by=self.with_failing_calls(0, ISOSCALE_FAIL=fault))
                if done.returncode == 0:
                    self.assertEqual(done.stdout, whole)
                else:
                    self.assert_refused(done, "run.h5")


class Faults:
    """Tests of so many faults each."""

    counts = (3, 3, 2)

    def test_faults(self):
        self.fail_many(self.counts[0])

    def test_faults_of_a_report(self):
        self.fail_reading(self.counts[1])

    def test_out_of_memory(self):
        self.fail_many(self.counts[2], only=MEMORY)


class Few(Faults, Case):
    seed = 20261122

    def test_a_point_for_whose_writing_no_memory_is_left_has_failed(self):
        writes = self.calls_of(0)["H5Dwrite"]
        done = self.faulty(0, ISOSCALE_FAIL=f"{MEMORY},1,{errno.ENOMEM}",
                           ISOSCALE_FAIL_AFTER=f"H5Dwrite,{writes // 2}")
        self.assertEqual(done.returncode, 1, done.stderr)
        run = self.run_of()
        self.assertEqual([run["status"], *(point["status"] for point in run["points"])],
                         ["complete", "failed", "ok"])
        self.assertRegex(run["points"][0]["reason"],
                         r"^out of memory: .* more than the \d.*; .*\d.* free")


class Stuck(Case):
    """A call that never returns: the watchdog ends what waits for it."""

    def stick(self, rank, call, after=""):
        """What a run says in which this call never returns on a rank."""
        done = self.faulty(rank, ISOSCALE_FAIL=f"{call},stick", ISOSCALE_FAIL_AFTER=after)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("isoscale: hang: ", done.stderr)
        return done.stderr

    def test_a_file_system_that_does_not_answer(self):
        written = self.calls_of(0)["H5Dwrite"]
        said = self.stick(0, "pwrite@libhdf5,1", after=f"H5Dwrite,{5 * written // 6}")
        self.assertRegex(said, "rank 0 .*point 2 of 2, .*: writing")
        self.assertEqual(self.ok_points_in(), [0])

    def test_a_communicator_whose_creation_does_not_end(self):
        splits = self.calls_of(1)["MPI_Comm_split"]
        said = self.stick(1, f"MPI_Comm_split,{splits}")
        self.assertIn("at the same call", said)
        self.assertEqual(self.ok_points_in(), [0])

    def test_an_mpi_that_does_not_end(self):
        said = self.stick(1, "MPI_Finalize,1")
        self.assertIn("MPI has not ended", said)
        self.assertEqual(self.ok_points_in(), [0, 1])


class Serving(Case):
    """A thread of its own hands out the requests, on one rank of those that answer."""

    seed = 20261123
    workload = ["--workload serve --max-time 0.3s --set rate=100 --set requests=20 --set output=4"]
    points = 1

    def test_faults(self):
        self.fail_many(2)

    def test_out_of_memory(self):
        self.fail_many(3, only=MEMORY)


class Many(Faults, Case):
    seed = None
    counts = (400, 400, 400)
