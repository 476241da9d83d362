# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Run files that cannot be written any more: where the data goes then."""

import json
import os
import shutil
import subprocess
import unittest

import harness

POINTS = ["run", "--workload", "dp,tp", "--max-time", "0.2s", "--precision", "20%", "--ranks", "1",
          "--model", "tiny"]


def may_mount():
    return subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "-o", "size=64k", "none",
                           "/mnt"], capture_output=True, check=False).returncode == 0


@unittest.skipUnless(shutil.which("unshare") and may_mount(), "it takes the right to mount")
class Full(harness.Case):
    def run_on(self, size, fallback):
        """Runs it with its file on a file system of this size, and the fallback beside that."""
        os.mkdir(self.path("small"))
        os.makedirs(self.path("fallback"))
        script = (f"mount -t tmpfs -o size={size} none small && cd small && "
                  'status=0; "$@" || status=$?; cp -a . ../kept; exit $status')
        command = ["unshare", "--mount", "sh", "-c", script, "sh", self.program, *POINTS, "--output",
                   "run.h5", "--fallback-dir", self.path(fallback)]
        return subprocess.run(command, cwd=self.dir, env=harness.clean_environment(),
                              capture_output=True, text=True, timeout=200 * harness.PATIENCE,
                              check=False)

    def run_of(self, name):
        [run] = json.loads(self.run_ok("report", name, "--format", "json").stdout)["runs"]
        return run

    def smallest_that_holds_a_header(self):
        """In KiB: what a whole run takes, so that half of it is too little for all points."""
        self.run_ok(*POINTS, "--output", "whole.h5")
        return os.path.getsize(self.path("whole.h5")) // 1024

    def test_the_run_goes_on_in_the_fallback(self):
        whole = self.smallest_that_holds_a_header()
        done = self.run_on(f"{max(whole, 64)}k", "fallback")
        if done.returncode == 2:  # refused before anything was measured
            self.assertIn("run.h5", done.stderr)
            return
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("the run goes on in", done.stderr)
        run = self.run_of("fallback/run.h5")
        self.assertEqual({point["status"] for point in run["points"]}, {"ok"})
        self.assertEqual(len(run["points"]), 2)
        self.assertTrue(any("cannot be written any more" in text for text in run["warnings"]))
        for name in os.listdir(self.path("kept")):  # what is left there is whole
            self.run_of(f"kept/{name}")

    def test_without_a_fallback_it_says_so(self):
        whole = self.smallest_that_holds_a_header()
        done = self.run_on(f"{max(whole, 64)}k", "nowhere")
        self.assertIn(done.returncode, (1, 2), done.stderr)
        self.assertRegex(done.stderr, "nor can the fallback .*nowhere|run.h5")


if __name__ == "__main__":
    unittest.main()
