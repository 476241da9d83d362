// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The parts of the seam for files and processes, and for HDF5. Optimized or not, each function of
// files here is called directly by the one that it tells apart.
#include <dirent.h>
#include <fcntl.h>
#include <hdf5.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "tests/fault/interposed.hpp"

using isoscale::fault::file;
using isoscale::fault::file_error;
using isoscale::fault::file_release;
using isoscale::fault::real;

#define FILE_CALL(NAME, ...) \
  file<NAME>(__func__, __builtin_return_address(0) __VA_OPT__(, ) __VA_ARGS__)
#define FILE_RELEASE(NAME, ...) \
  file_release<NAME>(__func__, __builtin_return_address(0), __VA_ARGS__)

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return file<open>(__func__, __builtin_return_address(0), path, flags, mode);
}

int openat(int in, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return file<openat>(__func__, __builtin_return_address(0), in, path, flags, mode);
}

int fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  void* const argument = va_arg(more, void*);
  va_end(more);
  return file<fcntl>(__func__, __builtin_return_address(0), fd, command, argument);
}

/// Says its error with what it returns.
int posix_fallocate(int fd, off_t from, off_t bytes) {
  const auto error = file_error<posix_fallocate>(__func__, __builtin_return_address(0));
  return error ? *error : real<posix_fallocate>(__func__, fd, from, bytes);
}

// The descriptor and the process are gone, also where these fail.
SEAMS(0, FILE_CALL, fork)
SEAMS(1, FILE_CALL, fsync, unlink, opendir, fdopendir, readdir, pipe)
SEAMS(2, FILE_CALL, ftruncate, flock, rename, link, fchmod, stat, lstat, fstat, realpath, fopen64)
SEAMS(3, FILE_CALL, read, write, lseek, unlinkat, readlink, poll)
SEAMS(4, FILE_CALL, pread, pwrite)
SEAMS(5, FILE_CALL, renameat2)
SEAMS(1, FILE_RELEASE, close)
SEAMS(3, FILE_RELEASE, waitpid)

}  // extern "C"

namespace {

/// Returns what a function of HDF5 returns where it fails: -1, or 0 if that is unsigned.
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
