# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""launch/mpirun.sh: the command for each MPI, what it refuses, and a run."""

import os
import re
import shutil

import scripts
from scripts import harness

OPEN_MPI = 'echo "mpirun (Open MPI) 5.0.6"'
MPICH = 'echo "HYDRA build details:"; echo "    Version:  4.2.0"'
INTEL = 'echo "Intel(R) MPI Library for Linux* OS, Version 2021.13"'
MPIS = {"open": OPEN_MPI, "mpich": MPICH, "intel": INTEL}
#: What divides the cores where Open MPI does not.
DIVIDED = f"--bind-to none {scripts.LAUNCH}/bind.sh --ignore-gpus --cores"
#: Which MPI and which options; below them, what the script makes of them on a node of 16 cores.
COMMANDS = """
open: -n 4 run --workload dp,tp
    -n 4 --map-by ppr:4:node:PE=4 --bind-to core isoscale run --workload dp,tp
open: -np 2 --cores-per-rank 3 -- check
    -n 2 --map-by ppr:2:node:PE=3 --bind-to core isoscale check
open: -n 32 run
    -n 32 --map-by ppr:32:node:OVERSUBSCRIBE --bind-to none isoscale run
open: -n 1 run --set 'x=a b'
    -n 1 --map-by ppr:1:node:PE=16 --bind-to core isoscale run --set 'x=a b'
open: --hosts a,b -n 8 --cores-per-rank 1 run
    -n 8 --host a:4,b:4 --map-by ppr:4:node:PE=1 --bind-to core isoscale run
open: --hosts a,b -n 8 --cores-per-rank 4 run
    -n 8 --host a:4,b:4 --map-by ppr:4:node:OVERSUBSCRIBE DIVIDED 4 -- isoscale run
open: --hostfile hosts.txt --ranks-per-node 8 --cores-per-rank 2 run
    -n 24 --hostfile hosts.txt --map-by ppr:8:node:OVERSUBSCRIBE DIVIDED 2 -- isoscale run
mpich: --hosts a,b --ranks-per-node 4 --cores-per-rank 4 run
    -n 8 -ppn 4 -hosts a,b -bind-to core:4 isoscale run
mpich: -n 4 --bind none run
    -n 4 -ppn 4 -bind-to none isoscale run
intel: -n 4 run
    -n 4 -ppn 4 -genv I_MPI_PIN_CELL core -genv I_MPI_PIN_DOMAIN 4:compact isoscale run
"""


class Case(scripts.Case):
    def setUp(self):
        super().setUp()
        self.node_of(16)
        self.stand_in("id", "echo 1000")
        self.program = self.stand_in("isoscale", "true")  # linked to no MPI, so to no wrong one
        self.stand_in("mpirun", OPEN_MPI)

    def command(self, options, **environment):
        """The one command of --print, without the path of the program's folder and without the
        names of variables that Open MPI passes on."""
        return re.sub(r" -x \w+", "", self.whole_command(options, **environment))

    def whole_command(self, options, **environment):
        [line] = self.shown("mpirun.sh", "--program", self.program, "--print", options,
                            **environment)
        return line.replace(os.path.realpath(self.stand_ins) + "/", "")


