# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Jobs of launch/ under a real Slurm of four nodes: one slurmctld, four slurmd and one munged, which
this test starts and ends itself.

The program enters namespaces of its own first (mounts, network, processes): ports, names,
configuration and processes are seen by nobody else and end with the program however it ends. It
never starts where a Slurm runs or is configured. Needs root, and Debian's slurm-wlm and munge.
Environment: ISOSCALE = the program, ISOSCALE_LAUNCH_SCRIPTS = the folder launch/. Exit 77, which
ctest shows as skipped, where no Slurm may be started.
"""

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import cluster

NODES = ["c1", "c2", "c3", "c4"]
ADDRESS = "10.77.0.1"
CONFIGURATION = """
ClusterName=isoscale
SlurmctldHost={host}({address})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={scratch}/munge.socket,cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
StateSaveLocation={scratch}/state
SlurmdSpoolDir={scratch}/spool-%n
SlurmctldPidFile={scratch}/slurmctld.pid
SlurmdPidFile={scratch}/slurmd-%n.pid
SlurmctldLogFile={scratch}/slurmctld.log
SlurmdLogFile={scratch}/slurmd-%n.log
SlurmctldPort=17000
SlurmdParameters=config_overrides
PlugStackConfig={scratch}/plugstack.conf
ReturnToService=2
KillWait=10
MinJobAge=3600
OverTimeLimit=0
NodeName=c[1-4] NodeHostname={host} NodeAddr={address} Port=[17001-17004] CPUs=2 State=UNKNOWN
PartitionName=all Nodes=c[1-4] Default=YES MaxTime=INFINITE State=UP
"""


def running(name):
    """Whether a process of this name runs on the machine; one that nobody has waited for does not."""
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8") as file:
                comm, rest = file.read().split("(", 1)[1].rsplit(")", 1)
        except OSError:  # it has ended
            continue
        if comm == name and rest.split()[0] not in "ZX":
            return True
    return False


def enter():
    """Starts the program again inside of namespaces of its own; exits 77 where it may not."""
    if os.environ.get(cluster.INSIDE):
        # The first process of a namespace hears no signal that it does not ask for; its end is the
        # end of all others, and of the folder below, which is in memory that nobody else sees.
        signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
        cluster.sh("mount -t tmpfs none /run")
        return
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if os.geteuid() != 0:
        cluster.skip("only root can start a Slurm")
    for tool, package in (("unshare", "util-linux"), ("ip", "iproute2"), ("sbatch", "slurm-wlm"),
                          ("slurmctld", "slurm-wlm"), ("slurmd", "slurm-wlm"), ("munged", "munge"),
                          ("mpirun", "openmpi-bin")):
        if shutil.which(tool) is None:
            cluster.skip(f"there is no {tool} here (Debian: apt-get install {package})")
    for name in ("slurmctld", "slurmd", "slurmstepd"):
        if running(name):
            cluster.skip(f"a Slurm is at work on this machine already ({name})")
    for path in ("/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf"):
        if os.path.exists(path):
            cluster.skip(f"this machine belongs to a Slurm already ({path})")
    for name in os.environ:
        if name.startswith(("SLURM_", "SBATCH_", "SALLOC_")):
            cluster.skip(f"this is run inside of a Slurm already ({name} is set)")
    if not cluster.succeeds([*cluster.UNSHARE, "true"]):
        cluster.skip("namespaces may not be made here")
    os.environ[cluster.INSIDE] = "1"
    os.execvp(cluster.UNSHARE[0], [*cluster.UNSHARE, sys.executable, "-B", *sys.argv])


class Slurm:
    """Nodes c1 to c4 of two cores each, all of them this machine."""

    def __init__(self):
        self.scratch = tempfile.mkdtemp(prefix="slurm-", dir="/run")
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("OMPI_", "PMI", "ISOSCALE"))}
        self.environment = {**kept, "SLURM_CONF": self.path("slurm.conf"), "TMPDIR": self.scratch,
                            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            # mpirun believes in four nodes and spins on each
                            "OMPI_MCA_mpi_yield_when_idle": "1"}
        self.daemons = []

    def path(self, name):
        return os.path.join(self.scratch, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def start(self):
        """Returns once all nodes are idle."""
        host = os.uname().nodename.split(".")[0]
        os.chmod(self.scratch, 0o755)  # munged refuses folders that others may write to
        self.write("hosts", f"127.0.0.1 localhost\n{ADDRESS} {host} {' '.join(NODES)}\n")
        # Slurm listens only where there is an address beside that of lo.
        cluster.sh("ip link set lo up", "ip link add own type veth peer name own-end",
                   "ip link set own-end up", f"ip addr add {ADDRESS}/24 dev own",
                   "ip link set own up", f"mount --bind {self.path('hosts')} /etc/hosts")
        self.write("slurm.conf", CONFIGURATION.format(scratch=self.scratch, host=host,
                                                      address=ADDRESS))
        self.write("plugstack.conf", "")
        os.mkdir(self.path("state"))
        with open(self.path("munge.key"), "wb") as file:
            file.write(os.urandom(128))
        os.chmod(self.path("munge.key"), 0o400)
        self.daemon("munged", "munged", "--foreground", "--force", "--key-file",
                    self.path("munge.key"), "--socket", self.path("munge.socket"), "--pid-file",
                    self.path("munged.pid"), "--log-file", self.path("munged.log"), "--seed-file",
                    self.path("munged.seed"))
        self.wait_for("munged's socket", lambda: os.path.exists(self.path("munge.socket")))
        self.daemon("slurmctld", "slurmctld", "-D", "-c")
        for node in NODES:
            os.mkdir(self.path(f"spool-{node}"))
            self.daemon(node, "slurmd", "-D", "-N", node)
        self.wait_for("all nodes to be idle", lambda: self.states() == {"idle"})

    def daemon(self, name, *command):
        with open(self.path(f"{name}.out"), "wb") as out:
            self.daemons.append(subprocess.Popen(command, env=self.environment, stdout=out,
                                                 stderr=out, stdin=subprocess.DEVNULL))

    def states(self):
        done = self.run("sinfo", "-h", "-N", "-o", "%t")
        return set(done.stdout.split()) if done.returncode == 0 else {"unknown"}

    def wait_for(self, what, condition, seconds=300):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {seconds} s for {what}\n{self.logs()}")
            time.sleep(0.1)

    def logs(self):
        texts = []
        for path in sorted(glob.glob(self.path("*.log")) + glob.glob(self.path("*.out"))):
            with open(path, encoding="utf-8", errors="replace") as file:
                texts += [f"--- {os.path.basename(path)}", *file.read().splitlines()[-15:]]
        return "\n".join(texts)

    def run(self, *command, **environment):
        return subprocess.run(command, env={**self.environment, **environment}, cwd=self.scratch,
                              capture_output=True, text=True, timeout=300, check=False)

    def job(self, number):
        """What Slurm says of a job: {"JobState": "RUNNING", ...}."""
        done = self.run("scontrol", "-o", "show", "job", str(number))
        return dict(word.split("=", 1) for word in done.stdout.split() if "=" in word)

    def wait_for_state(self, number, *states):
        self.wait_for(f"job {number} to be {' or '.join(states)}",
                      lambda: self.job(number).get("JobState") in states)

    def stop(self):
        """Ends what was started here, by its process, the munged last."""
        self.run("scancel", "--user=root")
        for process in reversed(self.daemons):
            process.terminate()
        for process in self.daemons:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        cluster.sh("umount /etc/hosts")


enter()

LAUNCH = os.environ["ISOSCALE_LAUNCH_SCRIPTS"]
SBATCH = os.path.join(LAUNCH, "slurm.sbatch")
CLUSTER = Slurm()
LONG = ["--workload", "dp,tp,pp,hybrid", "--max-time", "3s"]  # eight points


def setUpModule():
    unittest.addModuleCleanup(CLUSTER.stop)
    CLUSTER.start()


class Case(cluster.harness.Case):
    def setUp(self):
        super().setUp()
        self.dir = tempfile.mkdtemp(prefix="jobs-", dir=CLUSTER.scratch)
        self.output = self.path("run.h5")
        self.log = self.path("job.log")

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
        CLUSTER.wait_for("all ranks to end", lambda: not running("isoscale"))
        return len(run["points"])


class Jobs(Case):
    """One job."""

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
