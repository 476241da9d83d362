# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Run files that cannot be written any more: where the data goes then."""

import errno
import os
import shutil
import signal

import harness

POINTS = "run --workload dp,tp --max-time 0.2s --precision 20% --ranks 1 --model tiny".split()


class Changed(harness.Case):
    """What happens to the file or its file system between two points."""

    def launch(self, *by, output="run.h5", points=tuple(POINTS)):
        os.makedirs(self.path("fallback"))
        return self.started(*points, "--output", output, "--fallback-dir", self.path("fallback"),
                            by=by)

    def end_of(self, launcher):
        said = launcher.stderr.read()
        launcher.wait(timeout=60 * harness.PATIENCE)
        return said

    def assert_gone_on(self, launcher, why):
        """In the fallback, with all points. What became of the original is the caller's."""
        said = self.end_of(launcher)
        self.assertEqual(launcher.returncode, 1, said)
        self.assertRegex(said, f"(?s)cannot be written .*{why}.*continues in")
        self.assertEqual(self.ok_points_in("fallback/run.h5"), [0, 1])
        self.assertIn("cannot be written", str(self.run_of("fallback/run.h5")["warnings"]))

    def replace_file(self):
        self.write("other", "somebody else's")
        os.replace(self.path("other"), self.path("run.h5"))

    def test_a_file_that_is_replaced_is_left_alone(self):
        launcher = self.launch()
        self.said_until(launcher, "stopped by")
        self.replace_file()
        self.assert_gone_on(launcher, "another")
        self.assertEqual(self.read("run.h5"), "somebody else's")

    def launch_into_a_folder_that_is_removed(self):
        os.mkdir(self.path("there"))
        launcher = self.launch(output="there/run.h5")
        self.said_until(launcher, "stopped by")
        shutil.rmtree(self.path("there"))
        return launcher

    def test_a_directory_that_is_removed(self):
        self.assert_gone_on(self.launch_into_a_folder_that_is_removed(), "No such file")
        self.assertFalse(os.path.exists(self.path("there")))

    def test_without_a_fallback_it_says_so(self):
        launcher = self.launch_into_a_folder_that_is_removed()
        os.rmdir(self.path("fallback"))
        said = self.end_of(launcher)
        self.assertEqual(launcher.returncode, 1, said)
        self.assertRegex(said, "the fallback .*fallback")

    def test_a_signal_then_names_the_file_in_the_fallback(self):
        points = ["dp,tp,pp" if word == "dp,tp" else word for word in POINTS]
        launcher = self.launch(points=points)
        self.said_until(launcher, "stopped by")
        self.replace_file()
        self.said_until(launcher, "stopped by")
        launcher.terminate()
        said = self.end_of(launcher)
        self.assertEqual(launcher.returncode, 128 + signal.SIGTERM, said)
        moved = self.path("fallback/run.h5")
        self.assertIn(f"isoscale run --resume {moved}", said)
        self.assertEqual(self.ok_points_in(moved), [0, 1])
        self.run_ok("run --resume", moved)
        self.assertEqual(self.ok_points_in(moved), [0, 1, 2])

    def test_a_file_that_is_removed_is_written_again(self):
        launcher = self.launch()
        self.said_until(launcher, "stopped by")
        os.remove(self.path("run.h5"))
        said = self.end_of(launcher)
        self.assertEqual(launcher.returncode, 0, said)
        self.assertEqual((self.ok_points_in(), self.run_of()["warnings"]), ([0, 1], []))

    @harness.needs_failing_calls
    def test_a_file_system_that_refuses_the_second_point(self):
        for call, error, why in (("open@libhdf5", errno.EROFS, "[Rr]ead-only"),
                                 ("pwrite@libhdf5", errno.ENOSPC, "No space left"),
                                 ("pwrite@libhdf5", errno.EDQUOT, "[Qq]uota exceeded")):
            with self.subTest(why):
                launcher = self.launch(*self.with_failing_calls(
                    0, ISOSCALE_FAIL=f"{call},1,{error}", ISOSCALE_FAIL_AFTER="renameat2,1"))
                self.assert_gone_on(launcher, why)
                self.assertEqual(self.ok_points_in("run.h5"), [0])
                shutil.rmtree(self.path("fallback"))
                os.remove(self.path("run.h5"))
