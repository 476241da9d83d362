#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Compares predictions from data sheets with published measurements.

Usage: bench_published.py ISOSCALE [--rows] [--source TEXT]

Predicts each training of published/trainings.csv and each collective of published/collectives.csv
(published/README.md says where they come from). Prints for each source the number of rows, the mean
and the median of predicted / measured - 1, the mean and the largest absolute error, and the share
of the rows whose measured value lies inside the 90% interval, and how well the predicted fastest of
measured layouts does. --rows prints each row as well;
--source takes only the sources and tables whose name contains TEXT.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent / "published"
SHEETS = {"A100": "a100-hdr", "A100-80GB": "a100-hdr", "H100": "h100-ndr", "H100-80GB": "h100-ndr",
          "GB200": "gb200-nvl72"}

# Models that the sources describe and that do not come with Isoscale.
MODELS = {
    "nemotron4-15b": {"hidden": 6144, "ffn": 24576, "heads": 48, "kv_heads": 8, "layers": 32,
                      "vocabulary": 256000, "tied_embedding": False, "learned_positions": False},
    "nemotron4-340b": {"hidden": 18432, "ffn": 73728, "heads": 96, "kv_heads": 8, "layers": 96,
                       "vocabulary": 256000, "tied_embedding": False, "learned_positions": False},
    "gpt-5b": {"hidden": 4096, "heads": 32, "layers": 24, "vocabulary": 50304},
    "gpt3-175b": {"hidden": 12288, "heads": 96, "layers": 96, "vocabulary": 50304},
}


def model_file(name, sequence, folder):
    """Writes the file of the model of a row, such as `mpt-7b h4096 l32 a32 vocab 50368`."""
    words = name.split()
    if words[0] == "llama3.1-8b":
        return "llama3-8b"
    model = dict(MODELS.get(words[0], {}))
    for word, following in zip(words, words[1:] + [""]):
        size = re.fullmatch(r"([hla])(\d+)", word)
        if size:
            model[{"h": "hidden", "l": "layers", "a": "heads"}[size[1]]] = int(size[2])
        elif word == "vocab":
            model["vocabulary"] = int(following)
    model = {"ffn": 4 * model["hidden"], "kv_heads": model["heads"], "vocabulary": 51200,
             "head_size": model["hidden"] // model["heads"], "gated_mlp": False,
             "tied_embedding": True, "learned_positions": words[0] != "mpt", **model}
    label = re.sub(r"[^a-z0-9.]+", "-", f"{name}-{sequence}".lower())
    path = pathlib.Path(folder) / f"{label}.toml"
    values = {"name": label, "source": "as published", "sequence": sequence, **model}
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items()),
                    encoding="utf-8")
    return str(path)


def software_of(row):
    """The profile of the software that a row was measured with."""
    for part, software in (("vTrain", "megatron-deepspeed"), ("llm-foundry", "fsdp-eager"),
                           ("paxml", "jax")):
        if part in row["source"]:
            return software
    return "nemo-2025"


def options_of(row):
    """What the settings of a row are as options of the workload hybrid."""
    options = {"microbatch": row["micro_batch"], "batch": row["global_batch"]}
    if "FULL_SHARD" in row["note"] or "paxml" in row["source"]:
        options["zero"] = "3"
    elif "SHARD_GRAD_OP" in row["note"]:
        options["zero"] = "2"
    if "full recompute" in row["note"] or "checkpointing True" in row["note"]:
        options["recompute"] = "full"
    virtual = re.search(r"vp=(\d+)", row["note"])
    if virtual:
        options |= {"schedule": "interleaved", "v": virtual[1]}
    return options


