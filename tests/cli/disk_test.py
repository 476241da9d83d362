# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Run files that cannot be written any more: where the data goes then."""

import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import harness

POINTS = "run --workload dp,tp --max-time 0.2s --precision 20% --ranks 1 --model tiny".split()
MOUNT_TMPFS = "mount -t tmpfs -o size=8m none there"
# This is the file system for a loop device that keeps quotas for root as well.
MOUNT_BTRFS = ("truncate -s 128M disk && mkfs.btrfs -q disk && mount -o loop disk there && "
               "btrfs quota enable there")


def may_mount():
    return subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "-o", "size=64k", "none",
                           "/mnt"], capture_output=True, check=False).returncode == 0


def has_quotas():
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "there"))
        return subprocess.run(["unshare", "--mount", "sh", "-c", MOUNT_BTRFS], cwd=folder,
                              capture_output=True, check=False).returncode == 0


class ChangedCase(harness.Case):
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
        self.assertRegex(said, f"cannot be written .*{why}.*continues in")
        self.assertEqual(self.ok_points_in("fallback/run.h5"), [0, 1])
        self.assertIn("cannot be written", str(self.run_of("fallback/run.h5")["warnings"]))


class Changed(ChangedCase):
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


@unittest.skipUnless(shutil.which("nsenter") and may_mount(), "it takes the right to mount")
class ChangedMount(ChangedCase):
    def launch_on_mount(self, change, mount=MOUNT_TMPFS):
        """Runs it on a file system of its own, and this command on that after the first point."""
        os.mkdir(self.path("there"))
        launcher = self.launch("unshare", "--mount", "sh", "-c", mount + ' && exec "$@"', "sh",
                               output="there/run.h5")
        self.said_until(launcher, "stopped by")
        subprocess.run(["nsenter", "--target", str(launcher.pid), "--mount", "sh", "-c", change,
                        self.path("there")], check=True, capture_output=True)
        return launcher

    def test_a_file_system_that_vanishes(self):
        launcher = self.launch_on_mount("umount --lazy $0 && rmdir $0")
        self.assert_gone_on(launcher, "No such file")

    def test_a_file_system_that_becomes_read_only(self):
        launcher = self.launch_on_mount("mount --bind $0 $0 && mount -o remount,bind,ro $0")
        self.assert_gone_on(launcher, "[Rr]ead-only")

    def test_a_file_system_that_fills_up(self):
        launcher = self.launch_on_mount("head -c 16M /dev/zero > $0/more 2> /dev/null || true")
        self.assert_gone_on(launcher, "No space left")

    @unittest.skipUnless(has_quotas(), "it takes Btrfs and a loop device")
    def test_a_quota_that_is_used_up(self):
        launcher = self.launch_on_mount("btrfs qgroup limit 64k $0", MOUNT_BTRFS)
        self.assert_gone_on(launcher, "[Qq]uota exceeded")
