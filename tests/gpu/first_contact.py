# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Reads and writes JSON for first_contact.sh.

first_contact.py rates PART NAME REPORT.json   figures of a run, one a line
first_contact.py json STEPS.tsv FIGURES.tsv    all that was tried and measured, as one JSON object
"""
import json
import sys


def rates(part, name, report):
    with open(report, encoding="utf-8") as file:
        run = json.load(file)["runs"][0]
    for point in run["points"]:
        if point["status"] != "ok":
            print(part, f"{name}: {point['workload']} {point['status']}, {point['reason']}",
                  sep="\t")
            continue
        if (point["step_time"] or {}).get("median"):
            print(part, f"{name}: a step of {point['workload']} takes "
                        f"{point['step_time']['median'] * 1e3:.3f} ms, "
                        f"{point['flops_per_rank'] * 1e-12:.1f} TFLOP/s a rank", sep="\t")
        for row in point["rows"] or []:
            if row["status"] != "ok":
                continue
            what = " ".join(str(row[key]) for key in ("kind", "m", "n", "k", "bytes", "cache",
                                                      "dtype")
                            if row.get(key) is not None)
            rate = (f"{row['flops'] * 1e-12:.1f} TFLOP/s" if row.get("flops")
                    else f"{row['bandwidth'] * 1e-9:.1f} GB/s" if row.get("bandwidth")
                    else f"{row['time']['median'] * 1e6:.1f} us")
            print(part, f"{name}: {row['op']} {what}: {rate}", sep="\t")


def together(steps, figures):
    def lines(path):
        with open(path, encoding="utf-8") as file:
            return [line.rstrip("\n").split("\t") for line in file]
    names = ("part", "name", "verdict", "seconds", "why")
    json.dump({"steps": [{**dict(zip(names, line)),
                          "seconds": int(line[3])} for line in lines(steps)],
               "figures": [{"part": line[0],
                            "text": "\t".join(line[1:])} for line in lines(figures)]},
              sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    commands = {"rates": (rates, 3), "json": (together, 2)}
    function, count = commands.get(sys.argv[1] if len(sys.argv) > 1 else "", (None, 0))
    if function is None or len(sys.argv) != 2 + count:
        sys.exit(__doc__)
    function(*sys.argv[2:])