def predict(program, *arguments):
    done = subprocess.run([program, "predict", *arguments, "--format", "json"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, done.stderr.strip()
    point = json.loads(done.stdout)["curve"]["points"][0]
    if point["refused"]:
        return None, point["refused"]
    return point, ""


def training(program, row, models, files):
    """The published and the predicted step time of a row with its interval, in seconds. `files` has
    what stands for a sheet or a profile of that name."""
    sheet, software = SHEETS[row["gpu"]], software_of(row)
    extents = {axis: int(row[axis]) for axis in ("dp", "ep", "cp", "tp", "pp")}
    shards = re.search(r"fsdp=(\d+)", row["note"])
    if shards:
        extents |= {"dp": extents["dp"] // int(shards[1]), "ep": int(shards[1])}
    axes = ",".join(f"{axis}={extent}" for axis, extent in extents.items() if extent > 1) or "dp=1"
    settings = [word for key, value in options_of(row).items()
                for word in ("--set", f"{key}={value}")]
    point, why = predict(program, files.get(sheet, sheet), "--software",
                         files.get(software, software),
                         "--model", models[row["model"], row["seq"]], "--ranks", row["gpus"],
                         "--mesh", axes, "--dtype", row["precision"] or "f16", *settings)
    measured = float(row["value"])
    if row["metric"] == "tokens_per_s_per_gpu":
        measured = int(row["global_batch"]) * int(row["seq"]) / (measured * int(row["gpus"]))
    return {"source": row["source"].split(":")[0] + " " + row["gpu"],
            "name": f"{row['model']} {row['gpus']} x {axes} microbatch {row['micro_batch']} "
                    f"sequence {row['seq']} {row['precision']}",
            "row": row, "measured": measured, "why": why, "time": point and point["step_time"],
            "fits": point and point["fits"], "memory": point and point["memory_per_rank"]}


def published_rows():
    with open(HERE / "trainings.csv", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def trainings(program, rows, files=None):
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        models = {(row["model"], row["seq"]): model_file(row["model"], int(row["seq"]), folder)
                  for row in rows}
        return list(pool.map(lambda row: training(program, row, models, files or {}), rows))


def collective(program, row):
    """The published and the predicted seconds of a collective, without an interval."""
    done = subprocess.run(
        [program, "predict", row["sheet"], "--workload", "collectives", "--ranks", row["members"],
         "--dtype", "f64", "--set", f"op={row['kind']}", "--set", f"sizes={row['bytes']}",
         "--format", "json"], capture_output=True, text=True, check=False)
    predicted = json.loads(done.stdout)["rows"][0] if done.returncode == 0 else None
    time = predicted and {"value": predicted["time"], "lower": math.nan, "upper": math.nan}
    measured = float(row["value"]) * 1e-6
    if row["unit"] == "busbw" and predicted:
        bus_bytes = predicted["busbw"] * predicted["time"]
        measured = bus_bytes / (float(row["value"]) * 1e9)
    choice = predicted and f"{predicted['algorithm']} {predicted['protocol']}"
    return {"source": row["table"], "measured": measured, "time": time, "row": row,
            "why": done.stderr.strip() or choice,
            "name": f"{row['kind']} of {row['bytes']} bytes on {row['members']} x {row['sheet']}"}


def summary(rows):
    known = [row for row in rows if row["time"]]
    if not known:
        return f"{len(rows):4} rows, none predicted"
    errors = [row["time"]["value"] / row["measured"] - 1 for row in known]
    inside = sum(row["time"]["lower"] <= row["measured"] <= row["time"]["upper"] for row in known)
    has_interval = not math.isnan(known[0]["time"]["lower"])
    return (f"{len(known):4} of {len(rows):3} rows: mean {100 * statistics.mean(errors):+6.1f}%, "
            f"median {100 * statistics.median(errors):+6.1f}%, mean of absolute errors "
            f"{100 * statistics.mean(map(abs, errors)):5.1f}%, largest "
            f"{100 * max(errors, key=abs):+6.1f}%"
            + (f", inside {100 * inside / len(known):3.0f}%, "
               f"{sum(row['fits'] for row in known):4} fit" if has_interval else ""))


def ranks_of(values):
    """The rank of each value, the mean rank of those that are equal."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


def layouts(found):
    """Among the measured layouts of a model, batch and number of GPUs: what the predicted fastest
    costs over the measured fastest, and the rank correlation (Spearman) of the times."""
    groups = collections.defaultdict(list)
    for entry in found:
        if entry["time"]:
            row = entry["row"]
            groups[row["source"], row["model"], row["gpus"], row["global_batch"]].append(entry)
    regrets, correlations = [], []
    for group in groups.values():
        if len(group) < 5:
            continue
        predicted = [entry["time"]["value"] for entry in group]
        measured = [entry["measured"] for entry in group]
        regrets.append(measured[predicted.index(min(predicted))] / min(measured) - 1)
        correlations.append(statistics.correlation(ranks_of(predicted), ranks_of(measured)))
    if regrets:
        print(f"layouts: {len(regrets)} groups of 5 or more; the pick costs "
              f"{statistics.mean(regrets):.1%} more than the best in the mean, {max(regrets):.1%} at "
              f"worst; median rank correlation {statistics.median(correlations):.2f}")


def scaling(found):
    """Prints the weak-scaling efficiency of each series of rows that differ in the number of GPUs:
    published and predicted, from the smallest to the largest."""
    series = collections.defaultdict(list)
    for entry in found:
        row = entry["row"]
        if entry["time"]:
            series[row["source"], row["model"], row["gpu"], row["precision"], row["tp"], row["pp"],
                   row["cp"], row["micro_batch"], row["seq"],
                   int(row["global_batch"]) / int(row["dp"])].append(entry)
    for (source, model, gpu, precision, *_), entries in series.items():
        entries.sort(key=lambda entry: int(entry["row"]["gpus"]))
        first, last = entries[0], entries[-1]
        if int(last["row"]["gpus"]) < 4 * int(first["row"]["gpus"]) or "vTrain" in source:
            continue
        measured = first["measured"] / last["measured"]
        predicted = first["time"]["value"] / last["time"]["value"]
        print(f"efficiency of {model} {precision} on {last['row']['gpus']} {gpu} against "
              f"{first['row']['gpus']}: published {measured:.1%}, predicted {predicted:.1%}, "
              f"{100 * (predicted - measured):+.1f} points")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--source", default="")
    given = parser.parse_args()
    rows = [row for row in published_rows() if given.source in row["source"]]
    found = trainings(given.program, rows)
    show("all trainings", found, given.rows)
    layouts(found)
    scaling(found)
    with open(HERE / "collectives.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if given.source in row["table"]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda row: collective(given.program, row), rows))
    show("all collectives", found, given.rows)
    between = [entry for entry in found
               if int(entry["row"]["nodes"]) > 1 and 2**20 <= int(entry["row"]["bytes"]) <= 2**24]
    print(f"{'those of 1 to 16 MiB between nodes':48} {summary(between)}")


def show(everything, found, with_rows):
    """Prints a line for each source and one for `everything`."""
    by_source = collections.defaultdict(list)
    for row in found:
        by_source[row["source"]].append(row)
        if with_rows:
            value = row["time"]["value"] if row["time"] else math.nan
            print(f"{value / row['measured'] - 1:+7.1%} {value:9.4g} of {row['measured']:9.4g} s  "
                  f"{row['name']}  {row['why'].splitlines()[0] if row['why'] else ''}")
    for source, of_source in by_source.items():
        print(f"{source:48} {summary(of_source)}")
    print(f"{everything:48} {summary(found)}")


if __name__ == "__main__":
    main()
