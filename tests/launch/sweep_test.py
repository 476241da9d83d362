# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""launch/sweep: what it submits, what it refuses, and the report at its end."""

import json
import os
import shutil

import scripts
from scripts import harness


class Case(scripts.Case):
    def setUp(self):
        super().setUp()
        self.node_of(16)
        self.program = self.stand_in("isoscale", "true")

    def sweep(self, *arguments, **environment):
        return self.script("sweep", "--program", self.program, *arguments, **environment)

    def submitted(self, *arguments, **environment):
        """The commands of --print, with DIR and LAUNCH for the folders."""
        shown = self.shown("sweep", "--program", self.program, "--dir out --print",
                           *arguments, **environment)
        self.assertFalse(os.path.exists(self.path("out")))
        names = {os.path.realpath(self.path("out")): "DIR", scripts.LAUNCH: "LAUNCH",
                 os.path.realpath(self.program): "ISOSCALE"}
        for path, name in names.items():
            shown = [line.replace(path, name) for line in shown]
        return shown


class Slurm(Case):
    """Its nodes have two hardware threads a core in partition gpu, one in the default partition and
    four elsewhere; this node has one."""

    def setUp(self):
        super().setUp()
        self.stand_in("sinfo", f"""echo "$@" >> {self.path("asked")}
case "$*" in
  *"-p gpu "*) echo "gpu 2:32:1"; echo "gpu 2:32:2" ;;
  *"-p "*) exit 1 ;;
  *) echo "gpu 2:32:2"; echo "cpu* 2:24:1"; echo "power 2:16:4" ;;
esac""")

    def cpus_per_task(self, *options, **environment):
        job = self.submitted("--scheduler slurm --nodes 2 --ranks-per-node 4 --cores-per-rank 6",
                             *options, **environment)[0]
        return [word for word in job.split() if word.startswith("--cpus-per-task=")]

    def test_hardware_threads_are_those_of_the_partition(self):
        self.assertEqual(self.cpus_per_task(), ["--cpus-per-task=6"])
        for options in (["--job-option", "--partition=gpu"], ["--job-option", "-pgpu"],
                        ["--job-option", "-p", "--job-option", "gpu"]):
            with self.subTest(options=options):
                self.assertEqual(self.cpus_per_task(*options), ["--cpus-per-task=12"])
        self.assertEqual(self.cpus_per_task(SBATCH_PARTITION="gpu"), ["--cpus-per-task=12"])

    def test_jobs_of_one_thread_per_core(self):
        for option in ("--hint=nomultithread", "--threads-per-core=1"):
            self.assertEqual(self.cpus_per_task("--job-option", option, "--job-option -pgpu"),
                             ["--cpus-per-task=6"])
        self.assertEqual(self.cpus_per_task("--job-option -pgpu", SBATCH_HINT="nomultithread"),
                         ["--cpus-per-task=6"])
        self.assertEqual(self.cpus_per_task("--job-option -pgpu --job-option",
                                            "--hint=multithread"), ["--cpus-per-task=12"])

    def test_threads_that_slurm_does_not_tell(self):
        done = self.sweep("--scheduler slurm --nodes 1 --gpus 2 --cores-per-rank 6",
                          "--job-option --partition=none --dir out")
        self.assert_script_refused(done, "core of none", "leave --cores-per-rank out")

    def test_the_report_has_options_of_its_own(self):
        job, report = self.submitted("--scheduler slurm --nodes 2 --ranks-per-node 4 --job-option "
                                     "--gres=gpu:4 --report-option --partition=small")
        self.assertIn(" --gres=gpu:4 ", job)
        self.assertNotIn("--partition=small", job)
        self.assertIn(" --partition=small --wrap ", report)
        self.assertNotIn("--gres", report)

    def test_one_job_measures_all_counts(self):
        self.assertEqual(self.submitted(
            "--scheduler slurm --nodes 4,1,2 --gpus 8 --cores-per-rank 6 --time 01:00:00 "
            "--job-option --partition=gpu -- --workload dp,tp"), [
                "env ISOSCALE=ISOSCALE ISOSCALE_LAUNCH=LAUNCH ISOSCALE_OUTPUT=DIR/sweep.h5 "
                "'ISOSCALE_MPIRUN=--cores-per-rank 6 --gpus 8 --ranks-per-node 8' "
                "sbatch --parsable --export=ALL --nodes=4 --ntasks-per-node=8 --time=01:00:00 "
                "--job-name=isoscale-sweep --output=DIR/sweep.log --cpus-per-task=12 "
                "--gpus-per-node=8 --partition=gpu LAUNCH/slurm.sbatch --workload dp,tp "
                "--ranks 8,16,32",
                "sbatch --parsable --export=ALL --dependency=afterany:JOB1 --nodes=1 --ntasks=1 "
                "--time=00:10:00 --job-name=isoscale-report --output=DIR/report.log "
                "--wrap 'exec LAUNCH/sweep --program ISOSCALE --report DIR "
                "DIR/sweep.h5'"])

    def test_a_job_per_node_count(self):
        first, second, report = self.submitted("--scheduler slurm --nodes 1,2 --jobs "
                                               "--ranks-per-node 4 --wait")
        self.assertIn(" --nodes=1 --ntasks-per-node=4 ", first)
        self.assertIn("ISOSCALE_OUTPUT=DIR/nodes-1.h5", first)
        self.assertTrue(first.endswith("LAUNCH/slurm.sbatch --ranks 4"), first)
        self.assertIn(" --nodes=2 --ntasks-per-node=4 ", second)
        self.assertTrue(second.endswith("LAUNCH/slurm.sbatch --ranks 8"), second)
        self.assertIn(" --export=ALL --wait --dependency=afterany:JOB1:JOB2 ", report)
        self.assertIn("--report DIR DIR/nodes-1.h5 DIR/nodes-2.h5'", report)

    def test_ranks_of_ones_own(self):
        job, _ = self.submitted("--scheduler slurm --nodes 2 --ranks-per-node 4 --ranks 1,2,4,8")
        self.assertTrue(job.endswith("slurm.sbatch --ranks 1,2,4,8"), job)

    def test_job_numbers_become_dependencies(self):
        """With a stand-in of sbatch, which writes down how it was called."""
        self.stand_in("sbatch", f'echo "$@" >> {self.path("calls")}; wc -l < {self.path("calls")}')
        self.assert_exit(0, self.sweep("--nodes 1,2 --jobs --ranks-per-node 1 --dir out",
                                       "--workload dp"))
        calls = self.taken_calls()
        self.assertEqual(len(calls), 3)
        self.assertTrue(calls[1].endswith("--workload dp --ranks 2"), calls[1])
        self.assertIn("--dependency=afterany:1:2", calls[2])

    def test_a_refusal_of_the_scheduler_ends_it(self):
        self.stand_in("sbatch", 'echo "sbatch: error: invalid partition" >&2; exit 1')
        done = self.sweep("--nodes 1,2 --jobs --ranks-per-node 1 --dir out")
        self.assert_script_refused(done, "the scheduler refused")
        self.assertEqual(done.stderr.count("invalid partition"), 1)

    def test_a_folder_whose_name_slurm_would_replace(self):
        shown = self.shown("sweep", "--program", self.program, "--scheduler slurm --nodes 1",
                           "--ranks-per-node 1 --dir 100%j --print")
        job, report = [line.replace(os.path.realpath(self.dir), "HERE") for line in shown]
        self.assertIn(" --output=HERE/100%%j/sweep.log ", job)
        self.assertIn(" ISOSCALE_OUTPUT=HERE/100%j/sweep.h5 ", job)
        self.assertIn(" --output=HERE/100%%j/report.log ", report)
        self.assertIn("--report HERE/100%j HERE/100%j/sweep.h5'", report)

    def test_usage(self):
        self.stand_in("sbatch", "true")
        for arguments, needles in [
                ([], ["--nodes"]), (["--nodes", "1,x"], ["--nodes"]),
                (["--nodes", "1,2"], ["--ranks-per-node"]),
                (["--nodes", "1,99999999", "--gpus", "8"], ["--nodes", "'99999999'"]),
                (["--nodes", "18446744073709551617", "--gpus", "8"], ["--nodes"]),
                (["--nodes", "1,200000", "--gpus", "8"], ["200000 nodes", "a million"]),
                (["--nodes", "1", "--gpus", "8", "--cores-per-rank", "200000"], ["a million"]),
                (["--nodes", "1", "--gpus", "8", "--mpirun-option", ["--mpirun /a b/mpirun"]],
                 ["--mpirun /a b/mpirun", "blanks"]),
                (["--nodes", "1", "--gpus", "8", "--mpirun-option", ["/a b/mpirun"]], ["blanks"]),
                (["--nodes", "1", "--gpus", "8", "--mpirun-option", ""], ["--mpirun-option"]),
                (["--nodes", "1", "--mpirun-option"], ["--mpirun-option needs a value"]),
                (["--nodes", "1", "--gpus", "8", "--scheduler", "lsf"], ["slurm or pbs", "'lsf'"]),
                (["--nodes", "1", "--gpus", "8", "--scheduler", "pbs"], ["--cores-per-rank"]),
                (["--nodes", "1", "--gpus", "8", "--", "--output", "x.h5"], ["--dir"]),
                (["--nodes", "1", "--gpus", "8", "--jobs", "--ranks", "2"], ["--jobs"])]:
            with self.subTest(arguments=arguments):
                done = self.sweep(*arguments)
                self.assert_script_refused(done, *needles)
        self.assertEqual(self.files(), ["stand-ins"])


