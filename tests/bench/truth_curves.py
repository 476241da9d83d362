# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""The curves that bench_truth.py measures: how one workload scales over 1, 2, 4 and 8 ranks."""

import dataclasses

SMALL, LARGE = (1, 2, 4), 8  # ranks that a prediction sees, and those that it is about


@dataclasses.dataclass(frozen=True)
class Curve:
    name: str
    workload: str
    scaling: str
    port: str  # rate of each host's port of the switch
    settings: tuple  # KEY=VALUE of the workload
    model: str = "flat"
    mesh: str = ""
    small: tuple = SMALL
    ranks_per_host: int = 1
    delay: str = "1.5GFLOP/s"

    @property
    def operations(self):
        """What its ranks do together."""
        names = {"all_reduce"}
        if self.workload == "pp":
            names = {"sendrecv"}
        elif self.workload == "cp":
            names.add("sendrecv")
        elif "pp" in self.mesh or self.name == "balanced":
            names.add("sendrecv")
        if any(text in setting for setting in self.settings
               for text in ("zero=", "sequence_parallel")):
            names = {"reduce_scatter", "all_gather"}
        return ",".join(sorted(names))


# The models have 0.2 to 0.4 million parameters each, on ports so slow that they take the time, and
# not the cores that eight ranks share: steps take a fraction of a second.
MODELS = {
    "flat": {"hidden": 64, "ffn": 256, "heads": 8, "kv_heads": 8, "head_size": 8, "layers": 4},
    "deep": {"hidden": 64, "ffn": 192, "heads": 8, "kv_heads": 8, "head_size": 8, "layers": 8},
    "wide": {"hidden": 128, "ffn": 384, "heads": 8, "kv_heads": 8, "head_size": 16, "layers": 2},
}


def model_text(name):
    lines = {**MODELS[name], "gated_mlp": "false", "sequence": 64, "vocabulary": 256,
             "tied_embedding": "true", "learned_positions": "true", "published_parameters": 0}
    return (f'name = "{name}"\nsource = "bench_truth.py"\n' +
            "".join(f"{key} = {value}\n" for key, value in lines.items()))


DATA = ("microbatch=1", "microbatches=2")  # of one replica
DEALT = ("microbatch=1", "microbatches=16")  # under strong scaling: over all replicas
PIPED = ("microbatch=1", "microbatches=8")
FEW = ("microbatch=1", "microbatches=2")
PAIRS = (2, 4)  # what a mesh of two ranks in some axis can be played on

CURVES = (
    Curve("dp-weak", "dp", "weak", "100mbit", (*DATA, "bucket=256KiB")),
    Curve("dp-weak-slow", "dp", "weak", "50mbit", (*DATA, "bucket=128KiB")),
    Curve("dp-weak-one-bucket", "dp", "weak", "100mbit", (*DATA, "bucket=64MiB")),
    Curve("dp-weak-apart", "dp", "weak", "100mbit", (*DATA, "bucket=256KiB", "overlap=off")),
    Curve("dp-weak-adam-wide", "dp", "weak", "100mbit", (*DATA, "bucket=256KiB", "optimizer=adam"),
          model="wide"),
    Curve("dp-strong", "dp", "strong", "100mbit", (*DEALT, "bucket=256KiB")),
    Curve("dp-strong-apart", "dp", "strong", "100mbit", (*DEALT, "bucket=512KiB", "overlap=off"),
          model="deep"),
    Curve("dp-strong-slow", "dp", "strong", "50mbit", (*DEALT, "bucket=256KiB"),
          delay="3GFLOP/s"),
    Curve("dp-weak-pairs", "dp", "weak", "100mbit", (*DATA, "bucket=256KiB"), ranks_per_host=2),
    Curve("dp-strong-pairs", "dp", "strong", "100mbit", (*DEALT, "bucket=256KiB"),
          ranks_per_host=2),
    Curve("zero-1", "dp", "weak", "100mbit", (*DATA, "bucket=256KiB", "zero=1")),
    Curve("zero-2", "dp", "weak", "100mbit", (*DATA, "bucket=256KiB", "zero=2")),
    Curve("zero-3", "dp", "weak", "100mbit", (*DATA, "gather_bucket=128KiB", "zero=3")),
    Curve("tp-strong", "tp", "strong", "50mbit", FEW),
    Curve("tp-strong-wide", "tp", "strong", "50mbit", FEW, model="wide"),
    Curve("tp-weak", "tp", "weak", "50mbit", DATA),
    Curve("tp-sequence", "tp", "strong", "50mbit", (*FEW, "sequence_parallel=on")),
    Curve("tp-pairs", "tp", "strong", "50mbit", FEW, ranks_per_host=2),
    Curve("pp-gpipe", "pp", "strong", "100mbit", (*PIPED, "schedule=gpipe"), model="deep"),
    Curve("pp-1f1b", "pp", "strong", "50mbit", (*PIPED, "schedule=1f1b"), model="deep"),
    Curve("pp-weak", "pp", "weak", "50mbit", (*PIPED, "schedule=1f1b")),
    Curve("tp2-dp-weak", "hybrid", "weak", "50mbit", (*DATA, "bucket=256KiB"), mesh="tp=2",
          small=PAIRS),
    Curve("tp2-dp-strong", "hybrid", "strong", "50mbit", (*DEALT, "bucket=256KiB"), mesh="tp=2",
          small=PAIRS, ranks_per_host=2),
    Curve("pp2-dp-weak", "hybrid", "weak", "100mbit", (*PIPED, "bucket=256KiB"), mesh="pp=2",
          small=PAIRS),
    Curve("balanced", "hybrid", "strong", "100mbit", (*PIPED, "bucket=256KiB"), model="deep"),
    Curve("cp-strong", "cp", "strong", "50mbit", FEW),
)
