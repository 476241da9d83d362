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
    begin, time, value = group["sample_begin"][:], group["time"][:], group["value"][:]
    device, quantity, rank = texts(group["device"]), texts(group["quantity"]), group["rank"][:]
    return [{"rank": int(rank[i]), "device": device[i], "quantity": quantity[i],
             "time": time[begin[i]:begin[i + 1]].tolist(),
             "value": value[begin[i]:begin[i + 1]].tolist()} for i in range(len(rank))]


def traces(point):
    """Of each rank and traced step, in ns after the rank 0 of the step began it: when its first span
    starts and its last one ends, and by phase how many spans there are and how long they are."""
    ops, group = point["ops"], point["traces"]
    if len(group["rank"]) == 0:
        return []
    phases = names(ops["phase"])
    op_begin, program = ops["op_begin"][:].astype(int), ops["program_of_rank"][:]
    phase = ops["phase"][:]
    span_begin = group["span_begin"][:]
    span_op, start, end = (group[f"span_{name}"][:] for name in ("op", "start", "end"))
    ranks, steps, begins, ends = (group[name][:] for name in ("rank", "step", "begin", "end"))
    rows = []
    for row, rank in enumerate(ranks):
        own = slice(span_begin[row], span_begin[row + 1])
        of_phase = phase[op_begin[program[rank]] + span_op[own]]
        length = end[own] - start[own]
        rows.append({"rank": int(rank), "step": int(steps[row]), "begin": int(begins[row]),
                     "end": int(ends[row]), "first": int(start[own].min(initial=2**62)),
                     "last": int(end[own].max(initial=0)),
                     "phases": {phases[at]: [int((of_phase == at).sum()),
                                             int(length[of_phase == at].sum())]
                                for at in numpy.unique(of_phase)}})
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
