# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""launch/demo.sh: what it builds and starts on machines of several kinds."""

import os
import shutil

import scripts

ROOT = os.path.dirname(scripts.LAUNCH)
# Configures by writing down what it was told; builds a program that writes down what it was told.
CMAKE = """case "$1" in
  --version) echo "cmake version ${STANDIN_CMAKE:-3.25.1}" ;;
  --build) echo "build $*" >> %(calls)s; cp %(program)s build/isoscale 2>/dev/null || true ;;
  -DWEB=*) echo "page" >> %(calls)s; mkdir -p build/page; : > build/page/asset.cpp ;;
  *) echo "configure $*" >> %(calls)s
     mkdir -p build; : > build/build.ninja
     echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" > build/CMakeCache.txt
     echo "ISOSCALE_CUDA_MISSING:INTERNAL=$STANDIN_MISSING" >> build/CMakeCache.txt
     for word in "$@"; do case "$word" in -D*=*)
       word=${word#-D}; echo "${word%%=*}:STRING=${word#*=}" >> build/CMakeCache.txt ;;
     esac; done ;;
esac"""


class Case(scripts.Case):
    """A checkout with the scripts alone, on a machine of 16 cores."""

    def setUp(self):
        super().setUp()
        self.node_of(16)
        self.checkout = self.path("checkout")
        shutil.copytree(scripts.LAUNCH, os.path.join(self.checkout, "launch"))
        for name in ("CMakeLists.txt", "CMakePresets.json"):
            shutil.copy(os.path.join(ROOT, name), self.checkout)
        self.write("checkout/launch/install-packages.sh", "#!/bin/sh\n")  # all are installed
        self.stand_in("ccache", "true")
        self.stand_in("nvidia-smi", "exit 9")
        self.stand_in("mpirun", '[ "$1" = --version ] && echo "mpirun (Open MPI) 5.0.6" && exit\n'
                                f'echo "mpirun $*" >> {self.path("calls")}')
        program = self.stand_in("isoscale",
                                f'echo "isoscale $*" >> {self.path("calls")}; echo summary')
        self.stand_in("cmake", f"cd {self.checkout}\n"
                      + CMAKE % {"calls": self.path("calls"), "program": program})

    def demo(self, *arguments, **environment):
        """What was called, line by line, and the process."""
        done = self.script(os.path.join(self.checkout, "launch/demo.sh"), *arguments,
                           **{"STANDIN_MISSING": "there is no nvcc", **environment})
        return self.taken_calls(), done

    def started(self, *arguments, **environment):
        """The mpirun command of a demonstration that worked, all calls, and what was said."""
        calls, done = self.demo(*arguments, **environment)
        self.assert_exit(0, done)
        [launch] = [call for call in calls if call.startswith("mpirun ")]
        return launch, calls, done.stderr

    def gpus(self, *capabilities):
        self.stand_in("nvidia-smi", "\n".join(
            f'echo "GPU-{i}, {capability}, NVIDIA H100 80GB HBM3"'
            for i, capability in enumerate(capabilities)))


