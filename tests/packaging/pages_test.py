# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""README.md is short, says early what is untested, and no link between the documents is dead."""

import os
import re
import unittest
import urllib.parse

ROOT = os.environ.get("ISOSCALE_SOURCE") or os.path.join(os.path.dirname(__file__), "..", "..")
#: [text](target) and ![text](target), but for code in backticks.
LINK = re.compile(r"\]\(([^)\s]+)\)")
MOST_WORDS = 700


def text_of(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def pages():
    listed = ["README.md"]
    for folder in ("docs", "results", os.path.join("analysis", "systems"),
                   os.path.join("analysis", "software")):
        for at, _, files in os.walk(os.path.join(ROOT, folder)):
            listed += [os.path.relpath(os.path.join(at, file),
                                       ROOT) for file in files if file.endswith(".md")]
    return sorted(listed)


def anchors(text):
    """The anchors that headings get: lower case, dashes for spaces, without other marks."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Pages(unittest.TestCase):
    def test_the_readme_is_short(self):
        self.assertLessEqual(len(text_of("README.md").split()), MOST_WORDS)

    def test_the_readme_says_early_what_no_gpu_has_run(self):
        first = "\n".join(text_of("README.md").splitlines()[:40])
        self.assertRegex(first, r"(?i)no GPU|not.{0,20}on a GPU")

    def test_no_relative_link_is_dead(self):
        checked = 0
        for page in pages():
            for target in LINK.findall(text_of(page)):
                file, _, anchor = target.partition("#")
                if "://" in target or target.startswith("mailto:"):
                    continue
                with self.subTest(page=page, link=target):
                    path = os.path.normpath(os.path.join(os.path.dirname(page),
                                                         urllib.parse.unquote(file))) \
                        if file else page
                    self.assertTrue(os.path.exists(os.path.join(ROOT, path)), path)
                    if anchor and path.endswith(".md"):
                        self.assertIn(anchor, anchors(text_of(path)))
                    checked += 1
        self.assertGreater(checked, 50)

    def test_the_index_names_every_page(self):
        index = text_of(os.path.join("docs", "README.md"))
        for page in pages():
            if page.startswith("docs" + os.sep) and page != os.path.join("docs", "README.md"):
                self.assertIn(f"({os.path.relpath(page, 'docs')})", index)
