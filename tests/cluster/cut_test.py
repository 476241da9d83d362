# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""A host that is cut off while a run measures: the others name its rank and end.

Environment: ISOSCALE = the program. Exit 77, which ctest shows as skipped, where namespaces may not
be made.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import cluster

cluster.enter()

PROGRAM = os.environ["ISOSCALE"]
TIMEOUT, TO_SAY_SO = 5, 5


class Cut(unittest.TestCase):
    def cut(self, victim):
        scratch = tempfile.TemporaryDirectory(prefix="isoscale-cluster-")
        self.addCleanup(scratch.cleanup)
        made = cluster.Cluster(scratch.name, "abc", port_rate="1gbit")
        self.addCleanup(made.stop)
        path = made.path("run.h5")
        log = made.path("log")
        # What it says goes to a file: of a host that is cut off nothing reaches the launcher.
        made.script("logged", f'exec "$@" 2>> {log}.$OMPI_COMM_WORLD_RANK\n')
        command = [made.path("logged"), PROGRAM, "run", "--device", "host", "--output", path,
                   "--workload", "dp", "--model", "tiny", "--scaling", "weak", "--set",
                   "microbatch=1", "--ranks", "3", "--max-time", "60s", "--precision", "0.01%",
                   "--timeout", f"{TIMEOUT}s"]

        def launch():
            try:
                made.mpirun(dict.fromkeys("abc", 1), *command, timeout=40)
            except subprocess.TimeoutExpired:  # the launcher waits for the host that is gone
                pass

        launcher = threading.Thread(target=launch)
        launcher.start()
        time.sleep(12)
        subprocess.run(["ip", "-n", f"host{victim}", "link", "set", "own", "down"], check=True)
        begin = time.monotonic()
        found = None
        while found is None and time.monotonic() - begin < TIMEOUT + TO_SAY_SO:
            time.sleep(0.1)
            for rank in range(3):
                if rank == "abc".index(victim) or not os.path.exists(f"{log}.{rank}"):
                    continue
                with open(f"{log}.{rank}", encoding="utf-8") as file:
                    found = found or re.search(r"hang: .*", file.read())
        launcher.join()
        self.assertIsNotNone(found, "nobody said anything in time")
        self.assertIn(f"rank {'abc'.index(victim)} never answered", found[0])
        with open(path + ".hang.json", encoding="utf-8") as file:
            self.assertEqual(json.load(file)["silent"], ["abc".index(victim)])

    def test_another_host_than_the_launchers(self):
        self.cut("b")

    def test_the_last_host(self):
        self.cut("c")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
