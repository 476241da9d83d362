# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""The recipe for Spack, read by a stand-in of Spack's language: it names every dependency that CMake
looks for, and sets no option that CMake does not know."""

import contextlib
import pathlib
import re
import sys
import types
import unittest.mock

from support import Case, SOURCE

RECIPE = SOURCE / "launch/spack/packages/isoscale/package.py"

# The table maps what src/cmake looks for to Spack's name of it; None = part of the system.
PACKAGE_OF = {"Threads": None, "PkgConfig": "pkgconfig", "fmt": "fmt",
              "nlohmann_json": "nlohmann-json", "tomlplusplus": "tomlplusplus", "CLI11": "cli11",
              "HWLOC": "hwloc", "HDF5": "hdf5", "HDF5_SERIAL": "hdf5", "MPI": "mpi",
              "BLAS": "blas", "OPENBLAS": "blas", "CUDAToolkit": "cuda", "NCCL": "nccl",
              "GTest": "googletest", "Python3": "python"}


class StandIn:
    """Records the directives that a recipe gives while it is read."""

    def __init__(self):
        self.conditions = []
        self.variants, self.dependencies, self.conflicts = {}, {}, []

    def depends_on(self, spec, when=None, type=None):  # as Spack names it
        conditions = [*self.conditions, *([when] if when else [])]
        self.dependencies[re.match(r"[a-z0-9-]+", spec)[0]] = conditions

    @contextlib.contextmanager
    def when(self, condition):
        self.conditions.append(condition)
        yield
        self.conditions.pop()

    def variant(self, name, default, description):
        self.variants[name] = default

    def read(self, path):
        """The class that the recipe defines."""
        class Package:
            def define(self, name, value):
                if isinstance(value, bool):
                    return f"-D{name}:BOOL={'ON' if value else 'OFF'}"
                text = ";".join(value) if isinstance(value, list) else str(value)
                return f"-D{name}:STRING={text}"

            def define_from_variant(self, name, variant):
                return self.define(name, self.spec.variants[variant].value)

        module = types.ModuleType("spack.package")
        module.CMakePackage = type("CMakePackage", (Package,), {})
        module.CudaPackage = type("CudaPackage", (), {})
        module.depends_on, module.when, module.variant = self.depends_on, self.when, self.variant
        module.conflicts = lambda spec, when=None, msg="": self.conflicts.append((spec, when))
        module.version = module.license = module.generator = lambda *names, **more: None
        self.variants["cuda"] = False  # CudaPackage brings it
        stand_ins = {"spack": types.ModuleType("spack"), "spack.package": module}
        with unittest.mock.patch.dict(sys.modules, stand_ins):
            names = {}
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
        return names["Isoscale"]


class Spec:
    """A spec that was made concrete, with every dependency in a prefix of its own."""

    def __init__(self, **variants):
        self.variants = {name: types.SimpleNamespace(value=value)
                         for name, value in variants.items()}

    def __getitem__(self, name):
        return types.SimpleNamespace(prefix=pathlib.PurePath("/opt") / name)

    def satisfies(self, condition):
        return self.variants[condition[1:]].value is (condition[0] == "+")


def cmake_text():
    files = [SOURCE / "CMakeLists.txt", SOURCE / "tests/CMakeLists.txt",
             *sorted((SOURCE / "src/cmake").glob("*.cmake")),
             *sorted((SOURCE / "tests/support").glob("*.cmake"))]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


class Recipe(Case):
    def setUp(self):
        super().setUp()
        self.stand_in = StandIn()
        self.recipe = self.stand_in.read(RECIPE)

    def arguments(self, **variants):
        package = self.recipe()
        package.spec = Spec(**{"mpi": True, "tests": False, "cuda": False,
                               "cuda_arch": ("none",), **variants})
        found = [re.fullmatch(r"-D(\w+):\w+=(.*)", text) for text in package.cmake_args()]
        return {match[1]: match[2] for match in found}

    def test_every_dependency_of_cmake_is_named(self):
        text = cmake_text()
        looked_for = {*re.findall(r"find_package\((\w+)", text),
                      *re.findall(r"pkg_check_modules\((\w+)", text),
                      *re.findall(r"find_library\((\w+)_LIBRARY", text)}
        self.assertGreater(len(looked_for), 10)
        for name in sorted(looked_for):
            self.assertIn(name, PACKAGE_OF, "give Spack's name of it here and in the recipe")
            if PACKAGE_OF[name] is not None:
                self.assertIn(PACKAGE_OF[name], self.stand_in.dependencies)

    def test_dependencies_of_parts_come_with_the_parts(self):
        dependencies = self.stand_in.dependencies
        self.assertEqual(dependencies["mpi"], ["+mpi"])
        self.assertEqual(dependencies["blas"], ["+mpi"])
        self.assertEqual(dependencies["nccl"], ["+cuda"])
        self.assertEqual(dependencies["googletest"], ["+tests"])
        self.assertEqual(dependencies["hdf5"], [])
        self.assertIn(("+cuda", "~mpi"), self.stand_in.conflicts)

    def test_every_option_that_it_sets_exists(self):
        text = cmake_text()
        given = self.arguments(cuda=True, tests=True, cuda_arch=("80", "90"))
        for name in given:
            if name.startswith("ISOSCALE_"):
                self.assertRegex(text, rf"option\({name} |set\({name} [^\n]*CACHE")
            else:
                self.assertRegex(text, rf"\b{name}\b")
        switches = set(re.findall(r"option\((ISOSCALE_\w+) ", text)) - {"ISOSCALE_NATIVE",
                                                                        "ISOSCALE_FUZZ"}
        self.assertLessEqual(switches, set(given))

    def test_variants_switch_what_they_name(self):
        plain = self.arguments()
        self.assertEqual((plain["ISOSCALE_MPI"], plain["ISOSCALE_CUDA"]), ("ON", "OFF"))
        self.assertEqual(plain["ISOSCALE_TESTS"], "OFF")
        self.assertNotIn("NCCL_ROOT", plain)
        self.assertEqual(self.arguments(mpi=False)["ISOSCALE_MPI"], "OFF")
        cuda = self.arguments(cuda=True, cuda_arch=("80", "90"))
        self.assertEqual(cuda["ISOSCALE_CUDA"], "ON")
        self.assertEqual(cuda["NCCL_ROOT"], "/opt/nccl")
        self.assertEqual(cuda["CMAKE_CUDA_ARCHITECTURES"], "80;90")
        self.assertNotIn("CMAKE_CUDA_ARCHITECTURES", self.arguments(cuda=True))