class Commands(Case):
    def test_commands_of_each_mpi(self):
        self.write("hosts.txt", "# rack 3\na slots=8\nb slots=8  # new\n\nc:8\n")
        for mpi, options, command in re.findall(r"(\w+): (.*)\n    (.*)\n", COMMANDS):
            with self.subTest(mpi=mpi, options=options):
                self.stand_in("mpirun", MPIS[mpi])
                command = command.replace("DIVIDED", DIVIDED)
                self.assertEqual(self.command(options), f"mpirun {command}")

    def test_ranks_that_would_need_cores_of_two_sockets(self):
        """Which Open MPI 5 refuses: bind.sh gives them their cores."""
        self.node_of(12, sockets=2, threads=2)
        for options, cores in [("-n 2", 6), ("-n 4", 3), ("-n 2 --cores-per-rank 4", 4),
                               ("-n 12", 1), ("-n 2 --cores-per-rank 7", 7)]:
            self.assertIn(f":node:PE={cores} --bind-to core isoscale",
                          self.command(f"{options} run"))
        for options, cores in [("-n 1", 12), ("-n 3", 4), ("-n 1 --cores-per-rank 7", 7)]:
            self.assertIn(f" {DIVIDED} {cores} -- isoscale", self.command(f"{options} run"))
        self.stand_in("nproc", "echo 12")  # of which socket is not known
        self.assertIn(DIVIDED, self.command("-n 2 --cores-per-rank 3 run"))

    def test_open_mpi_of_root(self):
        """It wants to be told twice; the command that is shown says so itself."""
        self.stand_in("id", "echo 0")
        root = "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
        self.assertEqual(self.command("-n 2 run"),
                         f"{root}mpirun -n 2 --map-by ppr:2:node:PE=8 --bind-to core isoscale run")
        self.stand_in("mpirun", MPICH)
        self.assertTrue(self.command("-n 2 run").startswith("mpirun "))

    def test_cores_are_not_the_threads_of_openmp(self):
        """As nproc of coreutils, which says OMP_NUM_THREADS where that is set."""
        self.stand_in("nproc", "echo ${OMP_NUM_THREADS:-16}")
        self.assertIn("ppr:2:node:PE=8 ", self.command("-n 2 run", OMP_NUM_THREADS="1"))

    def test_other_hosts_get_the_environment_that_a_run_needs(self):
        needed = {"LD_LIBRARY_PATH": "/opt/hdf5/lib", "NCCL_IB_HCA": "mlx5", "OMP_NUM_THREADS": "2",
                  "OPENBLAS_NUM_THREADS": "2", "ISOSCALE_TIMEOUT": "1h",
                  "CUDA_VISIBLE_DEVICES": "0"}
        others = {"SLURM_JWT": "secret", "AWS_SECRET_ACCESS_KEY": "secret"}
        self.write("hosts.txt", "a\nb\n")
        for hosts in ("--hostfile hosts.txt", "--hosts a,b"):
            shown = self.whole_command(f"{hosts} -n 2 --cores-per-rank 1 run", **needed, **others)
            forwarded = set(re.findall(r" -x (\w+)", shown))
            self.assertLessEqual({"PATH", *needed}, forwarded)
            self.assertFalse({*others} & forwarded)
            self.assertNotIn("secret", shown)
        self.assertNotIn(" -x ", self.whole_command("-n 2 run", **needed))

    def test_gpus(self):
        """One rank per GPU, bound by bind.sh, which needs the whole node's mask for it."""
        bind = os.path.join(scripts.LAUNCH, "bind.sh")
        self.assertEqual(self.command("--gpus 8 --bind-option --set-nic run"),
                         "mpirun -n 8 --map-by ppr:8:node:OVERSUBSCRIBE --bind-to none "
                         f"{bind} --set-nic -- isoscale run --device cuda")
        self.assertNotIn("--device cuda", self.command("--gpus 8 run --device=host"))

    def test_gpus_of_hosts_with_more_cores_than_this_one(self):
        """A login node's two cores say nothing of theirs: bind.sh shares those out, on each."""
        self.node_of(2)
        self.write("hosts.txt", "a\nb\n")
        bind = os.path.join(scripts.LAUNCH, "bind.sh")
        for hosts in ("--hostfile hosts.txt", "--hosts a,b"):
            given = self.command(f"{hosts} --gpus 8 run")
            self.assertTrue(given.startswith("mpirun -n 16 "), given)
            self.assertTrue(given.endswith(f" --bind-to none {bind} -- isoscale run --device cuda"),
                            given)
        self.assertIn(f"{bind} --cores 6 -- ",
                      self.command("--hosts a,b --gpus 8 --cores-per-rank 6 run"))

    def test_this_host_alone(self):
        """Its cores are known, by whichever name it is called."""
        self.stand_in("hostname", '[ "$1" = -s ] && echo here || echo here.cluster')
        for name in ("localhost", "here", "here.cluster"):
            self.assertIn("ppr:4:node:PE=4", self.command(f"--hosts {name} -n 4 run"))

    def test_a_job_says_how_many(self):
        job = {"SLURM_JOB_NUM_NODES": "2", "SLURM_NTASKS": "8", "SLURM_CPUS_PER_TASK": "3"}
        self.assertEqual(self.command("run", **job),
                         "mpirun -n 8 --map-by ppr:4:node:PE=3 --bind-to core isoscale run")
        self.node_of(16, threads=2)
        self.assertIn("ppr:4:node:PE=1 ", self.command("run", **job))
        for one in ({"SLURM_HINT": "nomultithread"}, {"SLURM_THREADS_PER_CORE": "1"}):
            self.assertIn("ppr:4:node:PE=3 ", self.command("run", **job, **one))
            self.assertIn(" --cpus-per-task=3 ", self.command("--launcher srun --srun-mpi pmix run",
                                                             **job, **one))
        self.node_of(16)
        self.write("nodes", "a\na\nb\nb\nc\nc\n")
        self.assertEqual(self.command("run", PBS_NODEFILE=self.path("nodes")),
                         "mpirun -n 6 --map-by ppr:2:node:PE=8 --bind-to core isoscale run")

    def test_srun(self):
        job = {"SLURM_JOB_NUM_NODES": "2", "SLURM_NTASKS": "8", "SLURM_CPUS_PER_TASK": "4"}
        self.stand_in("srun", 'printf "MPI plugin types are...\\n\\tnone\\n\\tpmi2\\n" >&2')
        self.assertEqual(self.command("--launcher srun run", **job),
                         "srun --mpi=pmi2 -n 8 --ntasks-per-node=4 --cpus-per-task=4 "
                         "--cpu-bind=cores isoscale run")
        self.stand_in("ldd", 'echo "libmpi.so.40 => /usr/lib/libmpi.so.40"')
        self.stand_in("srun", 'printf "\\tnone\\n\\tpmi2\\n\\tpmix\\n"')
        self.assertIn("--mpi=pmix ", self.command("--launcher srun run", **job))
        self.assertIn("--mpi=pmix_v4 ",
                      self.command("--launcher srun --srun-mpi pmix_v4 run", **job))

    def test_finds_the_program_of_an_installation(self):
        """PREFIX/share/isoscale/launch and PREFIX/bin: no script needs more than common.sh."""
        folder = self.path("prefix/share/isoscale/launch")
        os.makedirs(folder)
        os.mkdir(self.path("prefix/bin"))
        shutil.copy(self.program, self.path("prefix/bin/isoscale"))
        for name in ("mpirun.sh", "common.sh"):
            shutil.copy(os.path.join(scripts.LAUNCH, name), folder)
        [line] = self.shown(os.path.join(folder, "mpirun.sh"), "-n 1 --print run")
        self.assertTrue(line.endswith(os.path.realpath(self.path("prefix/bin/isoscale")) + " run"))


