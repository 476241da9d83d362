# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""The index of many runs, and files of older schemas.

Usage: index_test.py ISOSCALE MAKE_SAMPLE_RUN; exit 77 where h5py is missing.
"""
import csv
import io
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py
except ImportError as missing:
    print(f"skipped: {missing} (python3-h5py)")
    sys.exit(77)

PROGRAM, SAMPLE = sys.argv[1:3]

def empty_rows(group):
    """Takes the rows out of a point, as a workload that plays steps has none."""
    for name, member in list(group.items()):
        if isinstance(member, h5py.Group):
            for key in list(member):
                del member[key]
            continue
        kept, attributes = member[:1 if name.endswith("_begin") else 0], dict(member.attrs)
        del group[name]
        group.create_dataset(name, data=kept)
        for key, value in attributes.items():
            group[name].attrs.create(key, value, dtype=h5py.string_dtype())


def on_one_core():
    """Bound so, the program reads all summaries on one thread."""
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="isoscale-index-")
        self.addCleanup(scratch.cleanup)
        self.dir = scratch.name
        subprocess.run([SAMPLE, self.path("sample.h5")], check=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def make(self, name, run_id, created="2026-01-02T03:04:00Z", faster=1.0, host=None):
        """A copy of the sample as a run of its own. Its part stays that of another run."""
        shutil.copy(self.path("sample.h5"), self.path(name))
        with h5py.File(self.path(name), "r+") as run:
            run.attrs["id"] = run_id
            run.attrs["created"] = created
            del run["points/0001"]
            del run["points/0000/labels"]
            run["points/0000"].create_dataset("labels", shape=(0,), dtype="S1")
            empty_rows(run["points/0000/rows"])
            run["points/0000/step_times"][...] /= faster
            if host:
                hosts = run["ranks/host"]
                hosts[...] = [host.encode()[:hosts.dtype.itemsize]] * len(hosts)
        return name

    def report(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, "report", *arguments], cwd=self.dir, capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def json(self, *arguments):
        return json.loads(self.report(*arguments, "--format", "json").stdout)


class Index(Case):
    def test_it_says_what_a_report_of_the_file_says(self):
        self.make("one.h5", "one")
        whole = self.json("one.h5")
        alone = self.json("--index", "one.h5")
        self.assertEqual(alone["index"], whole["index"])
        self.assertEqual(alone["machines"], whole["machines"])
        self.assertEqual((whole["index_only"], alone["index_only"]), (False, True))
        self.assertNotIn("points", alone["runs"][0])
        points = {point["index"]: point for point in whole["runs"][0]["points"]}
        hybrid = next(of for of in alone["index"][0]["experiments"] if of["workload"] == "hybrid")
        self.assertEqual(hybrid["throughput"]["unit"], "tokens/s")
        self.assertEqual(hybrid["throughput"]["value"], points[0]["throughput"]["value"])
        self.assertIsNotNone(hybrid["throughput"]["value"])

    def test_a_stored_summary_says_what_the_whole_file_says(self):
        def without_names(document):
            return [{**run, "file": ""} for run in document["index"]], document["machines"]

        for name in ("copy.h5", "bare.h5"):
            shutil.copy(self.path("sample.h5"), self.path(name))
        with open(self.path("bare.h5"), "r+b") as file:  # without its summary, as HDF5 would leave it
            end = file.seek(-256, os.SEEK_END)
            file.truncate(end - int(re.search(rb"\nbytes (\d+)", file.read()).group(1)))
        part = self.path("sample.part0001.h5")
        self.assertTrue(os.path.exists(part))
        stored, bare = (without_names(self.json("--index", name)) for name in ("copy.h5", "bare.h5"))
        self.assertEqual(stored, bare)
        self.assertEqual(stored, without_names(self.json("sample.h5")))
        os.remove(part)
        self.assertIn("sample.part0001.h5", self.report("--index", "copy.h5", code=2).stderr)

    def test_throughput_moves_over_time_by_what_was_measured(self):
        files = [self.make("new.h5", "b", "2026-03-01T00:00:00Z", faster=1.5),
                 self.make("old.h5", "a", "2026-01-01T00:00:00Z"),
                 self.make("middle.h5", "c", "2026-02-01T00:00:00Z", faster=1.25)]
        machine, = self.json("--index", *files)["machines"]
        self.assertEqual(machine["runs"], ["a", "c", "b"])
        trend, = machine["throughput_over_time"]
        self.assertEqual(trend["runs"], ["a", "c", "b"])
        self.assertAlmostEqual(trend["last"] / trend["first"], 1.5)
        self.assertAlmostEqual(trend["median"] / trend["first"], 1.25)
        self.assertAlmostEqual(trend["spread"], 0.5 / 1.25)
        text = self.report("--index", *files).stdout
        self.assertLess(text.index("old.h5"), text.index("middle.h5"))
        self.assertIn("3 runs on 1 machine, 2026-01-01 to 2026-03-01", text)
        self.assertIn("throughput over time", text)

    def test_other_hosts_are_another_machine(self):
        files = [self.make("a.h5", "a"), self.make("b.h5", "b", host="gpu-7")]
        self.assertEqual(len(self.json("--index", *files)["machines"]), 2)

    def test_more_than_32_files_are_an_index(self):
        files = [self.make(f"{i}.h5", f"run{i}") for i in range(33)]
        done = self.report(*files)
        self.assertIn("33 runs on 1 machine", done.stdout)
        self.assertIn("Of more than 32 files only the index is shown", done.stdout)
        self.assertNotIn("over launches", done.stdout)
        self.assertIn("33 runs on 1 machine", self.report(*files, "--format", "markdown").stdout)
        self.assertTrue(self.json(*files)["index_only"])
        rows = list(csv.DictReader(io.StringIO(self.report(*files, "--format", "csv").stdout)))
        self.assertEqual(len({row["run"] for row in rows}), 33)
        few = self.json(*files[:32])
        self.assertEqual((few["index_only"], len(few["index"])), (False, 32))
        self.assertIn("points", few["runs"][0])

    def test_it_says_the_same_on_one_core_and_on_many(self):
        files = [self.make(f"{i}.h5", f"run{i}", faster=1 + i / 100) for i in range(48)]
        with open(self.path("7.h5"), "r+b") as file:
            file.truncate(5000)
        for form in ("text", "json", "csv", "markdown"):
            with self.subTest(format=form):
                arguments = [PROGRAM, "report", "--index", *files, "--format", form]
                one, many = (subprocess.run(arguments, cwd=self.dir, capture_output=True, text=True,
                                            timeout=120, check=True, preexec_fn=bound)
                             for bound in (on_one_core, None))
                self.assertEqual((one.stdout, one.stderr), (many.stdout, many.stderr))
                self.assertIn("not read: 7.h5", many.stderr)
                self.assertIn("run47" if form in ("json", "csv") else "47 runs", many.stdout)

    def test_what_needs_more_than_an_index_is_refused(self):
        for arguments in (["--format", "nccl-tests"], ["--trace", "t.json"],
                          ["--baseline", "node"]):
            with self.subTest(arguments=arguments):
                done = self.report("--index", "sample.h5", *arguments, code=2)
                self.assertIn("--index", done.stderr)
                self.assertIn(arguments[0], done.stderr)
                self.assertEqual(os.path.exists(self.path(arguments[1])), False)

    def test_copies_count_once_and_the_fullest_is_kept(self):
        self.make("full.h5", "same")
        shutil.copy(self.path("full.h5"), self.path("less.h5"))
        with h5py.File(self.path("less.h5"), "r+") as run:
            del run["points/0000"]
        done = self.report("--index", "less.h5", "full.h5", "--format", "json")
        document = json.loads(done.stdout)
        self.assertEqual([run["file"] for run in document["index"]], ["full.h5"])
        self.assertEqual(len(document["warnings"]), 1)
        self.assertIn("less.h5 holds run same", done.stderr)

    def test_a_file_that_cannot_be_read_is_not_the_end(self):
        self.make("good.h5", "good")
        with open(self.path("bad.h5"), "wb") as file:
            file.write(b"\x89HDF\r\n\x1a\n and no more")
        self.make("newer.h5", "newer")
        with h5py.File(self.path("newer.h5"), "r+") as run:
            run.attrs["schema_version"] = "2.0"
        for how in (["--index"], []):
            done = self.report(*how, "bad.h5", "good.h5", "newer.h5", "--format", "json")
            document = json.loads(done.stdout)
            self.assertEqual([run["id"] for run in document["index"]], ["good"])
            self.assertEqual([at["file"] for at in document["unreadable"]], ["bad.h5", "newer.h5"])
            self.assertIn("use a newer Isoscale", document["unreadable"][1]["reason"])
            self.assertIn("bad.h5", done.stderr)
            self.assertIn("not read: newer.h5",
                          self.report(*how, "bad.h5", "good.h5", "newer.h5").stdout)
        self.report("--index", "bad.h5", code=2)
        self.assertIn("none of the 2 files", self.report("bad.h5", "newer.h5", code=2).stderr)


class OlderSchemas(Case):
    def test_each_has_the_same_index_whole_and_as_a_summary(self):
        """tests/stored has the numbers of these files."""
        stored = sorted(pathlib.Path(__file__).parent.glob("../stored/schema-1.*.h5.xz"))
        self.assertGreater(len(stored), 5)
        with_throughput = 0
        for packed in stored:
            with self.subTest(packed.stem):
                pathlib.Path(self.path(packed.stem)).write_bytes(lzma.decompress(packed.read_bytes()))
                index = self.json("--index", packed.stem)["index"]
                self.assertEqual(self.json(packed.stem)["index"], index)
                self.assertTrue(index[0]["experiments"])
                with_throughput += any(at["throughput"]["value"] for at in index[0]["experiments"])
        self.assertEqual(with_throughput, len(stored) - 1)  # the points of schema-1.4 are made up

    def test_what_an_own_version_must_have_is_missed(self):
        name = self.make("new.h5", "one")
        with h5py.File(self.path(name), "r+") as run:
            del run["points/0000"].attrs["looks_planned"]
        for how in ([], ["--index"]):
            self.assertIn("looks_planned", self.report(*how, name, code=2).stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
