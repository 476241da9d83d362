# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""make_pages.py FOLDER [--large|--few]: run files of all kinds, and of each the page and the JSON
report.

FOLDER/NAME.html, NAME.json, and pages.json, which lists them by kind; --large: with a rich run as
large as pages get; --few: few pages, of small runs that were simulated. Environment: ISOSCALE,
ISOSCALE_SAMPLE = make_sample_run, ISOSCALE_RICH = make_page_run, ISOSCALE_MPIEXEC = mpiexec with its
flags up to the rank count.
"""

import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

import hostile_run  # noqa: E402
import run_digest  # noqa: E402

PROGRAM = os.environ["ISOSCALE"]
MPIEXEC = shlex.split(os.environ["ISOSCALE_MPIEXEC"])
SHEET = os.path.join(HERE, "..", "..", "analysis", "systems", "a100-hdr.toml")
ASKED = ["--model", "gpt-1.3b", "--set", "batch=256"]
#: Each in a second or two: what is tested is what the page makes of the numbers.
SHORT = ["--max-time", "0.4s", "--quiet"]
LITTLE = ["--set", "batch=8"]
#: Ranks, seed and curves of the rich run: links of every kind, and the rank that gets hot (21); more
#: makes a page that is slow to draw. LARGE: all of its curves, on 64 ranks.
FEW, LARGE = ["32", "1", "4"], []


def let_clocks_change(file):
    """Doubles every second sample of each device: what never changes has no chart, and a virtual
    machine's clock does not."""
    with run_digest.changed(file) as run:
        for point in run["points"].values():
            if "device_series/value" in point:
                values = point["device_series/value"]
                values[...] = values[...] * (1 + numpy.arange(len(values)) % 2)


