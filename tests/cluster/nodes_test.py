# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Training workloads over four hosts at a switch: what the network costs them is what it must.

Environment: ISOSCALE = the program. Exit 77, which ctest shows as skipped, where namespaces may not
be made. The hosts share this machine's cores: ranks outside a point play copies of it, so that
every host has the same share of them at every count.
"""

import json
import sys
import unittest

import cluster

cluster.enter()

HOSTS = "abcd"
SLOW, FAST = "200mbit", "400mbit"  # slow enough for the network to be what takes the time
SLOW_BYTES, FAST_BYTES = 200e6 / 8, 400e6 / 8  # per second
MODEL = 'name = "small"\nlayers = 8\nhidden = 128\nheads = 16\nsequence = 16\n'
GRADIENTS = 8 * 12 * 128 * 128 * 4  # bytes: its 8 layers have 12 h^2 weights each, in f32
QUICK = ("--precision", "5%", "--max-time", "6s")


class Nodes(cluster.Case):
    def hosts(self, hosts, rate):
        made = self.cluster_of(hosts, port_rate=rate)
        self.model = ("--model", made.path("small.toml"))
        with open(self.model[1], "w", encoding="utf-8") as file:
            file.write(MODEL)
        return made

    def points(self, made, ranks_of, *options):
        points = self.points_in(self.run_to_file(made, ranks_of, *options))
        self.assert_verified(*points)
        return points

    def test_every_workload_plays_over_four_hosts(self):
        made = self.hosts(HOSTS, "1gbit")
        points = self.points(made, dict.fromkeys(HOSTS, 1), "--workload", "dp,tp,pp,hybrid",
                             "--fill", "replicas", "--max-time", "1s")
        found = {(point["workload"], point["ranks"], point["nodes"]) for point in points}
        self.assertEqual(found, {(workload, n, n) for workload in ("dp", "tp", "pp", "hybrid")
                                 for n in (1, 2, 4)})
        for point in points:
            self.assertEqual(point["efficiency"] is None, False, point)
            print(point["workload"], point["ranks"], f"{point['efficiency']:.1%}")

    def communication(self, made, rate):
        """Seconds of the gradients' all-reduce over all hosts: in a dp step, and alone."""
        ranks = dict.fromkeys(HOSTS, 1)
        (step,) = self.points(made, ranks, "--ranks", "4", "--workload", "dp", *self.model, *QUICK,
                              "--set", "overlap=off", "--set", "bucket=1GiB")
        run = self.run_to_file(made, ranks, "--ranks", "4", "--workload", "collectives", *QUICK,
                               "--set", "op=all_reduce", "--set", f"sizes={GRADIENTS}", "--set",
                               "in_place=yes")
        (row,) = self.points_in(run)[0]["rows"]
        self.assertEqual((row["bytes"], row["wrong"]), (GRADIENTS, 0))
        # A call takes as long as its slowest rank, in the step as alone.
        in_step = max(rank["breakdown"]["transfer"] for rank in step["breakdown_of_rank"])
        alone = row["time"]["median"]
        print(f"{rate}: {in_step * 1e3:.1f} ms in a step, {alone * 1e3:.1f} ms alone, "
              f"{in_step / alone - 1:+.1%}")
        return in_step, alone

    def test_gradients_take_what_the_collective_takes_alone(self):
        made = self.hosts(HOSTS, SLOW)
        slow, slow_alone = self.communication(made, SLOW)
        self.assertAlmostEqual(slow / slow_alone, 1, delta=0.15)
        # No algorithm sends less than 2 (n - 1) / n of the bytes from each host.
        self.assertGreater(slow, 2 * 3 / 4 * GRADIENTS / SLOW_BYTES)
        made.set_port_rate(FAST)
        fast, fast_alone = self.communication(made, FAST)
        self.assertAlmostEqual(slow_alone / fast_alone, 2, delta=0.3)
        # Here a step may be faster than the collective alone, which fills both directions of a port
        # at once, but not faster than the bytes that must cross.
        self.assertLess(fast / fast_alone, 1.15)
        self.assertGreater(fast, 2 * 3 / 4 * GRADIENTS / FAST_BYTES)

    def test_a_slow_port_is_found_before_a_run(self):
        """By what ranks exchange in pairs: no fact tells of it."""
        made = self.hosts("abcdefgh", "1gbit")
        made.set_port_rate("100mbit", "d")
        done = made.mpirun(dict.fromkeys("abcdefgh", 1), self.program, "check", "--device", "host",
                           "--format", "json")
        self.assert_exit(0, done)
        document = json.loads(done.stdout)
        slow = [result for result in document["results"]
                if result["name"] == "neighbour-bandwidth" and result["verdict"] == "warning"]
        print([result["what"] for result in slow])
        self.assertEqual([(result["host"], result["device"]) for result in slow],
                         [("hostc and hostd", "rank 2 and rank 3")])
        for rank in document["facts"]["ranks"]:
            self.assertGreater(rank["gemm_rate"], 0)

    def test_placement_and_mesh_decide_what_crosses_the_network(self):
        made = self.hosts("ab", SLOW)
        ranks = {"a": 2, "b": 2}
        step = {}
        for workload in ("dp", "tp"):
            for placement in ("packed", "spread"):
                (point,) = self.points(made, ranks, "--workload", workload, "--ranks", "2",
                                       "--placement", placement, "--fill", "replicas",
                                       *self.model, *QUICK)
                self.assertEqual(point["nodes"], 1 if placement == "packed" else 2)
                step[workload, placement] = point["step_time"]["median"]
                print(workload, placement, f"{step[workload, placement] * 1e3:.1f} ms")
        # Across, each rank of a dp pair sends its gradients once at the rate of the port.
        least = GRADIENTS / SLOW_BYTES
        self.assertGreater(step["dp", "spread"], least)
        self.assertLess(step["dp", "packed"], least)
        self.assertLess(step["dp", "packed"], step["dp", "spread"])
        self.assertLess(step["tp", "packed"], step["tp", "spread"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