class Refusals(Case):
    """One message with the fix, before anything starts."""

    def refused(self, *arguments, **environment):
        return self.script("mpirun.sh", "--program", self.program, *arguments, **environment)

    def test_srun_without_a_way_to_wire_ranks(self):
        self.stand_in("srun", 'printf "MPI plugin types are...\\n\\tnone\\n"')
        done = self.refused("--launcher srun -n 2 run")
        self.assert_script_refused(done, "neither pmix nor pmi2", "--launcher mpirun")

    def test_a_launcher_of_another_mpi(self):
        started = self.path("started")
        self.stand_in("mpirun", f'[ "$1" = --version ] || touch {started}; {MPICH}')
        done = self.script("mpirun.sh", "--program", harness.PROGRAM, "-n 2 run")
        self.assert_script_refused(done, "MPICH", "Open MPI", "--mpirun FILE")
        self.assertFalse(os.path.exists(started))
        self.stand_in("mpirun", OPEN_MPI)
        self.stand_in("ldd", 'echo "libmpi.so.12 => /opt/intel/libmpi.so.12"')
        self.assert_script_refused(self.refused("-n 2 run"), "starts Open MPI", "MPICH")

    def test_one_abi(self):
        self.stand_in("mpirun", INTEL)
        self.stand_in("ldd", 'echo "libmpi.so.12 => /opt/mpich/libmpi.so.12"')
        self.assertIn("I_MPI_PIN", self.command("-n 2 run"))

    def test_a_program_whose_mpi_is_not_found(self):
        self.stand_in("ldd", 'echo "libmpi.so.40 => not found"')
        self.assert_script_refused(self.refused("-n 2 run"), "load that MPI's module")

    def test_hosts_that_do_not_answer(self):
        """Asked before anything starts, all at once."""
        started = self.path("started")
        self.stand_in("mpirun", f'[ "$1" = --version ] || touch {started}; {OPEN_MPI}')
        self.stand_in("ssh", 'case "$*" in *" c3 true" | *" c7 true") exit 255;; esac')
        hosts = ",".join(f"c{i}" for i in range(1, 9))
        options = ["--hosts", hosts, "--ranks-per-node", "2", "--cores-per-rank", "1", "run"]
        done = self.refused(*options)
        self.assert_script_refused(done, "no answer from c3 c7:", "leave the host out")
        self.assertFalse(os.path.exists(started))
        # In a job of Slurm mpirun needs no ssh.
        self.assert_exit(0, self.refused(*options, SLURM_JOB_ID="17"))
        self.assertTrue(os.path.exists(started))
        os.remove(started)
        self.stand_in("ssh", "true")
        self.assert_exit(0, self.refused(*options))
        self.assertTrue(os.path.exists(started))

    def test_hosts_that_are_no_names(self):
        """ssh and mpirun would take them for options, and a shell for words of its own."""
        self.stand_in("ssh", f"touch {self.path('touched')}")
        for host in (f"-oProxyCommand=touch {self.path('touched')}", "a,--prefix",
                     "$(touch touched)", "a;b", "*", "a,,b", "\x1b[31mred"):
            done = self.script("mpirun.sh", "--program", self.program, "--hosts", [host],
                               "-n 2 --cores-per-rank 1 run")
            self.assert_script_refused(done, "not a host name")
            self.assertNotIn("\x1b", done.stderr)
        self.assertFalse(os.path.exists(self.path("touched")))
        self.assert_script_refused(self.refused("--hosts gpu[01-02] -n 2 run"),
                                   "scontrol show hostnames")

    def test_cores_of_hosts_that_are_not_known(self):
        """Those of this node are not theirs, nor are they where salloc was typed."""
        self.stand_in("hostname", "echo here")
        salloc = {"SLURM_JOB_ID": "17", "SLURM_NTASKS": "4", "SLURM_JOB_NUM_NODES": "2"}
        for options, environment in [(["--hosts", "a", "-n", "2"], {}),
                                     (["--hosts", "here,a", "-n", "2"], {}),
                                     (["--hosts", "a", "--bind", "cores", "--gpus", "2"], {}),
                                     ([], salloc)]:
            with self.subTest(options=options):
                done = self.refused(*options, "--print run", **environment)
                self.assert_script_refused(done, "--cores-per-rank C", "--bind none")
        for options, environment in [(["--hosts", "a", "-n", "2", "--bind", "none"], {}),
                                     (["--cores-per-rank", "2"], salloc),
                                     ([], {**salloc, "SLURMD_NODENAME": "a"})]:
            self.assert_exit(0, self.refused(*options, "--print run", **environment))

    def test_usage(self):
        for arguments, needles in [
                (["--mpirun nonexistent-mpirun -n 2 run"],
                 ["nonexistent-mpirun", "--mpirun FILE"]),
                (["--program nothing -n 2 run"], ["'nothing'"]),
                (["-n", "2"], ["say what to run"]),
                (["run"], ["how many ranks"]),
                (["-n", "0", "run"], ["-n", "'0'"]),
                (["-n", "two", "run"], ["'two'"]),
                (["-n", "9", "--ranks-per-node", "4", "--hosts", "a,b", "run"], ["9 ranks"]),
                (["--hostfile", "nothing", "-n", "2", "run"], ["'nothing'"]),
                (["--hosts", "a", "--hostfile", "/dev/null", "-n", "2", "run"], ["not both"]),
                (["--bind", "socket", "-n", "2", "run"], ["cores, gpu or none"]),
                (["--launcher", "aprun", "-n", "2", "run"], ["mpirun or srun"]),
                (["--ranks", "2", "run"], ["--ranks"])]:
            with self.subTest(arguments=arguments):
                self.assert_script_refused(self.refused(*arguments), *needles)

    def test_no_program(self):
        done = self.script("mpirun.sh", "-n 2 run", ISOSCALE="nothing")
        self.assert_script_refused(done, "'nothing'")


