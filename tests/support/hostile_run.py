# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Run files whose texts try to be more than text, made of real ones.

Every text of a run file is replaced, whatever its name: fields that are added later are covered by
themselves. Kept are only those that the reader takes one of a few values of (NEEDED). Names that a
run file chooses (facts, options, keys of rows) are hostile as well.

    hostile_run.py SOURCE.h5 FOLDER     writes FOLDER/hostile-N.h5, one for each payload, and long.h5
"""

import os
import re
import sys
import zlib

import h5py
import numpy

import run_digest

#: What markup, scripts, templates, terminals, spreadsheets and objects' keys might act on.
PAYLOADS = (
    b"</script><img src=x onerror=window.hacked=1>",
    b"\"><svg onload=window.hacked=1><script>window.hacked=1</script>",
    b"\x1b[2J\x1b]0;owned\x07\x1b[31m\r\x08red\x7f \xc2\x9b31m",
    b"=cmd|' /C calc'!A0",
    "\u202egnp.exe\u2066\u200b\ufeff\u2028".encode(),
    b"bad \xff\xfe\xc0\xaf\xed\xa0\x80 bytes",
    b"{{constructor.constructor('window.hacked=1')()}}${window.hacked=1}",
    b"{a}{b}{c}{@[1]}|{style|rich}%s%n{0}",
    b"__proto__",
    b"constructor",
    b"javascript:window.hacked=1//'onmouseover='window.hacked=1",
    b"+1,\"2\"\r\n-3;\t@SUM(A1)|`x`|[x](javascript:alert(1))|**b**\n# head",
    b"<!--<script>",
)
LONG = b"x=1,</script><b>\xe2\x80\xae"
MEGABYTE = 1 << 20

#: Names of options, facts and keys, which objects and templates may have a meaning of their own for.
NAMES = (b"__proto__", b"constructor", b"toString", b"=1+1", b"<img src=x onerror=window.hacked=1>",
         b"{{constructor}}", b"\x1b[31mred", b"\xff\xfe")

#: Texts that the reader takes one of a few values of, or that name parts of the file.
NEEDED = ("@format", "@schema_version", "@status", "@part_file", "@part_of", "@values")
#: Texts that a report tells workloads, rows and quantities apart by: where they are something else,
#: nothing of the same kind is shown, and with it none of the other texts.
KINDS = ("@device", "@scaling", "@workload", "text/op", "text/kind", "text/part", "text/pair",
         "text/in_place", "text/groups", "curves/form", "growth/law", "curves/op", "text/cache",
         "device_series/quantity", "device_series/unit", "preflight/name", "preflight/facts")


def hostile(path, old, shift):
    """The text that stands at `path` instead of `old`; all texts of a field get the same payload."""
    field = re.sub(r"\d+", "#", path).encode()
    payload = PAYLOADS[(zlib.crc32(field) + shift) % len(PAYLOADS)]
    return payload if payload in (b"__proto__", b"constructor") else payload + b" " + old


def long_text(size):
    return (LONG * (size // len(LONG) + 1))[:size]


class Rewriter:
    """Replaces the texts of a file in place. `texts` counts them, `fields` says where they stood."""

    def __init__(self, kept, replace):
        self.kept = kept
        self.replace = replace
        self.fields = set()

    def attributes(self, item, path):
        is_dataset = isinstance(item, h5py.Dataset)
        for name in list(item.attrs):
            if name in ("unit", "description") and is_dataset:
                continue  # for other tools; Isoscale reads none of them
            at = f"{path}@{name}"
            value = item.attrs[name]
            if not isinstance(value, str) or not value or at.endswith(self.kept):
                continue
            self.fields.add(re.sub(r"\d{4}", "#", at))
            set_text(item, name, self.replace(at, value.encode(errors="surrogateescape")))

    def dataset(self, parent, name, old, path):
        if h5py.check_string_dtype(old.dtype) is None or old.dtype.kind == "O" or not old.size:
            return
        texts = [bytes(text) for text in numpy.atleast_1d(old[()])]
        if path.endswith(self.kept) or not any(texts):
            return
        self.fields.add(re.sub(r"\d{4}", "#", path))
        texts = [self.replace(path, text) if text else text for text in texts]
        width = max(map(len, texts))
        attributes = {key: old.attrs[key] for key in old.attrs}
        shape = old.shape
        del parent[name]
        made = parent.create_dataset(name, shape, h5py.string_dtype("utf-8", width))
        made.id.write(h5py.h5s.ALL, h5py.h5s.ALL, numpy.array(texts, dtype=f"S{width}"),
                      mtype=made.id.get_type())
        for key, value in attributes.items():
            made.attrs[key] = value

    def group(self, group, path=""):
        self.attributes(group, path)
        for name in list(group):
            at = f"{path}/{name}"
            item = group[name]  # once: opening is most of the time
            if isinstance(item, h5py.Group):
                self.group(item, at)
            else:
                self.attributes(item, at)
                self.dataset(group, name, item, at)


def set_text(item, name, value):
    """As the writer does: of variable length, UTF-8 (or what claims to be)."""
    key = name if isinstance(name, bytes) else name.encode()
    if h5py.h5a.exists(item.id, key):
        h5py.h5a.delete(item.id, key)
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(h5py.h5t.VARIABLE)
    kind.set_cset(h5py.h5t.CSET_UTF8)
    attribute = h5py.h5a.create(item.id, key, kind, h5py.h5s.create(h5py.h5s.SCALAR))
    attribute.write(numpy.array(value, dtype=h5py.string_dtype()))


def add_names(file):
    """Facts, options and keys of rows under hostile names. A link's name has no slash."""
    facts = [file["ranks/text"]] if "ranks/text" in file else []
    for point in file["points"].values():
        for name in NAMES:
            if "options" in point:
                set_text(point["options"], name, b"of " + name)
        if "rows/text" in point and len(point["rows/status"]):
            facts.append(point["rows/text"])
    for group in facts:
        rows = len(next(iter(group.values())))
        for name in NAMES:
            texts = numpy.array([b"of " + name] * rows, dtype="S64")
            space = h5py.h5s.create_simple((rows,))
            kind = h5py.h5t.py_create(h5py.string_dtype("utf-8", 64), logical=True)
            made = h5py.h5d.create(group.id, name, kind, space)
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, texts, mtype=kind)


