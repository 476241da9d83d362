# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Drawn requests of batch, microbatch and mesh, for every workload with steps: each is measured
and verified, or refused, and then what the refusal names as the nearest that works is measured and
verified. Refusals that name nothing are printed. ISOSCALE_SEED draws others."""

import os
import random
import re

import harness

MODEL = 'layers = 4\nhidden = 32\nheads = 4\nkv_heads = 2\nsequence = 16\nvocabulary = 64\n'
AXES = {"dp": ["dp"], "tp": ["tp"], "pp": ["pp"], "cp": ["cp"], "ep": ["ep"],
        "hybrid": ["dp", "tp", "pp", "cp"], "tiles": ["dp", "tp", "cp"],
        "infer": ["tp", "pp", "dp"]}
SEED = int(os.environ.get("ISOSCALE_SEED", "20260106"))


def drawn(random_, workload):
    """Ranks, a mesh or "", and the options of a request that need not work."""
    axes, options = AXES[workload], {}
    if workload == "infer":
        options["batch"] = random_.randint(1, 9)
    else:
        names = ["batch"] if workload == "tiles" else ["batch", "microbatch", "microbatches"]
        for name in random_.sample(names, random_.randint(0, min(2, len(names)))):
            options[name] = random_.randint(1, 24 if name == "batch" else 6)
    mesh = {axis: random_.randint(1, 4) for axis in axes if random_.random() < 0.4}
    return random_.randint(1, 4), mesh, options


def suggestions(message):
    """What a refusal names: (workload or None, mesh or None, {option: value}) of each."""
    found = [(None, mesh, {}) for mesh in re.findall(
        r"nearest mesh that works on \d+ ranks? is ([a-z]+=\d+(?:,[a-z]+=\d+)*)", message)]
    found += [(workload, mesh, {}) for workload, mesh in re.findall(
        r"--workload (\w+) --mesh ([a-z]+=\d+(?:,[a-z]+=\d+)*)", message)]
    for name, numbers in re.findall(r"nearest that work are (\w+)=(\d+(?:(?:, | and )\d+)*)",
                                    message):
        found += [(None, None, {name: int(n)}) for n in re.findall(r"\d+", numbers)]
    for name, number in re.findall(r"nearest (\w+) that works is (\d+)", message):
        found.append((None, None, {name: int(number)}))
    return found


class Drawn(harness.Case):
    def attempt(self, workload, ranks, mesh, options, name):
        arguments = ["run", "--device", "host", "--workload", workload, "--max-time", "1s",
                     "--ranks", str(ranks), "--model", self.model, "--output", name]
        if mesh:
            arguments += ["--mesh", ",".join(f"{axis}={n}" for axis, n in mesh.items())]
        for option, value in options.items():
            arguments += ["--set", f"{option}={value}"]
        return self.isoscale(*arguments, ranks=ranks), " ".join(arguments)

    def assert_measured(self, done, what, name):
        self.assertEqual(done.returncode, 0, f"{what}\n{done.stderr}")
        points = self.run_of(name)["points"]
        self.assertTrue(points, what)
        for point in points:
            self.assertEqual(point["status"], "ok", f"{what}\n{point}")
            self.assertTrue(point["verified"], f"{what}\n{point}")

    def check_draws(self, count):
        self.model = self.path("small.toml")
        self.write("small.toml", MODEL)
        print(f"ISOSCALE_SEED={SEED}")
        random_, measured, followed, without = random.Random(SEED), 0, 0, []
        workloads = sorted(AXES)
        for i in range(count):
            workload = workloads[i % len(workloads)]
            ranks, mesh, options = drawn(random_, workload)
            done, what = self.attempt(workload, ranks, mesh, options, f"{i}.h5")
            with self.subTest(what):
                if done.returncode == 0:
                    self.assert_measured(done, what, f"{i}.h5")
                    measured += 1
                    continue
                self.assertEqual(done.returncode, 2, f"{what}\n{done.stderr}")
                suggested = suggestions(done.stderr)
                if not suggested:
                    without += [line for line in done.stderr.splitlines()
                                if line.startswith("isoscale:")]
                for k, (kind, other_mesh, changed) in enumerate(suggested):
                    other = mesh
                    if other_mesh:
                        other = dict(part.split("=") for part in other_mesh.split(","))
                    name = f"{i}-{k}.h5"
                    again, said = self.attempt(kind or workload, ranks, other,
                                               {**options, **changed}, name)
                    self.assert_measured(again, f"{done.stderr}\n{said}", name)
                    followed += 1
        print(f"{count} requests: {measured} measured, {followed} suggestions followed, "
              f"{len(without)} refused without any:", *without, sep="\n  ")
        self.assertGreater(followed, 0)


class Few(Drawn):
    def test_requests_are_measured_and_so_is_what_refusals_suggest(self):
        self.check_draws(6)


class Many(Drawn):
    def test_requests_are_measured_and_so_is_what_refusals_suggest(self):
        self.check_draws(50)
