# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""A recipe for Spack. From a checkout: spack repo add launch/spack, then, in the root of the
sources, spack dev-build isoscale@0.2.0 +cuda cuda_arch=90"""

try:  # Spack 1.0 moved the build systems
    from spack_repo.builtin.build_systems.cmake import CMakePackage
    from spack_repo.builtin.build_systems.cuda import CudaPackage
except ImportError:
    pass

from spack.package import *


class Isoscale(CMakePackage, CudaPackage):
    """Measures how well GPU clusters scale on training-like work, and says where each lost
    percent goes."""

    license("MIT")

    # The sources are the checkout that dev-build runs in.
    version("0.2.0")

    variant("mpi", default=True, description="Build the measuring half; without it, reports only")
    variant("tests", default=False, description="Build and run the tests")

    generator("ninja")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("fmt@9:")
    depends_on("nlohmann-json@3.11:")
    depends_on("tomlplusplus@3:")
    depends_on("cli11@2.1:")
    depends_on("hwloc@2:")
    depends_on("hdf5@1.10: ~mpi")

    with when("+mpi"):
        depends_on("mpi@3:")
        depends_on("blas")

    with when("+cuda"):
        depends_on("cuda@12:")
        depends_on("nccl@2.18:")

    with when("+tests"):
        depends_on("googletest@1.12: +gmock", type=("build", "test"))
        depends_on("python@3.9:", type=("build", "test"))
        depends_on("py-h5py", type=("build", "test"))

    conflicts("+cuda", when="~mpi", msg="the CUDA executor needs MPI")
    conflicts("%gcc@:11", msg="C++20 as of GCC 12 is needed")

    def cmake_args(self):
        args = [
            self.define_from_variant("ISOSCALE_MPI", "mpi"),
            self.define_from_variant("ISOSCALE_CUDA", "cuda"),
            self.define_from_variant("ISOSCALE_TESTS", "tests"),
            # A newer compiler may warn of what this release did not know.
            self.define("ISOSCALE_WERROR", False),
            self.define("HDF5_ROOT", self.spec["hdf5"].prefix),
        ]
        if self.spec.satisfies("+cuda"):
            args.append(self.define("NCCL_ROOT", self.spec["nccl"].prefix))
            architectures = self.spec.variants["cuda_arch"].value
            if "none" not in architectures:
                args.append(self.define("CMAKE_CUDA_ARCHITECTURES", list(architectures)))
        return args
