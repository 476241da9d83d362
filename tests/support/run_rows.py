# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""The rows of micro-benchmarks in a run file, read by h5py alone."""

import statistics

import h5py


def median_call(times, plays, calls):
    """Returns the median over plays of the slowest rank's seconds a call; None if there are no
    plays."""
    if plays == 0:
        return None
    return statistics.median(times.reshape(plays, -1).max(axis=1)) / calls


def rows_of(path):
    """The rows of all points, as dictionaries."""
    found = []
    with h5py.File(path, "r") as file:
        for rows in (point["rows"] for point in file["points"].values() if "rows" in point):
            columns = {name: rows[name][:] for name in ("status", "wrong", "plays", "calls")}
            columns |= {name: column.asstr()[:] for name, column in rows["text"].items()}
            columns |= {name: column[:] for name, column in rows["number"].items()}
            columns["reason"] = rows["reason"].asstr()[:]
            begin, times = rows["time_begin"][:], rows["time"][:]
            for i in range(len(columns["status"])):
                row = {name: column[i] for name, column in columns.items()}
                row["time"] = median_call(times[begin[i]:begin[i + 1]], row["plays"], row["calls"])
                found.append(row)
    return found
