# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""The page of report --html in a release's archive, and what brings it elsewhere."""

import hashlib
import shutil
import tarfile

from builds_test import ccache_environment
from support import BARE, BUILD, CMAKE, Case, SOURCE, run, run_ok

PACKAGES = BUILD / "page"


def stub(folder, name, text="exit 1"):
    """A program of this name that does no more than the text says."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


class Archive(Case):
    def setUp(self):
        super().setUp()
        if not (PACKAGES / "node_modules").is_dir() or shutil.which("node") is None:
            self.skipTest("this build has not bundled a page")
        if run("git", "-C", SOURCE, "rev-parse", "--verify", "HEAD").returncode != 0:
            self.skipTest("the sources are no checkout")

    def write(self, name):
        folder = self.scratch / name
        folder.mkdir()
        run_ok(SOURCE / "launch/tarball.sh", "-o", folder, "-p", PACKAGES)
        (archive,) = folder.iterdir()
        self.assertRegex(archive.name, r"^isoscale-\d+\.\d+\.\d+\.tar\.gz$")
        return archive

    def test_a_build_from_it_needs_no_npm(self):
        with tarfile.open(self.write("out")) as archive:
            archive.extractall(self.scratch)
        (sources,) = self.scratch.glob("isoscale-*")
        page = (sources / "analysis/page/page.html").read_text(encoding="utf-8")
        self.assertIn("<script id=\"data\" type=\"application/json\">", page)
        licences = (sources / "analysis/page/page-licences.txt").read_text(encoding="utf-8")
        for words in ("Apache ECharts", "Apache License", "zrender", "BSD"):
            self.assertIn(words, licences)
        self.assertFalse(list(sources.rglob("node_modules")))

        called = self.scratch / "called"
        tools = self.scratch / "tools"
        for name in ("npm", "node", "nodejs"):
            stub(tools, name, f"touch {called}; exit 1")
        build = self.scratch / "build"
        environment = {**ccache_environment(), "PATH": f"{tools}:{BARE['PATH']}"}
        said = run_ok(CMAKE, "-S", sources, "-B", build, "-G", "Ninja", "-DISOSCALE_TESTS=OFF",
                      "-DISOSCALE_MPI=OFF", "-DISOSCALE_CUDA=OFF", env=environment)
        self.assertIn(f"Page of report --html: {sources}/analysis/page/page.html", said)
        self.assertFalse(called.exists(), "npm or node was called")
        # The build would compile half the program before it embeds the page: by hand.
        rules = (build / "build.ninja").read_text(encoding="utf-8")
        self.assertIn(f"-DPAGE={sources}/analysis/page/page.html", rules)
        self.assertNotIn("bundle.mjs", rules)
        asset = self.scratch / "asset.cpp"
        run_ok(CMAKE, f"-DPAGE={sources}/analysis/page/page.html", f"-DOUTPUT={asset}", "-P",
               sources / "analysis/page/embed.cmake")
        self.assertIn(page, asset.read_text(encoding="utf-8"))

    def test_the_same_commit_gives_the_same_archive(self):
        digests = {hashlib.sha256(self.write(name).read_bytes()).hexdigest() for name in ("a", "b")}
        self.assertEqual(len(digests), 1)

    def test_packages_of_another_lock_file_are_refused(self):
        (self.scratch / "page/node_modules").mkdir(parents=True)
        done = run(SOURCE / "launch/tarball.sh", "-o", self.scratch, "-p", self.scratch / "page")
        self.assertEqual(done.returncode, 2)
        self.assertIn("package-lock.json", done.stderr)
        self.assertFalse(list(self.scratch.glob("*.tar.gz")))


class Packages(Case):
    def packages(self, *commands):
        """What the group 'page' asks for where these commands are."""
        folder = self.scratch / ("tools " + " ".join(commands))
        for name in ("awk", "bash", "dirname"):
            folder.mkdir(exist_ok=True)
            (folder / name).symlink_to(shutil.which(name))
        for name in commands:
            stub(folder, name)
        script = f"source {SOURCE}/launch/checkout.sh && packages_of page"
        return run_ok(folder / "bash", "-c", script, env={"PATH": str(folder)}).split()

    def test_npm_is_installed_only_where_there_is_none(self):
        self.assertEqual(self.packages(), ["nodejs", "npm"])
        self.assertEqual(self.packages("node"), ["npm"])
        self.assertEqual(self.packages("node", "npm"), [])