def parts_of(source):
    """The run file and the part files beside it."""
    stem = os.path.splitext(os.path.basename(source))[0]
    folder = os.path.dirname(os.path.abspath(source))
    return [source] + sorted(os.path.join(folder, name) for name in os.listdir(folder)
                             if re.fullmatch(re.escape(stem) + r"\.part\d+.*\.h5", name))


def rewrite(source, target, replace, kept, names=True):
    """Writes `target` and its parts; returns the fields that were replaced."""
    fields = set()
    stem = os.path.splitext(os.path.basename(source))[0]
    new_stem = os.path.splitext(os.path.basename(target))[0]
    parts = parts_of(source)
    for part in parts:
        new_name = new_stem + os.path.basename(part)[len(stem):]
        made = os.path.join(os.path.dirname(os.path.abspath(target)), new_name)
        with open(part, "rb") as old, open(made, "wb") as new:
            new.write(old.read())
        with run_digest.changed(made) as file:
            rewriter = Rewriter(kept, replace)
            rewriter.group(file)
            fields |= rewriter.fields
            for point in file["points"].values():
                if "part_file" in point.attrs:
                    set_text(point, "part_file",
                             point.attrs["part_file"].replace(stem, new_stem, 1).encode())
            if names:
                add_names(file)
    return fields


def write_all(source, folder, every=1, longest=MEGABYTE):
    """One file for each payload (so that every field gets each of them; `every` = 2: each second
    one), one where nothing is kept that need not be, and one whose names are up to `longest` bytes
    long; returns their paths."""
    os.makedirs(folder, exist_ok=True)
    made = []
    for shift in range(0, len(PAYLOADS), every):
        made.append(os.path.join(folder, f"hostile-{shift:02}.h5"))
        rewrite(source, made[-1], lambda at, old, n=shift: hostile(at, old, n), NEEDED + KINDS)
    made.append(os.path.join(folder, "hostile-kinds.h5"))
    rewrite(source, made[-1], lambda at, old: hostile(at, old, 0), NEEDED)
    seen = {}

    def lengthen(path, old):
        # Once in the whole file, or it would have gigabytes; a run's parts have one name.
        field = path.rsplit("/", 1)[-1]
        if field == "@id":
            return long_text(5000) + b" " + old
        seen[field] = seen.get(field, 0) + 1
        chosen = zlib.crc32(field.encode()) % 8 == 0 or field in ("@model", "host")
        return long_text(longest if seen[field] == 1 and chosen else 3000) + b" " + old

    made.append(os.path.join(folder, "hostile-long.h5"))
    rewrite(source, made[-1], lengthen, NEEDED + KINDS, names=False)
    return made


if __name__ == "__main__":
    print("\n".join(write_all(sys.argv[1], sys.argv[2])))
