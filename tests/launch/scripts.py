# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""What the tests of launch/ share: scripts run among stand-ins of a cluster's commands.

Environment, beside that of the harness: ISOSCALE_LAUNCH_SCRIPTS = the folder launch/.
"""

import os
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import harness

LAUNCH = os.path.realpath(os.environ["ISOSCALE_LAUNCH_SCRIPTS"])
CLUSTER_NAMES = ("SLURM_", "PBS_", "OMPI_", "PMI", "MPI_", "ISOSCALE", "CUDA_", "UCX_", "NCCL_")


class Case(harness.Case):
    """A folder for stand-ins that comes first in PATH; ldd and mpirun are the machine's own."""

    def setUp(self):
        super().setUp()
        self.stand_ins = self.path("stand-ins")
        os.mkdir(self.stand_ins)
        os.mkdir(os.path.join(self.stand_ins, "sysfs"))  # of a machine that limits nobody

    def stand_in(self, name, text):
        """A command of this name that runs these lines of shell."""
        path = os.path.join(self.stand_ins, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, stat.S_IRWXU)
        return path

    def node_of(self, cores, sockets=1, threads=1):
        """This node has so many cores, each with so many hardware threads."""
        self.stand_in("nproc", f"echo {cores * threads}")
        lines = "".join(f"{core},{core * sockets // cores}\n" for core in range(cores)) * threads
        self.stand_in("lscpu", f"printf '{lines}'")

    def script(self, name, *arguments, **environment):
        """Runs launch/NAME; returns the finished process."""
        return self.run_among_stand_ins(os.path.join(LAUNCH, name), *harness.words_of(arguments),
                                        **environment)

    def run_among_stand_ins(self, *words, **environment):
        """Runs a command among the stand-ins, outside of any job; returns the finished process."""
        kept = {key: value for key, value in os.environ.items()
                if key.startswith("OMPI_ALLOW") or not key.startswith(CLUSTER_NAMES)}
        kept |= {"PATH": f"{self.stand_ins}:{kept['PATH']}",
                 "ISOSCALE_SYSFS": f"{self.stand_ins}/sysfs"}
        return subprocess.run(words, cwd=self.dir, env={**kept, **environment},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=120 * harness.PATIENCE, check=False)

    def script_ok(self, name, *arguments, **environment):
        return self.assert_exit(0, self.script(name, *arguments, **environment))

    def shown(self, name, *arguments, **environment):
        """The commands that a script says it starts."""
        said = self.script_ok(name, *arguments, **environment).stderr
        return [line[2:] for line in said.splitlines() if line.startswith("+ ")]

    def stand_in_for_mpirun(self, then="true"):
        """One of Open MPI that writes down what it is called with; see taken_calls."""
        self.stand_in("mpirun", '[ "$1" = --version ] && echo "mpirun (Open MPI) 5.0.6" && exit\n'
                                f'printf "%s\\n" "$*" >> {self.path("calls")}\n{then}')

    def taken_calls(self):
        """Returns and clears the calls that stand-ins have written down."""
        if not os.path.exists(self.path("calls")):
            return []
        calls = self.read("calls").splitlines()
        os.remove(self.path("calls"))
        return calls

    def assert_script_refused(self, done, *needles):
        self.assert_refused(done, *needles, begin="error: ")
