# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""The digest of run files, for tests that change such files: a wrong one is refused."""

import contextlib
import hashlib

import h5py

BLOCK = 512  # bytes before the HDF5 data


def renew(path):
    """Writes the digest of a file as it is now (results/SCHEMA.md)."""
    with open(path, "r+b") as file:
        file.seek(BLOCK)
        content = file.read()
        digest = hashlib.blake2b(content, digest_size=32).hexdigest()
        text = ("isoscale file, digest version 1\n"
                f"digest blake2b-256 {digest}\nbytes {len(content)}\n")
        file.seek(0)
        file.write(text.ljust(BLOCK - 1).encode() + b"\n")


@contextlib.contextmanager
def changed(path):
    """Opens a run file to be changed, and renews its digest in the end."""
    with h5py.File(path, "r+") as run:
        yield run
    renew(path)
