// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The part of the seam for HDF5.
#include <hdf5.h>

#include <type_traits>

#include "tests/fault/interposed.hpp"

namespace {

/// Returns what a function of HDF5 returns where it fails: a value below zero, or 0 if it is
/// unsigned.
template <class Result>
constexpr Result bad() {
  if constexpr (std::is_unsigned_v<Result>) return 0;
  return static_cast<Result>(-1);
}

}  // namespace

#define HDF5(NAME, ...) \
  isoscale::fault::instead<NAME>(__func__, bad<decltype(NAME(__VA_ARGS__))>(), __VA_ARGS__)
#define HDF5_CLOSE(NAME, ID) isoscale::fault::after<NAME>(__func__, herr_t{-1}, ID)

extern "C" {

SEAMS(1, HDF5, H5Aget_space, H5Aget_storage_size, H5Aget_type, H5Dget_create_plist, H5Dget_space,
      H5Dget_storage_size, H5Dget_type, H5Eclear2, H5Iget_file_id, H5Pcreate, H5Pget_external_count,
      H5Pget_layout, H5Pset_fletcher32, H5Pset_shuffle, H5Screate, H5Sget_simple_extent_ndims,
      H5Sget_simple_extent_npoints, H5Sget_simple_extent_type, H5Tcopy, H5Tenum_create,
      H5Tget_class, H5Tget_size, H5Tis_variable_str, H5Zfilter_avail, H5free_memory)
SEAMS(2, HDF5, H5Adelete, H5Aexists, H5Fget_filesize, H5Pset_deflate, H5Pset_sieve_buf_size,
      H5Pset_userblock, H5Tset_cset, H5Tset_size, H5Tset_strpad)
SEAMS(3, HDF5, H5Aopen, H5Aread, H5Awrite, H5Dopen2, H5Eset_auto2, H5Fopen, H5Gopen2, H5Ldelete,
      H5Lexists, H5Pset_attr_phase_change, H5Pset_chunk, H5Pset_file_locking, H5Pset_libver_bounds,
      H5Pset_link_phase_change, H5Screate_simple, H5Sget_simple_extent_dims, H5Tenum_insert)
SEAMS(4, HDF5, H5Dvlen_reclaim, H5Ewalk2, H5Fcreate, H5Lget_info)
SEAMS(5, HDF5, H5Gcreate2)
SEAMS(6, HDF5, H5Acreate2, H5Aiterate2, H5Dread, H5Dwrite, H5Literate)
SEAMS(7, HDF5, H5Dcreate2)
SEAMS(1, HDF5_CLOSE, H5Aclose, H5Dclose, H5Fclose, H5Gclose, H5Pclose, H5Sclose, H5Tclose)

}  // extern "C"
