# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""dump_run.py RUN.h5...: what is in the files and only pictures show, read by h5py alone, as JSON.

A list of runs, each a list of points {index, step_times (slowest rank), rank_steps (median of the
measured steps of each rank), warm_up, traced, dropped, devices, traces}.
"""

import json
import os
import sys

import h5py
import numpy


def texts(dataset):
    return [bytes(text).decode(errors="replace") for text in dataset[()]]


def names(dataset):
    return [str(name) for name in dataset.attrs["values"]]


def devices(point):
    group = point["device_series"]
    begin = group["sample_begin"][:]
    return [{"rank": int(group["rank"][i]), "device": texts(group["device"])[i],
             "quantity": texts(group["quantity"])[i],
             "time": group["time"][begin[i]:begin[i + 1]].tolist(),
             "value": group["value"][begin[i]:begin[i + 1]].tolist()}
            for i in range(len(group["rank"]))]


def traces(point):
    """Of each rank and traced step when it began and ended, and its spans with what they are, in ns."""
    ops, group = point["ops"], point["traces"]
    kinds, phases = names(ops["kind"]), names(ops["phase"])
    op_begin, program = ops["op_begin"][:], ops["program_of_rank"][:]
    kind, phase = ops["kind"][:], ops["phase"][:]
    microbatch, stream = ops["microbatch"][:], ops["stream"][:]
    span_begin = group["span_begin"][:]
    span_op, start, end = (group[f"span_{name}"][:] for name in ("op", "start", "end"))
    rows = []
    for row in range(len(group["rank"])):
        rank = int(group["rank"][row])
        spans = []
        for i in range(span_begin[row], span_begin[row + 1]):
            op = int(op_begin[program[rank]] + span_op[i])
            spans.append([kinds[kind[op]], phases[phase[op]], int(microbatch[op]), int(stream[op]),
                          int(start[i]), int(end[i])])
        rows.append({"rank": rank, "step": int(group["step"][row]), "begin": int(group["begin"][row]),
                     "end": int(group["end"][row]), "spans": spans})
    return rows


def dump_point(point):
    times = point["step_times"][:]
    traced = point["step_traced"][:].astype(bool)
    dropped = point["step_dropped"][:].astype(bool)
    warm_up = int(point.attrs["warm_up_steps"])
    plain = ~traced & ~dropped
    plain[:warm_up] = False
    measured = times[plain]
    return {"index": int(point.attrs["index"]),
            "step_times": times.max(axis=1).tolist() if times.size else [],
            "rank_steps": numpy.median(measured, axis=0).tolist() if len(measured) else [],
            "warm_up": warm_up, "traced": numpy.flatnonzero(traced).tolist(),
            "dropped": numpy.flatnonzero(dropped).tolist(),
            "devices": devices(point), "traces": traces(point)}


def dump(path):
    points = []
    with h5py.File(path, "r") as file:
        for name, point in file["points"].items():
            if "part_file" in point.attrs:
                part = os.path.join(os.path.dirname(path), point.attrs["part_file"])
                with h5py.File(part, "r") as beside:
                    points.append(dump_point(beside["points"][name]))
            else:
                points.append(dump_point(point))
    return points


if __name__ == "__main__":
    json.dump([dump(path) for path in sys.argv[1:]], sys.stdout)