class Pages:
    def __init__(self, folder, whole):
        self.folder = folder
        self.whole = whole  # each field with each of the hostile texts
        self.listed = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, *command):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300,
                              check=False, errors="replace")
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr[-4000:]}")
        return done.stdout

    def measure(self, name, ranks, *arguments):
        self.call(*MPIEXEC, str(ranks), PROGRAM, "run", *arguments, *SHORT, "--output", name)

    def write(self, name, text, encoding="utf-8"):
        with open(self.path(name), "w", encoding=encoding) as out:
            out.write(text)

    def page(self, name, kind, *command):
        """Writes the page of a command, and its JSON where tests read it."""
        self.call(PROGRAM, *command, "--html", f"{name}.html", "--force")
        if kind != "hostile":
            self.write(f"{name}.json", self.call(PROGRAM, *command, "--format", "json"),
                       encoding="ascii")
        self.listed.append({"name": name, "kind": kind})

    def hostile(self, source, every):
        """Of a run that is there already; `every`: see write_all. A page shows texts whole, so its
        longest are as long as a command or a warning may be."""
        made = hostile_run.write_all(self.path(f"{source}.h5"), self.path(f"of_{source}"), every,
                                     longest=5000)
        for file in made:
            let_clocks_change(file)
            name = f"{source}-{os.path.splitext(os.path.basename(file))[0]}"
            self.page(name, "hostile", "report", os.path.relpath(file, self.folder))

    def measured(self):
        """What this machine is measured for, and predictions of it."""
        # Four ranks, which share cores where there are fewer.
        self.measure("run.h5", 4, *"--workload dp,pp,collectives,gemm,memory --ranks 1,2,4".split(),
                     *LITTLE, *"--set sizes=8KiB..2MiB*16 --set largest=256".split(),
                     *"--set cache=warm --set rotate=1MiB".split())
        self.page("run", "run", "report", "run.h5")
        self.hostile("run", 2 if self.whole else 4)  # it has curves
        # So little time that some batch sizes have too few plays for an interval.
        self.call(*MPIEXEC, "2", PROGRAM, *"run --workload infer --ranks 1,2 --quiet".split(),
                  *"--set prompt=8 --set output=4 --max-time 0.001s".split(), "--output",
                  "inference.h5")
        self.page("inference", "run", "report", "inference.h5")
        for launch in ("launch_a", "launch_b", "launch_c"):
            self.measure(f"{launch}.h5", 2, "--workload", "dp", "--ranks", "1,2", *LITTLE)
        launches = ["launch_a.h5", "launch_b.h5", "launch_c.h5"]
        self.page("launches", "launches", "report", *launches)
        self.page("index", "index", "report", "--index", *launches, "sample.h5")
        self.page("compare", "compare", "compare", "launch_a.h5,launch_b.h5", "launch_c.h5")
        self.measure("calibrated.h5", 2, "--device", "host", "--workload", "dp,calibrate",
                     "--model", "tiny", "--ranks", "1,2", *LITTLE, "--set", "sizes=8..4MiB*8",
                     "--set", "rotate=1MiB", "--set", "shapes=64x64x64,256x256x256")
        self.page("predict_far", "predict", "predict", "calibrated.h5",
                  *"--ranks 64,128 --nodes-of 128 --set batch=1024".split())
        self.page("predict_measured", "predict", "predict", "calibrated.h5",
                  *"--ranks 2,4,8 --nodes-of 8 --set latency=0.5x".split())

    def of_sheet(self):
        """A prediction of a data sheet, with other machines beside it."""
        self.page("predict_sheet", "predict", "predict", SHEET, *ASKED,
                  *"--ranks 8,32,128 --set link.inter=4x --set gemm=2x,memory=2x".split())

    def of_hostile_sheets(self):
        """Predictions of data sheets with hostile names."""
        with open(SHEET, encoding="utf-8") as file:
            sheet = file.read()
        several = 3  # texts of a name
        for first in range(0, len(hostile_run.PAYLOADS), several):
            name = b" ".join(hostile_run.PAYLOADS[first:first + several]).decode("ascii", "ignore")
            # Control characters are refused; what JSON writes of the rest TOML reads.
            quoted = json.dumps("".join(letter for letter in name if letter.isprintable()))
            self.write(f"sheet-{first:02}.toml", re.sub(
                r"^name = .*$", lambda _: f"name = {quoted}", sheet, count=1, flags=re.MULTILINE))
            self.page(f"predict-hostile-{first:02}", "hostile", "predict", f"sheet-{first:02}.toml",
                      *ASKED, "--ranks", "8,16", "--set", "gemm=2x")

    def compared(self):
        """A comparison of simulated runs; gives the files of its first side."""
        sides = [[f"side_{side}_{launch}.h5" for launch in range(3)] for side in range(2)]
        for seed, file in enumerate(sides[0] + sides[1], start=1):
            self.call(os.environ["ISOSCALE_RICH"], file, "8", str(seed), "4")
        self.page("compare_rich", "compare", "compare", *map(",".join, sides))
        return sides[0]

    def made(self, rich):
        """What takes no launcher: runs that were simulated, and data sheets."""
        self.of_sheet()
        self.page("predict_best", "predict", "predict", SHEET, *ASKED, "--ranks", "16", "--best")
        self.of_hostile_sheets()
        self.hostile("sample", 1 if self.whole else 3)  # it has every field
        self.call(os.environ["ISOSCALE_RICH"], "rich.h5", *rich)
        self.page("rich", "rich", "report", "rich.h5")
        self.compared()

    def few(self):
        """Pages of a prediction, a comparison, one run, several launches and an index."""
        self.of_sheet()
        launches = self.compared()
        self.page("run", "run", "report", launches[0])
        self.page("launches", "launches", "report", *launches)
        self.page("index", "index", "report", "--index", *launches, "sample.h5")


def main(folder, options):
    whole = "--large" in options
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    pages = Pages(folder, whole)
    pages.call(os.environ["ISOSCALE_SAMPLE"], "sample.h5")
    pages.page("sample", "sample", "report", "sample.h5")
    if "--few" in options:
        pages.few()
    else:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for done in [pool.submit(pages.measured),
                         pool.submit(pages.made, LARGE if whole else FEW)]:
                done.result()
    pages.write("pages.json", json.dumps(sorted(pages.listed, key=lambda page: page["name"])),
                encoding="ascii")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), sys.argv[2:])
