# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""join_sources.py OUT.cpp SOURCE.cpp...: one source with the text of several, which compiles once what
they all include.

What a source has in its unnamed namespace gets a namespace of its own there, so that two may have the
same names; compilers go on naming the lines of the sources.
"""

import re
import sys


def text_of(path, number):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"^namespace \{$", f"namespace {{ namespace source_{number} {{", text,
                  flags=re.MULTILINE)
    text = re.sub(r"^\}  // namespace$", "} }  // namespace", text, flags=re.MULTILINE)
    return f'#line 1 "{path}"\n{text}'


def main(out, *sources):
    with open(out, "w", encoding="utf-8") as file:
        for number, source in enumerate(sources):
            file.write(text_of(source, number))


if __name__ == "__main__":
    main(*sys.argv[1:])
