# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# Everything that Isoscale is built on. launch/packages.txt names the Debian packages.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
include(${CMAKE_CURRENT_LIST_DIR}/find_hdf5.cmake)
if(ISOSCALE_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI REQUIRED COMPONENTS CXX)
  include(${CMAKE_CURRENT_LIST_DIR}/find_blas.cmake)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/find_cuda.cmake)
if(ISOSCALE_TESTS)
  find_package(GTest REQUIRED)
endif()
