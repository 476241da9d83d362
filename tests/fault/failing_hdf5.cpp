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

template <auto Function, class... Arguments>
auto hdf5(const char* name, Arguments... arguments) {
  using Result = decltype(Function(arguments...));
  return isoscale::fault::instead<Function>(name, bad<Result>(), arguments...);
}

template <auto Function>
herr_t hdf5_close(const char* name, hid_t id) {
  return isoscale::fault::after<Function>(name, herr_t{-1}, id);
}

}  // namespace

extern "C" {

herr_t H5Aclose(hid_t attr_id) { return hdf5_close<H5Aclose>(__func__, attr_id); }
hid_t H5Acreate2(hid_t loc_id, const char* attr_name, hid_t type_id, hid_t space_id, hid_t acpl_id,
                 hid_t aapl_id) {
  return hdf5<H5Acreate2>(__func__, loc_id, attr_name, type_id, space_id, acpl_id, aapl_id);
}
herr_t H5Adelete(hid_t loc_id, const char* attr_name) {
  return hdf5<H5Adelete>(__func__, loc_id, attr_name);
}
htri_t H5Aexists(hid_t obj_id, const char* attr_name) {
  return hdf5<H5Aexists>(__func__, obj_id, attr_name);
}
hid_t H5Aget_space(hid_t attr_id) { return hdf5<H5Aget_space>(__func__, attr_id); }
hsize_t H5Aget_storage_size(hid_t attr_id) { return hdf5<H5Aget_storage_size>(__func__, attr_id); }
hid_t H5Aget_type(hid_t attr_id) { return hdf5<H5Aget_type>(__func__, attr_id); }
herr_t H5Aiterate2(hid_t loc_id, H5_index_t idx_type, H5_iter_order_t order, hsize_t* idx,
                   H5A_operator2_t op, void* op_data) {
  return hdf5<H5Aiterate2>(__func__, loc_id, idx_type, order, idx, op, op_data);
}
hid_t H5Aopen(hid_t obj_id, const char* attr_name, hid_t aapl_id) {
  return hdf5<H5Aopen>(__func__, obj_id, attr_name, aapl_id);
}
herr_t H5Aread(hid_t attr_id, hid_t type_id, void* buf) {
  return hdf5<H5Aread>(__func__, attr_id, type_id, buf);
}
herr_t H5Awrite(hid_t attr_id, hid_t type_id, const void* buf) {
  return hdf5<H5Awrite>(__func__, attr_id, type_id, buf);
}
herr_t H5Dclose(hid_t dset_id) { return hdf5_close<H5Dclose>(__func__, dset_id); }
hid_t H5Dcreate2(hid_t loc_id, const char* name, hid_t type_id, hid_t space_id, hid_t lcpl_id,
                 hid_t dcpl_id, hid_t dapl_id) {
  return hdf5<H5Dcreate2>(__func__, loc_id, name, type_id, space_id, lcpl_id, dcpl_id, dapl_id);
}
hid_t H5Dget_create_plist(hid_t dset_id) { return hdf5<H5Dget_create_plist>(__func__, dset_id); }
hid_t H5Dget_space(hid_t dset_id) { return hdf5<H5Dget_space>(__func__, dset_id); }
hsize_t H5Dget_storage_size(hid_t dset_id) { return hdf5<H5Dget_storage_size>(__func__, dset_id); }
hid_t H5Dget_type(hid_t dset_id) { return hdf5<H5Dget_type>(__func__, dset_id); }
hid_t H5Dopen2(hid_t loc_id, const char* name, hid_t dapl_id) {
  return hdf5<H5Dopen2>(__func__, loc_id, name, dapl_id);
}
herr_t H5Dread(hid_t dset_id, hid_t mem_type_id, hid_t mem_space_id, hid_t file_space_id,
               hid_t dxpl_id, void* buf) {
  return hdf5<H5Dread>(__func__, dset_id, mem_type_id, mem_space_id, file_space_id, dxpl_id, buf);
}
herr_t H5Dvlen_reclaim(hid_t type_id, hid_t space_id, hid_t dxpl_id, void* buf) {
  return hdf5<H5Dvlen_reclaim>(__func__, type_id, space_id, dxpl_id, buf);
}
herr_t H5Dwrite(hid_t dset_id, hid_t mem_type_id, hid_t mem_space_id, hid_t file_space_id,
                hid_t dxpl_id, const void* buf) {
  return hdf5<H5Dwrite>(__func__, dset_id, mem_type_id, mem_space_id, file_space_id, dxpl_id, buf);
}
herr_t H5Eclear2(hid_t err_stack) { return hdf5<H5Eclear2>(__func__, err_stack); }
herr_t H5Eset_auto2(hid_t estack_id, H5E_auto2_t func, void* client_data) {
  return hdf5<H5Eset_auto2>(__func__, estack_id, func, client_data);
}
herr_t H5Ewalk2(hid_t err_stack, H5E_direction_t direction, H5E_walk2_t func, void* client_data) {
  return hdf5<H5Ewalk2>(__func__, err_stack, direction, func, client_data);
}
herr_t H5Fclose(hid_t file_id) { return hdf5_close<H5Fclose>(__func__, file_id); }
hid_t H5Fcreate(const char* filename, unsigned flags, hid_t fcpl_id, hid_t fapl_id) {
  return hdf5<H5Fcreate>(__func__, filename, flags, fcpl_id, fapl_id);
}
herr_t H5Fget_filesize(hid_t file_id, hsize_t* size) {
  return hdf5<H5Fget_filesize>(__func__, file_id, size);
}
hid_t H5Fopen(const char* filename, unsigned flags, hid_t fapl_id) {
  return hdf5<H5Fopen>(__func__, filename, flags, fapl_id);
}
herr_t H5Gclose(hid_t group_id) { return hdf5_close<H5Gclose>(__func__, group_id); }
hid_t H5Gcreate2(hid_t loc_id, const char* name, hid_t lcpl_id, hid_t gcpl_id, hid_t gapl_id) {
  return hdf5<H5Gcreate2>(__func__, loc_id, name, lcpl_id, gcpl_id, gapl_id);
}
hid_t H5Gopen2(hid_t loc_id, const char* name, hid_t gapl_id) {
  return hdf5<H5Gopen2>(__func__, loc_id, name, gapl_id);
}
hid_t H5Iget_file_id(hid_t id) { return hdf5<H5Iget_file_id>(__func__, id); }
herr_t H5Ldelete(hid_t loc_id, const char* name, hid_t lapl_id) {
  return hdf5<H5Ldelete>(__func__, loc_id, name, lapl_id);
}
htri_t H5Lexists(hid_t loc_id, const char* name, hid_t lapl_id) {
  return hdf5<H5Lexists>(__func__, loc_id, name, lapl_id);
}
herr_t H5Lget_info(hid_t loc_id, const char* name, H5L_info_t* linfo, hid_t lapl_id) {
  return hdf5<H5Lget_info>(__func__, loc_id, name, linfo, lapl_id);
}
herr_t H5Literate(hid_t grp_id, H5_index_t idx_type, H5_iter_order_t order, hsize_t* idx,
                  H5L_iterate_t op, void* op_data) {
  return hdf5<H5Literate>(__func__, grp_id, idx_type, order, idx, op, op_data);
}
herr_t H5Pclose(hid_t plist_id) { return hdf5_close<H5Pclose>(__func__, plist_id); }
hid_t H5Pcreate(hid_t cls_id) { return hdf5<H5Pcreate>(__func__, cls_id); }
int H5Pget_external_count(hid_t plist_id) {
  return hdf5<H5Pget_external_count>(__func__, plist_id);
}
H5D_layout_t H5Pget_layout(hid_t plist_id) { return hdf5<H5Pget_layout>(__func__, plist_id); }
herr_t H5Pset_attr_phase_change(hid_t plist_id, unsigned max_compact, unsigned min_dense) {
  return hdf5<H5Pset_attr_phase_change>(__func__, plist_id, max_compact, min_dense);
}
herr_t H5Pset_chunk(hid_t plist_id, int ndims, const hsize_t* dim) {
  return hdf5<H5Pset_chunk>(__func__, plist_id, ndims, dim);
}
herr_t H5Pset_deflate(hid_t plist_id, unsigned level) {
  return hdf5<H5Pset_deflate>(__func__, plist_id, level);
}
herr_t H5Pset_file_locking(hid_t fapl_id, hbool_t use_file_locking, hbool_t ignore_when_disabled) {
  return hdf5<H5Pset_file_locking>(__func__, fapl_id, use_file_locking, ignore_when_disabled);
}
herr_t H5Pset_fletcher32(hid_t plist_id) { return hdf5<H5Pset_fletcher32>(__func__, plist_id); }
herr_t H5Pset_libver_bounds(hid_t plist_id, H5F_libver_t low, H5F_libver_t high) {
  return hdf5<H5Pset_libver_bounds>(__func__, plist_id, low, high);
}
herr_t H5Pset_link_phase_change(hid_t plist_id, unsigned max_compact, unsigned min_dense) {
  return hdf5<H5Pset_link_phase_change>(__func__, plist_id, max_compact, min_dense);
}
herr_t H5Pset_shuffle(hid_t plist_id) { return hdf5<H5Pset_shuffle>(__func__, plist_id); }
herr_t H5Pset_sieve_buf_size(hid_t fapl_id, size_t size) {
  return hdf5<H5Pset_sieve_buf_size>(__func__, fapl_id, size);
}
herr_t H5Pset_userblock(hid_t plist_id, hsize_t size) {
  return hdf5<H5Pset_userblock>(__func__, plist_id, size);
}
herr_t H5Sclose(hid_t space_id) { return hdf5_close<H5Sclose>(__func__, space_id); }
hid_t H5Screate(H5S_class_t type) { return hdf5<H5Screate>(__func__, type); }
hid_t H5Screate_simple(int rank, const hsize_t* dims, const hsize_t* maxdims) {
  return hdf5<H5Screate_simple>(__func__, rank, dims, maxdims);
}
int H5Sget_simple_extent_dims(hid_t space_id, hsize_t* dims, hsize_t* maxdims) {
  return hdf5<H5Sget_simple_extent_dims>(__func__, space_id, dims, maxdims);
}
int H5Sget_simple_extent_ndims(hid_t space_id) {
  return hdf5<H5Sget_simple_extent_ndims>(__func__, space_id);
}
hssize_t H5Sget_simple_extent_npoints(hid_t space_id) {
  return hdf5<H5Sget_simple_extent_npoints>(__func__, space_id);
}
H5S_class_t H5Sget_simple_extent_type(hid_t space_id) {
  return hdf5<H5Sget_simple_extent_type>(__func__, space_id);
}
herr_t H5Tclose(hid_t type_id) { return hdf5_close<H5Tclose>(__func__, type_id); }
hid_t H5Tcopy(hid_t type_id) { return hdf5<H5Tcopy>(__func__, type_id); }
hid_t H5Tenum_create(hid_t base_id) { return hdf5<H5Tenum_create>(__func__, base_id); }
herr_t H5Tenum_insert(hid_t type, const char* name, const void* value) {
  return hdf5<H5Tenum_insert>(__func__, type, name, value);
}
H5T_class_t H5Tget_class(hid_t type_id) { return hdf5<H5Tget_class>(__func__, type_id); }
size_t H5Tget_size(hid_t type_id) { return hdf5<H5Tget_size>(__func__, type_id); }
htri_t H5Tis_variable_str(hid_t type_id) { return hdf5<H5Tis_variable_str>(__func__, type_id); }
herr_t H5Tset_cset(hid_t type_id, H5T_cset_t cset) {
  return hdf5<H5Tset_cset>(__func__, type_id, cset);
}
herr_t H5Tset_size(hid_t type_id, size_t size) {
  return hdf5<H5Tset_size>(__func__, type_id, size);
}
herr_t H5Tset_strpad(hid_t type_id, H5T_str_t strpad) {
  return hdf5<H5Tset_strpad>(__func__, type_id, strpad);
}
htri_t H5Zfilter_avail(H5Z_filter_t id) { return hdf5<H5Zfilter_avail>(__func__, id); }
herr_t H5free_memory(void* mem) { return hdf5<H5free_memory>(__func__, mem); }

}  // extern "C"
