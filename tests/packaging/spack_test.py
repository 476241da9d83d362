# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""The recipe for Spack names every dependency that CMake looks for, and sets no option that CMake
does not know."""

import pathlib
import re
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


class Package:
    """What the recipe uses of Spack's CMakePackage."""

    def define(self, name, value):
        if isinstance(value, bool):
            return f"-D{name}:BOOL={'ON' if value else 'OFF'}"
        text = ";".join(value) if isinstance(value, list) else str(value)
        return f"-D{name}:STRING={text}"

    def define_from_variant(self, name, variant):
        return self.define(name, self.spec.variants[variant].value)


class Spec:
    """A spec that was made concrete, with every dependency in a prefix of its own."""

    def __init__(self, **variants):
        self.variants = {name: types.SimpleNamespace(value=value)
                         for name, value in variants.items()}

    def __getitem__(self, name):
        return types.SimpleNamespace(prefix=pathlib.PurePath("/opt") / name)

    def satisfies(self, condition):
        return self.variants[condition[1:]].value is (condition[0] == "+")


def read_recipe():
    """The class that the recipe defines, and the calls of its directives in order."""
    directives = unittest.mock.MagicMock()
    words = ("conflicts", "depends_on", "generator", "license", "variant", "version", "when")
    names = {"CMakePackage": Package, "CudaPackage": type("CudaPackage", (), {}),
             **{word: getattr(directives, word) for word in words}}
    _, text = RECIPE.read_text(encoding="utf-8").split("from spack.package import *")
    exec(text, names)
    return names["Isoscale"], directives.mock_calls


def dependencies_of(calls):
    """{name: the condition that it stands under, None where under none}."""
    condition, found = None, {}
    for name, arguments, _ in calls:
        if name == "when":
            condition = arguments[0]
        elif name == "when().__exit__":
            condition = None
        elif name == "depends_on":
            found[re.match(r"[a-z0-9-]+", arguments[0])[0]] = condition
    return found


def cmake_text():
    files = [SOURCE / "CMakeLists.txt", SOURCE / "tests/CMakeLists.txt",
             *sorted((SOURCE / "src/cmake").glob("*.cmake")),
             *sorted((SOURCE / "tests/support").glob("*.cmake"))]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


class Recipe(Case):
    def setUp(self):
        super().setUp()
        self.recipe, self.calls = read_recipe()
        self.dependencies = dependencies_of(self.calls)

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
                self.assertIn(PACKAGE_OF[name], self.dependencies)

    def test_dependencies_of_parts_come_with_the_parts(self):
        for name, condition in {"mpi": "+mpi", "blas": "+mpi", "nccl": "+cuda",
                                "googletest": "+tests", "hdf5": None}.items():
            self.assertEqual(self.dependencies[name], condition, name)
        self.assertIn(unittest.mock.call.conflicts("+cuda", when="~mpi", msg=unittest.mock.ANY),
                      self.calls)

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
