# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Looking at runs: traces for Perfetto, injected faults, NVTX ranges.

Environment, beside that of device_test: ISOSCALE_NVTX_RECORDER = a tool that writes down what NVTX
is told; empty where it is not built.
"""

import collections
import json
import os
import re

import h5py

import device_test
import harness

RUN = [*"run --workload hybrid --max-time 0.3s --quiet".split(), *harness.LITTLE]


class Traces(harness.Case):
    def trace(self, *arguments):
        done = self.run_ok("report run.h5 --trace t.json", *arguments)
        return json.loads(self.read("t.json"))["traceEvents"], done

    def events(self, events, kind):
        return [event for event in events if event["ph"] == kind]

    def check_tracks(self, events):
        """In order, and one at a time on each track."""
        tracks = collections.defaultdict(list)
        for event in self.events(events, "X"):
            tracks[event["pid"], event["tid"]].append(event)
        for track in tracks.values():
            for before, after in zip(track, track[1:]):
                # Times are decimal: their sum is exact to less than a nanosecond.
                self.assertLess(before["ts"] + before["dur"], after["ts"] + 0.0005)
        return tracks

    def check_flows(self, events, error):
        """Each arrow has both ends, which lie in intervals, and leads forward."""
        starts = {event["id"]: event for event in self.events(events, "s")}
        ends = {event["id"]: event for event in self.events(events, "f")}
        self.assertEqual(len(starts), len(self.events(events, "s")))
        self.assertEqual(set(starts), set(ends))
        tracks = self.check_tracks(events)
        for flow, start in starts.items():
            self.assertNotEqual(start["pid"], ends[flow]["pid"])
            self.assertLessEqual(start["ts"], ends[flow]["ts"] + error)
            for end in (start, ends[flow]):
                around = [event for event in tracks[end["pid"], end["tid"]]
                          if event["ts"] <= end["ts"] <= event["ts"] + event["dur"]]
                self.assertIn("exchange", {event["name"].split()[0] for event in around})
        return starts


class Exported(Traces):
    """report --trace."""

    def test_tracks_and_arrows(self):
        self.measured("run.h5", *RUN, "--ranks 4 --mesh tp=2,pp=2 --trace-steps 2", ranks=4)
        events, done = self.trace("--format json")
        self.assertEqual(json.loads(done.stdout)["runs"][0]["points"][0]["ranks"], 4)
        self.assertRegex(done.stderr, r"wrote t\.json .*\d+ steps")
        with h5py.File(self.path("run.h5"), "r") as file:
            error = 1e6 * max(file["points/0000/clock_error"][()])
        tracks = self.check_tracks(events)
        self.assertEqual(len({process for process, _ in tracks}), 4)
        steps = [event for event in self.events(events, "X") if event["cat"] == "step"]
        self.assertEqual(len(steps), 4 * 2)
        self.assertGreater(len(self.check_flows(events, error)), 0)
        names = [event["args"]["name"] for event in self.events(events, "M")
                 if event["name"] == "process_name"]
        self.assertEqual(len(names), 4)
        self.assertRegex(names[0], r"hybrid tiny on 4 \(.*\): rank 0 \(.+, .+\)")
        for name, keys in (("gemm", {"phase", "layer", "microbatch", "flop"}),
                           ("all_reduce", {"axis", "bytes"})):
            event = next(at for at in self.events(events, "X") if at["name"].startswith(name))
            self.assertLessEqual(keys, set(event["args"]))

    def test_where_it_may_not_write_it_leaves_all_as_it_is(self):
        self.measured("run.h5", *RUN, "--trace-steps 1")
        self.write("mine.json", "mine")
        for needles, *options in ((["mine.json", "--force"], "mine.json"),
                                  (["--trace", "missing/t.json"], "missing/t.json"),
                                  (["--trace", "."], "."),
                                  (["--html", "--trace"], "t.json", "--html", "./t.json")):
            with self.subTest(options=options):
                self.assert_refused(self.isoscale("report run.h5 --trace", *options), *needles)
                self.assertEqual(self.files(), ["mine.json", "run.h5"])
        self.assertEqual(self.read("mine.json"), "mine")
        self.write("t.json", "mine")
        self.assertGreater(len(self.trace("--force")[0]), 0)


class Injected(Traces):
    """--inject."""

    def test_report_and_traces_show_a_slow_rank(self):
        # Until all steps that are wanted are traced, however busy the machine is.
        long = ["60s" if argument == "0.3s" else argument for argument in RUN]
        [point] = self.points_of(*long, "--precision 99% --ranks 2 --inject slow-rank=1:3 --inject "
                                 "clock=1:5ms:20ppm --trace-steps 9", ranks=2)
        self.assertIn("injected", point["labels"])
        self.assertTrue(point["verified"])
        events, _ = self.trace()
        shortest = collections.defaultdict(dict)  # of each op, by process: the machine may be busy
        sums = collections.defaultdict(list)
        for event in self.events(events, "X"):
            if event["name"].startswith("gemm"):
                times = shortest[event["pid"]]
                op = event["args"]["op"]
                times[op] = min(event["dur"], times.get(op, event["dur"]))
            elif event["name"].startswith("all_reduce"):
                sums[event["pid"]].append(event)
        times = [sum(times.values()) for _, times in sorted(shortest.items())]
        self.assertGreater(times[1], 2 * times[0])
        with h5py.File(self.path("run.h5"), "r") as file:
            offsets, drifts, errors = (file[f"points/0000/clock_{name}"][()]
                                       for name in ("offset", "drift", "error"))
        self.assertEqual((offsets[0], drifts[0]), (0, 0))
        # Between the fault's begin and the loop's lie round trips: a second of 20 ppm at most.
        self.assertGreater(errors[1], 0)
        self.assertAlmostEqual(offsets[1], 5e-3, delta=errors[1] + 20e-6)
        # All clocks here are one: a sum ends on no rank before it has begun on the other.
        self.check_tracks(events)
        first, second = sums.values()
        self.assertEqual(len(first), len(second))
        for one, other in [*zip(first, second), *zip(second, first)]:
            self.assertLess(one["ts"], other["ts"] + other["dur"] + 1e6 * errors[1])

    def test_a_slow_link_delays_neither_end_for_ever(self):
        # Were waiting lengthened too, each would answer the other's delay with twice its own.
        for point in self.points_of("run --workload dp,pp --max-time 0.3s --quiet --ranks 2 "
                                    "--inject slow-link=0-1:3", ranks=2):
            self.assertTrue(point["verified"])
            self.assertEqual(point["injections"], ["slow-link=0-1:3"])

    def test_delayed_products_last_their_flop_over_the_rate(self):
        rate = 20e9  # no sleep ends early, and products on this machine are faster by far
        trained, multiplied = self.points_of(
            "run --workload dp,gemm --max-time 0.3s --quiet --ranks 1 --set shapes=256x256x256 "
            "--inject delay=20GFLOP/s")
        for point in trained, multiplied:
            self.assertIn("injected", point["labels"])
        self.assertTrue(trained["verified"])  # its twin multiplies
        self.assertGreaterEqual(trained["step_time"]["min"], trained["flop_per_step"] / rate)
        for row in multiplied["rows"]:
            self.assertGreaterEqual(row["time"]["min"], 2 * 256 ** 3 / rate)


class InjectedOnGpus(device_test.Case):
    def test_gpus_are_not_slowed(self):
        self.install("ISOSCALE_PLUGIN_STANDIN")
        for device in ("auto", "cuda"):
            with self.subTest(device=device):
                self.assert_refused(
                    self.isoscale("run --workload dp --inject jitter=5% --device", device,
                                  *device_test.QUICK),
                    "--inject jitter=5%", "only the host", "--device host")
        self.assertEqual(self.files(), ["small.toml"])


class Ranges(device_test.Case):
    """--nvtx, as a profiler sees it."""

    def record(self, *arguments):
        """The ranges as (depth, name), in the order they begin."""
        self.install("ISOSCALE_PLUGIN_STANDIN")
        recorder = os.environ.get("ISOSCALE_NVTX_RECORDER", "")
        if not recorder:
            self.skipTest("the recorder is not built")
        self.run_ok("run --device cuda --workload dp", *device_test.QUICK, "--output run.h5",
                    *arguments, NVTX_INJECTION64_PATH=recorder, NVTX_RECORD=self.path("nvtx.txt"))
        if not os.path.exists(self.path("nvtx.txt")):
            return []
        ranges, depth = [], 0
        with open(self.path("nvtx.txt"), encoding="utf-8") as file:
            for line in file:
                if line.startswith("push "):
                    ranges.append((depth, line[5:].strip()))
                    depth += 1
                else:
                    depth -= 1
                self.assertGreaterEqual(depth, 0)
        self.assertEqual(depth, 0)
        return ranges

    def test_steps_hold_phases_and_phases_ops(self):
        ranges = self.record("--nvtx")
        self.assertIn((0, "step 3"), ranges)
        self.assertIn((1, "forward"), ranges)
        self.assertIn((1, "backward"), ranges)
        self.assertIn((2, "gemm layer 3 mb 1"), ranges)
        for depth, name in ranges:
            if re.match(r"step \d+$", name):
                self.assertEqual(depth, 0)

    def test_without_the_option_nothing_is_told(self):
        self.assertEqual(self.record(), [])