class Machines(Case):
    """Which ranks are started, and whether the plugin is built."""

    def test_ranks_on_a_host_are_cores_up_to_four(self):
        for cores, ranks in [(1, 2), (2, 2), (3, 3), (16, 4)]:
            with self.subTest(cores=cores):
                self.node_of(cores)
                launch, _, said = self.started()
                self.assertIn(f"mpirun -n {ranks} ", launch)
                self.assertEqual("oversubscribed" in said, cores == 1)
                self.assertEqual("--bind-to none" in launch, cores == 1)
        self.assertIn("mpirun -n 8 ", self.started("-n 8")[0])

    def test_a_quota_of_two_cores_leaves_two(self):
        for files in ({"cpu.max": "200000 100000"},
                      {"cpu/cpu.cfs_quota_us": "250000", "cpu/cpu.cfs_period_us": "100000"}):
            with self.subTest(files=files):
                shutil.rmtree(self.path("proc"), ignore_errors=True)
                shutil.rmtree(self.path("sys"), ignore_errors=True)
                os.makedirs(self.path("proc/self"))
                self.write("proc/self/cgroup", "0::/job\n4:cpu:/job\n")
                for name, text in files.items():
                    name = os.path.join("sys/fs/cgroup", name)
                    os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
                    self.write(name, text + "\n")
                shown = self.assert_exit(0, self.run_among_stand_ins(
                    "bash", "-euc", f"source {scripts.LAUNCH}/common.sh; quota_cores proc sys"))
                self.assertEqual(shown.stdout, "2\n")

    def test_gpus_get_a_rank_each_and_a_plugin_for_their_architecture(self):
        self.gpus("9.0", "9.0", "8.0")
        launch, calls, _ = self.started("--workload dp", STANDIN_MISSING="")
        self.assertIn("mpirun -n 3 ", launch)
        self.assertTrue(launch.endswith("--workload dp --device cuda"), launch)
        self.assertIn("-DCMAKE_CUDA_ARCHITECTURES=80;90", calls[0])
        self.assertTrue(any(call.startswith("build ") and call.endswith("isoscale isoscale_cuda")
                            for call in calls), calls)
        launch, _, _ = self.started(STANDIN_MISSING="", CUDA_VISIBLE_DEVICES="2")
        self.assertIn("mpirun -n 1 ", launch)

    def test_gpus_that_the_driver_alone_shows(self):
        for folders in (["proc/driver/nvidia/gpus/0", "proc/driver/nvidia/gpus/1"], []):
            for folder in folders:
                os.makedirs(self.path(folder))
                self.write(folder + "/information", "Model: \t\t NVIDIA A100\nGPU UUID:\t GPU-x\n")
            os.makedirs(self.path("dev"), exist_ok=True)
            for name in ("nvidia0", "nvidia1", "nvidiactl"):
                self.write("dev/" + name, "")
            shown = self.assert_exit(0, self.run_among_stand_ins(
                "bash", "-euc", f"source {scripts.LAUNCH}/checkout.sh; "
                f"source {scripts.LAUNCH}/machine.sh; find_gpus {self.dir}; echo ${{#gpus[@]}}"))
            self.assertEqual(shown.stdout, "2\n")
            shutil.rmtree(self.path("proc"), ignore_errors=True)

    def test_a_gpu_without_its_toolkit_is_said_and_not_used(self):
        self.gpus("9.0")
        launch, calls, said = self.started()
        self.assertNotIn("--device cuda", launch)
        self.assertNotIn("isoscale_cuda", " ".join(calls))
        [line] = [line for line in said.splitlines() if "not used" in line]
        self.assertIn("there is no nvcc", line)

    def test_a_toolkit_without_a_gpu_builds_no_plugin_unless_told_to(self):
        _, calls, said = self.started(STANDIN_MISSING="")
        self.assertNotIn("isoscale_cuda", " ".join(calls))
        self.assertEqual(len([line for line in said.splitlines() if "--with-cuda" in line]), 1)
        launch, calls, _ = self.started("--with-cuda", STANDIN_MISSING="")
        self.assertIn("isoscale_cuda", " ".join(calls))
        self.assertNotIn("--device cuda", launch)
        shutil.rmtree(os.path.join(self.checkout, "build"))
        _, done = self.demo("--with-cuda")
        self.assert_script_refused(done, "--with-cuda", "there is no nvcc")

    def test_an_old_cmake_is_told_what_to_do(self):
        calls, done = self.demo(STANDIN_CMAKE="3.22.1")
        self.assert_script_refused(done, "3.22.1", "3.25", "pip install")
        self.assertEqual(calls, [])

    def test_it_says_apart_what_took_time_and_ends_with_page_and_file(self):
        calls, done = self.demo()
        self.assertEqual(done.stdout, "")  # the report is written as a page; the run prints it
        self.assertEqual([call.split()[1] for call in calls if call.startswith("isoscale ")],
                         ["report"])
        said = done.stderr.rstrip()
        *_, took, page, file = said.splitlines()
        self.assertRegex(took, r"packages \d+ s, build \d+ s, measuring \d+ s")
        self.assertIn("build/demo.html", page)
        self.assertIn("build/demo.h5", file)


class Compilers(scripts.Case):
    """The script configures with the real CMake."""

    def test_an_old_one_is_told_what_to_do(self):
        checkout = self.path("checkout")
        for name in ("analysis", "launch", "results", "src", "tests", "workloads", "docs"):
            shutil.copytree(os.path.join(ROOT, name), os.path.join(checkout, name),
                            ignore=shutil.ignore_patterns("__pycache__", "node_modules", "*.h5"))
        for name in ("CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md"):
            shutil.copy(os.path.join(ROOT, name), checkout)
        self.write("checkout/launch/install-packages.sh", "#!/bin/sh\n")
        self.write("checkout/analysis/page/make_page.cmake", "")  # nothing is fetched
        self.stand_in("nvidia-smi", "exit 9")
        old = self.stand_in("old-g++", 'exec g++ -U__GNUC__ -D__GNUC__=11 "$@"')
        done = self.script(os.path.join(checkout, "launch/demo.sh"), CXX=old)
        self.assert_script_refused(done)
        said = " ".join(done.stderr.split())
        self.assertRegex(said, r"GNU 11\.\d+\.\d+ is too old, 12 .*CXX=g\+\+-12")
