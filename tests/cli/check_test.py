# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""isoscale check, and what of it a run and its report show."""

import json
import os

import harness

RUN = ["run --device host --workload dp --max-time 100ms --quiet --output run.h5", *harness.LITTLE]


class Preflight(harness.Case):
    def test_says_what_was_looked_at(self):
        text = self.run_ok("check --device host", ranks=2).stdout
        self.assertTrue(text.startswith("Preflight: "), text)
        found = self.json_of("check --device host", ranks=2)
        self.assertEqual(found["facts"]["world"], 2)
        self.assertEqual([node["host"] for node in found["facts"]["nodes"]], [os.uname().nodename])
        ranks = found["facts"]["ranks"]
        for name in ("rank", "local_rank"):  # where it is 0, it is left out
            self.assertEqual([rank.get(name, 0) for rank in ranks], [0, 1])
        self.assertEqual(len({rank["pid"] for rank in ranks}), 2)
        self.assertEqual(len({rank["versions"]["mpi"] for rank in ranks}), 1)
        for result in found["results"]:
            self.assertIn(result["verdict"], {"ok", "not checked", "warning", "stop"})
            self.assertIn(result["name"], text)
            if result["verdict"] in ("warning", "stop"):
                self.assertTrue(result["cost"] and result["fix"], result)
        self.assertEqual(self.files(), [])

    def test_names_a_device_that_is_not_there_and_exits_2(self):
        done = self.ended(2, "check --device cuda --format json", ranks=2)
        stops = [result for result in json.loads(done.stdout)["results"]
                 if result["verdict"] == "stop"]
        self.assertEqual([stop["name"] for stop in stops], ["device"])

    def test_a_stop_passes_that_is_allowed_by_name(self):
        how = {"ranks": 2, "by": ["env", "OMPI_COMM_WORLD_SIZE=4"]}  # more than MPI counts
        done = self.isoscale(*RUN, **how)
        self.assert_refused(done, "preflight stops the run")
        self.assertIn("stop world-size", done.stderr)
        self.assertEqual(self.files(), [])
        self.run_ok(*RUN, "--allow world-size", **how)
        allowed = [result["name"] for result in self.run_of()["preflight"]["results"]
                   if result["allowed"]]
        self.assertEqual(allowed, ["world-size"])

    def test_ranks_with_other_commands_do_not_wait_for_each_other(self):
        for other in (["run", "--workload", "dp", "--output", "run.h5"], ["check", "--allow", "x"]):
            self.assert_refused(self.isoscale("check : -np 1", self.program, *other, ranks=1),
                                "one command")
        self.assertEqual(self.files(), [])

    def test_stands_before_every_run_and_in_its_report(self):
        done = self.run_ok(*RUN, ranks=2, OMP_NUM_THREADS="7")
        warned = [line for line in done.stderr.splitlines() if line.startswith("preflight:")]
        self.assertTrue(any("OMP_NUM_THREADS=7" in line for line in warned), done.stderr)
        self.assertIn("OMP_NUM_THREADS=7", self.run_ok("report run.h5 --detail").stdout)
        stored = self.run_of()
        self.assertIn("OMP_NUM_THREADS=7", str(stored["preflight"]["results"]))
        self.assertEqual(stored["preflight"]["facts"]["device"], "host")
