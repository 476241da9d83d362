# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Jobs of launch/ under a real Slurm of four nodes, which this test starts and ends itself.

Environment: ISOSCALE = the program, ISOSCALE_LAUNCH_SCRIPTS = the folder launch/. Exit 77, which
ctest shows as skipped, where no Slurm may be started (see slurm.py).
"""

import json
import os
import sys
import tempfile
import time
import unittest

import slurm

slurm.enter()

LAUNCH = os.environ["ISOSCALE_LAUNCH_SCRIPTS"]
SBATCH = os.path.join(LAUNCH, "slurm.sbatch")
CLUSTER = slurm.Slurm()
LONG = ["--workload", "dp,tp,pp,hybrid", "--max-time", "3s"]  # eight points


def setUpModule():
    unittest.addModuleCleanup(CLUSTER.stop)
    CLUSTER.start()


class Case(slurm.cluster.harness.Case):
    def setUp(self):
        super().setUp()
        self.dir = tempfile.mkdtemp(prefix="jobs-", dir=CLUSTER.scratch)
        self.output = self.path("run.h5")
        self.log = self.path("job.log")
        self.begun = time.monotonic()

    def tearDown(self):
        print(f"{time.monotonic() - self.begun:.1f} s", file=sys.stderr)

    def submit(self, *options, arguments, **environment):
        """The number of a job of launch/slurm.sbatch, on two nodes unless options say otherwise."""
        done = CLUSTER.run("sbatch", "--parsable", "--nodes=2", "--ntasks-per-node=1",
                           f"--output={self.log}", *options, SBATCH, *arguments,
                           ISOSCALE=self.program, ISOSCALE_OUTPUT=self.output, **environment)
        self.assert_exit(0, done)
        return int(done.stdout)

    def said(self):
        return self.read("job.log") if os.path.exists(self.log) else ""

    def wait_for_a_point(self, number):
        """Returns when the log speaks of a second point while the job still runs."""
        CLUSTER.wait_for(f"a point of job {number}", lambda: "\npoint 2 of " in self.said())
        self.assertEqual(CLUSTER.job(number)["JobState"], "RUNNING", self.said())

    def assert_finished_points_survive(self):
        """Returns how many."""
        run = self.run_of(self.output)
        self.assertEqual(run["status"], "partial")
        self.assertEqual({point["status"] for point in run["points"]}, {"ok"})
        CLUSTER.wait_for("all ranks to end", lambda: not slurm.running("isoscale"))
        return len(run["points"])


class Jobs(Case):
    """One job."""

    def test_completes(self):
        number = self.submit("--nodes=4", arguments=["--workload", "dp,tp", "--ranks", "1,4",
                                                     "--max-time", "0.3s"])
        CLUSTER.wait_for_state(number, "COMPLETED")
        self.assertIn(" mpirun -n 4 --map-by ppr:1:node", self.said())
        run = self.run_of(self.output)
        self.assertEqual((run["status"], run["ranks"]), ("complete", 4))
        self.assertEqual([(point["workload"], point["ranks"], point["verified"])
                          for point in run["points"]],
                         [(workload, ranks, True) for workload in ("dp", "tp")
                          for ranks in (1, 4)])

    def test_what_is_refused_fails_the_job(self):
        number = self.submit(arguments=["--workload", "dpp"])
        CLUSTER.wait_for_state(number, "FAILED")
        self.assertEqual(CLUSTER.job(number)["ExitCode"], "2:0", self.said())
        self.assertIn("'dpp'", self.said())
        self.assertFalse(os.path.exists(self.output))

    def test_scancel_keeps_finished_points(self):
        number = self.submit(arguments=LONG)
        self.wait_for_a_point(number)
        CLUSTER.run("scancel", str(number))
        CLUSTER.wait_for_state(number, "CANCELLED")
        self.assert_finished_points_survive()

    def test_the_time_limit_keeps_finished_points(self):
        """The limit is drawn near once there is a point; Slurm looks at it every half a minute."""
        number = self.submit("--time=00:30:00", "--signal=B:USR1@120",
                             arguments=[*LONG[:2], "--max-time", "8s"])
        self.wait_for_a_point(number)
        hours, minutes, _ = CLUSTER.job(number)["RunTime"].split(":")
        limit = 60 * int(hours) + int(minutes) + 2  # one to two minutes from now
        CLUSTER.run("scontrol", "update", f"JobId={number}", f"TimeLimit={limit}")
        CLUSTER.wait_for_state(number, "FAILED")
        self.assertIn(f"ended by USR1: finished points are in {self.output}", self.said())
        self.assert_finished_points_survive()

    def test_a_job_that_is_put_back_resumes(self):
        number = self.submit(arguments=["--workload", "dp,tp", "--max-time", "1s"])
        self.wait_for_a_point(number)
        CLUSTER.run("scontrol", "requeue", str(number))
        CLUSTER.wait_for("the job to wait again",
                         lambda: CLUSTER.job(number)["JobState"] != "RUNNING")
        kept = self.assert_finished_points_survive()
        CLUSTER.wait_for_state(number, "COMPLETED")
        self.assertIn(f"run --resume {self.output}", self.said())
        run = self.run_of(self.output)
        self.assertEqual((run["status"], len(run["points"])), ("complete", 4))
        self.assertLess(kept, 4)


class Sweeps(Case):
    """Several jobs, and the report after them."""

    def sweep(self, *arguments):
        done = CLUSTER.run(os.path.join(LAUNCH, "sweep"), "--program", self.program, "--dir",
                           self.dir, "--ranks-per-node", "1", *arguments, "--", "--workload", "dp",
                           "--max-time", "0.3s")
        self.assert_exit(0, done)
        return done

    def report(self):
        return json.loads(self.read("report.json"))["runs"]

    def test_one_job_for_all_counts(self):
        self.sweep("--nodes", "1,2")
        CLUSTER.wait_for("the report", lambda: "report.txt" in self.files())
        self.assertRegex(self.read("report.txt"), r"\n +dp +2 ")  # the curve, at its largest count
        [run] = self.report()
        self.assertEqual((run["status"], [point["ranks"] for point in run["points"]]),
                         ("complete", [1, 2]))

    def test_a_job_per_node_count(self):
        done = self.sweep("--nodes", "1,2", "--jobs", "--wait")
        self.assertRegex(done.stdout, r"\n +dp +2 ")
        runs = self.report()
        self.assertEqual([(run["status"], run["ranks"]) for run in runs],
                         [("complete", 1), ("complete", 2)])


class Srun(Case):
    """--launcher srun, on one node: pmix keeps what each node must have for itself in one folder."""

    def job(self, *options):
        number = self.submit("--nodes=1", "--ntasks-per-node=2", arguments=[
            "--workload", "dp", "--max-time", "0.3s"],
            ISOSCALE_MPIRUN=" ".join(["--launcher srun --cores-per-rank 1", *options]))
        CLUSTER.wait_for_state(number, "COMPLETED", "FAILED")
        return number

    def test_joins_ranks(self):
        number = self.job()
        if "--mpi=pmix " not in self.said():
            self.skipTest("this Slurm knows no pmix")
        self.assertEqual(CLUSTER.job(number)["JobState"], "COMPLETED", self.said())
        run = self.run_of(self.output)
        self.assertEqual((run["status"], run["ranks"]), ("complete", 2))

    def test_ranks_that_are_not_joined_measure_nothing(self):
        """Open MPI stops by itself where it may; isoscale does where it is left alone."""
        number = self.job("--srun-mpi none")
        self.assertEqual(CLUSTER.job(number)["JobState"], "FAILED", self.said())
        self.assertIn("+ srun --mpi=none -n 2 ", self.said())
        self.assertFalse(os.path.exists(self.output))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
