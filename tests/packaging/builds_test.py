# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Builds of other kinds than the one under test, from nothing: minutes each."""

import json
import os
import pwd
import shutil

from container_test import copied_by_docker
from support import BARE, CMAKE, Case, SOURCE, run, run_ok, sample_run

HOUR = 3600


def ccache_environment():
    """Keeps what other builds have compiled, where ccache does that."""
    # ccache asks for the language of messages to be the same.
    names = ("CCACHE_", "LANG", "LC_")
    kept = {name: value for name, value in os.environ.items() if name.startswith(names)}
    return {"PATH": BARE["PATH"], **kept, "HOME": os.environ.get("HOME", "/")}


class Builds(Case):
    def copy_sources(self):
        """What an image gets, and nothing else."""
        sources = self.scratch / "sources"
        for name in copied_by_docker():
            if (SOURCE / name).is_dir():
                shutil.copytree(SOURCE / name, sources / name)
            else:
                sources.mkdir(exist_ok=True)
                shutil.copy(SOURCE / name, sources)
        return sources

    def test_without_mpi_blas_and_a_page_it_reports_and_says_what_it_lacks(self):
        sources = self.copy_sources()
        environment = ccache_environment()
        said = run_ok(CMAKE, "--preset", "laptop", "-DISOSCALE_TESTS=OFF", "-DISOSCALE_PAGE=OFF",
                      f"-DCMAKE_CXX_COMPILER_LAUNCHER={os.environ['ISOSCALE_LAUNCHER']}",
                      # Must not be looked for at all, however well they are installed.
                      "-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON",
                      "-DCMAKE_DISABLE_FIND_PACKAGE_BLAS=ON", cwd=sources, env=environment)
        self.assertIn("not built (ISOSCALE_PAGE is off)", said)
        build = sources / "build-laptop"
        run_ok(CMAKE, "--build", build, "--target", "isoscale", "--parallel", "2",
               timeout=HOUR, env=environment)
        program = build / "isoscale"
        needed = run_ok("ldd", program)
        self.assertNotRegex(needed, r"libmpi|libopenblas|libblas")
        sample, page = sample_run(self.scratch), self.scratch / "page.html"
        text = run_ok(program, "report", sample, "--format", "json", env=BARE)
        self.assertEqual(len(json.loads(text)["runs"]), 1)
        self.assertIn("hybrid", run_ok(program, "report", sample, "--detail", env=BARE))
        for arguments, *needles in (["run"], "MPI"), (
                ["report", sample, "--html", page], "no page", "-DISOSCALE_PAGE="):
            done = run(program, *arguments, env=BARE)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            for needle in needles:
                self.assertIn(needle, done.stderr)
        self.assertFalse(page.exists())

    def test_a_user_without_rights_or_network_builds_from_what_an_image_gets(self):
        sources, prefix = self.copy_sources(), self.scratch / "prefix"
        command = [sources / "launch/container/build.sh", prefix]
        environment = {**ccache_environment(), "CCACHE_DIR": str(self.scratch / "ccache"),
                       "HOME": str(self.scratch), "PATH": BARE["PATH"] + ":/usr/sbin:/sbin"}
        if launcher := os.environ["ISOSCALE_LAUNCHER"]:
            environment["CMAKE_CXX_COMPILER_LAUNCHER"] = launcher
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            for path in (self.scratch, *self.scratch.rglob("*")):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
            # A network that ends at this machine; without loopback Open MPI would complain of it.
            drop = (f"ip link set lo up && exec setpriv --reuid={nobody.pw_uid} "
                    f"--regid={nobody.pw_gid} --clear-groups \"$@\"")
            command = ["unshare", "--net", "bash", "-c", drop, "_", *command]
        run_ok(*command, timeout=HOUR, env=environment, cwd=self.scratch)
        self.assertIn("tiny", run_ok(prefix / "bin/isoscale", "list", "models", env=BARE))