class Refused(Case):
    """What isoscale would refuse in the queue is refused before anything is submitted."""

    def sweep(self, *arguments, **environment):
        started = self.path("started")
        self.stand_in("sbatch", f"touch {started}; echo 1")
        self.program = harness.PROGRAM
        done = super().sweep("--scheduler slurm --nodes 1,2 --ranks-per-node 2 --dir out",
                             *arguments, **environment)
        self.assertEqual(os.path.exists(started), done.returncode == 0, done.stderr)
        return done

    def test_a_workload_that_there_is_not(self):
        self.assert_script_refused(self.sweep("-- --workload nope"), "unknown workload",
                                   "nothing was submitted")
        self.assert_script_refused(self.sweep("-- --workload dp --mesh tp=2"), "tp")

    def test_a_run_that_works_is_submitted(self):
        self.assert_exit(0, self.sweep("-- --workload dp", SLURM_NTASKS="4", SLURM_JOB_ID="7"))

    def test_without_slurm_nothing_else_is_said(self):
        for name in os.listdir("/usr/bin"):  # all that this machine has but Slurm
            if name != "sinfo" and not os.path.exists(os.path.join(self.stand_ins, name)):
                os.symlink(os.path.join("/usr/bin", name), os.path.join(self.stand_ins, name))
        done = super().sweep("--print --scheduler slurm --nodes 1 --ranks-per-node 2",
                             "--cores-per-rank 1", PATH=self.stand_ins)
        self.assert_script_refused(done, "no sinfo")
        self.assertNotIn("command not found", done.stderr)