class Runs(scripts.Case):
    """With this machine's own mpirun."""

    def test_two_ranks(self):
        self.script_ok("mpirun.sh", "-n 2 --program", harness.PROGRAM,
                       "-- run --workload dp --max-time 0.2s --output run.h5")
        report = self.run_ok("report run.h5 --detail").stdout
        self.assertIn("verified 1, 2 ranks", report)

    def test_what_is_shown_works_where_it_is_pasted(self):
        [shown] = self.shown("mpirun.sh", "-n 2 --bind none --program", harness.PROGRAM,
                             "--print check")
        pasted = self.run_among_stand_ins("env", "-u", "OMPI_ALLOW_RUN_AS_ROOT", "-u",
                                          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "bash", "-c", shown)
        self.assertRegex(pasted.stdout + pasted.stderr, "number of ranks: 2")

    def test_more_ranks_than_cores_and_bind(self):
        """Also through bind.sh, which prints a line for every rank."""
        done = self.script_ok("mpirun.sh", "-n 4 --bind gpu --program", harness.PROGRAM, "-- run "
                              "--workload dp --ranks 4 --max-time 0.2s --device host --output "
                              "run.h5")
        for rank in range(4):
            self.assertIn(f"rank {rank} (local {rank} of 4)", done.stderr)
        self.assertIn("verified 4 ranks", self.run_ok("report run.h5 --detail").stdout)

    def test_the_exit_code_is_that_of_isoscale(self):
        self.assert_exit(2, self.script("mpirun.sh", "-n 2 --program", harness.PROGRAM,
                                        "run --nonsense"))


