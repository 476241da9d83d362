# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""The batch scripts, run as a scheduler would: what they start, when they resume, how they end."""

import os
import re
import shutil
import signal
import subprocess
import time

import scripts
from scripts import harness


class Case(scripts.Case):
    """mpirun is a stand-in that writes down its command, and then does what a test says."""

    def setUp(self):
        super().setUp()
        self.node_of(16)
        self.program = self.stand_in("isoscale", "true")
        self.stand_in("scontrol", "exit 1")
        self.stand_in("qstat", "exit 1")
        self.stand_in("ssh", "exit 255")  # nodes of a job need not take it
        self.stand_in_for_mpirun()
        self.write("nodes", "a\na\nb\nb\n")

    def calls(self):
        return [line.replace(self.dir + "/", "").replace("stand-ins/", "")
                for line in self.taken_calls()]

    def assert_ends_in_order(self, name, number, environment, *needles):
        """The signal ends mpirun by TERM, and the script's status is that of mpirun."""
        self.stand_in_for_mpirun("trap 'echo ended >> calls; exit 143' TERM; touch begun\n"
                    "while :; do sleep 0.1; done")
        kept = {**os.environ, **environment, "PATH": f"{self.stand_ins}:{os.environ['PATH']}"}
        with subprocess.Popen([os.path.join(scripts.LAUNCH, name)], cwd=self.dir, env=kept,
                              stderr=subprocess.PIPE, text=True) as process:
            deadline = time.monotonic() + 60
            while not os.path.exists(self.path("begun")) and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(number)
            said = process.communicate(timeout=60)[1]
            self.assertEqual(process.returncode, 143, said)
        self.assertEqual(self.calls()[-1], "ended")
        self.assert_shown(said, *needles)
        return said