class Pbs(Case):
    def test_one_job_measures_all_counts(self):
        self.assertEqual(self.submitted("--scheduler pbs --nodes 1,2 --gpus 4 --cores-per-rank 8 "
                                        "--wait --job-option -qgpu --report-option -qsmall -- "
                                        "--workload dp,tp"),
                         ["qsub -N isoscale-sweep -l select=2:ncpus=32:mpiprocs=4:ngpus=4 "
                          "-l place=scatter:excl -l walltime=00:30:00 -j oe -r y -o DIR/sweep.log "
                          "-v 'ISOSCALE=ISOSCALE,ISOSCALE_OUTPUT=DIR/sweep.h5,"
                          "ISOSCALE_MPIRUN=--cores-per-rank 8 --gpus 4 --ranks-per-node 4' "
                          "-qgpu -- LAUNCH/pbs.sh --workload dp,tp --ranks 4,8",
                          "qsub -N isoscale-report -W block=true -W depend=afterany:JOB1 "
                          "-l select=1:ncpus=1 -l walltime=00:10:00 -j oe -o DIR/report.log "
                          "-qsmall -- LAUNCH/sweep --program ISOSCALE --report DIR DIR/sweep.h5"])

    def test_commas_that_would_end_a_variable(self):
        for options in (["--dir", "a,b"], ["--mpirun-option", ["--hosts a,b"]]):
            with self.subTest(options=options):
                done = self.sweep("--scheduler pbs --nodes 1 --gpus 1 --cores-per-rank 1 --print",
                                  *options)
                self.assert_script_refused(done, "commas", "a,b")

    def test_a_job_per_node_count(self):
        *jobs, report = self.submitted("--scheduler pbs --nodes 1,4 --jobs --ranks-per-node 2 "
                                       "--cores-per-rank 1")
        self.assertEqual([job.rsplit("--ranks ", 1)[1] for job in jobs], ["2", "8"])
        self.assertIn("depend=afterany:JOB1:JOB2", report)


