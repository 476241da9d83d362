#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""The code that nvcc makes of the kernels moves packs of elements, divides no integers and spills no registers.

Reads PTX and what ptxas says of it; needs no GPU. Kernels that reach the speed of memory need all of this; whether they
reach it is what bench_kernels measures on a GPU.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

NVCC = Path(os.environ.get("ISOSCALE_NVCC", "nvcc"))
KERNELS = Path(os.environ["ISOSCALE_SOURCE"]) / "src/executor/cuda/kernels"
ARCHITECTURE = "90"

# Kernels of large operands, and how many loads of packs each has under way at least before it stores anything. A pack of
# the widest operand has 16 bytes, one of another operand has as many elements.
LOADS = {
    "adam": 4, "sgd": 4, "add": 4, "cast_plain": 4, "cast_transpose": 2, "find_largest": 4, "checksum": 2, "copy": 2,
    "gelu": 4, "swiglu": 4, "gelu_gradient": 4, "swiglu_gradient": 3, "norm": 4, "norm_gradient": 3, "softmax": 4,
    "softmax_gradient": 4, "sum_rows": 1, "put": 8,
}
ONLY_READ = {"find_largest", "checksum"}
LOAD = re.compile(r"\bld(\.global(\.\w+)*)?\.(v[24]\.|u32\b)")
STORE = re.compile(r"\bst(\.global(\.\w+)*)?\.(v[24]|wb)\.")
OF_16_BYTES = re.compile(r"\b(ld|st)(\.global(\.\w+)*)?\.(v4\.[ubsf]32|v2\.[ubsf]64)\b")
DIVISION = re.compile(r"\b(div|rem)\.[us](32|64)\b")


def kernel_name(entry):
    """The name of a kernel: the last part of its mangled name, whose parts begin with their length."""
    at, name = len("_ZN"), ""
    while match := re.compile(r"\d+").match(entry, at):
        end = match.end() + int(match.group())
        name, at = entry[match.end():end], end
    return name


def compile_to_ptx(source, folder):
    """The file of PTX, and what ptxas says of it."""
    ptx = Path(folder) / f"{source.name}.ptx"
    command = [NVCC, "-std=c++20", "-O3", "--expt-relaxed-constexpr", f"-arch=compute_{ARCHITECTURE}", "--ptx"]
    command += ["-I", KERNELS.parents[2], "-I", KERNELS.parents[3], "-isystem", os.environ["ISOSCALE_NCCL_INCLUDE"]]
    subprocess.run([*command, source, "-o", ptx], check=True)
    usage = subprocess.run(
        [NVCC.parent / "ptxas", "-v", f"-arch=sm_{ARCHITECTURE}", ptx, "-o", os.devnull],
        check=True, stderr=subprocess.PIPE, text=True)
    return ptx.read_text(), usage.stderr


def most_loads_under_way(body):
    """The most loads of packs that follow each other before a store of one or the start of a loop."""
    most = now = 0
    lines = body.splitlines()
    last_jump = {line.split()[-1].rstrip(";"): at for at, line in enumerate(lines) if "bra" in line}
    for at, line in enumerate(lines):
        if LOAD.search(line):
            now += 1
            most = max(most, now)
        elif STORE.search(line) or (line.startswith("$") and last_jump.get(line.rstrip(":"), 0) > at):
            now = 0
    return most


class KernelCode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            joined = Path(folder) / "kernels.cu"  # as the build joins them
            joined.write_text("".join(f'#include "{source}"\n' for source in sorted(KERNELS.glob("*.cu"))))
            ptx, usage = compile_to_ptx(joined, folder)
        cls.entries = re.findall(r"\.entry (\w+)\((.*?)^}", ptx, re.DOTALL | re.MULTILINE)
        cls.usage = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", usage)

    def test_large_operands_move_in_packs(self):
        seen = set()
        for entry, body in self.entries:
            name = kernel_name(entry)
            if name not in LOADS:
                continue
            seen.add(name)
            with self.subTest(entry):
                self.assertGreaterEqual(most_loads_under_way(body), LOADS[name])
                self.assertRegex(body, OF_16_BYTES)
                if name not in ONLY_READ:
                    self.assertRegex(body, STORE)
        self.assertEqual(seen, set(LOADS))

    def test_they_divide_no_integers(self):
        for entry, body in self.entries:
            if kernel_name(entry) in LOADS.keys() - {"put"}:  # that one divides once for each block
                with self.subTest(entry):
                    self.assertNotRegex(body, DIVISION)

    def test_no_kernel_spills_registers_or_has_a_stack(self):
        self.assertGreaterEqual(len(self.usage), len(self.entries))
        self.assertEqual(set(self.usage), {("0", "0", "0")})


if __name__ == "__main__":
    if not all(os.access(NVCC.parent / program, os.X_OK) for program in (NVCC.name, "ptxas")):
        print(f"SKIPPED: {NVCC} or its ptxas is not on this machine")
        sys.exit(77)
    unittest.main()
