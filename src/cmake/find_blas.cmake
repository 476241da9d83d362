# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# isoscale_blas: a BLAS library with its C header <cblas.h>. OpenBLAS where there is one (its number
# of threads can be set and recorded); any other BLAS with -DBLA_VENDOR=NAME.
add_library(isoscale_blas INTERFACE)
if(NOT BLA_VENDOR)
  pkg_check_modules(OPENBLAS QUIET IMPORTED_TARGET openblas)
endif()
if(OPENBLAS_FOUND)
  target_link_libraries(isoscale_blas INTERFACE PkgConfig::OPENBLAS)
  set(blas_hints ${OPENBLAS_INCLUDE_DIRS})
  message(STATUS "BLAS: OpenBLAS ${OPENBLAS_VERSION}")
else()
  find_package(BLAS REQUIRED)
  target_link_libraries(isoscale_blas INTERFACE BLAS::BLAS)
  message(STATUS "BLAS: ${BLAS_LIBRARIES}")
endif()

find_path(CBLAS_INCLUDE_DIR cblas.h HINTS ${blas_hints} PATH_SUFFIXES openblas)
if(NOT CBLAS_INCLUDE_DIR)
  message(FATAL_ERROR "A BLAS library was found, but not its header <cblas.h>. Install it (Debian: "
    "libopenblas-pthread-dev) or name its folder with -DCBLAS_INCLUDE_DIR=DIR.")
endif()
target_include_directories(isoscale_blas SYSTEM INTERFACE ${CBLAS_INCLUDE_DIR})
