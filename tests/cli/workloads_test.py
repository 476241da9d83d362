# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Workloads tiles, infer and serve, and --soak, on the host: structure and counts, no times."""

import harness

SMALL = "--set image=32 --set channels=8 --set layers=3 --set batch=2".split()
SOAK = ("run --workload dp --model tiny --ranks 3 --max-time 0.5s --precision 20% --set batch=6 "
        "--set microbatch=1 --output run.h5").split()


class Tiles(harness.Case):
    def test_every_rank_count_is_measured_and_verified(self):
        points = self.points_of("run --device host --workload tiles --max-time 0.3s --ranks all",
                                *SMALL, ranks=4)
        self.assertEqual([(p["ranks"], p["status"]) for p in points],
                         [(1, "ok"), (2, "ok"), (3, "skipped"), (4, "ok")])
        self.assertIn("32", points[2]["reason"])  # rows do not divide by 3
        measured = [points[0], points[1], points[3]]
        self.assert_verified(*measured)
        self.assertEqual([(p["mesh"]["cp"], p["mesh"]["tp"]) for p in measured],
                         [(1, 1), (2, 1), (2, 2)])
        for point in measured:
            self.assertEqual((point["model"], point["throughput"]["unit"]), ("none", "pixels/s"))
            self.assertAlmostEqual(point["throughput"]["value"] * point["step_time"]["median"],
                                   32 * 32 * 2)  # two images
            self.assertIsNotNone(point["efficiency"])
        text = self.run_ok("report run.h5 --detail").stdout
        self.assert_shown(text, "tiles", "pixels/s", "verified")