class Slurm(Case):
    def job(self, **more):
        return {"ISOSCALE": self.program, "SLURM_JOB_ID": "17", "SLURMD_NODENAME": "n1",
                "SLURM_JOB_NUM_NODES": "2", "SLURM_NTASKS": "4", "SLURM_JOB_NODELIST": "n[1-2]",
                "SLURM_SUBMIT_DIR": self.dir, **more}

    def started(self, *arguments, **more):
        self.script_ok("slurm.sbatch", *arguments, **self.job(**more))
        return self.calls()[-1]

    def test_a_job_and_its_variables(self):
        begin = "-n 4 --map-by ppr:2:node:PE"
        self.assertEqual(self.started("--workload dp,tp"), f"{begin}=8 --bind-to core isoscale run "
                         "--output isoscale-17.h5 --workload dp,tp")
        self.assertEqual(self.started(ISOSCALE_OUTPUT="here.h5",
                                      ISOSCALE_MPIRUN="--cores-per-rank 3"),
                         f"{begin}=3 --bind-to core isoscale run --output here.h5")

    def test_gpus_of_the_job_get_a_rank_each(self):
        call = self.started(SLURM_GPUS_ON_NODE="2", SLURM_NTASKS_PER_NODE="2")
        self.assertIn("bind.sh -- isoscale run", call)
        self.assertTrue(call.endswith("--device cuda"), call)
        # Other numbers of ranks are the user's to explain.
        self.assertNotIn("--device", self.started(SLURM_GPUS_ON_NODE="4",
                                                  SLURM_NTASKS_PER_NODE="2"))

    def test_it_asks_for_whole_nodes(self):
        """All cores and all memory: by default a job has that of the CPUs that it asked for."""
        script = self.read(os.path.join(scripts.LAUNCH, "slurm.sbatch"))
        self.assertLessEqual({"--exclusive", "--mem=0"},
                             set(re.findall(r"^#SBATCH (\S+)", script, re.M)))

    def test_a_restart_resumes_what_there_is(self):
        self.assertTrue(self.started("--workload dp", SLURM_RESTART_COUNT="1").endswith(
            "isoscale run --output isoscale-17.h5 --workload dp"))
        self.write("isoscale-17.h5", "")
        # A first start never touches the file of another job.
        self.assertIn("--output isoscale-17.h5", self.started())
        # Kept are the options that the run file does not have, however they are written. isoscale
        # takes no --device beside --resume: with GPUs it is left to the file.
        gpus = {"SLURM_GPUS_ON_NODE": "2", "SLURM_NTASKS_PER_NODE": "2"}
        for arguments, kept, more in [
                ("--workload dp", "", {}),
                ("--workload dp --allow world-size,shared-cores --budget 20s --quiet --set a=b",
                 " --allow world-size,shared-cores --budget 20s --quiet", {}),
                ("--allow=world-size --model tiny --budget=20s --quiet=true",
                 " --allow=world-size --budget=20s --quiet=true", {}),
                ("", "", gpus)]:
            with self.subTest(arguments=arguments):
                call = self.started(arguments, SLURM_RESTART_COUNT="1", **more)
                bind = "bind.sh -- " if more else ""
                self.assertTrue(call.endswith(f"{bind}isoscale run --resume isoscale-17.h5{kept}"),
                                call)

    def test_isoscale_takes_what_a_restart_keeps(self):
        """With the program itself, whose file of one rank is complete."""
        self.program = harness.PROGRAM
        self.run_ok("run --workload dp --max-time 0.2s --quiet --output isoscale-17.h5")
        self.stand_in_for_mpirun('while [ "${1##*/}" != isoscale ]; do shift; done; exec "$@"')
        done = self.script_ok("slurm.sbatch", "--workload dp --allow shared-cores --budget 20s",
                              **self.job(SLURM_RESTART_COUNT="1", SLURM_NTASKS="1",
                                         ISOSCALE_MPIRUN="--gpus 1 --bind none"))
        self.assertIn("is complete", done.stdout + done.stderr)

    def test_the_time_limit_and_scancel_end_it_in_order(self):
        said = self.assert_ends_in_order("slurm.sbatch", signal.SIGUSR1, self.job(),
                                         "ended by USR1", "isoscale-17.h5")
        self.assertNotIn("continues in the queue", said)
        os.remove(self.path("begun"))
        self.assert_ends_in_order("slurm.sbatch", signal.SIGTERM, self.job(), "ended by TERM")

    def test_the_time_limit_puts_it_back_as_often_as_asked(self):
        self.stand_in("scontrol", f'echo "$@" >> {self.path("asked")}')
        for restarts, back in [("1", True), ("2", False)]:
            self.assert_ends_in_order("slurm.sbatch", signal.SIGUSR1,
                                      self.job(ISOSCALE_RESTARTS="2", SLURM_RESTART_COUNT=restarts))
            self.assertEqual("requeue 17" in self.read("asked"), back)
            os.remove(self.path("asked"))
            os.remove(self.path("begun"))

    def test_a_time_of_ones_own(self):
        self.stand_in_for_mpirun("exec sleep 60")
        self.assert_exit(124, self.script("slurm.sbatch", **self.job(ISOSCALE_TIMEOUT="0.5s")))

    def test_what_is_no_number_is_refused(self):
        """Arithmetic would take it for a variable, or run the command in its brackets."""
        for name in ("SLURM_NTASKS", "SLURM_CPUS_PER_TASK", "SLURM_JOB_NUM_NODES",
                     "SLURM_GPUS_ON_NODE", "SLURM_NTASKS_PER_NODE", "SLURM_RESTART_COUNT",
                     "ISOSCALE_RESTARTS"):
            for value in ("abc", "-1", "08", "BASH_VERSINFO[$(touch ran)0]"):
                with self.subTest(name=name, value=value):
                    done = self.script("slurm.sbatch", **self.job(**{name: value}))
                    self.assert_script_refused(done, name, f"'{value}'")
                    self.assertFalse(os.path.exists(self.path("ran")))
        for value in ("foo", "20 m", "-5s"):
            done = self.script("slurm.sbatch", **self.job(ISOSCALE_TIMEOUT=value))
            self.assert_script_refused(done, "ISOSCALE_TIMEOUT", f"'{value}'")
        self.assertEqual(self.calls(), [])

    def test_without_a_folder_to_write_to_and_outside_of_a_job(self):
        job = self.job()
        del job["SLURM_SUBMIT_DIR"]
        self.assert_script_refused(self.script("slurm.sbatch", **job), "SLURM_SUBMIT_DIR")
        self.script_ok("slurm.sbatch", ISOSCALE_OUTPUT="here.h5", **job)
        self.assert_script_refused(self.script("slurm.sbatch"), "sbatch")

    def test_a_copy_finds_its_folder(self):
        """Slurm runs a copy; the job, or a variable, says where the original is."""
        copy = shutil.copy(os.path.join(scripts.LAUNCH, "slurm.sbatch"), self.path("slurm_script"))
        self.assertIn("ISOSCALE_LAUNCH", self.assert_exit(2, self.script(copy,
                                                                         **self.job())).stderr)
        self.script_ok(copy, **self.job(ISOSCALE_LAUNCH=scripts.LAUNCH))
        self.stand_in("scontrol", 'echo "JobId=17 JobName=isoscale"\n'
                                  f'echo "   Command={scripts.LAUNCH}/slurm.sbatch --workload dp"')
        self.script_ok(copy, **self.job())
        os.symlink(scripts.LAUNCH, self.path("a folder"))
        self.stand_in("scontrol", f'echo "   Command={self.path("a folder")}/slurm.sbatch"')
        self.script_ok(copy, **self.job())


