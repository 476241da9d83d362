# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# isoscale_hdf5: the serial HDF5 C library. Run files are written by one rank, so MPI must not come
# in through the back door: where both kinds are installed, the parallel one is passed over.
if(NOT HDF5_ROOT AND NOT DEFINED ENV{HDF5_ROOT})
  # Debian keeps the kinds apart by name; FindHDF5's compiler wrapper may be either one.
  pkg_check_modules(HDF5_SERIAL QUIET IMPORTED_TARGET hdf5-serial)
endif()
add_library(isoscale_hdf5 INTERFACE)
if(HDF5_SERIAL_FOUND)
  target_link_libraries(isoscale_hdf5 INTERFACE PkgConfig::HDF5_SERIAL)
  set(hdf5_version ${HDF5_SERIAL_VERSION})
else()
  enable_language(C)  # FindHDF5 compiles a program in C to learn the version
  set(HDF5_PREFER_PARALLEL OFF)
  find_package(HDF5 REQUIRED COMPONENTS C)
  if(HDF5_IS_PARALLEL)
    message(FATAL_ERROR "Only a parallel HDF5 was found (${HDF5_C_LIBRARIES}). Isoscale needs the "
      "serial one: install it (Debian: libhdf5-dev) or name its place with -DHDF5_ROOT=DIR.")
  endif()
  target_link_libraries(isoscale_hdf5 INTERFACE hdf5::hdf5)
  set(hdf5_version ${HDF5_VERSION})
endif()
message(STATUS "HDF5: serial, version ${hdf5_version}")