class Infer(harness.Case):
    def measured(self, *arguments, ranks=4):
        return self.points_of("run --device host --workload infer --model tiny --max-time 1s",
                              *arguments, ranks=ranks)

    def test_a_mesh_has_a_row_for_each_batch_size(self):
        [point] = self.measured("--mesh", "tp=2,dp=2", "--ranks", "4", "--set", "batch=1,2,8",
                                "--set", "output=6")
        self.assert_verified(point)
        self.assertEqual([row["batch"] for row in point["rows"]], [1, 2, 8])
        for row in point["rows"]:
            for key in ("ttft", "tpot"):
                self.assertLessEqual({"median", "lower", "upper"}, set(row[key]))
                self.assertGreater(row[key]["median"], 0)
            tokens = 2 * row["batch"] / row["tpot"]["median"]
            self.assertAlmostEqual(row["tokens_per_second"] / tokens, 1)
            self.assertAlmostEqual(row["tokens_per_second_per_rank"] * 4 / tokens, 1)
            # keys and values, 8 layers, 8 of 16 heads of 4, 16 + 6 positions, f32
            # 16 + 6 tokens in whole blocks of 16
            self.assertEqual(row["cache_bytes"], 2 * 8 * row["batch"] * 8 * 4 * 32 * 4)
        # The definition of the frontier, from the numbers of the rows alone.
        at = [(row["tpot"]["median"], row["tokens_per_second_per_rank"]) for row in point["rows"]]
        for row, (time, rate) in zip(point["rows"], at):
            beaten = any(t <= time and r >= rate and (t, r) != (time, rate) for t, r in at)
            self.assertEqual(row["on_frontier"], not beaten, point["rows"])

    def test_a_single_rank_decodes_without_a_launcher(self):
        [point] = self.measured("--set", "batch=2", "--set", "vocabulary=off", ranks=None)
        row = point["rows"][0]
        self.assertEqual((row["decode_tokens"], row["decode_position"]), (16, 16 + (64 - 16) // 2))


class Serve(harness.Case):
    def measured(self, *settings, ranks=2, mesh=None, options=()):
        """The only point of a run, and its rows by part."""
        arguments = [word for setting in ("output=4", *settings) for word in ("--set", setting)]
        [point] = self.points_of("run --device host --workload serve --model tiny --max-time 2s",
                                 "--ranks", str(ranks or 1), *(["--mesh", mesh] if mesh else []),
                                 *arguments, *options, ranks=ranks)
        self.assert_verified(point)
        return {part: [row for row in point["rows"] if row["part"] == part]
                for part in ("rate", "replica", "request")}

    def check_trial(self, parts, requests, replicas, most):
        """Every request once, in order of time, and the sums of replicas are those of requests."""
        [rate], asked = parts["rate"], parts["request"]
        self.assertEqual((rate["requests"], rate["replicas"]), (requests, replicas))
        self.assertEqual([row["request"] for row in asked], list(range(requests)))
        self.assertEqual(sorted(asked, key=lambda row: row["arrival"]), asked)
        batches = {}
        for row in asked:
            times = [row[key] for key in ("arrival", "dispatched", "start", "first", "end")]
            # Clocks of two ranks are aligned to within an error.
            self.assertTrue(all(b > a - 1e-3 for a, b in zip(times, times[1:])), row)
            self.assertIn(row["replica"], range(replicas))
            self.assertIn(row["filled"], range(1, most + 1))
            batches.setdefault((row["replica"], row["batch"]), []).append(row)
        for batch in batches.values():
            self.assertTrue(all(row["filled"] == len(batch) for row in batch))
        for use in parts["replica"]:
            at = use["replica"]
            self.assertEqual(use["requests"], sum(row["replica"] == at for row in asked))
            self.assertEqual(use["batches"], sum(key[0] == at for key in batches))
        latencies = sorted(row["end"] - row["arrival"] for row in asked)
        for key, latency in (("max", latencies[-1]), ("median",
                                                      latencies[(requests + 1) // 2 - 1])):
            self.assertAlmostEqual(rate["latency"][key], latency, places=9)
        return rate, asked

    def test_each_request_is_answered_once_at_a_given_rate(self):
        rate, asked = self.check_trial(self.measured("requests=50", "rate=100"), 50, 2, 8)
        self.assertIsNone(rate["latency"]["p99"])  # of 50 requests there is none
        self.assertIsNotNone(rate["latency"]["p90"])
        self.assertEqual([(row["replica"], row["tokens"]) for row in asked],
                         [(i % 2, 4) for i in range(50)])
        self.assertEqual(rate["rate_arrived"], rate["offered"])
        text = self.run_ok("report run.h5 --detail").stdout
        self.assert_shown(text, "arrived/s", "utilisation", "imbalance", "saturated",
                          f"{rate['rate_arrived']:.4g} requests/s arrived")
        markdown = self.run_ok("report run.h5 --format markdown").stdout
        self.assertIn("| achieved/s", markdown)
        lines = self.csv_of("report run.h5")
        self.assertEqual([line["part"] for line in lines],
                         ["rate", "replica", "replica", *["request"] * 50])
        self.assertEqual(float(lines[0]["latency_max"]), rate["latency"]["max"])
        self.run_ok("report run.h5 --html page.html")

    def test_to_wait_for_requests_is_no_hang(self):
        # Two bursts, longer apart than anything may stand still.
        parts = self.measured("requests=4", "rate=0.4", "arrivals=bursty", "burst=2",
                              mesh="tp=2,dp=2", ranks=4, options=("--timeout", "2s"))
        arrivals = [row["arrival"] for row in parts["request"]]
        self.assertGreater(max(b - a for a, b in zip(arrivals, arrivals[1:])), 2.5)

    def test_replicas_of_several_ranks_follow_their_leader(self):
        for mesh, dispatch in (("tp=2,dp=2", "least-loaded"), ("pp=2,dp=2", "shortest-queue")):
            with self.subTest(mesh):
                parts = self.measured("requests=24", "rate=100", f"dispatch={dispatch}",
                                      "arrivals=bursty", "burst=6", "max_batch=3",
                                      "lengths=uniform", ranks=4, mesh=mesh)
                rate, asked = self.check_trial(parts, 24, 2, 3)
                self.assertEqual(rate["dispatch"], dispatch)
                for i in range(0, 24, 6):
                    self.assertEqual(len({row["arrival"] for row in asked[i:i + 6]}), 1)

    def test_a_search_tries_rates_and_marks_the_highest(self):
        parts = self.measured("requests=40")
        rates = parts["rate"]
        self.assertGreater(len(rates), 0)
        sustained = [row["rate"] for row in rates if not row["saturated"]]
        highest = [max(sustained)] if sustained else []
        self.assertEqual([row["rate"] for row in rates if row["highest"]], highest)
        # The requests that are kept are of one rate.
        kept = {row["rate"] for row in parts["request"]}
        self.assertEqual(kept, set(highest or [rates[-1]["rate"]]))
        self.assertEqual(len(parts["replica"]), 2 * len(rates))


class Soaked(harness.Case):
    """A step replayed bit for bit, and the rank that a flipped bit is found on."""

    def test_replays_that_are_alike_are_counted(self):
        self.run_ok(*SOAK, "--soak 1s", ranks=3)
        soak = self.points_in()[0]["soak"]
        self.assertGreater(soak["replays"], 0)
        self.assertGreaterEqual(soak["seconds"], 1)
        self.assertEqual(soak["differing"], [])
        self.assertRegex(self.run_ok("report run.h5 --detail").stdout,
                         r"soak +3 ranks: \d+ replays .*the same bits")

    def test_flipped_bits_fail_the_point_and_name_the_rank(self):
        self.ended(1, *SOAK, "--soak 2s --inject flip=2", ranks=3)
        [point] = self.points_in()
        self.assertEqual((point["status"], point["verified"]), ("failed", False))
        self.assertRegex(point["reason"],
                         r"soak: \d+ of \d+ .* replay 2 rank 2 (computed|received)")
        self.assertEqual(len(point["soak"]["differing"]), point["soak"]["replays"] // 2)
        for found in point["soak"]["differing"]:
            self.assertRegex(found, r"^replay \d+: rank 2 ")

    def test_bits_are_not_flipped_where_nobody_looks(self):
        self.assert_refused(self.isoscale(*SOAK, "--inject flip=2"), "--soak")
