# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""A host that is cut off while a run measures: the others name its rank.

Environment: ISOSCALE = the program. Exit 77, which ctest shows as skipped, where namespaces may not
be made. ISOSCALE_CUTS: how many random cuts (default 10). ISOSCALE_SEED: of them.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
import unittest

import cluster

cluster.enter()

TIMEOUT, TO_SAY_SO = 5, 5


class Cut(cluster.Case):
    def cut(self, hosts, victim, wait):
        """Cuts the victim off, `wait` seconds after all ranks have started."""
        made = self.cluster_of(hosts, port_rate="1gbit")
        path = made.path("run.h5")
        log = made.path("log")
        # Each rank's messages go to a file: none from a host that is cut off reach the launcher.
        made.script("logged", f'exec "$@" 2>> {log}.$OMPI_COMM_WORLD_RANK\n')
        command = [made.path("logged"), self.program, "run", "--device", "host", "--output", path,
                   "--workload", "dp", "--model", "tiny", "--scaling", "weak", "--set",
                   "microbatch=1", "--ranks", str(len(hosts)), "--max-time", "60s", "--precision",
                   "0.01%", "--timeout", f"{TIMEOUT}s"]
        # It waits for the host that is gone, until it is ended.
        launcher = threading.Thread(target=made.mpirun, args=(dict.fromkeys(hosts, 1), *command))
        launcher.start()
        self.addCleanup(launcher.join)
        self.addCleanup(made.end_all)
        begin = time.monotonic()
        name = os.path.basename(self.program)
        while not all(name in made.processes(host).values() for host in hosts):
            self.assertLess(time.monotonic() - begin, 60, "the run did not begin")
            time.sleep(0.1)
        time.sleep(wait)
        subprocess.run(["ip", "-n", f"host{victim}", "link", "set", "own", "down"], check=True)
        begin = time.monotonic()
        others = [rank for rank, host in enumerate(hosts) if host != victim]
        found = None
        while found is None and time.monotonic() - begin < TIMEOUT + TO_SAY_SO:
            time.sleep(0.1)
            for rank in others:
                if os.path.exists(f"{log}.{rank}"):
                    with open(f"{log}.{rank}", encoding="utf-8") as file:
                        found = found or re.search(r"hang: .*", file.read())
        gone = hosts.index(victim)
        self.assertIsNotNone(found, "nobody said anything in time")
        self.assertIn(f"rank {gone} never answered", found[0])
        while not os.path.exists(path + ".hang.json") and time.monotonic() - begin < 20:
            time.sleep(0.1)  # it is written once the sentence is out
        with open(path + ".hang.json", encoding="utf-8") as file:
            self.assertEqual(json.load(file)["silent"], [gone])

    def test_the_launchers_host_another_and_the_last(self):
        for victim in "abc":
            with self.subTest(victim):
                self.cut("abc", victim, 8)
            self.doCleanups()

    def test_any_host_at_any_time(self):
        draw, count = self.draw("cuts", 10)
        for number in range(count):
            hosts = "abcd"[:draw.choice([3, 4])]
            victim = draw.choice(hosts)
            with self.subTest(number=number, hosts=hosts, victim=victim):
                self.cut(hosts, victim, draw.uniform(4, 12))
            self.doCleanups()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
