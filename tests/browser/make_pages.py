# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""make_pages.py FOLDER: run files of all kinds, and of each the page and the JSON report.

FOLDER/NAME.html, NAME.json and NAME.raw.json (what dump_run.py reads of the files), and pages.json,
which lists them by kind. Environment: ISOSCALE, ISOSCALE_SAMPLE = make_sample_run, ISOSCALE_RICH =
make_page_run or empty, ISOSCALE_MPIEXEC = mpiexec with its flags up to the rank count.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

import hostile_run  # noqa: E402

PROGRAM = os.environ["ISOSCALE"]
MPIEXEC = shlex.split(os.environ["ISOSCALE_MPIEXEC"])
SHEET = os.path.join(HERE, "..", "..", "analysis", "systems", "a100-hdr.toml")
#: Each in a second or two: what is tested is what the page makes of the numbers.
SHORT = ["--max-time", "0.8s", "--quiet"]
LITTLE = ["--set", "batch=8"]


class Pages:
    def __init__(self, folder):
        self.folder = folder
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

    def report(self, name, kind, *files):
        self.call(PROGRAM, "report", *files, "--html", f"{name}.html", "--force")
        if kind != "hostile":
            with open(self.path(f"{name}.json"), "w", encoding="ascii") as out:
                out.write(self.call(PROGRAM, "report", *files, "--format", "json"))
            with open(self.path(f"{name}.raw.json"), "w", encoding="ascii") as out:
                out.write(self.call(sys.executable, "-B", os.path.join(HERE, "dump_run.py"), *files))
        self.listed.append({"name": name, "kind": kind})

    def index(self, name, *files):
        self.call(PROGRAM, "report", "--index", *files, "--html", f"{name}.html", "--force")
        with open(self.path(f"{name}.json"), "w", encoding="ascii") as out:
            out.write(self.call(PROGRAM, "report", "--index", *files, "--format", "json"))
        self.listed.append({"name": name, "kind": "index"})

    def compare(self, name, *sides):
        self.call(PROGRAM, "compare", *sides, "--html", f"{name}.html", "--force")
        with open(self.path(f"{name}.json"), "w", encoding="ascii") as out:
            out.write(self.call(PROGRAM, "compare", *sides, "--format", "json"))
        self.listed.append({"name": name, "kind": "compare"})

    def predict(self, name, kind, *arguments):
        self.call(PROGRAM, "predict", *arguments, "--html", f"{name}.html", "--force")
        if kind != "hostile":
            with open(self.path(f"{name}.json"), "w", encoding="ascii") as out:
                out.write(self.call(PROGRAM, "predict", *arguments, "--format", "json"))
        self.listed.append({"name": name, "kind": kind})

    def predictions(self):
        """Of a run, of a data sheet, of a search, and of data sheets with hostile names."""
        self.measure("calibrated.h5", 2, "--device", "host", "--workload", "dp,calibrate", "--model", "tiny",
                     "--ranks", "1,2", *LITTLE)
        self.predict("predict_far", "predict", "calibrated.h5", "--ranks", "64,128",
                     "--nodes-of", "128", "--set", "batch=1024")
        self.predict("predict_measured", "predict", "calibrated.h5", "--ranks", "2,4,8",
                     "--nodes-of", "8", "--set", "latency=0.5x")
        asked = ["--model", "gpt-1.3b", "--set", "batch=2048"]
        self.predict("predict_sheet", "predict", SHEET, *asked, "--ranks", "8,64,512",
                     "--set", "link.inter=4x", "--set", "gemm=2x,memory=2x")
        self.predict("predict_best", "predict", SHEET, *asked, "--ranks", "64", "--best")
        with open(SHEET, encoding="utf-8") as file:
            sheet = file.read()
        several = 3  # texts of a name
        for first in range(0, len(hostile_run.PAYLOADS), several):
            name = b" ".join(hostile_run.PAYLOADS[first:first + several]).decode("ascii", "ignore")
            # Control characters are refused; what JSON writes of the rest TOML reads.
            quoted = json.dumps("".join(letter for letter in name if letter.isprintable()))
            with open(self.path(f"sheet-{first:02}.toml"), "w", encoding="utf-8") as file:
                file.write(re.sub(r"^name = .*$", lambda _: f"name = {quoted}", sheet, count=1, flags=re.MULTILINE))
            self.predict(f"predict-hostile-{first:02}", "hostile", f"sheet-{first:02}.toml", *asked,
                         "--ranks", "8,64", "--set", "gemm=2x")


def main(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    pages = Pages(folder)
    pages.call(os.environ["ISOSCALE_SAMPLE"], "sample.h5")
    pages.report("sample", "sample", "sample.h5")

    # Four ranks, which share cores where there are fewer.
    pages.measure("run.h5", 4, "--workload", "dp,pp,collectives,gemm,memory", "--ranks", "1,2,4", *LITTLE,
                  "--set", "sizes=8KiB..2MiB*16", "--set", "largest=256", "--set", "cache=warm")
    pages.report("run", "run", "run.h5")
    for launch in ("launch_a", "launch_b", "launch_c"):
        pages.measure(f"{launch}.h5", 2, "--workload", "dp", "--ranks", "1,2", *LITTLE)
    pages.report("launches", "launches", "launch_a.h5", "launch_b.h5", "launch_c.h5")

    pages.index("index", "launch_a.h5", "launch_b.h5", "launch_c.h5", "sample.h5")

    pages.compare("compare", "launch_a.h5,launch_b.h5", "launch_c.h5")
    pages.predictions()
    if os.environ.get("ISOSCALE_RICH"):
        pages.call(os.environ["ISOSCALE_RICH"], "rich.h5")
        pages.report("rich", "rich", "rich.h5")
        sides = []
        for side in range(2):
            launches = [f"side_{side}_{launch}.h5" for launch in range(3)]
            for launch, file in enumerate(launches):
                pages.call(os.environ["ISOSCALE_RICH"], file, "8", str(1 + 3 * side + launch))
            sides.append(",".join(launches))
        pages.compare("compare_rich", *sides)

    # One has every field, the other has curves.
    for source, every in (("sample", 1), ("run", 2)):
        made = hostile_run.write_all(pages.path(f"{source}.h5"), pages.path(f"of_{source}"), every)
        for file in made:
            name = f"{source}-{os.path.splitext(os.path.basename(file))[0]}"
            pages.report(name, "hostile", os.path.relpath(file, folder))
    with open(pages.path("pages.json"), "w", encoding="ascii") as out:
        json.dump(pages.listed, out)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
