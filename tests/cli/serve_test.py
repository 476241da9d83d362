# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Workload serve from the command line, on the host: structure and counts, no times."""

import harness


class Serve(harness.Case):
    def measured(self, *arguments, ranks=2):
        """The only point of a run; the file stays as run.h5."""
        self.run_ok("run", "--device", "host", "--workload", "serve", "--model", "tiny",
                    "--max-time", "2s", "--output", "run.h5", "--set", "output=4", *arguments,
                    ranks=ranks)
        run = self.run_of()
        (point,) = run["points"]
        self.assertEqual(point["status"], "ok", point["reason"])
        self.assertTrue(point["verified"])
        return point

    def parts(self, point, part):
        return [row for row in point["rows"] if row["part"] == part]

    def check_trial(self, point, requests, replicas, most):
        """Every request once, in order of time, and the sums of replicas are those of requests."""
        (rate,) = self.parts(point, "rate")
        self.assertEqual(rate["requests"], requests)
        self.assertEqual(rate["replicas"], replicas)
        asked = self.parts(point, "request")
        self.assertEqual([row["request"] for row in asked], list(range(requests)))
        self.assertEqual(sorted(asked, key=lambda row: row["arrival"]), asked)
        for row in asked:
            times = [row[key] for key in ("arrival", "dispatched", "start", "first", "end")]
            # Clocks of two ranks are aligned to within an error.
            self.assertTrue(all(b > a - 1e-3 for a, b in zip(times, times[1:])), row)
            self.assertIn(row["replica"], range(replicas))
            self.assertIn(row["filled"], range(1, most + 1))
        batches = {}
        for row in asked:
            batches.setdefault((row["replica"], row["batch"]), []).append(row)
        for batch in batches.values():
            self.assertTrue(all(row["filled"] == len(batch) for row in batch))
        for use in self.parts(point, "replica"):
            at = use["replica"]
            self.assertEqual(use["requests"], sum(row["replica"] == at for row in asked))
            self.assertEqual(use["batches"], sum(key[0] == at for key in batches))
        latencies = sorted(row["end"] - row["arrival"] for row in asked)
        self.assertAlmostEqual(rate["latency"]["max"], latencies[-1], places=9)
        self.assertAlmostEqual(rate["latency"]["median"], latencies[(requests + 1) // 2 - 1],
                               places=9)
        return rate, asked

    def test_each_request_is_answered_once_at_a_given_rate(self):
        point = self.measured("--ranks", "2", "--set", "requests=50", "--set", "rate=100")
        rate, asked = self.check_trial(point, 50, 2, 8)
        self.assertIsNone(rate["latency"]["p99"])  # of 50 requests there is none
        self.assertIsNotNone(rate["latency"]["p90"])
        self.assertEqual([row["replica"] for row in asked], [i % 2 for i in range(50)])
        self.assertTrue(all(row["tokens"] == 4 for row in asked))
        text = self.run_ok("report", "run.h5", "--detail").stdout
        self.assertEqual(rate["rate_arrived"], rate["offered"])
        for word in ("arrived/s", "utilisation", "imbalance", "saturated",
                     f"replicas where {rate['rate_arrived']:.4g} requests/s arrived"):
            self.assertIn(word, text)
        self.assertIn("| achieved/s", self.run_ok("report", "run.h5", "--format",
                                                  "markdown").stdout)
        lines = self.csv_of("report", "run.h5")
        self.assertEqual([line["part"] for line in lines],
                         ["rate", "replica", "replica", *["request"] * 50])
        self.assertEqual(float(lines[0]["latency_max"]), rate["latency"]["max"])
        self.run_ok("report", "run.h5", "--html", "page.html")

    def test_to_wait_for_requests_is_no_hang(self):
        # Two bursts, longer apart than anything may stand still.
        for ranks, mesh in (2, "dp=2"), (2, "tp=2"):
            with self.subTest(mesh):
                point = self.measured(
                    "--ranks", "2", "--mesh", mesh, "--force", "--timeout", "2s", "--set", "requests=4",
                    "--set", "rate=0.4", "--set", "arrivals=bursty", "--set", "burst=2", ranks=ranks)
                arrivals = [row["arrival"] for row in self.parts(point, "request")]
                self.assertGreater(max(b - a for a, b in zip(arrivals, arrivals[1:])), 2.5)

    def test_arrivals_are_those_of_the_seed(self):
        def arrivals(*arguments):
            point = self.measured("--ranks", "1", "--force", "--set", "requests=30", "--set",
                                  "rate=200", *arguments, ranks=None)
            return [(row["arrival"], row["tokens"]) for row in self.parts(point, "request")]
        first = arrivals("--set", "lengths=uniform")
        self.assertEqual(first, arrivals("--set", "lengths=uniform"))
        self.assertNotEqual(first, arrivals("--set", "lengths=uniform", "--seed", "2"))
        self.assertEqual({tokens for _, tokens in first}, {1, 2, 3, 4})

    def test_replicas_of_several_ranks_follow_their_leader(self):
        for mesh, dispatch in (("tp=2,dp=2", "least-loaded"), ("pp=2,dp=2", "shortest-queue")):
            with self.subTest(mesh):
                point = self.measured(
                    "--ranks", "4", "--mesh", mesh, "--force", "--set", "requests=24", "--set",
                    "rate=100", "--set", f"dispatch={dispatch}", "--set", "arrivals=bursty",
                    "--set", "burst=6", "--set", "max_batch=3", "--set", "lengths=uniform", ranks=4)
                rate, asked = self.check_trial(point, 24, 2, 3)
                self.assertEqual(rate["dispatch"], dispatch)
                for i in range(0, 24, 6):
                    self.assertEqual(len({row["arrival"] for row in asked[i:i + 6]}), 1)

    def test_a_search_tries_rates_and_marks_the_highest(self):
        point = self.measured("--ranks", "2", "--set", "requests=40")
        rates = self.parts(point, "rate")
        self.assertGreater(len(rates), 0)
        highest = [row for row in rates if row["highest"]]
        sustained = [row["rate"] for row in rates if not row["saturated"]]
        self.assertEqual([row["rate"] for row in highest], [max(sustained)] if sustained else [])
        # The requests that are kept are of one rate.
        kept = {row["rate"] for row in self.parts(point, "request")}
        self.assertEqual(kept, {max(sustained) if sustained else rates[-1]["rate"]})
        self.assertEqual(len(self.parts(point, "replica")), 2 * len(rates))