class Hangs(Case):
    """mpirun is a stand-in whose run hangs, each time with so many points left."""

    def started(self, *arguments, left=2, then="exit 4", output="run.h5"):
        self.stand_in("mpirun",
                      f'[ "$1" = --version ] && {OPEN_MPI} && exit\n'
                      f'echo "$*" | sed "s/.*isoscale //" >> calls\ntouch {output}\n'
                      f"printf '{{\\n  \"left\": {left},\\n}}' > {output}.hang.json\n{then}")
        done = self.script("mpirun.sh", "-n 2 --program", self.program, *arguments)
        calls = [line.replace(self.dir + "/", "") for line in self.taken_calls()]
        return done.returncode, calls

    def test_a_run_is_resumed_as_often_as_points_are_left(self):
        first = "run --workload dp --output run.h5 --quiet"
        again = "run --resume run.h5 --quiet"
        self.assertEqual(self.started(*first.split()), (4, [first, again, again]))
        self.assertEqual(self.started(*first.split(), left=0), (4, [first]))
        ends = 'case "$*" in *--resume*) exit 1 ;; esac\nexit 4'
        self.assertEqual(self.started(*first.split(), then=ends), (1, [first, again]))
        self.assertEqual(self.started("run --resume=run.h5 --retry hung", left=1),
                         (4, ["run --resume=run.h5 --retry hung", "run --resume run.h5"]))

    def test_the_newest_hang_here_is_the_one_of_a_run_without_a_named_file(self):
        self.assertEqual(self.started("run", left=1, output="isoscale-dp-a.h5"),
                         (4, ["run", "run --resume ./isoscale-dp-a.h5"]))

    def test_nothing_is_resumed_after_another_end_or_another_command(self):
        self.assertEqual(self.started("run", then="exit 1"), (1, ["run"]))
        self.assertEqual(self.started("check"), (4, ["check"]))
        nothing_new = "touch -d 2020-01-01 run.h5.hang.json; exit 4"
        self.assertEqual(self.started("run", then=nothing_new), (4, ["run"]))