class Pbs(Case):
    def job(self, **more):
        return {"ISOSCALE": self.program, "PBS_JOBID": "23.server", "PBS_O_WORKDIR": self.dir,
                "PBS_NODEFILE": self.path("nodes"), **more}

    def started(self, *arguments, **more):
        self.script_ok("pbs.sh", *arguments, **self.job(**more))
        return re.sub(r" -x \w+", "", self.calls()[-1])  # without the environment that is passed on

    def test_a_job(self):
        expected = ("-n 4 --hostfile nodes --map-by ppr:2:node:PE=8 --bind-to core isoscale run "
                    "--output isoscale-23.h5 --workload dp,tp")
        self.assertEqual(self.started("--workload dp,tp"), expected)
        self.assertEqual(self.started(ISOSCALE_ARGUMENTS="--workload dp,tp"), expected)

    def test_a_rerun_resumes_what_there_is(self):
        self.write("isoscale-23.h5", "")
        self.stand_in("qstat", 'echo "Job Id: 23.server"; echo "    run_count = 1"')
        self.assertIn("--output isoscale-23.h5", self.started())
        self.stand_in("qstat", 'echo "Job Id: 23.server"; echo "    run_count = 2"')
        self.assertTrue(self.started().endswith("isoscale run --resume isoscale-23.h5"))
        call = self.started("--budget 5m --workload dp",
                            ISOSCALE_ARGUMENTS="--allow=world-size --quiet")
        self.assertTrue(call.endswith("run --resume isoscale-23.h5 --budget 5m --allow=world-size "
                                      "--quiet"), call)

    def test_the_time_limit_ends_it_in_order(self):
        self.assert_ends_in_order("pbs.sh", signal.SIGTERM, self.job(), "ended by TERM",
                                  "isoscale-23.h5")

    def test_what_is_wrong_is_refused(self):
        self.write("empty", "")
        for name, value in [("ISOSCALE_TIMEOUT", "foo"), ("PBS_O_WORKDIR", "nothing"),
                            ("PBS_NODEFILE", "nothing"), ("PBS_NODEFILE", self.path("empty"))]:
            with self.subTest(name=name, value=value):
                done = self.script("pbs.sh", **self.job(**{name: value}))
                self.assert_script_refused(done, value)
        self.stand_in("qstat", "echo '    run_count = a[$(touch ran)0]'")
        self.assert_script_refused(self.script("pbs.sh", **self.job()), "run_count")
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assert_script_refused(self.script("pbs.sh"), "qsub")  # outside of a job
        self.assertEqual(self.calls(), [])
