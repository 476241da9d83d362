# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""A few hosts on one machine: network namespaces joined by veth pairs, whose rates are shaped.

The test program enters namespaces of its own first (mounts, network, processes), and makes the
hosts in them. All of it, processes included, ends with the program however it ends; nothing of the
machine's own is touched. Needs root, or user namespaces; iproute2 and util-linux.
"""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import harness

INSIDE = "ISOSCALE_INSIDE_CLUSTER"
SKIPPED = 77
NET = "10.77.0.0/24"
UNSHARE = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def succeeds(command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def enter():
    """Starts the program again inside of namespaces of its own; exits where it may not."""
    if os.environ.get(INSIDE):
        return
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    for tool, package in (("unshare", "util-linux"), ("taskset", "util-linux"), ("ip", "iproute2"),
                          ("tc", "iproute2"), ("mpirun", "openmpi-bin")):
        if shutil.which(tool) is None:
            skip(f"there is no {tool} here (Debian: apt-get install {package})")
    prefix = UNSHARE if succeeds([*UNSHARE, "true"]) else [*UNSHARE, "--user", "--map-root-user"]
    if not succeeds([*prefix, "true"]):
        skip("network namespaces may not be made here: it takes root, or user namespaces")
    if not succeeds([*prefix, "sh", "-c", "ip link add near type veth peer name far && "
                     "tc qdisc add dev near root tbf rate 1gbit burst 256kb latency 50ms"]):
        skip("this kernel makes no veth pairs, or shapes no links (tbf)")
    os.environ[INSIDE] = "1"
    os.execvp(prefix[0], [*prefix, sys.executable, "-B", *sys.argv])


def sh(*commands):
    for command in commands:
        subprocess.run(command.split(), check=True)


class Cluster:
    """Hosts hosta, hostb, ... at 10.77.0.1, 10.77.0.2, ..."""

    def __init__(self, scratch, hosts, rates=None, port_rate=None):
        """Each two hosts have a link of their own, or all a port of one switch.

        rates: {("a", "b"): "1gbit"} shapes a link in both directions; the others are as they come.
        port_rate: "1gbit" = all hosts are at a switch, and reach it at this rate in each direction.
        """
        self.scratch = scratch
        self.hosts = hosts
        self.start()
        if port_rate:
            self.make_switch(port_rate)
            return
        for i, low in enumerate(hosts):
            for high in hosts[i + 1:]:
                self.join(low, high, (rates or {}).get((low, high)))

    def address(self, host):
        return f"10.77.0.{1 + self.hosts.index(host)}"

    def path(self, name):
        return os.path.join(self.scratch, name)

    def start(self):
        if not os.path.ismount("/run/netns"):  # one of our own, which nobody else sees
            sh("mount -t tmpfs none /run", "mkdir -p /run/netns")
        with open(self.path("hosts"), "w", encoding="utf-8") as file:
            file.write("127.0.0.1 localhost\n")
            for host in self.hosts:
                file.write(f"{self.address(host)} host{host}\n")
        sh(f"mount --bind {self.path('hosts')} /etc/hosts")
        for host in self.hosts:
            sh(f"ip netns add host{host}", f"ip -n host{host} link set lo up",
               f"ip -n host{host} link add own type veth peer name own-end",
               f"ip -n host{host} link set own-end up",
               f"ip -n host{host} addr add {self.address(host)}/24 dev own",
               f"ip -n host{host} link set own up")
        self.script("agent", 'host=$1; shift\nexec ip netns exec "$host" unshare --uts '
                             'sh -c "hostname $host; $*"\n')
        # Before whatever else runs on the machine, as far as that is allowed: a kernel that groups
        # processes by session weighs the groups first.
        self.script("pin", '{ echo -15 > /proc/self/autogroup; } 2> /dev/null\n'
                           'exec nice -n -15 taskset -c $((OMPI_COMM_WORLD_RANK % $(nproc))) "$@"\n')

    def make_switch(self, rate):
        """A bridge in a namespace of its own, so that no host's traffic is another's."""
        sh("ip netns add switch", "ip -n switch link add bridge type bridge",
           "ip -n switch link set bridge up")
        for host in self.hosts:
            sh(f"ip -n host{host} link del own",
               f"ip link add own netns host{host} type veth peer name port{host} netns switch",
               f"ip -n switch link set port{host} master bridge up",
               f"ip -n host{host} addr add {self.address(host)}/24 dev own",
               f"ip -n host{host} link set own up")
        self.set_port_rate(rate)

    def set_port_rate(self, rate, hosts=None, burst="256kb", longest="50ms"):
        """Of hosts at the switch (all): what each sends, and what it is sent.

        burst: kilobytes that a port which was idle passes at once. longest: how long a packet may
        wait for its turn before it is dropped.
        """
        for host in hosts or self.hosts:
            for place, device in ((f"host{host}", "own"), ("switch", f"port{host}")):
                sh(f"tc -n {place} qdisc replace dev {device} root tbf rate {rate} burst {burst} "
                   f"latency {longest}")

    def join(self, low, high, rate):
        for here, there in ((low, high), (high, low)):
            if here == low:
                sh(f"ip link add to{high} netns host{low} type veth peer name to{low} "
                   f"netns host{high}")
            sh(f"ip -n host{here} link set to{there} up",
               f"ip -n host{here} route add {self.address(there)}/32 dev to{there} "
               f"src {self.address(here)}")
            if rate:
                sh(f"tc -n host{here} qdisc add dev to{there} root tbf rate {rate} burst 256kb "
                   "latency 50ms")

    def processes(self, host):
        """{process: name} of what runs on it."""
        listed = subprocess.run(["ip", "netns", "pids", f"host{host}"], capture_output=True,
                                text=True, check=True)
        names = {}
        for process in map(int, listed.stdout.split()):
            try:
                with open(f"/proc/{process}/comm", encoding="utf-8") as file:
                    names[process] = file.read().strip()
            except OSError:  # it has just ended
                pass
        return names

    def end_all(self):
        """Kills whatever still runs on a host: no launcher does where the network is cut."""
        for host in self.hosts:
            for process in self.processes(host):
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:  # it has just ended
                    pass

    def stop(self):
        self.end_all()
        for name in os.listdir("/run/netns"):
            sh(f"ip netns del {name}")
        sh("umount /etc/hosts")

    def script(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(self.path(name), stat.S_IRWXU)

    def mpirun(self, ranks_of, *command, timeout=300):
        """Starts the command on ranks_of = {"a": 1, ...}, the first of which is where mpirun is."""
        hosts = ",".join(f"host{host}:{ranks}" for host, ranks in ranks_of.items())
        first = "host" + next(iter(ranks_of))
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": self.scratch}
        options = ["-np", str(sum(ranks_of.values())), "--host", hosts, "--oversubscribe",
                   "--bind-to", "none"]
        for name, value in (("plm_rsh_agent", self.path("agent")), ("btl", "tcp,self"),
                            ("pml", "ob1"), ("btl_tcp_if_include", NET),
                            ("oob_tcp_if_include", NET), ("orte_tmpdir_base", self.scratch)):
            options += ["--mca", name, value]
        return subprocess.run([self.path("agent"), first, "mpirun", *options, self.path("pin"),
                               *command], env=environment, cwd=self.scratch, capture_output=True,
                              text=True, timeout=timeout, check=False)


class Case(harness.Case):
    def cluster_of(self, hosts, **how):
        """Hosts of their own for one test."""
        scratch = tempfile.TemporaryDirectory(prefix="isoscale-cluster-")
        self.addCleanup(scratch.cleanup)
        made = Cluster(scratch.name, hosts, **how)
        self.addCleanup(made.stop)
        return made

    def run_to_file(self, made, ranks_of, *options):
        """The path of the run file that the program under test writes."""
        path = made.path("run.h5")
        done = made.mpirun(ranks_of, self.program, "run", "--quiet", "--output", path,
                           "--force", "--device", "host", *options)
        self.assert_exit(0, done)
        return path