class Reports(Case):
    """What the last job does."""

    def report(self, code, *files, program=harness.PROGRAM):
        """The finished process of a report of these files, with this exit code."""
        return self.assert_exit(code, self.script("sweep", "--program", program, "--report",
                                                  self.dir, *files))

    def assert_reported_runs(self, count):
        self.assertEqual(len(json.loads(self.read("report.json"))["runs"]), count)

    def measure(self, name):
        self.program = harness.PROGRAM
        self.run_ok("run --workload dp --ranks 1 --max-time 0.2s --quiet --output", name)

    def test_of_files_that_are_there(self):
        for name in ("nodes-1.h5", "nodes-2.h5"):
            self.measure(name)
        self.report(0, "nodes-1.h5", "nodes-2.h5")
        self.assert_reported_runs(2)
        # The curve at 1 rank, in both launches.
        self.assertRegex(self.read("report.txt"), r"\n  dp +1 +2 ")
        # A job that left nothing: the others are reported, and it is named.
        self.assertIn("nodes-4.h5 is missing", self.report(1, "nodes-1.h5", "nodes-4.h5").stderr)
        self.assert_reported_runs(1)

    def test_a_file_that_cannot_be_read_is_left_out(self):
        self.measure("nodes-1.h5")
        shutil.copy(self.path("nodes-1.h5"), self.path("nodes-2.h5"))
        os.truncate(self.path("nodes-2.h5"), 300)
        self.assertIn("nodes-2.h5 is left out", self.report(1, "nodes-1.h5", "nodes-2.h5").stderr)
        self.assert_reported_runs(1)
        files = ["nodes-1.h5", "nodes-2.h5", "report.json", "report.txt", "stand-ins"]
        self.assertEqual(self.files(), files)
        # There is nothing to report: no report of other files stays where this one would be.
        self.assert_script_refused(self.report(2, "nodes-2.h5"), "no job left")
        self.assertEqual(self.files(), ["nodes-1.h5", "nodes-2.h5", "stand-ins"])

    def test_a_report_that_fails_leaves_no_part_of_it(self):
        """Each file can be read, and both together make no report."""
        program = self.stand_in("isoscale", 'case "$*" in *"a.h5 b.h5"*) echo part; exit 2 ;; esac')
        for name in ("a.h5", "b.h5", "report.json", "report.txt"):
            self.write(name, "")
        self.report(2, "a.h5", "b.h5", program=program)
        self.assertEqual(self.files(), ["a.h5", "b.h5", "stand-ins"])

    def test_planted_links_are_not_followed(self):
        self.write("a.h5", "")
        self.write("mine", "mine")
        program = self.stand_in("isoscale", "echo report")
        for name in ("report.json", "report.txt"):
            for ending in ("", ".new"):
                os.symlink("mine", self.path(name + ending))
        self.report(0, "a.h5", program=program)
        self.assertEqual(self.read("mine"), "mine")
        self.assertEqual(self.read("report.txt"), "report\n")

    def test_of_nothing(self):
        self.assert_script_refused(self.report(2, "x.h5"), "no job left")
