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

SEAM_1(HDF5_CLOSE, herr_t, H5Aclose, hid_t)
SEAM_6(HDF5, hid_t, H5Acreate2, hid_t, const char*, hid_t, hid_t, hid_t, hid_t)
SEAM_2(HDF5, herr_t, H5Adelete, hid_t, const char*)
SEAM_2(HDF5, htri_t, H5Aexists, hid_t, const char*)
SEAM_1(HDF5, hid_t, H5Aget_space, hid_t)
SEAM_1(HDF5, hsize_t, H5Aget_storage_size, hid_t)
SEAM_1(HDF5, hid_t, H5Aget_type, hid_t)
SEAM_6(HDF5, herr_t, H5Aiterate2, hid_t, H5_index_t, H5_iter_order_t, hsize_t*, H5A_operator2_t,
       void*)
SEAM_3(HDF5, hid_t, H5Aopen, hid_t, const char*, hid_t)
SEAM_3(HDF5, herr_t, H5Aread, hid_t, hid_t, void*)
SEAM_3(HDF5, herr_t, H5Awrite, hid_t, hid_t, const void*)
SEAM_1(HDF5_CLOSE, herr_t, H5Dclose, hid_t)
SEAM_7(HDF5, hid_t, H5Dcreate2, hid_t, const char*, hid_t, hid_t, hid_t, hid_t, hid_t)
SEAM_1(HDF5, hid_t, H5Dget_create_plist, hid_t)
SEAM_1(HDF5, hid_t, H5Dget_space, hid_t)
SEAM_1(HDF5, hsize_t, H5Dget_storage_size, hid_t)
SEAM_1(HDF5, hid_t, H5Dget_type, hid_t)
SEAM_3(HDF5, hid_t, H5Dopen2, hid_t, const char*, hid_t)
SEAM_6(HDF5, herr_t, H5Dread, hid_t, hid_t, hid_t, hid_t, hid_t, void*)
SEAM_4(HDF5, herr_t, H5Dvlen_reclaim, hid_t, hid_t, hid_t, void*)
SEAM_6(HDF5, herr_t, H5Dwrite, hid_t, hid_t, hid_t, hid_t, hid_t, const void*)
SEAM_1(HDF5, herr_t, H5Eclear2, hid_t)
SEAM_3(HDF5, herr_t, H5Eset_auto2, hid_t, H5E_auto2_t, void*)
SEAM_4(HDF5, herr_t, H5Ewalk2, hid_t, H5E_direction_t, H5E_walk2_t, void*)
SEAM_1(HDF5_CLOSE, herr_t, H5Fclose, hid_t)
SEAM_4(HDF5, hid_t, H5Fcreate, const char*, unsigned, hid_t, hid_t)
SEAM_2(HDF5, herr_t, H5Fget_filesize, hid_t, hsize_t*)
SEAM_3(HDF5, hid_t, H5Fopen, const char*, unsigned, hid_t)
SEAM_1(HDF5_CLOSE, herr_t, H5Gclose, hid_t)
SEAM_5(HDF5, hid_t, H5Gcreate2, hid_t, const char*, hid_t, hid_t, hid_t)
SEAM_3(HDF5, hid_t, H5Gopen2, hid_t, const char*, hid_t)
SEAM_1(HDF5, hid_t, H5Iget_file_id, hid_t)
SEAM_3(HDF5, herr_t, H5Ldelete, hid_t, const char*, hid_t)
SEAM_3(HDF5, htri_t, H5Lexists, hid_t, const char*, hid_t)
SEAM_4(HDF5, herr_t, H5Lget_info, hid_t, const char*, H5L_info_t*, hid_t)
SEAM_6(HDF5, herr_t, H5Literate, hid_t, H5_index_t, H5_iter_order_t, hsize_t*, H5L_iterate_t, void*)
SEAM_1(HDF5_CLOSE, herr_t, H5Pclose, hid_t)
SEAM_1(HDF5, hid_t, H5Pcreate, hid_t)
SEAM_1(HDF5, int, H5Pget_external_count, hid_t)
SEAM_1(HDF5, H5D_layout_t, H5Pget_layout, hid_t)
SEAM_3(HDF5, herr_t, H5Pset_attr_phase_change, hid_t, unsigned, unsigned)
SEAM_3(HDF5, herr_t, H5Pset_chunk, hid_t, int, const hsize_t*)
SEAM_2(HDF5, herr_t, H5Pset_deflate, hid_t, unsigned)
SEAM_3(HDF5, herr_t, H5Pset_file_locking, hid_t, hbool_t, hbool_t)
SEAM_1(HDF5, herr_t, H5Pset_fletcher32, hid_t)
SEAM_3(HDF5, herr_t, H5Pset_libver_bounds, hid_t, H5F_libver_t, H5F_libver_t)
SEAM_3(HDF5, herr_t, H5Pset_link_phase_change, hid_t, unsigned, unsigned)
SEAM_1(HDF5, herr_t, H5Pset_shuffle, hid_t)
SEAM_2(HDF5, herr_t, H5Pset_sieve_buf_size, hid_t, size_t)
SEAM_2(HDF5, herr_t, H5Pset_userblock, hid_t, hsize_t)
SEAM_1(HDF5_CLOSE, herr_t, H5Sclose, hid_t)
SEAM_1(HDF5, hid_t, H5Screate, H5S_class_t)
SEAM_3(HDF5, hid_t, H5Screate_simple, int, const hsize_t*, const hsize_t*)
SEAM_3(HDF5, int, H5Sget_simple_extent_dims, hid_t, hsize_t*, hsize_t*)
SEAM_1(HDF5, int, H5Sget_simple_extent_ndims, hid_t)
SEAM_1(HDF5, hssize_t, H5Sget_simple_extent_npoints, hid_t)
SEAM_1(HDF5, H5S_class_t, H5Sget_simple_extent_type, hid_t)
SEAM_1(HDF5_CLOSE, herr_t, H5Tclose, hid_t)
SEAM_1(HDF5, hid_t, H5Tcopy, hid_t)
SEAM_1(HDF5, hid_t, H5Tenum_create, hid_t)
SEAM_3(HDF5, herr_t, H5Tenum_insert, hid_t, const char*, const void*)
SEAM_1(HDF5, H5T_class_t, H5Tget_class, hid_t)
SEAM_1(HDF5, size_t, H5Tget_size, hid_t)
SEAM_1(HDF5, htri_t, H5Tis_variable_str, hid_t)
SEAM_2(HDF5, herr_t, H5Tset_cset, hid_t, H5T_cset_t)
SEAM_2(HDF5, herr_t, H5Tset_size, hid_t, size_t)
SEAM_2(HDF5, herr_t, H5Tset_strpad, hid_t, H5T_str_t)
SEAM_1(HDF5, htri_t, H5Zfilter_avail, H5Z_filter_t)
SEAM_1(HDF5, herr_t, H5free_memory, void*)

}  // extern "C"
